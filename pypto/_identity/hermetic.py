"""The identity of a build in the hermetic world: what a toolchain descriptor recorded, plus the package's own content.

Nothing about this machine enters: no path, no variable, no interpreter. The generator is plain Python whose output is
the same under every supported CPython, so it enters as a logical name and the schema of what it generates.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any

from pypto._identity.content import Fingerprint
from pypto._identity.identity import ToolchainIdentity
from pypto._identity.installation import InstallationIdentityCache
from pypto._identity.package import default_package_root, package_fingerprints
from pypto._identity.records import digest_record
from pypto._identity.toolchain_inputs import ComponentInputs, ToolchainInputs

GENERATED_OUTPUT_SCHEMA = 1
"""Version of the generator's output format; raised when equal inputs are meant to give other bytes."""

LOGICAL_INTERPRETER = "cpython"

_PTO_ISA_SETS = ("isa", "pto_isa")
_HOST_SETS = ("gcc",)
_DEVICE_SETS = ("cann",)

_lock = threading.Lock()
_identities: dict[tuple[str, str, bool], ToolchainIdentity] = {}
_cache = InstallationIdentityCache()


def hermetic_identity(
    descriptor_record: Mapping[str, Any], package_root: str | os.PathLike[str] | None = None, *, device: bool = False
) -> ToolchainIdentity:
    """The identity of builds with the tools of one descriptor.

    Args:
        descriptor_record: the descriptor as plain data; its `sets` map a set's name to that set's own record, which
            is taken as it is.
        package_root: the folder `pypto` itself (not its parent); default: the imported package.
        device: whether device code is compiled, so that the `cann` set takes part.

    Returns:
        An identity; unusable, with the reasons, when a set is missing or the package cannot be read. Usable ones are
        remembered for the life of the process.
    """
    root = os.path.realpath(default_package_root() if package_root is None else package_root)
    memo = (digest_record(_plain(descriptor_record)), root, device)
    with _lock:
        known = _identities.get(memo)
    if known is not None:
        return known
    sets = descriptor_record.get("sets")
    sets = sets if isinstance(sets, Mapping) else {}
    package = package_fingerprints(root)
    inputs = ToolchainInputs(
        pypto=_package_inputs(
            package["pypto"],
            {"interpreter": LOGICAL_INTERPRETER, "generated_output_schema": GENERATED_OUTPUT_SCHEMA},
        ),
        runtime=_package_inputs(package["runtime"], {}),
        pto_isa=_set_inputs(sets, [next((name for name in _PTO_ISA_SETS if name in sets), _PTO_ISA_SETS[0])]),
        ptoas=_set_inputs(sets, ["ptoas"]),
        device_toolchain=_set_inputs(sets, [*_HOST_SETS, *(_DEVICE_SETS if device else ())]),
        label="hermetic",
    )
    identity = _cache.capture(inputs)
    if identity.usable:
        with _lock:
            _identities[memo] = identity
    return identity


def _package_inputs(content: Fingerprint, facts: dict[str, Any]) -> ComponentInputs:
    if content.digest is None:
        return ComponentInputs(unavailable_reason=content.reason)
    return ComponentInputs(evidence={"content": content.digest, **facts}, unavailable_reason=None)


def _set_inputs(sets: Mapping[str, Any], names: list[str]) -> ComponentInputs:
    missing = [name for name in names if not sets.get(name)]
    if missing:
        return ComponentInputs(unavailable_reason=f"the toolchain descriptor has no set {missing[0]!r}")
    return ComponentInputs(evidence={name: _plain(sets[name]) for name in names}, unavailable_reason=None)


def _plain(value: Any) -> Any:
    # Read-only views of a descriptor's data are as good as the dictionaries behind them.
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
