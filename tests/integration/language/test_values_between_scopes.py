"""What scopes make and later ones use, on the simulator and by both runtimes."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import between_kernels as kernels
import numpy as np
import pytest

from pypto.jit.config import CacheConfig, configure_cache
from pypto.runtime import CompiledProgram, RunConfig

RUNTIMES = ["host_build_graph", "tensormap_and_ringbuffer"]
SETTINGS = [{}, {"sim_checks": True}]


def by_each_runtime(store: Path, kernel: Any) -> dict[str, CompiledProgram]:
    """A kernel for both runtimes, whose binaries are the same."""
    configure_cache(CacheConfig(enabled=True, root=store))
    made = kernel.compile().load()
    configure_cache(None)
    assert made._orchestration is not None
    ring = dataclasses.replace(made.config, runtime=RUNTIMES[1])
    return {RUNTIMES[0]: made, RUNTIMES[1]: CompiledProgram(ring, made._orchestration, made._binaries)}


@pytest.fixture(scope="module")
def tiles(store: Path) -> dict[str, CompiledProgram]:
    return by_each_runtime(store, kernels.tiles)


@pytest.fixture(scope="module")
def whole(store: Path) -> dict[str, CompiledProgram]:
    return by_each_runtime(store, kernels.whole)


@pytest.fixture(scope="module")
def replaced(store: Path) -> dict[str, CompiledProgram]:
    return by_each_runtime(store, kernels.replaced)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("rows", [70, 64, 5])
def test_tiles_and_numbers(
    tiles: dict[str, CompiledProgram], runtime: str, settings: dict[str, Any], rows: int
) -> None:
    random = np.random.default_rng(rows)
    a = random.standard_normal((64, 64)).astype(np.float32)
    h = (random.standard_normal((64, 64)) / 4).astype(np.float16)
    x = random.standard_normal((rows, 64)).astype(np.float32)
    x[::32, 0] = [0.5, 0.25, -0.5][: len(x[::32])]
    product, doubled, chosen = (np.full_like(a, np.nan) for _ in range(3))
    parts = np.full_like(x, np.nan)
    tiles[runtime](a, h, x, product, doubled, parts, chosen, config=RunConfig(**settings))
    q = 2 * (h.astype(np.float64) @ h.astype(np.float64))
    np.testing.assert_allclose(product, q - q.max(axis=1, keepdims=True), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(doubled, q * 2, rtol=1e-5, atol=1e-5)
    e = np.exp(x.astype(np.float64))
    first, count = e[::32, 0].copy(), int((e[::32, 0] > 1).sum())
    e[::32, 1][first > 1] = 0.0
    np.testing.assert_allclose(parts, e * np.repeat(first, 32)[:rows, None], rtol=1e-5, atol=1e-6)
    expected = (a if count > 1 else a * 3.0).astype(np.float64) + count
    # BF16 keeps 8 bits.
    np.testing.assert_allclose(chosen - (q * 2).sum(axis=1, keepdims=True), expected, rtol=2**-8, atol=2**-7)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("n", [0, 1, 4])
def test_whole_tensors(whole: dict[str, CompiledProgram], runtime: str, settings: dict[str, Any], n: int) -> None:
    x = np.random.default_rng(n).standard_normal((40, 1500)).astype(np.float32)
    out = np.full_like(x, np.nan)
    # Room for what a turn begins with, what it makes, and a little more, whatever the number of turns.
    ring = {"ring_heap": 3 * x.nbytes + 4096} if runtime == RUNTIMES[1] else {}
    whole[runtime](x, n, out, config=RunConfig(**settings, **ring))
    p, q = x.astype(np.float64), x.astype(np.float64) + 1.0
    for _ in range(n):
        p, q = q, p - q.max(axis=1, keepdims=True)
    np.testing.assert_allclose(out, p * 2.0 + q, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("n", [0, 1, 2, 6])
def test_workspaces_that_loops_and_branches_replace(
    replaced: dict[str, CompiledProgram], runtime: str, settings: dict[str, Any], n: int
) -> None:
    a, b = np.random.default_rng(n).integers(-8, 9, (2, 64, 64)).astype(np.float32)
    out, other = np.full_like(a, np.nan), np.full_like(a, np.nan)
    # The first values, what a turn replaces and what it makes: what was let go of is written again at once.
    ring = {"ring_heap": 5 * a.nbytes} if runtime == RUNTIMES[1] else {}
    replaced[runtime](a, b, n, out, other, config=RunConfig(**settings, **ring))
    x, y = a * 2.0, b + 1.0
    for i in range(n):
        x = x + i * (y - a * 2.0)
        y = x - y if i % 2 == 1 else x
    np.testing.assert_array_equal(out, x * 2.0)
    np.testing.assert_array_equal(other, y * 2.0)
