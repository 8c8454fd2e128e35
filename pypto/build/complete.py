"""Building the binaries of a program output directory in place, as often as its sources change."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto.build.compile_ import binary_paths, compile_binaries
from pypto.build.errors import BuildError
from pypto.build.layout import BINARY_MANIFEST, chips_of, generated_files, read_config, write_file
from pypto.build.parallel import run_all

if TYPE_CHECKING:
    from pypto.toolchain.host import Tools


def complete(directory: Path, toolchain: Tools, *, jobs: int | None = None) -> tuple[str, ...]:
    """Make ``directory``, which holds a generated directory's files, a READY one; the paths of what was built.

    Binaries of an earlier call that are intact and were built from the same sources with the same tools stay; see
    `pypto.runtime.binary_context`. Such a directory is the caller's own and is never published: entries of a store are
    built in private directories, from nothing.

    Raises:
        ToolError: a tool failed.
        ToolSetMissing: the configuration asks for a device and the toolchain has no compilers for it.
        BuildError: the directory is not complete, or cannot be written.
    """
    from pypto.build.assemble import assemble_kernel
    from pypto.runtime import binary_context
    from pypto.runtime.binary_manifest import write_manifest
    from pypto.runtime.kernel_config import KernelConfig

    config = read_config(directory)
    if chips_of(config):
        return _complete_chips(directory, config, toolchain, jobs)
    sources = _sources(directory, config)
    simulated = config["execution_mode"] == "sim"
    assembled_kernels = [kernel for kernel in config["kernels"] if "cpp" in kernel]

    def build(missing: tuple[str, ...]) -> binary_context.Built:
        # A binary needs its assembled source, whether or not that is missing as well.
        needed = [k for k in assembled_kernels if k["cpp"] in missing or k["binary"] in missing]
        texts = run_all(lambda k: assemble_kernel(sources[k["pto"]], k, toolchain, simulated), needed, jobs)
        assembled = {kernel["cpp"]: text for kernel, text in zip(needed, texts, strict=True)}
        paths = [path for path in binary_paths(config) if path in missing]
        compiled = compile_binaries(config, paths, (sources | assembled).__getitem__, toolchain, jobs=jobs)
        files = assembled | {path: result.binary for path, result in compiled.items()}
        return binary_context.Built(files, covered=not any(result.uncovered for result in compiled.values()))

    declared = KernelConfig.from_record(config)
    try:
        return binary_context.complete(
            directory,
            _context(config, sources, toolchain),
            binary_context.Positions.of(declared, [kernel["cpp"] for kernel in assembled_kernels]),
            build,
            lambda files: write_manifest(declared, files),
        )
    except OSError as error:
        raise BuildError(f"{directory} cannot be written: {error}") from None


def _complete_chips(directory: Path, config: Mapping[str, Any], toolchain: Tools, jobs: int | None) -> tuple[str, ...]:
    from pypto.runtime.distributed.manifest import write_parent_manifest

    # Without it the parent counts as not complete, whatever happens to a chip.
    (directory / BINARY_MANIFEST).unlink(missing_ok=True)
    built = []
    for chip in chips_of(config):
        built += [f"{chip}/{path}" for path in complete(directory / chip, toolchain, jobs=jobs)]
    manifests = {chip: (directory / chip / BINARY_MANIFEST).read_bytes() for chip in chips_of(config)}
    try:
        write_file(directory, BINARY_MANIFEST, write_parent_manifest(config, manifests))
    except OSError as error:
        raise BuildError(f"{directory} cannot be written: {error}") from None
    return tuple(built)


def _sources(directory: Path, config: Mapping[str, Any]) -> dict[str, bytes]:
    found = {}
    for name in generated_files(config):
        try:
            found[name] = (directory / name).read_bytes()
        except OSError as error:
            raise BuildError(f"{directory} lacks {name}, which its configuration names: {error.strerror}") from None
    return found


def _context(config: Mapping[str, Any], sources: Mapping[str, bytes], toolchain: Tools) -> Mapping[str, Any] | None:
    from pypto._identity.policy import IdentitySettings
    from pypto.toolchain.descriptor import Toolchain

    mode = config["execution_mode"]
    if isinstance(toolchain, Toolchain):
        from pypto._identity.hermetic import hermetic_identity

        environment = hermetic_identity(toolchain.descriptor.record(), device=mode == "device").digest
    else:
        environment = toolchain.identity(mode, IdentitySettings()).digest
    if environment is None:
        return None
    return {
        "backend_type": config["backend_type"],
        "execution_mode": config["execution_mode"],
        "runtime": config["runtime"],
        "runtime_abi": config["runtime_abi"],
        "environment": environment,
        "sources": {name: hashlib.sha256(data).hexdigest() for name, data in sorted(sources.items())},
    }
