"""Collectives and programs of chips on 2, 4 and 8 ranks, against NumPy in float64."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import rank_programs
from rank_programs import COLUMNS, ROWS

from pypto.runtime import CompiledProgram, DistributedConfig, DistributedProgram, RunConfig

DTYPES: dict[str, Any] = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i32": np.int32}
# Of the largest number: one rounding of the result, and those of a sum in FP32.
TOLERANCES = {"f32": 2.0**-21, "f16": 2.0**-11, "bf16": 2.0**-8, "i32": 0.0}


def on(world: int, **settings: Any) -> RunConfig:
    return RunConfig(distributed_config=DistributedConfig(device_ids=range(world), **settings))


def numbers(name: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    made = np.random.default_rng(seed)
    if name == "i32":
        return made.integers(-5, 6, shape).astype(np.int32)
    return made.standard_normal(shape).astype(DTYPES[name])


def check(name: str, got: np.ndarray, wanted: np.ndarray, what: str) -> None:
    limit = TOLERANCES[name] * max(1.0, float(np.abs(wanted).max()))
    error = np.abs(got.astype(np.float64) - wanted)
    assert error.max() <= limit, f"{what} of {name}: {error.max()} > {limit}"


@pytest.mark.parametrize("world", [2, 4, 8])
def test_every_collective_on_every_dtype(world: int) -> None:
    x = numbers("f32", (world, ROWS, COLUMNS), 1)
    y = np.full_like(x, np.nan)
    tensors: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
    for seed, name in enumerate(DTYPES):
        whole = numbers(name, (6, world, ROWS, COLUMNS), 10 + seed)
        parts = numbers(name, (3, world, world, COLUMNS), 20 + seed)
        tensors[name] = whole, parts, np.zeros((world, world, ROWS, COLUMNS), DTYPES[name])
    before = {name: [t.copy() for t in group] for name, group in tensors.items()}
    flat = [tensor for group in tensors.values() for tensor in group]
    wide = numbers("f32", (ROWS, world * COLUMNS), 9)
    wider = np.zeros_like(wide)
    assert rank_programs.every_collective(x, y, wide, wider, *flat, config=on(world)) is y
    assert np.array_equal(wider, wide + np.float32(1))

    check("f32", y, np.broadcast_to((x.astype(np.float64) + 1).sum(0) + 1, y.shape), "chips around an allreduce")
    for name, (whole, parts, gathered) in tensors.items():
        exact, exact_parts = (t.astype(np.float64) for t in before[name][:2])
        reductions = (np.sum, np.max, np.min, np.prod)
        for number, reduce in enumerate(reductions):
            wanted = np.broadcast_to(reduce(exact[number], axis=0), whole[number].shape)
            check(name, whole[number], wanted, f"allreduce {reduce.__name__}")
        assert np.array_equal(whole[4], np.broadcast_to(before[name][0][4][1], whole[4].shape)), "broadcast"
        assert np.array_equal(whole[5], before[name][0][5])
        assert np.array_equal(gathered, np.broadcast_to(whole[5], gathered.shape)), "allgather"
        for rank in range(world):
            check(name, parts[0, rank, rank], exact_parts[0, :, rank].sum(0), "reduce_scatter")
            others = np.arange(world) != rank
            assert np.array_equal(parts[0, rank, others], before[name][1][0, rank, others]), "the parts of others stay"
        assert np.array_equal(parts[2], before[name][1][1].swapaxes(0, 1)), "all_to_all"


@pytest.mark.parametrize("world", [2, 4, 8])
def test_cores_talk_to_other_ranks(world: int) -> None:
    x = numbers("f32", (world, 1, rank_programs.SIZE), 2)
    y = np.full((world, 10, rank_programs.SIZE), np.nan, np.float32)
    rank_programs.cores_talk(x, y, config=on(world, run_timeout_s=60))
    ranks = np.arange(world)
    mine, right, left = x[:, 0], x[(ranks + 1) % world, 0], x[(ranks - 1) % world, 0]
    exact = mine.astype(np.float64)
    wanted = {
        "remote_load": right,
        "get": right,
        "put": left,
        "remote_store": left + np.float32(1),
        "allreduce sum": np.broadcast_to(exact.sum(0), mine.shape),
        "allreduce max": np.broadcast_to(mine.max(0), mine.shape),
        "broadcast": np.broadcast_to(mine[1], mine.shape),
        "allgather": right,
        # Every table is the same, so that row s of a result is this rank's row of it.
        "all_to_all": mine,
        "reduce_scatter": exact * world,
    }
    for row, (what, expected) in enumerate(wanted.items()):
        check("f32", y[:, row], expected, what)


@pytest.mark.parametrize(("world", "laps"), [(1, 3), (2, 3), (3, 5)])
def test_a_rank_waits_for_what_another_one_writes(world: int, laps: int) -> None:
    x = numbers("f32", (ROWS, COLUMNS), 3)
    y = np.zeros_like(x)
    rank_programs.around_the_ring(x, y, laps, config=on(world))
    expected = x.copy()
    for _ in range(laps * world + 1):
        expected += 1
    assert np.array_equal(y, expected)


def test_lists_with_one_array_for_each_rank() -> None:
    x = list(numbers("f32", (2, ROWS, COLUMNS), 4))
    y = [np.zeros((ROWS, COLUMNS), np.float32) for _ in x]
    how = np.zeros(2, np.int32)
    assert rank_programs.some_misbehave(x, how, y, config=on(2)) is y
    for given, made in zip(x, y, strict=True):
        assert np.array_equal(made, 2 * given)


def test_a_worker_keeps_its_ranks() -> None:
    compiled = rank_programs.some_misbehave.compile(config=on(3))
    x = numbers("f32", (3, ROWS, COLUMNS), 5)
    how, y = np.zeros(3, np.int32), np.zeros_like(x)
    with compiled.prepare() as worker:
        processes = worker.processes
        for turn in range(3):
            worker(x + np.float32(turn), how, y)
            assert np.array_equal(y, 2 * (x + np.float32(turn)))
        assert worker.processes == processes
        # What ranks share has no name that could outlive them.
        for rank, process in enumerate(processes):
            assert Path(f"/proc/{process}/comm").read_text().strip() == f"pypto-rank-{rank}"
            assert "/dev/shm" not in Path(f"/proc/{process}/maps").read_text()
        assert len(set(processes)) == 3
        with pytest.raises(ValueError, match="names others; prepare another worker"):
            worker(x, how, y, config=on(2))
    with pytest.raises(RuntimeError, match="is closed"):
        worker(x, how, y)
    # The ranks that it was compiled for are those of calls that name none.
    y[:] = 0
    compiled(x, how, y)
    assert np.array_equal(y, 2 * x)


def test_rt_29_a_directory_is_a_program_and_ranks_leave_their_own_diagnostics(tmp_path: Path) -> None:
    kernel = rank_programs.around_the_ring.warmup()
    assert kernel.binary_dir is not None
    ready = tmp_path / "ready"
    shutil.copytree(kernel.binary_dir, ready)
    with pytest.raises(ValueError, match=r"DistributedProgram\.from_dir\(directory\) loads it"):
        CompiledProgram.from_dir(ready)
    program = DistributedProgram.from_dir(ready)
    config = RunConfig(enable_dep_gen=True, distributed_config=DistributedConfig([0, 1]))
    x, y = numbers("f32", (ROWS, COLUMNS), 7), np.zeros((ROWS, COLUMNS), np.float32)
    assert program(x, y, 2, config=config) is y
    assert program.latest_diagnostics == ready / "run"
    # Rank 0 has three of the five calls.
    runs = [len(list((ready / f"run/rank-{rank}/chip-0-add_one").iterdir())) for rank in range(2)]
    assert runs == [3, 2]


def test_chips_for_the_other_runtime_in_a_window_of_one_task() -> None:
    config = RunConfig(
        ring_task_window=1, distributed_config=DistributedConfig([0, 1], runtime="tensormap_and_ringbuffer")
    )
    x, y = numbers("f32", (ROWS, COLUMNS), 8), np.zeros((ROWS, COLUMNS), np.float32)
    rank_programs.around_the_ring(x, y, 1, config=config)
    assert np.array_equal(y, x + np.float32(1) + np.float32(1) + np.float32(1))
    with pytest.raises(ValueError, match="was built for the runtime host_build_graph, but the call's"):
        rank_programs.around_the_ring.warmup()(x, y, 1, config=config)


def test_calls_of_several_threads_have_ranks_of_their_own() -> None:
    kernel = rank_programs.around_the_ring.compile(config=on(2))

    def call(seed: int) -> bool:
        x, y = numbers("f32", (ROWS, COLUMNS), seed), np.zeros((ROWS, COLUMNS), np.float32)
        kernel(x, y, 1)
        return np.array_equal(y, x + np.float32(1) + np.float32(1) + np.float32(1))

    with ThreadPoolExecutor(3) as pool:
        assert all(pool.map(call, range(3)))


def test_checked_runs_in_every_rank() -> None:
    x = numbers("f32", (2, ROWS, COLUMNS), 6)
    y = np.zeros_like(x)
    config = RunConfig(sim_checks=True, distributed_config=DistributedConfig([0, 1]))
    rank_programs.some_misbehave(x, np.zeros(2, np.int32), y, config=config)
    assert np.array_equal(y, 2 * x)
