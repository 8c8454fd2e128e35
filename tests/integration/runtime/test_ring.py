"""The runtime tensormap_and_ringbuffer: tasks run while more are submitted, within bounds; the same numbers as ever."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_runs

from pypto.runtime import CompiledProgram, KernelRunError, RunConfig, abi
from pypto.runtime.arguments import bind
from pypto.runtime.kernel_config import CONFIG_FILE
from pypto.runtime.prebuilt import load

Files = dict[str, bytes]
RING = "tensormap_and_ringbuffer"
PARAMS = [
    {"name": "scenario", "kind": "scalar", "direction": "in", "dtype": "INT64"},
    {"name": "x", "kind": "tensor", "direction": "in", "dtype": "FP32", "shape": ["R", "C"]},
    {"name": "state", "kind": "tensor", "direction": "inout", "dtype": "FP32", "shape": ["R", "C"]},
    {"name": "out", "kind": "tensor", "direction": "inout", "dtype": "FP32", "shape": ["R", "C"]},
    {"name": "turns", "kind": "scalar", "direction": "in", "dtype": "INT64"},
]


@pytest.fixture(scope="module")
def files(ready_files: Callable[..., Files]) -> Callable[[str], Files]:
    return lambda runtime: ready_files("stream", PARAMS, ["add", "meet", "fault"], runtime=runtime)


@pytest.fixture(scope="module")
def stream(files: Callable[[str], Files]) -> CompiledProgram:
    return load(files(RING))


@pytest.fixture(scope="module")
def graph(files: Callable[[str], Files]) -> CompiledProgram:
    return load(files("host_build_graph"))


@pytest.fixture(scope="module")
def scripted(ready_files: Callable[..., Files]) -> CompiledProgram:
    params = [
        {"name": "script", "kind": "tensor", "direction": "in", "dtype": "INT64", "shape": ["T", 13]},
        {"name": "table", "kind": "tensor", "direction": "inout", "dtype": "INT64", "shape": ["R", "C"]},
    ]
    return load(ready_files("scripted", params, ["mix"], runtime=RING))


def tables(rows: int = 4, columns: int = 8) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
    return x, np.zeros_like(x), np.zeros_like(x)


def check_random_graph(scripted: CompiledProgram, seed: int, tasks: int) -> None:
    generator = np.random.default_rng(seed)
    rows, columns = int(generator.integers(3, 12)), int(generator.integers(3, 12))
    script = test_runs.random_script(generator, tasks, rows, columns)
    table = generator.integers(-(2**60), 2**60, (rows, columns))
    expected = test_runs.run_serially(script, table)
    for window, pool, threads in ((None, None, None), (1, 1, 2), (2, 1, 3), (3, 2, 2), (7, 3, 5)):
        result = table.copy()
        settings: dict[str, Any] = {"ring_task_window": window, "ring_dep_pool": pool, "aicpu_thread_num": threads}
        scripted(script, result, config=RunConfig(**settings))
        np.testing.assert_array_equal(result, expected, err_msg=f"window {window}, pool {pool}, {threads} threads")


@pytest.mark.parametrize("seed", range(8))
def test_a_random_graph_gives_what_serial_execution_gives(scripted: CompiledProgram, seed: int) -> None:
    check_random_graph(scripted, seed, 150)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 400))
def test_many_random_graphs(scripted: CompiledProgram, seed: int) -> None:
    check_random_graph(scripted, seed, 600)


@pytest.mark.parametrize("window", [None, 2, 3])
@pytest.mark.parametrize("scenario", [101, 102])
def test_independent_tasks_run_at_the_same_time(scenario_files: Files, scenario: int, window: int | None) -> None:
    program = load(_as(scenario_files, RING))
    x, state, out = test_runs.tables()
    program(scenario, x, state, out, 0, config=RunConfig(ring_task_window=window, aicpu_thread_num=1))
    assert (out[:2] == 7).all() if scenario == 101 else (out[0, :2] == 7).all()


def test_a_task_runs_while_later_ones_are_not_submitted_yet(stream: CompiledProgram) -> None:
    """With a window of one task, a task is over before the next one is known."""
    x, state, out = tables()
    stream(0, x, state, out, 500, config=RunConfig(ring_task_window=1))
    np.testing.assert_array_equal(state, np.full_like(x, 500))


@pytest.mark.parametrize("checks", [False, True])
def test_workspaces_are_freed_when_their_tasks_are_over(stream: CompiledProgram, checks: bool) -> None:
    x, state, out = tables(256, 256)
    turns = 12 if checks else 4000  # a gigabyte of workspaces
    stream(0, x, state, out, turns, config=RunConfig(ring_heap=2 * x.nbytes, sim_checks=checks))
    np.testing.assert_array_equal(state, np.full_like(x, turns))
    stream(2, x, state, out, 50, config=RunConfig(ring_heap=2 * x.nbytes))


def test_host_build_graph_frees_workspaces_too(files: Callable[[str], Files], tmp_path: Path) -> None:
    """Two gigabytes of workspaces, each used by two tasks, in far less memory."""
    for path, content in files("host_build_graph").items():
        target = tmp_path / "program" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    code = (
        "import resource, sys, numpy as np\n"
        "from pypto.runtime import CompiledProgram\n"
        "x, state, out = (np.zeros((1024, 1024), np.float32) for _ in range(3))\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "CompiledProgram.from_dir(sys.argv[1])(0, x, state, out, 500)\n"
        "assert (state == 500).all()\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "program"], check=True, capture_output=True, text=True
    )
    assert int(done.stdout) * 1024 < 500 * 2**20


def test_workspaces_that_are_needed_again_must_fit(stream: CompiledProgram) -> None:
    x, state, out = tables()
    stream(1, x, state, out, 4, config=RunConfig(ring_heap=4 * x.nbytes))
    np.testing.assert_array_equal(out, x + 3)
    with pytest.raises(KernelRunError) as caught:
        stream(1, x, state, out, 5, config=RunConfig(ring_heap=4 * x.nbytes))
    assert str(caught.value) == (
        "stream: the orchestration failed: no room for a workspace of 128 bytes: of the 512 bytes for workspaces, 512 "
        "hold ones that are used again later; raise RunConfig(ring_heap=...)"
    )


def test_a_workspace_that_never_fits(stream: CompiledProgram) -> None:
    with pytest.raises(KernelRunError) as caught:
        stream(1, *tables(), 1, config=RunConfig(ring_heap=127))
    assert str(caught.value) == (
        "stream: the orchestration failed: a workspace of 128 bytes is larger than all memory for workspaces, "
        "127 bytes; raise RunConfig(ring_heap=...)"
    )


@pytest.mark.parametrize("pool", [1, 2, 5, None])
def test_a_task_that_waits_for_more_tasks_than_the_pool_holds(stream: CompiledProgram, pool: int | None) -> None:
    x, state, out = tables()
    stream(7, x, state, out, 200, config=RunConfig(ring_dep_pool=pool, aicpu_thread_num=3))
    np.testing.assert_array_equal(out, x + 2)


@pytest.mark.parametrize("runtime", ["graph", "stream"])
def test_memory_that_the_program_orders_itself(request: pytest.FixtureRequest, runtime: str) -> None:
    program = request.getfixturevalue(runtime)
    x, state, out = tables()
    program(3, x, state, out, 0)
    assert (out[0] == 7).all()
    out[:] = 0
    program(4, x, state, out, 3000, config=RunConfig(aicpu_thread_num=4))
    np.testing.assert_array_equal(out, np.full_like(x, 3000))
    np.testing.assert_array_equal(state, np.full_like(x, 3001))


@pytest.mark.parametrize("runtime", ["graph", "stream"])
def test_blocks_of_a_launch_are_independent_but_where_they_add(request: pytest.FixtureRequest, runtime: str) -> None:
    program = request.getfixturevalue(runtime)
    x, state, out = tables()
    program(9, x, state, out, 2, config=RunConfig(aicpu_thread_num=1))
    assert (state[0] == 8).all()
    out[:] = 0
    program(10, x, state, out, 3000, config=RunConfig(aicpu_thread_num=4))
    np.testing.assert_array_equal(out, np.full_like(x, 3000))


@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize("runtime", ["graph", "stream"])
def test_the_program_depends_on_what_tasks_wrote(request: pytest.FixtureRequest, runtime: str, checks: bool) -> None:
    program = request.getfixturevalue(runtime)
    x, state, out = tables()
    program(11, x, state, out, 20, config=RunConfig(sim_checks=checks))
    np.testing.assert_array_equal(state, np.full_like(x, 20))
    np.testing.assert_array_equal(out, np.full_like(x, 21))
    with pytest.raises(KernelRunError, match=r"task 'fault' \(stream, line 7\) failed: length above 128"):
        program(11, *tables(), 3, config=RunConfig(sim_checks=checks))


@pytest.mark.parametrize("runtime", ["graph", "stream"])
def test_tasks_that_only_run_if_a_number_says_so(request: pytest.FixtureRequest, runtime: str) -> None:
    """The number is what a task before has written."""
    program = request.getfixturevalue(runtime)
    for value, runs in ((1, True), (0, False)):
        x, state, out = tables()
        program(8, x, state, out, value)
        np.testing.assert_array_equal(out, x + 1 if runs else np.zeros_like(x))


@pytest.mark.parametrize("window", [None, 1, 2])
def test_after_a_failure_nothing_is_submitted(stream: CompiledProgram, window: int | None) -> None:
    x, state, out = tables()
    with pytest.raises(KernelRunError, match=r"task 'fault' \(stream, line 7\) failed: length above 128"):
        stream(5, x, state, out, 2**62, config=RunConfig(ring_task_window=window))
    np.testing.assert_array_equal(out, x + 1, "the task before it ran")


def test_an_error_of_the_orchestration_comes_after_those_of_its_tasks(stream: CompiledProgram) -> None:
    x, state, out = tables()
    with pytest.raises(KernelRunError, match="stream: the orchestration failed: the program gives up"):
        stream(6, x, state, out, 0)
    with pytest.raises(KernelRunError, match="task 'fault'"):
        stream(6, x, state, out, 1)


@pytest.mark.parametrize("runtime", ["graph", "stream"])
def test_traces_number_tasks_by_their_submission(request: pytest.FixtureRequest, runtime: str) -> None:
    """Also behind a point at which the program depends on what tasks wrote."""
    program = request.getfixturevalue(runtime)
    bound = bind("stream", program.config.params, (11, *tables(), 5))
    with tempfile.TemporaryFile() as file:
        ring = abi.Ring(task_window=2) if runtime == "stream" else None
        result = program._orchestration.run(bound.c_arguments, trace=abi.FLAG_TRACED, trace_fd=file.fileno(), ring=ring)
        file.seek(0)
        content = file.read()
    assert result.status == abi.OK
    header = abi.TraceHeader.from_buffer_copy(content)
    start = ctypes.sizeof(abi.TraceHeader)
    ran = (abi.TraceTask * header.task_count).from_buffer_copy(content, start)
    assert sorted(task.task for task in ran) == list(range(6))
    edges = (abi.TraceEdge * header.edge_count).from_buffer_copy(content, start + ctypes.sizeof(ran))
    assert all((edge.source, edge.target) == (edge.target - 1, edge.source + 1) for edge in edges)


def test_a_call_cannot_ask_for_another_runtime(stream: CompiledProgram, graph: CompiledProgram) -> None:
    with pytest.raises(ValueError, match="'stream' was built for the runtime host_build_graph, but"):
        graph(0, *tables(), 0, config=RunConfig(ring_task_window=4))
    with pytest.raises(ValueError, match=f"was built for the runtime {RING}, but the call's RunConfig asks for host"):
        stream(0, *tables(), 0, config=RunConfig(runtime="host_build_graph"))
    stream(0, *tables(), 0, config=RunConfig(aicpu_thread_num=2))


def _as(files: Files, runtime: str) -> Files:
    """A READY directory's files for another runtime; the same binaries serve both."""
    from pypto._identity.records import canonical_json
    from pypto.runtime.binary_manifest import write_manifest
    from pypto.runtime.kernel_config import MANIFEST_FILE, KernelConfig

    config = canonical_json({**json.loads(files[CONFIG_FILE]), "runtime": runtime})
    binaries = {path: content for path, content in files.items() if path.startswith("prebuilt/")}
    return {**binaries, CONFIG_FILE: config, MANIFEST_FILE: write_manifest(KernelConfig.from_bytes(config), binaries)}
