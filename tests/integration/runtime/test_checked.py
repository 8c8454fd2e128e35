"""Checked runs: what would end the process is an exception that names task, operation and line."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from pypto.runtime import CompiledProgram, KernelRunError, RunConfig, SimulatorCheckError
from pypto.runtime.prebuilt import load

CHECKED = RunConfig(sim_checks=True)
ROWS, COLUMNS = 4, 6
SIZE = ROWS * COLUMNS * 4


def tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)
    return x, np.full_like(x, 3), np.full_like(x, -1)


def check(program: CompiledProgram, scenario: int) -> SimulatorCheckError:
    x, state, out = tables()
    with pytest.raises(SimulatorCheckError) as caught:
        program(scenario, x, state, out, 0, config=CHECKED)
    assert (state == 3).all() and (out == -1).all(), "a failed run must not change the caller's tensors"
    return caught.value


def test_a_checked_run_computes_what_a_normal_one_does(scenarios: CompiledProgram) -> None:
    x, state, out = tables()
    assert scenarios(100, x, state, out, 0, config=CHECKED) is out
    np.testing.assert_array_equal(out, x + 7)
    np.testing.assert_array_equal(state, x + 110)


def test_independent_tasks_still_run_at_the_same_time(scenarios: CompiledProgram) -> None:
    x, state, out = tables()
    scenarios(102, x, state, out, 0, config=CHECKED)
    assert out[0].tolist() == [7, 7, -1, -1, -1, -1]


def test_reported_errors_are_the_same_as_in_a_normal_run(scenarios: CompiledProgram) -> None:
    for scenario in (2, 104):
        messages = []
        for config in (RunConfig(), CHECKED):
            with pytest.raises(KernelRunError) as caught:
                scenarios(scenario, *tables(), 0, config=config)
            messages.append((str(caught.value), caught.value.task, caught.value.line))
        assert messages[0] == messages[1]


@pytest.mark.parametrize(
    ("scenario", "number", "op", "line", "words"),
    [
        (10, signal.SIGABRT, "tile.add", 3, 'Assertion `count < 0 && "tile too large"\' failed'),
        (11, signal.SIGSEGV, "tile.add", 3, "task 'fault', operation tile.add (fault, line 3) was ended by SIGSEGV"),
        (13, signal.SIGSEGV, "tile.store", 4, "4096 bytes behind the end of tensor 'state'"),
        (15, signal.SIGSEGV, "tile.store", 4, "8192 bytes before the start of tensor 'state'"),
        (16, signal.SIGSEGV, "tile.store", 4, "it wrote byte 4 of tensor 'x', which is an input"),
        (17, signal.SIGSEGV, "tile.store", 4, "4096 bytes behind the end of workspace 0"),
        (18, signal.SIGFPE, "tile.add", 3, "SIGFPE"),
        (19, signal.SIGSEGV, "tile.add", 3, "SIGSEGV"),
        (20, signal.SIGABRT, "tile.add", 3, "SIGABRT"),
    ],
)
def test_crashes(scenarios: CompiledProgram, scenario: int, number: int, op: str, line: int, words: str) -> None:
    error = check(scenarios, scenario)
    assert words in str(error)
    assert (error.task, error.op, error.function, error.line, error.signal) == ("fault", op, "fault", line, number)


@pytest.mark.parametrize(("scenario", "what"), [(12, "tensor 'state'"), (14, "tensor 'state'"), (23, "workspace 0")])
def test_writes_just_outside_of_a_tensor(scenarios: CompiledProgram, scenario: int, what: str) -> None:
    """These hit no guard page; the pattern around the tensor shows them."""
    error = check(scenarios, scenario)
    assert f"memory just outside of {what} was overwritten by task 'fault' (scenarios, line 4)" in str(error)
    assert (error.task, error.op, error.function, error.line, error.signal) == ("fault", None, "scenarios", 4, None)


def test_an_operation_that_the_configuration_does_not_know(scenarios: CompiledProgram) -> None:
    error = check(scenarios, 24)
    assert (error.task, error.op, error.function, error.line) == ("fault", None, "scenarios", 4)


def test_a_crash_of_the_orchestration(scenarios: CompiledProgram) -> None:
    error = check(scenarios, 114)
    assert str(error).startswith("scenarios: the orchestration was ended by SIGSEGV")
    assert (error.task, error.op, error.line) == (None, None, None)


def test_a_child_that_vanishes(scenarios: CompiledProgram) -> None:
    assert "exited with status 3 without a report" in str(check(scenarios, 21))
    assert "was ended by SIGKILL without a report" in str(check(scenarios, 22))


def test_workspaces_hold_no_numbers_before_they_are_written(scenarios: CompiledProgram) -> None:
    x, state, out = tables()
    scenarios(122, x, state, out, 0, config=CHECKED)
    assert np.isnan(out).all()


def test_the_place_in_the_users_file(scenario_files: dict[str, bytes]) -> None:
    program = load(scenario_files, locate=lambda function, line: (f"{function}.py", 40 + line))
    assert "operation tile.store (fault, fault.py:44)" in str(check(program, 13))


def test_no_process_and_no_descriptor_is_left(scenarios: CompiledProgram) -> None:
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    before = sorted(os.listdir("/proc/self/fd")), children.exists() and children.read_text()
    check(scenarios, 10)
    scenarios(100, *tables(), 0, config=CHECKED)
    assert (sorted(os.listdir("/proc/self/fd")), children.exists() and children.read_text()) == before
