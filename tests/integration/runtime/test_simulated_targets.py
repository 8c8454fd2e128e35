"""A5 and A2/A3 in the simulator: each kernel has the on-chip memory of its own target, in every thread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pypto.runtime import BackendType, CompiledProgram, KernelCompiler, RunConfig, SimulatorCheckError
from pypto.runtime.prebuilt import load
from pypto.toolchain import Toolchain, ToolError
from pypto.toolchain.tools import Command, gcc_compile_incore, private_root

SOURCE = "kernels/aiv/big_tile.cpp"
FILES = {SOURCE: (Path(__file__).parent / "native" / "big_tile.cpp").read_bytes()}
PARAMS: list[dict[str, Any]] = [
    {"name": "x", "kind": "tensor", "direction": "in", "dtype": "FP32", "shape": ["N", 128]},
    {"name": "out", "kind": "tensor", "direction": "out", "dtype": "FP32", "shape": ["N", 128]},
]
BLOCKS = 8


@pytest.fixture(scope="module")
def programs(toolchain: Toolchain, ready_files: Callable[..., dict[str, bytes]]) -> dict[BackendType, CompiledProgram]:
    """The same kernel for both generations, loaded into one process."""
    made = {}
    for backend in BackendType:
        compiler = KernelCompiler(toolchain, backend_type=backend)
        binary = compiler.compile_incore(SOURCE, FILES, core="aiv", name="big_tile").binary
        ops = [{"op": "tile.load", "function": "big_tile", "line": 2, "column": 4}]
        files = ready_files(
            "blocks", PARAMS, ["big_tile"], binaries={"big_tile": binary}, ops=ops, backend_type=backend.value
        )
        made[backend] = load(files)
    return made


def run(program: CompiledProgram, threads: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.arange(BLOCKS * 400 * 128, dtype=np.float32).reshape(BLOCKS * 400, 128)
    out = np.full_like(x, -1)
    program(x, out, config=RunConfig(backend_type=program.backend_type, aicpu_thread_num=threads))
    return x, out


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("first", list(BackendType))
def test_200_kib_are_on_chip_on_a5_only(
    programs: dict[BackendType, CompiledProgram], first: BackendType, threads: int
) -> None:
    """KC-13, KC-15: the architecture is the target's own, whichever program ran before and on however many threads."""
    for backend in (first, *(other for other in BackendType if other is not first)):
        if backend is BackendType.Ascend950:
            x, out = run(programs[backend], threads)
            np.testing.assert_array_equal(out, x)
        else:
            with pytest.raises(SimulatorCheckError, match="assertion failed") as caught:
                run(programs[backend], threads)
            assert caught.value.op == "tile.load"


def test_no_architecture_is_assumed(toolchain: Toolchain) -> None:
    """KC-15: a kernel whose command names none does not compile."""
    command = gcc_compile_incore(toolchain, "w/a.cpp", "w/a.so", core="aiv")
    argv = [part for part in command.argv if not part.startswith("-DPYPTO_SIM_ARCH")]
    with private_root(toolchain) as root, pytest.raises(ToolError, match="PYPTO_SIM_ARCH must name"):
        (root.work / "a.cpp").write_bytes(FILES[SOURCE])
        root.run(Command(tuple(argv), command.env), "compile big_tile")
