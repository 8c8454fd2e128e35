"""The seal step: generated and READY directories of one or more specializations to a bundle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pypto._identity.policy import DEFAULT_SETTINGS, IdentitySettings
from pypto.build.errors import BuildError
from pypto.build.generate import RequestRecord
from pypto.build.layout import generated_files, read_chips, read_config, tree_files
from pypto.build.specs import generated_spec, ready_spec

if TYPE_CHECKING:
    from pypto.toolchain import ToolchainDescriptor


@dataclass(frozen=True)
class Specialized:
    """What the other steps made for one specialization: its request record and its two directories."""

    request: Path
    generated: Path
    ready: Path


def seal(
    inputs: Sequence[Specialized],
    descriptor: ToolchainDescriptor,
    out: Path,
    settings: IdentitySettings = DEFAULT_SETTINGS,
) -> str:
    """Write the bundle into ``out`` (absent or empty) and return its digest.

    ``settings`` (default: the policy ``build``) say which evidence the keys rest on; never taken from the environment.

    Raises:
        BuildError: an input is incomplete or belongs to another one, or ``out`` cannot be used.
    """
    from pypto._identity.hermetic import hermetic_identity
    from pypto.bundle.writing import SealInput, write_bundle

    sealed = []
    device = False
    for item in inputs:
        request = RequestRecord.from_bytes(_read(item.request), str(item.request))
        config = read_config(item.generated)
        if read_config(item.ready) != config:
            raise BuildError(
                f"{item.ready} is not the READY directory of {item.generated}: their configurations differ"
            )
        chips = read_chips(item.generated, config)
        for name in tree_files(config, chips, generated_files):
            if not (item.generated / name).is_file():
                raise BuildError(f"{item.generated} lacks {name}, which its configuration names")
        device = device or config["execution_mode"] == "device"
        sealed.append(
            SealInput(
                config["entry"],
                request.source_digest,
                request.specialization_digest,
                item.generated,
                generated_spec(chips),
                item.ready,
                ready_spec(config, chips),
            )
        )
    environment = hermetic_identity(descriptor.record(), device=device, settings=settings)
    if not environment.usable:
        raise BuildError(f"the tools have no complete identity: {environment.explain()}")
    try:
        return write_bundle(out, environment, sealed).digest
    except ValueError as error:
        raise BuildError(str(error)) from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BuildError(f"request record {path} cannot be read: {error.strerror}") from None
