"""Runs of hand-written programs: order, overlap, views, errors, scalars, threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pypto.runtime import CompiledProgram, KernelRunError, RunConfig, SimulatorCheckError
from pypto.runtime.prebuilt import load

Files = dict[str, bytes]


def tables(rows: int = 4, columns: int = 6) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
    return x, np.full_like(x, 3), np.full_like(x, -1)


@pytest.mark.parametrize("threads", [None, 1, 8])
def test_tasks_run_in_the_order_of_their_memory(scenarios: CompiledProgram, threads: int | None) -> None:
    x, state, out = tables()
    returned = scenarios(100, x, state, out, 0, config=RunConfig(aicpu_thread_num=threads))
    assert returned is out
    np.testing.assert_array_equal(out, x + 7)
    np.testing.assert_array_equal(state, x + 110)


@pytest.mark.parametrize("threads", [None, 1, 2])
@pytest.mark.parametrize("scenario", [101, 102])
def test_independent_tasks_run_at_the_same_time(scenarios: CompiledProgram, scenario: int, threads: int | None) -> None:
    x, state, out = tables()
    scenarios(scenario, x, state, out, 0, config=RunConfig(aicpu_thread_num=threads))
    expected = np.full_like(x, -1)
    if scenario == 101:
        expected[:2] = 7
    else:
        expected[0, :2] = 7
    np.testing.assert_array_equal(out, expected)


def test_views_of_views(scenarios: CompiledProgram) -> None:
    x, state, out = tables()
    scenarios(103, x, state, out, 0)
    np.testing.assert_array_equal(out[3, :4], x[2, 2:])
    assert (out[:3] == -1).all() and (out[3, 4:] == -1).all()


def test_more_tasks_than_any_run_needs_are_an_error(scenarios: CompiledProgram) -> None:
    x, state, out = tables()
    with pytest.raises(KernelRunError, match="more than 1048576 tasks; check the run-time numbers"):
        scenarios(140, x, state, out, 0)
    assert (out == -1).all()


def test_a_run_without_tasks(scenarios: CompiledProgram) -> None:
    x, state, out = tables()
    assert scenarios(113, x, state, out, 0) is out
    assert (out == -1).all()


@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        (104, "sequence is too long"),
        (105, "view outside its tensor: axis 1 has length 6, but elements 1 to 1+6 were asked for"),
        (106, "no kernel has the function id 99"),
        (107, "a tensor has at most 2147483647 elements"),
        (108, "axis 0 of length -1"),
        (109, "the value 300 of parameter 'n' does not fit where it is used"),
        (110, "parameter 'scenario' is not a tensor"),
        (111, "parameter 'x' is not a scalar"),
        (112, "axis 2 of a tensor of rank 2"),
        (115, "view of a tensor of rank 2 with 1 offsets"),
        (116, "an exception of an unknown type"),
        (117, "rows must be zero"),
        (118, "view outside its tensor: axis 0"),
        (119, "task 'add' got a tensor that was never made"),
    ],
)
def test_errors_of_the_orchestration(scenarios: CompiledProgram, scenario: int, words: str) -> None:
    x, state, out = tables()
    with pytest.raises(KernelRunError) as caught:
        scenarios(scenario, x, state, out, 300)
    assert str(caught.value).startswith("scenarios: the orchestration failed: ")
    assert words in str(caught.value)
    assert (caught.value.task, caught.value.line) == (None, None)


@pytest.mark.parametrize(
    ("scenario", "words", "place"),
    [
        (1, "kernel threw", ("tile.add", "fault", 3)),
        (2, "length above 128", (None, "scenarios", 4)),
        (3, "an exception of an unknown type", ("tile.add", "fault", 3)),
    ],
)
def test_errors_of_a_task(
    scenarios: CompiledProgram, scenario: int, words: str, place: tuple[str | None, str, int]
) -> None:
    x, state, out = tables()
    with pytest.raises(KernelRunError) as caught:
        scenarios(scenario, x, state, out, 0)
    op, function, line = place
    operation = f", operation {op}" if op else ""
    assert str(caught.value) == f"scenarios: task 'fault'{operation} ({function}, line {line}) failed: {words}"
    assert (caught.value.task, caught.value.op, caught.value.function, caught.value.line) == ("fault", *place)
    assert (out == x + 1).all(), "the task before it ran"
    # The thread that reported it goes on without it.
    assert scenarios(0, x, state, out, 0) is out


@pytest.mark.parametrize("config", [RunConfig(), RunConfig(sim_checks=True)])
@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        (30, "writes bytes 96 to 99 of argument 1 of the task, which has 96 bytes"),
        (31, "reads bytes 88 to 99 of argument 1 of the task, which has 96 bytes"),
        (32, "writes argument 0 of the task, which is an input"),
        (33, "reads memory in front of all tensors of the task"),
    ],
)
def test_accesses_outside_of_a_tasks_tensors(
    scenarios: CompiledProgram, scenario: int, words: str, config: RunConfig
) -> None:
    with pytest.raises(SimulatorCheckError) as caught:
        scenarios(scenario, *tables(), 0, config=config)
    error = caught.value
    assert str(error) == f"scenarios: task 'fault', operation tile.store (fault, line 4) was stopped: {words}"
    assert (error.task, error.op, error.function, error.line) == ("fault", "tile.store", "fault", 4)
    assert error.signal is None


def test_the_place_of_an_error_in_the_users_file(scenario_files: Files) -> None:
    program = load(scenario_files, locate=lambda function, line: (f"/k/{function}.py", 100 + line))
    with pytest.raises(KernelRunError, match=r"task 'fault' \(scenarios, /k/scenarios.py:104\) failed"):
        program(2, *tables(), 0)


def test_of_several_errors_the_first_submitted_is_reported(scenarios: CompiledProgram) -> None:
    for _ in range(20):
        with pytest.raises(KernelRunError) as caught:
            scenarios(120, *tables(), 0, config=RunConfig(aicpu_thread_num=4))
        assert caught.value.line == 10


def test_successors_of_a_failed_task_do_not_run(scenarios: CompiledProgram) -> None:
    x, state, out = tables()
    with pytest.raises(KernelRunError):
        scenarios(121, x, state, out, 0)
    assert (out == -1).all()


def test_a_bad_argument_reaches_no_kernel(scenarios: CompiledProgram) -> None:
    x, state, out = tables()
    with pytest.raises(ValueError, match="'out' has shape"):
        scenarios(100, x, state, out[:3].copy(), 0)
    assert (state == 3).all()


def test_a_call_for_another_target_is_refused(scenarios: CompiledProgram) -> None:
    with pytest.raises(ValueError, match="was built for a2a3sim, but the call's RunConfig asks for a5sim"):
        scenarios(113, *tables(), 0, config=RunConfig(backend_type="Ascend950"))


def test_scalars_arrive_by_value(ready_files: Callable[..., Files]) -> None:
    dtypes = ["INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "BOOL", "FP32", "FP16", "BF16"]
    params: list[dict[str, Any]] = [
        {"name": f"s{i}", "kind": "scalar", "direction": "in", "dtype": dtype} for i, dtype in enumerate(dtypes)
    ]
    params.append({"name": "out", "kind": "tensor", "direction": "out", "dtype": "INT64", "shape": [12]})
    program = load(ready_files("scalars", params, ["collect"]))
    values = [-(2**7), -(2**15), -(2**31), -(2**63), 2**8 - 1, 2**16 - 1, 2**32 - 1, 2**64 - 1, True, -1.5, 0.25, 3.0]
    out = np.zeros(12, np.int64)
    assert program(*values, out) is None
    assert out[:8].tolist() == [*values[:7], -1]
    assert out[8:].tolist() == [1, -1536, 256, 3072]
    rounded = float(ml_dtypes.bfloat16(0.1)) * 1024
    program(*values[:11], 0.1, out)
    assert out[11] == int(rounded)


def test_calls_from_many_threads_are_independent(scenarios: CompiledProgram) -> None:
    wrong: list[float] = []

    def call(value: float) -> None:
        for _ in range(30):
            x, state, out = tables()
            x += value
            scenarios(100, x, state, out, 0)
            if not (out == x + 7).all() or not (state == x + 110).all():
                wrong.append(value)

    threads = [threading.Thread(target=call, args=(float(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_other_python_threads_run_during_a_run(scenarios: CompiledProgram) -> None:
    """Two calls that wait for each other: impossible while one of them holds the interpreter lock."""
    results: list[np.ndarray] = []

    def call() -> None:
        x, state, out = tables()
        scenarios(123, x, state, out, 0)
        results.append(out)

    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [out[0].tolist() for out in results] == [[7] * 6] * 2


def random_script(generator: np.random.Generator, tasks: int, rows: int, columns: int) -> np.ndarray:
    script = np.zeros((tasks, 13), np.int64)
    script[:, 0] = generator.integers(0, 1000, tasks)
    for box in range(3):
        height = generator.integers(1, rows // 3 + 1, tasks)
        width = generator.integers(1, columns // 3 + 1, tasks)
        script[:, 1 + 4 * box] = generator.integers(0, rows - height + 1)
        script[:, 2 + 4 * box] = generator.integers(0, columns - width + 1)
        script[:, 3 + 4 * box] = height
        script[:, 4 + 4 * box] = width
    return script


def run_serially(script: np.ndarray, table: np.ndarray) -> np.ndarray:
    """The meaning of the kernel ``mix``, task after task."""
    mask = 2**64 - 1
    cells = [[int(v) & mask for v in row] for row in table]
    for operation, *boxes in script.tolist():
        value = operation
        for row, column, rows, columns in (boxes[0:4], boxes[4:8]):
            for r in range(row, row + rows):
                for c in range(column, column + columns):
                    value = ((value ^ cells[r][c]) * 0x100000001B3) & mask
        row, column, rows, columns = boxes[8:12]
        for r in range(rows):
            for c in range(columns):
                before = cells[row + r][column + c] if operation % 2 else 0
                cells[row + r][column + c] = ((value + before) * 31 + r * 7 + c) & mask
    return np.array(cells, np.uint64).view(np.int64)


@pytest.mark.parametrize("seed", range(12))
def test_a_random_graph_gives_what_serial_execution_gives(scripted: CompiledProgram, seed: int) -> None:
    generator = np.random.default_rng(seed)
    rows, columns = int(generator.integers(3, 12)), int(generator.integers(3, 12))
    script = random_script(generator, 120, rows, columns)
    table = generator.integers(-(2**60), 2**60, (rows, columns))
    expected = run_serially(script, table)
    for threads in (2, 5):
        result = table.copy()
        scripted(script, result, config=RunConfig(aicpu_thread_num=threads))
        np.testing.assert_array_equal(result, expected)


@pytest.fixture(scope="module")
def scripted(ready_files: Callable[..., Files]) -> CompiledProgram:
    params = [
        {"name": "script", "kind": "tensor", "direction": "in", "dtype": "INT64", "shape": ["T", 13]},
        {"name": "table", "kind": "tensor", "direction": "inout", "dtype": "INT64", "shape": ["R", "C"]},
    ]
    return load(ready_files("scripted", params, ["mix"]))
