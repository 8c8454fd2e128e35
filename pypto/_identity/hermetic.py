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
from pypto._identity.policy import DEFAULT_SETTINGS, IdentitySettings
from pypto._identity.records import digest_record
from pypto._identity.toolchain_inputs import ComponentInputs, ToolchainInputs

GENERATED_OUTPUT_SCHEMA = 1
"""Version of the generator's output format; raised when equal inputs are meant to give other bytes."""

LOGICAL_INTERPRETER = "cpython"

MEASURED = "measured"
"""The fact of a measured set that holds the digest of its folder's content."""

_lock = threading.Lock()
_identities: dict[tuple[str, str, bool, IdentitySettings], ToolchainIdentity] = {}
_cache = InstallationIdentityCache()


def hermetic_identity(
    descriptor_record: Mapping[str, Any],
    package_root: str | os.PathLike[str] | None = None,
    *,
    device: bool = False,
    settings: IdentitySettings = DEFAULT_SETTINGS,
) -> ToolchainIdentity:
    """The identity of builds with the tools of one descriptor.

    Under settings that read content, the descriptor must be a measured one (`pypto.toolchain.measured`): each set then
    carries the digest of all bytes that lie in its folder. Otherwise that digest does not count.

    Args:
        descriptor_record: the descriptor as plain data; its `sets` map a set's name to that set's own record, which
            is taken as it is.
        package_root: the folder `pypto` itself (not its parent); default: the imported package.
        device: whether device code is compiled, so that the sets `cann` and `gcc_aarch64` (if there) take part.
        settings: identity policy, strictness and epoch.

    Returns:
        An identity; unusable, with the reasons, when a set is missing or the package cannot be read. Usable ones are
        remembered for the life of the process.
    """
    root = os.path.realpath(default_package_root() if package_root is None else package_root)
    memo = (digest_record(_plain(descriptor_record)), root, device, settings)
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
        pto_isa=_set_inputs(sets, ["isa"], settings),
        ptoas=_set_inputs(sets, ["ptoas"], settings),
        device_toolchain=_set_inputs(sets, _compilers(sets, device), settings),
        world="hermetic",
        settings=settings,
    )
    identity = _cache.capture(inputs)
    if identity.usable:
        with _lock:
            _identities[memo] = identity
    return identity


def _compilers(sets: Mapping[str, Any], device: bool) -> list[str]:
    # CANN brings a compiler for the device's host of its own; the set gcc_aarch64 goes before it.
    return ["gcc", "cann", *(["gcc_aarch64"] if "gcc_aarch64" in sets else [])] if device else ["gcc"]


def _package_inputs(content: Fingerprint, facts: dict[str, Any]) -> ComponentInputs:
    if content.digest is None:
        return ComponentInputs(unavailable_reason=content.reason)
    return ComponentInputs(evidence={"content": content.digest, **facts}, unavailable_reason=None)


def _set_inputs(sets: Mapping[str, Any], names: list[str], settings: IdentitySettings) -> ComponentInputs:
    evidence = {}
    for name in names:
        if not sets.get(name):
            return ComponentInputs(unavailable_reason=f"the toolchain descriptor has no set {name!r}")
        record = _plain(sets[name])
        facts = record.get("facts", {})
        if settings.reads_content and MEASURED not in facts:
            return ComponentInputs(
                unavailable_reason=f"the files of the tool set {name!r} have not been read, as the identity policy "
                "asks; `python -m pypto.toolchain describe` reads them when it is given the same policy"
            )
        if not settings.reads_content and MEASURED in facts:
            record["facts"] = {fact: value for fact, value in facts.items() if fact != MEASURED}
        evidence[name] = record
    return ComponentInputs(evidence=evidence, unavailable_reason=None)


def _plain(value: Any) -> Any:
    # Read-only views of a descriptor's data are as good as the dictionaries behind them.
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
