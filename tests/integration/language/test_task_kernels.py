"""Launches, groups and conditions of tasks on the simulator, by both runtimes."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import task_kernels as kernels

from pypto.jit.config import CacheConfig, configure_cache
from pypto.runtime import CompiledProgram, KernelRunError, RunConfig

RUNTIMES = ["host_build_graph", "tensormap_and_ringbuffer"]


@pytest.fixture(scope="module")
def programs(store: Path) -> dict[str, CompiledProgram]:
    """The kernel for both runtimes, whose binaries are the same."""
    configure_cache(CacheConfig(enabled=True, root=store))
    made = kernels.tasks.compile().load()
    configure_cache(None)
    assert made._orchestration is not None
    ring = dataclasses.replace(made.config, runtime="tensormap_and_ringbuffer")
    return {
        "host_build_graph": made,
        "tensormap_and_ringbuffer": CompiledProgram(ring, made._orchestration, made._binaries),
    }


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("settings", [{}, {"sim_checks": True}, {"aicpu_thread_num": 4}])
def test_tasks_that_the_program_launches_and_orders(
    programs: dict[str, CompiledProgram], runtime: str, settings: dict[str, Any]
) -> None:
    a = np.random.default_rng(1).integers(-8, 9, (64, 64)).astype(np.float32)
    for n in (0, 1, 9):
        out, gated = np.full_like(a, np.nan), np.zeros_like(a)
        assert programs[runtime](a, n, out, gated, config=RunConfig(runtime=runtime, **settings)) is out
        np.testing.assert_array_equal(out, (a * 4 + n) * 2 - 1)
        np.testing.assert_array_equal(gated, np.where(np.arange(64)[:, None] >= 32, a, 0))


@pytest.mark.parametrize("window", [1, 2, 3, None])
def test_a_long_loop_of_workspaces_in_little_memory(window: int | None) -> None:
    a = np.random.default_rng(1).integers(-8, 9, (64, 64)).astype(np.float32)
    out = np.full_like(a, np.nan)
    one = 16 * 64 * 4
    kernels.layers(a, 200, out, config=RunConfig(ring_task_window=window, ring_heap=2 * one))
    np.testing.assert_array_equal(out, (a + 1) * 2)


def test_one_workspace_that_does_not_fit() -> None:
    a = np.zeros((64, 64), np.float32)
    with pytest.raises(KernelRunError, match="a workspace of 4096 bytes is larger than all memory for workspaces"):
        kernels.layers(a, 1, a.copy(), config=RunConfig(ring_heap=4095))


def test_loops_that_end_early_and_two_ways_to_return(checked: RunConfig) -> None:
    a = np.random.default_rng(1).integers(-8, 9, (64, 64)).astype(np.float32)
    a[63, 63] = 8
    for n in (-1, 0, 1, 2, 7):
        out = np.zeros_like(a)
        kernels.early(a, n, out, config=checked)
        expected = np.zeros_like(a)
        if n < 0:
            expected = a - 1
        else:
            turns = next(k for k in range(10) if k * k >= n)
            rows = min(n * 32, 64)
            expected[:rows] = (a[:rows] + turns - (turns >= 2)) * 2 ** max(n - 1, 0)
        halved = 0
        while expected[63, 63] > 100:
            expected[32:] *= 0.5
            halved += 1
        assert (halved > 0) == (n == 7)
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("planner", ["DSA_RP", "PTOAS"])
def test_planners_of_on_chip_memory_give_right_numbers(planner: str) -> None:
    a = np.random.default_rng(1).standard_normal((64, 64)).astype(np.float32)
    out = np.full_like(a, np.nan)
    kernels.chains(a, 3, out, config=RunConfig(memory_planner=planner))
    x = a.astype(np.float64)
    z = 2 * np.exp(x - x.max(1, keepdims=True))
    for i in range(3):
        w = x + z
        z = w * 0.5 if i % 2 else w - w.max(1, keepdims=True)
    expected = np.abs(x) + z + x.min(1, keepdims=True)
    # About ten roundings of numbers below 16.
    assert np.abs(out - expected).max() <= 10 * 16 * 2.0**-24
