"""What a run tells of itself, for hand-written programs: every task, every dependency, on the threads that ran them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from pypto.diagnostics.trace_format import problems
from pypto.runtime import CompiledProgram, KernelRunError, RunConfig
from pypto.runtime.prebuilt import load

WATCHED = RunConfig(enable_chip_swimlane=1, enable_dep_gen=True, enable_scope_stats=True)


def tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    return x, np.full_like(x, 3), np.full_like(x, -1)


@pytest.fixture
def program(scenario_files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CompiledProgram:
    """A program from bytes alone, as a serving process has it."""
    monkeypatch.chdir(tmp_path)
    return load(scenario_files)


def told(program: CompiledProgram, name: str) -> str:
    assert program.latest_diagnostics is not None
    return (program.latest_diagnostics / name).read_text()


def slices(program: CompiledProgram) -> list[dict[str, object]]:
    trace = json.loads(told(program, "swimlane.json"))
    assert problems(trace) == []
    return sorted(
        (event for event in trace["traceEvents"] if event["ph"] == "X" and "task" in event["args"]),
        key=lambda event: event["args"]["task"],
    )


def test_every_dependency_is_told(program: CompiledProgram, tmp_path: Path) -> None:
    x, state, out = tables()
    program(100, x, state, out, 0, config=WATCHED)
    np.testing.assert_array_equal(out, x + 7)
    # add(in, a); add(a, b); add(in, a) again; add(b, out); add(a, state)
    edges = re.findall(r"t(\d) -> t(\d);", told(program, "dependencies.dot"))
    assert set(edges) == {("0", "1"), ("0", "2"), ("1", "2"), ("1", "3"), ("2", "4")}
    found = slices(program)
    assert [event["name"] for event in found] == ["add"] * 5
    assert [event["args"]["line"] for event in found] == [f"scenarios:{line}" for line in range(1, 6)]  # type: ignore[index]
    ends = [event["ts"] + event["dur"] for event in found]  # type: ignore[operator]
    for before, after in edges:
        assert ends[int(before)] <= found[int(after)]["ts"] + 0.002  # type: ignore[operator]
    # Without a place of its own, a program puts them below the working directory, each run beside the others.
    assert program.run_directory is not None
    assert program.run_directory.parent == tmp_path / "build_output"
    program(100, x, state, out, 0, config=WATCHED)
    assert sorted(path.name for path in program.run_directory.iterdir()) == ["run_0000", "run_0001"]


def test_tasks_at_the_same_time_are_on_threads_of_their_own(program: CompiledProgram) -> None:
    x, state, out = tables()
    program(101, x, state, out, 0, config=WATCHED)
    first, second = slices(program)
    assert {first["tid"], second["tid"]} == {1, 2}
    assert max(first["ts"], second["ts"]) < min(  # type: ignore[type-var]
        first["ts"] + first["dur"],  # type: ignore[operator]
        second["ts"] + second["dur"],  # type: ignore[operator]
    )
    assert json.loads(told(program, "scope_stats.json"))["workers"] == 2
    assert "->" not in told(program, "dependencies.dot")


def test_a_run_that_fails_tells_what_ran(program: CompiledProgram) -> None:
    x, state, out = tables()
    with pytest.raises(KernelRunError):
        program(121, x, state, out, 0, config=WATCHED)
    (ran,) = slices(program)
    assert (ran["name"], ran["args"]["line"]) == ("fault", "scenarios:7")  # type: ignore[index]


def test_a_run_that_submits_nothing(program: CompiledProgram) -> None:
    x, state, out = tables()
    program(113, x, state, out, 0, config=WATCHED)
    assert slices(program) == []
    kept = program.latest_diagnostics
    with pytest.raises(KernelRunError, match="sequence is too long"):
        program(104, x, state, out, 0, config=WATCHED)
    assert program.latest_diagnostics == kept


def test_a_plain_run_leaves_nothing(program: CompiledProgram, tmp_path: Path) -> None:
    x, state, out = tables()
    program(100, x, state, out, 0)
    program(100, x, state, out, 0, config=RunConfig(aicpu_thread_num=1))
    assert program.latest_diagnostics is None
    assert list(tmp_path.iterdir()) == []
