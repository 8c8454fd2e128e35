"""The compile step: C++ to shared objects, and with them the complete READY directory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto.build.layout import (
    BINARY_MANIFEST,
    CONFIG,
    chips_of,
    copy_file,
    generated_files,
    new_directory,
    read_config,
    write_file,
)
from pypto.build.parallel import run_all
from pypto.build.profile import stage

if TYPE_CHECKING:
    from pypto.runtime.kernel_compiler import Compiled
    from pypto.toolchain.host import Tools


def compile_(
    generated: Path, assembled: Path, toolchain: Tools, out: Path, *, jobs: int | None = None
) -> tuple[str, ...]:
    """Write the READY directory into ``out`` (absent or empty): generated files, C++, binaries and their manifest.

    Args:
        generated: generated directory.
        assembled: what the assemble step wrote for it.
        toolchain: tools; of the roots, ``gcc`` and ``isa`` are used, and for a device ``cann``.
        jobs: compilers at a time; default the number of usable CPUs.

    Returns:
        Files that a compiler read and that no identity covers, sorted: when there are any, the directory must not be
        shared. See `pypto.runtime.kernel_compiler.Compiled`.

    Raises:
        ToolError: a compiler failed.
        ToolSetMissing: the configuration asks for a device and the toolchain has no compilers for it.
        BuildError: a directory cannot be used.
    """
    from pypto.runtime.binary_manifest import write_manifest
    from pypto.runtime.kernel_config import KernelConfig

    config = read_config(generated)
    if chips_of(config):
        return _compile_chips(generated, assembled, toolchain, out, config, jobs)

    def read(name: str) -> bytes:
        folder = assembled if any(name == kernel.get("cpp") for kernel in config["kernels"]) else generated
        return (folder / name).read_bytes()

    compiled = compile_binaries(config, binary_paths(config), read, toolchain, jobs=jobs)
    binaries = {path: result.binary for path, result in compiled.items()}
    root = new_directory(out)
    for name in generated_files(config):
        copy_file(generated / name, root, name)
    for kernel in config["kernels"]:
        if "cpp" in kernel:
            copy_file(assembled / kernel["cpp"], root, kernel["cpp"])
    for name, data in binaries.items():
        write_file(root, name, data)
    write_file(root, BINARY_MANIFEST, write_manifest(KernelConfig.from_record(config), binaries))
    return tuple(sorted({path for result in compiled.values() for path in result.uncovered}))


def _compile_chips(
    generated: Path, assembled: Path, toolchain: Tools, out: Path, config: Mapping[str, Any], jobs: int | None
) -> tuple[str, ...]:
    """The READY directory of a distributed program: its chips' below the parent, which says that they are complete."""
    from pypto.runtime.distributed.manifest import write_parent_manifest

    root = new_directory(out)
    uncovered: set[str] = set()
    for chip in chips_of(config):
        uncovered.update(compile_(generated / chip, assembled / chip, toolchain, out / chip, jobs=jobs))
    copy_file(generated / CONFIG, root, CONFIG)
    manifests = {chip: (out / chip / BINARY_MANIFEST).read_bytes() for chip in chips_of(config)}
    write_file(root, BINARY_MANIFEST, write_parent_manifest(config, manifests))
    return tuple(sorted(uncovered))


def binary_paths(config: Mapping[str, Any]) -> tuple[str, ...]:
    """All binaries of a configuration. The orchestration holds the whole runtime and takes longest, so it is first."""
    return (config["orchestration"]["binary"], *(kernel["binary"] for kernel in config["kernels"]))


def compile_binaries(
    config: Mapping[str, Any],
    paths: Sequence[str],
    read: Callable[[str], bytes],
    toolchain: Tools,
    *,
    jobs: int | None = None,
) -> dict[str, Compiled]:
    """Compile those binaries of a configuration, by path; raises as `compile_`.

    Args:
        read: the content of a source that ``config`` names.
    """
    from pypto.runtime.kernel_compiler import KernelCompiler

    compiler = KernelCompiler(toolchain, execution_mode=config["execution_mode"], backend_type=config["backend_type"])
    orchestration = config["orchestration"]
    kernels = {kernel["binary"]: kernel for kernel in config["kernels"]}

    def one(path: str) -> Compiled:
        with stage("c++", path):
            return compiled(path)

    def compiled(path: str) -> Compiled:
        if path == orchestration["binary"]:
            source = orchestration["source"]
            return compiler.compile_orchestration(
                source, {source: read(source)}, name=config["entry"], runtime=config["runtime"]
            )
        kernel = kernels[path]
        if "extern" in kernel:
            # Hand-written code is compiled as it is, behind the declarations that every kernel object needs.
            around, extern = f"{kernel['name']}.cpp", kernel["extern"]
            files = {name: read(name) for name in extern["files"]}
            text = f'#include "pypto/kernel.h"\n#include "{kernel["source"]}"\n'
            if "lanes" in extern:
                text = f"#define PYPTO_LANE {extern['lane']}\n#define PYPTO_LANES {extern['lanes']}\n{text}"
            files[around] = text.encode()
            return compiler.compile_incore(
                around,
                files,
                core=kernel["core"],
                name=kernel["name"],
                include_dirs=kernel["extern"]["include_dirs"],
            )
        return compiler.compile_incore(
            kernel["source"],
            {name: read(name) for name in (kernel["source"], kernel["cpp"])},
            core=kernel["core"],
            name=kernel["name"],
            bfloat16=kernel["repairs"].get("bfloat16", False),
        )

    return dict(zip(paths, run_all(one, paths, jobs), strict=True))
