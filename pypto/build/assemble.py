"""The assemble step: ``.pto`` of each kernel to C++, with ptoas, repaired and normalised."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto.build.layout import new_directory, read_config, write_file
from pypto.build.parallel import run_all

if TYPE_CHECKING:
    from pypto.toolchain.host import Tools


def assemble(generated: Path, toolchain: Tools, out: Path, *, jobs: int | None = None) -> None:
    """Write ``ptoas/<kernel>.cpp`` of every kernel into ``out`` (absent or empty).

    Args:
        generated: generated directory.
        toolchain: tools; of the roots, only ``ptoas`` is used.
        jobs: kernels at a time; default the number of usable CPUs.

    Raises:
        ToolError: ptoas failed on a kernel.
        BuildError: a directory cannot be used.
    """
    config = read_config(generated)
    root = new_directory(out)

    def one(kernel: Mapping[str, Any]) -> bytes:
        return assemble_kernel((generated / kernel["pto"]).read_bytes(), kernel, toolchain)

    kernels = [kernel for kernel in config["kernels"] if "pto" in kernel]
    for kernel, text in zip(kernels, run_all(one, kernels, jobs), strict=True):
        write_file(root, kernel["cpp"], text)


def assemble_kernel(pto: bytes, kernel: Mapping[str, Any], toolchain: Tools) -> bytes:
    """C++ of one kernel; ``kernel`` is its entry in ``kernel_config.json``."""
    from pypto.toolchain.repair import repair
    from pypto.toolchain.tools import private_root, ptoas_command

    with private_root(toolchain) as root:
        (root.work / "kernel.pto").write_bytes(pto)
        root.run(ptoas_command(toolchain, "w/kernel.pto", "w/kernel.cpp"), f"assemble {kernel['name']}")
        text = (root.work / "kernel.cpp").read_text(encoding="utf-8")
    return repair(text, kernel["repairs"]).encode("utf-8")
