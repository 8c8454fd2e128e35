"""The compile step: C++ to shared objects, and with them the complete READY directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pypto.build.layout import BINARY_MANIFEST, copy_file, generated_files, new_directory, read_config, write_file
from pypto.build.parallel import run_all

if TYPE_CHECKING:
    from pypto.toolchain import Toolchain


def compile_(generated: Path, assembled: Path, toolchain: Toolchain, out: Path, *, jobs: int | None = None) -> None:
    """Write the READY directory into ``out`` (absent or empty): generated files, C++, binaries and their manifest.

    Args:
        generated: generated directory.
        assembled: what the assemble step wrote for it.
        toolchain: tools; of the roots, ``gcc`` and ``isa`` are used.
        jobs: compilers at a time; default the number of usable CPUs.

    Raises:
        ToolError: a compiler failed.
        DeviceUnavailable: the configuration asks for a device and the toolchain has no compilers for it.
        BuildError: a directory cannot be used.
    """
    from pypto.runtime.binary_manifest import write_manifest
    from pypto.runtime.kernel_compiler import KernelCompiler
    from pypto.runtime.kernel_config import KernelConfig

    config = read_config(generated)
    compiler = KernelCompiler(toolchain, execution_mode=config["execution_mode"])
    orchestration = config["orchestration"]

    def compile_orchestration() -> bytes:
        source = orchestration["source"]
        return compiler.compile_orchestration(source, {source: (generated / source).read_bytes()}, name=config["entry"])

    def compile_kernel(kernel: dict) -> Callable[[], bytes]:
        files = {
            kernel["source"]: (generated / kernel["source"]).read_bytes(),
            kernel["cpp"]: (assembled / kernel["cpp"]).read_bytes(),
        }
        return lambda: compiler.compile_incore(
            kernel["source"],
            files,
            core=kernel["core"],
            name=kernel["name"],
            bfloat16=kernel["repairs"].get("bfloat16", False),
        )

    # The orchestration holds the whole runtime and takes longest, so it starts first.
    work = [compile_orchestration, *map(compile_kernel, config["kernels"])]
    paths = [orchestration["binary"], *(kernel["binary"] for kernel in config["kernels"])]
    binaries = dict(zip(paths, run_all(lambda job: job(), work, jobs), strict=True))

    root = new_directory(out)
    for name in generated_files(config):
        copy_file(generated / name, root, name)
    for kernel in config["kernels"]:
        copy_file(assembled / kernel["cpp"], root, kernel["cpp"])
    for name, data in binaries.items():
        write_file(root, name, data)
    write_file(root, BINARY_MANIFEST, write_manifest(KernelConfig.from_record(config), binaries))
