"""Programs of the IR, compiled and run without a JIT function: `ir.compile` and `runtime.run`."""

from __future__ import annotations

import json
from pathlib import Path

import diagnosed_kernels as kernels
import numpy as np
import pytest

from pypto import ir
from pypto.build import programs
from pypto.build.errors import BuildError
from pypto.ir.printer import print_program
from pypto.runtime import CompiledProgram, RunConfig, run
from pypto.toolchain import Toolchain


def arrays() -> tuple[np.ndarray, np.ndarray]:
    x = np.arange(kernels.R * kernels.C, dtype=np.float32).reshape(kernels.R, kernels.C)
    return x, np.zeros_like(x)


def test_a_program_is_compiled_as_it_is_and_stays_as_it_is(
    toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = kernels.fourfold.specialize()
    before = print_program(program)
    compiled = ir.compile(program, tmp_path / "out", dump_passes=True, config=RunConfig(compile_profiling=True))
    assert print_program(program) == before
    assert isinstance(compiled, CompiledProgram)
    assert (compiled.output_dir, compiled.run_directory) == (tmp_path / "out", tmp_path / "out/run")
    assert (compiled.param_names, compiled.output_indices, compiled.has_return) == (("x", "out"), (1,), True)
    assert (compiled.platform, compiled.orchestration_names) == ("a2a3sim", ("fourfold",))
    assert print_program(compiled.program) == print_program(kernels.fourfold.lower())  # type: ignore[arg-type]
    names = sorted(path.name for path in (tmp_path / "out/passes_dump").iterdir())
    assert names[0] == "00_after_Parse.py" and names[-1].endswith("_after_Verify.py")
    times = json.loads((tmp_path / "out/report/compile.json").read_text())
    assert "c++" in times["sums_ms"]
    x, out = arrays()
    assert run(compiled, x, out) is out
    np.testing.assert_array_equal(out, x * 4)
    # What the passes are through with is taken as it is, and its binaries are those that are there.
    asked: list[object] = []
    monkeypatch.setattr("pypto.build.complete.compile_binaries", lambda *a, **_: asked.append(a))
    again = ir.compile(kernels.fourfold.lower(), tmp_path / "out")
    assert asked == []
    out[:] = 0
    again(x, out)
    np.testing.assert_array_equal(out, x * 4)


def test_run_compiles_what_is_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []

    def compiled(program: object, config: RunConfig | None = None) -> object:
        seen.append((program, config))
        return lambda *arguments, config=None: (arguments, config)

    monkeypatch.setattr(programs, "compile_program", compiled)
    program, config = kernels.fourfold.lower(), RunConfig(aicpu_thread_num=1)
    assert run(program, 1, 2, config=config) == ((1, 2), config)
    assert seen == [(program, config)]
    with pytest.raises(TypeError, match=r"run takes a @pl\.jit function or something compiled, got int"):
        run(3)


def test_what_is_no_program_and_what_is_no_option() -> None:
    with pytest.raises(
        TypeError, match=r"ir\.compile takes a program, as f\.specialize\(\.\.\.\) returns it, got JITF"
    ):
        ir.compile(kernels.fourfold)
    with pytest.raises(BuildError, match="there is no compile option 'optimise'; the options are backend_type"):
        ir.compile(kernels.fourfold.lower(), optimise=3)
    with pytest.raises(BuildError, match="compile option backend_type is Ascend910B or Ascend950, got 'A5'"):
        ir.compile(kernels.fourfold.lower(), backend_type="A5")
