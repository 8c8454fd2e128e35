"""From the bytes of a READY artifact to a program that can be called."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pypto.runtime import shared_objects
from pypto.runtime.abi import LoadedKernel, Orchestration
from pypto.runtime.binary_manifest import check_loadable, validate_binaries
from pypto.runtime.errors import DeviceUnavailable, LoadError
from pypto.runtime.kernel_config import CONFIG_FILE, MANIFEST_FILE, KernelConfig
from pypto.runtime.places import Locate
from pypto.runtime.program import CompiledProgram


def load(
    files: Mapping[str, bytes],
    *,
    output_dir: Path | None = None,
    program: object = None,
    locate: Locate | None = None,
    digests: Mapping[str, str] | None = None,
    run_directory: Path | None = None,
) -> CompiledProgram:
    """The live program of a READY artifact. Writes no file where the system has anonymous files, and starts no process.

    Args:
        files: content by relative path: ``kernel_config.json``, ``binary_manifest.json`` and the binaries they name at
            least. These very bytes are checked and loaded.
        output_dir: the directory they came from, for ``CompiledProgram.output_dir``.
        program: what was compiled, for ``CompiledProgram.program``.
        locate: gives the place of a function's line in the user's source, for messages.
        digests: SHA-256 by path, for bytes that were hashed and compared already; they are not hashed again.
        run_directory: where runs put diagnostics.

    Raises:
        LoadError: a file is missing or was changed, or a binary is for another machine or runtime ABI.
        DeviceUnavailable: the program is for an NPU.
    """
    config = check(files, digests)
    binaries = {path: bytes(files[path]) for path in config.binaries}
    return CompiledProgram(
        config,
        _restore(config, binaries),
        binaries,
        output_dir=output_dir,
        program=program,
        locate=locate,
        run_directory=run_directory,
    )


def is_distributed(files: Mapping[str, bytes]) -> bool:
    """Whether the files of an artifact are those of a distributed program; damaged ones are not."""
    return b'"build_kind":"distributed"' in files.get(CONFIG_FILE, b"")


def check(files: Mapping[str, bytes], digests: Mapping[str, str] | None = None) -> KernelConfig:
    """Check everything that `load` checks before it makes the program; arguments and errors as there."""
    if CONFIG_FILE not in files:
        raise LoadError(f"{CONFIG_FILE} is missing")
    try:
        config = KernelConfig.from_bytes(files[CONFIG_FILE])
    except LoadError:
        if is_distributed(files):
            raise ValueError(
                "this is a distributed program, whose chips are loaded one by one: call it with "
                "RunConfig(distributed_config=...), or keep its ranks with prepare()"
            ) from None
        raise
    if config.execution_mode != "sim":
        raise DeviceUnavailable(
            f"'{config.entry}' is built for execution_mode='{config.execution_mode}' ({config.backend_type}); "
            "running it needs an NPU and its driver, and this machine has none"
        )
    validate_binaries(config, files, digests)
    check_loadable(config, files)
    return config


def load_directory(directory: Path, *, program: object = None) -> CompiledProgram:
    """The live program of a READY directory on disk; arguments and errors as of `load`."""

    def read(name: str) -> bytes:
        try:
            return (directory / name).read_bytes()
        except OSError as error:
            raise LoadError(f"{directory} is not a READY directory: {name}: {error.strerror}") from None

    files = {CONFIG_FILE: read(CONFIG_FILE)}
    if is_distributed(files):
        raise ValueError(f"{directory} holds a distributed program; DistributedProgram.from_dir(directory) loads it")
    config = KernelConfig.from_bytes(files[CONFIG_FILE], f"{directory / CONFIG_FILE}")
    if not (directory / MANIFEST_FILE).is_file():
        raise LoadError(
            f"{directory} is not a READY directory: its binaries are not built, or a build of them did not end; "
            "pypto.build.complete.complete(directory, pypto.toolchain.current()) builds them"
        )
    files |= {name: read(name) for name in config.load_files}
    return load(files, output_dir=directory, program=program, run_directory=directory / "run")


def _restore(config: KernelConfig, binaries: Mapping[str, bytes]) -> Orchestration:
    kernels = [
        LoadedKernel(kernel.id, kernel.name, shared_objects.load(binaries[kernel.binary], kernel.binary))
        for kernel in config.kernels
    ]
    library = shared_objects.load(binaries[config.orchestration_binary], config.orchestration_binary)
    try:
        return Orchestration(library, kernels, len(config.params))
    except ValueError as error:
        raise LoadError(f"{config.orchestration_binary} cannot be used: {error}") from None
