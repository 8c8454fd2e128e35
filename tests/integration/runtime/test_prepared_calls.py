"""Calls like earlier ones: nothing that an unprepared call refuses passes, and results are those of this call alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pypto.runtime import CompiledProgram, KernelRunError, RunConfig
from pypto.runtime.arguments import bind
from pypto.runtime.prebuilt import load
from pypto.runtime.prepared import PreparedCall, facts

Change = Callable[[list[Any]], None]
Files = dict[str, bytes]


def arguments(rows: int = 4, columns: int = 6, start: float = 0.0) -> list[Any]:
    x = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns) + np.float32(start)
    return [100, x, np.full_like(x, 3), np.full_like(x, -1), 0]


def computes(program: CompiledProgram, args: list[Any], **options: Any) -> None:
    x, out = args[1].copy(), args[3]
    assert program(*args, **options) is out
    np.testing.assert_array_equal(out, x + 7)


def test_other_arguments_each_time(scenarios: CompiledProgram) -> None:
    for rows, columns, start in ((4, 6, 0), (4, 6, 5), (5, 3, 1), (4, 6, 9), (5, 3, 2)):
        computes(scenarios, arguments(rows, columns, start))


def same(args: list[Any], index: int, value: Any) -> None:
    args[index] = value


BAD: dict[str, Change] = {
    "a column": lambda args: same(args, 1, np.zeros((4, 12), np.float32)[:, ::2]),
    "a transposed array": lambda args: same(args, 1, np.zeros((6, 4), np.float32).T),
    "an odd address": lambda args: same(args, 1, np.zeros(4 * 24 + 1, np.int8)[1:].view(np.float32).reshape(4, 6)),
    "a read-only output": lambda args: args[3].setflags(write=False),
    "an output that is an input": lambda args: same(args, 3, args[1]),
    "outputs that overlap": lambda args: same(args, 3, args[2]),
    "another dtype": lambda args: same(args, 1, args[1].astype(np.float16)),
    "another byte order": lambda args: same(args, 1, args[1].astype(">f4")),
    "another length": lambda args: same(args, 1, np.zeros((4, 7), np.float32)),
    "no rows": lambda args: same(args, 1, np.zeros((0, 6), np.float32)),
    "another rank": lambda args: same(args, 1, np.zeros(24, np.float32)),
    "a number for a tensor": lambda args: same(args, 1, 3),
    "a text for a number": lambda args: same(args, 4, "3"),
    "a float for an int": lambda args: same(args, 4, 3.0),
    "a bool for an int": lambda args: same(args, 4, True),
    "a number that is too large": lambda args: same(args, 4, 2**63),
    "too few": lambda args: args.pop(),
}


@pytest.mark.parametrize("change", BAD.values(), ids=BAD)
def test_wrong_arguments_are_refused_as_in_a_first_call(
    ready_scenarios: Callable[[], CompiledProgram], scenarios: CompiledProgram, change: Change
) -> None:
    errors = []
    for prepared in (False, True):
        program = scenarios if prepared else ready_scenarios()
        if prepared:
            computes(program, arguments())
        args = arguments()
        change(args)
        with pytest.raises((TypeError, ValueError)) as caught:
            program(*args)
        errors.append((caught.type, str(caught.value)))
        if len(args) == 5 and isinstance(args[3], np.ndarray) and args[3] is not args[1] and args[3] is not args[2]:
            assert (args[3] == -1).all()
    assert errors[0] == errors[1]
    computes(scenarios, arguments())


@pytest.fixture
def ready_scenarios(scenarios: CompiledProgram) -> Callable[[], CompiledProgram]:
    """The same program, loaded anew: no call was made with it."""

    def again() -> CompiledProgram:
        return CompiledProgram(scenarios.config, scenarios.loaded(), scenarios._binaries)

    return again


def test_subarrays_of_one_array_side_by_side(scenarios: CompiledProgram) -> None:
    memory = np.zeros((12, 6), np.float32)
    memory[:4] = np.arange(24).reshape(4, 6)
    args = [100, memory[:4], memory[4:8], memory[8:], 0]
    for _ in range(3):
        memory[4:8] = 3
        computes(scenarios, args)
    # One row further, and what is written overlaps.
    args[3] = memory[7:11]
    with pytest.raises(ValueError, match="'out' overlaps the memory of 'state'"):
        scenarios(*args)


def test_memory_that_moves(scenarios: CompiledProgram) -> None:
    args = arguments()
    computes(scenarios, args)
    grown = np.zeros((4, 6), np.float32)
    args[1] = grown
    computes(scenarios, args)
    grown.resize((400, 600), refcheck=False)
    grown.resize((4, 6), refcheck=False)
    grown[...] = 11
    computes(scenarios, args)


def test_a_failed_run_and_the_next_one(scenarios: CompiledProgram) -> None:
    computes(scenarios, arguments())
    messages = []
    for _ in range(2):
        args = arguments()
        args[0] = 130
        with pytest.raises(KernelRunError) as caught:
            scenarios(*args)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    computes(scenarios, arguments())


TAKEN: dict[str, list[Any]] = {
    "INT8": [-128, 127, np.int8(-3)],
    "INT64": [-(2**63), 2**63 - 1, 0, np.int32(5)],
    "UINT64": [0, 2**64 - 1],
    "BOOL": [True, False, np.bool_(True)],
    "FP32": [0.1, -0.0, 1e-46, 3.4028235e38, float("inf"), float("nan"), 7, np.float64(0.1), np.float32(0.1)],
    "FP16": [0.1, 65504.0, float("-inf")],
    "BF16": [0.1, 3],
}
REFUSED: dict[str, list[Any]] = {
    "INT8": [128, True, 1.0],
    "INT64": [2**63, None],
    "UINT64": [-1, 2**64],
    "BOOL": [1],
    "FP32": [1e39, 10**400, True, "1"],
    "FP16": [65520.0],
    "BF16": [4e38],
}


def test_numbers_are_stored_as_in_an_unprepared_call(ready_files: Callable[..., Files]) -> None:
    dtypes = ["INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "BOOL", "FP32", "FP16", "BF16"]
    params: list[dict[str, Any]] = [
        {"name": f"s{i}", "kind": "scalar", "direction": "in", "dtype": dtype} for i, dtype in enumerate(dtypes)
    ]
    params.append({"name": "out", "kind": "tensor", "direction": "out", "dtype": "INT64", "shape": [12]})
    program = load(ready_files("scalars", params, ["collect"]))
    usual = [0, 0, 0, 0, 0, 0, 0, 0, False, 0.0, 0.0, 0.0, np.zeros(12, np.int64)]
    prepared = program.prepare(usual)
    assert prepared is not None
    for dtype in TAKEN:
        index = dtypes.index(dtype)
        for value in TAKEN[dtype]:
            values = [*usual[:index], value, *usual[index + 1 :]]
            bound = bind("scalars", program.config.params, values)
            frame = prepared.fill(program, values)
            if frame is None:
                assert value != value or value in (float("inf"), float("-inf"))
                continue
            assert frame.memory[index].scalar == bound.c_arguments[index].scalar, (dtype, value)
        for value in REFUSED[dtype]:
            assert prepared.fill(program, [*usual[:index], value, *usual[index + 1 :]]) is None or type(value) is bool
            with pytest.raises((TypeError, ValueError)):
                program(*usual[:index], value, *usual[index + 1 :])


def test_many_threads_have_frames_of_their_own(scenarios: CompiledProgram) -> None:
    failures: list[BaseException] = []

    def calls(number: int) -> None:
        try:
            for i in range(20):
                computes(scenarios, arguments(start=100 * number + i))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=calls, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_what_is_prepared(scenarios: CompiledProgram) -> None:
    args = arguments()
    made = scenarios.prepare(args, RunConfig(aicpu_thread_num=2))
    assert isinstance(made, PreparedCall)
    assert made.threads == 2
    frame = made.fill(scenarios, args)
    assert frame is not None
    assert made.run(scenarios, frame, args) is args[3]
    assert scenarios.prepare(args, RunConfig(sim_checks=True)) is None

    class Array(np.ndarray):
        pass

    assert scenarios.prepare([100, args[1].view(Array), *args[2:]]) is None


def test_facts_tell_arguments_apart() -> None:
    x = np.zeros((2, 3), np.float32)
    different = [
        [x],
        [x.astype(ml_dtypes.bfloat16)],
        [x.astype(">f4")],
        [x.reshape(3, 2)],
        [x, 1],
        [x, 1.0],
        [x, True],
        [x, np.float32(1)],
        [1, x],
    ]
    assert len({facts(values) for values in different}) == len(different)
    assert facts([x, 1]) == facts([x.copy(), 2])


def test_a_released_program_is_not_called(ready_scenarios: Callable[[], CompiledProgram]) -> None:
    program = ready_scenarios()
    computes(program, arguments())
    prepared = program.prepare(arguments())
    program.release()
    with pytest.raises(RuntimeError, match="was released; load it again"):
        program(*arguments())
    assert prepared is not None
    with pytest.raises(RuntimeError, match="was released; load it again"):
        prepared.fill(program, arguments())
