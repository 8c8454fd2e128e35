"""The assemble step: ``.pto`` of each kernel to C++, with ptoas, repaired and normalised."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto.build.layout import new_directory, read_chips, read_config, write_file
from pypto.build.parallel import run_all
from pypto.build.profile import active, stage
from pypto.build.ptoas_prints import sections

if TYPE_CHECKING:
    from pypto.toolchain.host import Tools


def assemble(generated: Path, toolchain: Tools, out: Path, *, jobs: int | None = None) -> None:
    """Write ``ptoas/<kernel>.cpp`` of every kernel into ``out`` (absent or empty), of a distributed program by chip.

    Args:
        generated: generated directory.
        toolchain: tools; of the roots, only ``ptoas`` is used.
        jobs: kernels at a time; default the number of usable CPUs.

    Raises:
        OnChipOverflow: ptoas found no place for a kernel's tiles.
        ToolError: ptoas failed on a kernel otherwise.
        BuildError: a directory cannot be used.
    """
    config = read_config(generated)
    root = new_directory(out)
    chips = read_chips(generated, config)
    for chip in chips:
        assemble(generated / chip, toolchain, out / chip, jobs=jobs)
    if chips:
        return

    simulated = config["execution_mode"] == "sim"

    def one(kernel: Mapping[str, Any]) -> bytes:
        return assemble_kernel((generated / kernel["pto"]).read_bytes(), kernel, toolchain, simulated)

    kernels = [kernel for kernel in config["kernels"] if "pto" in kernel]
    for kernel, text in zip(kernels, run_all(one, kernels, jobs), strict=True):
        write_file(root, kernel["cpp"], text)


def assemble_kernel(pto: bytes, kernel: Mapping[str, Any], toolchain: Tools, simulated: bool = False) -> bytes:
    """C++ of one kernel; ``kernel`` is its entry in ``kernel_config.json``. Tells the profile that is active.

    Args:
        simulated: synchronisation may be left out where ptoas aborts while it places it: the simulator has none.
    """
    from pypto.build.overflow import overflow
    from pypto.toolchain.errors import ToolError
    from pypto.toolchain.repair import repair
    from pypto.toolchain.tools import INSERT_SYNC, private_root, ptoas_command

    with private_root(toolchain) as root:
        (root.work / "kernel.pto").write_bytes(pto)
        command = ptoas_command(toolchain, "w/kernel.pto", "w/kernel.cpp")
        plain = replace(command, argv=tuple(part for part in command.argv if part != INSERT_SYNC))
        with stage("ptoas", kernel["name"]):
            try:
                said = root.run(command, f"assemble {kernel['name']}")
            except ToolError as error:
                if not simulated or error.returncode != -signal.SIGABRT:
                    raise overflow(error, kernel["name"], pto.decode("utf-8")) or error from None
                try:
                    said = root.run(plain, f"assemble {kernel['name']} without synchronisation")
                except ToolError:
                    raise error from None
        text = (root.work / "kernel.cpp").read_text(encoding="utf-8")
    repaired = repair(text, kernel["repairs"])
    profile = active()
    if profile is not None and profile.ptoas_dumps is not None:
        parts = [("input.pto", pto.decode()), *sections(said), ("printed.cpp", text), ("repaired.cpp", repaired)]
        _keep(profile.ptoas_dumps / kernel["name"], parts)
    return repaired.encode("utf-8")


def _keep(folder: Path, parts: Sequence[tuple[str, str]]) -> None:
    """Write the parts, numbered, in place of an earlier compilation's."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number, (name, text) in enumerate(parts):
        (folder / f"{number:02}_{name}").write_text(text, encoding="utf-8")
