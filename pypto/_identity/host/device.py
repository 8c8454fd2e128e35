"""The component `device_toolchain`: the compilers of a host build, and CANN for a device build."""

from __future__ import annotations

import os

from pypto._identity.content import ContentRoot
from pypto._identity.host.cann import Cann, compiler_version, identify_cann
from pypto._identity.host.closure import closure
from pypto._identity.host.files import Unidentified, lies_in
from pypto._identity.host.gcc import Gcc, identify_gcc
from pypto._identity.host.inventory import gcc_files, outermost
from pypto._identity.host.overrides import compiler_overrides, execution_directory
from pypto._identity.host.probes import Probes
from pypto._identity.host.records import DeviceContentRecord, DeviceToolchainRecord
from pypto._identity.host.selection import HostSelection
from pypto._identity.policy import IdentitySettings
from pypto._identity.toolchain_inputs import ComponentInputs


def device_inputs(selection: HostSelection, settings: IdentitySettings, probes: Probes) -> ComponentInputs:
    """The component `device_toolchain`; only tools that this build selects take part."""
    try:
        compilers = {role: identify_gcc(entry, selection, probes) for role, entry in selection.compilers().items()}
        cann = identify_cann(selection.cann_root()) if selection.execution_mode == "device" else None
        if settings.policy == "content":
            return _by_content(compilers, cann, selection, settings, probes)
        return _by_build(compilers, cann, selection, settings, probes)
    except Unidentified as error:
        return ComponentInputs(unavailable_reason=str(error))


def _by_build(
    compilers: dict[str, Gcc], cann: Cann | None, selection: HostSelection, settings: IdentitySettings, probes: Probes
) -> ComponentInputs:
    whole = settings.strict
    variables = selection.variables
    record: DeviceToolchainRecord = {
        "compilers": {role: gcc.record(whole=whole) for role, gcc in compilers.items()},
        "flags": list(selection.flags),
        "overrides": compiler_overrides(variables),
        "execution_directory": execution_directory(variables, (selection.cwd, selection.project_root)),
    }
    if cann is not None:
        record["cann"] = cann.record(compiler_version(cann, probes), whole=whole)
    files: list[str] = []
    if whole:
        files = _gcc_inventory(compilers, selection, probes)
        if cann is not None:
            files += [cann.root, *_outside(cann, probes)]
    return ComponentInputs(
        roots=tuple(map(ContentRoot, outermost(files))), evidence=dict(record), unavailable_reason=None
    )


def _by_content(
    compilers: dict[str, Gcc], cann: Cann | None, selection: HostSelection, settings: IdentitySettings, probes: Probes
) -> ComponentInputs:
    files = _gcc_inventory(compilers, selection, probes)
    reported = None
    if cann is not None:
        # The build speaks for CANN's own files, never for those of the host's system that its programs load.
        files += _outside(cann, probes)
        if cann.build is not None:
            reported = "=".join(cann.build)
        if cann.build is None or settings.strict:
            files.append(cann.root)
    record: DeviceContentRecord = {
        "entries": {role: gcc.entry for role, gcc in compilers.items()},
        "flags": list(selection.flags),
        "overrides": compiler_overrides(selection.variables),
    }
    return ComponentInputs(
        roots=tuple(map(ContentRoot, outermost(files))),
        reported_version=reported,
        evidence=dict(record),
        unavailable_reason=None,
    )


def _gcc_inventory(compilers: dict[str, Gcc], selection: HostSelection, probes: Probes) -> list[str]:
    return [path for gcc in compilers.values() for path in gcc_files(gcc, selection, probes)]


def _outside(cann: Cann, probes: Probes) -> list[str]:
    root = os.path.realpath(cann.root)
    libraries = closure([os.path.realpath(cann.compiler), os.path.realpath(cann.linker)], probes)
    return [path for path in libraries if not lies_in(os.path.realpath(path), [root])]
