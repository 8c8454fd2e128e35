"""Regions of `pl.split_aiv` on the simulator."""

from __future__ import annotations

import numpy as np
import pytest
import vector_core_kernels as kernels

from pypto.runtime import RunConfig


@pytest.mark.parametrize("n", [24, 32, 41, 64])
def test_halves_of_tiles(n: int) -> None:
    rng = np.random.default_rng(n)
    a, w = (rng.standard_normal((64, 64)).astype(np.float16) * np.float16(0.125) for _ in range(2))
    b = rng.standard_normal((64, 64)).astype(np.float32)
    rows, columns, plain = (np.full((64, 64), np.nan, np.float32) for _ in range(3))
    kernels.halves(a, w, b, n, rows, columns, plain, config=RunConfig(sim_checks=n == 41))
    a, w = a.astype(np.float64), w.astype(np.float64)
    s = a @ w + b
    high = s.max(1, keepdims=True)
    t = np.exp(s - high).astype(np.float16).astype(np.float64) @ w
    # A weight of FP16 may round the other way.
    np.testing.assert_allclose(columns, t * 2, atol=2e-3)
    np.testing.assert_allclose(rows, t * high, atol=4e-3)
    expected = np.where(np.arange(64)[:, None] < n, b + np.float32(1), np.nan)
    expected[:8] = b[:8] * np.float32(3)
    np.testing.assert_array_equal(plain, expected)


@pytest.mark.parametrize("runtime", ["host_build_graph", "tensormap_and_ringbuffer"])
def test_attention_whose_rows_both_vector_cores_share(runtime: str) -> None:
    rng = np.random.default_rng(1)
    q = rng.standard_normal((kernels.ROWS, kernels.WIDTH)).astype(np.float16)
    k, v = (rng.standard_normal((3 * kernels.KEYS, kernels.WIDTH)).astype(np.float16) for _ in range(2))
    out = np.full(q.shape, np.nan, np.float32)
    kernels.attention(q, k, v, out, config=RunConfig(runtime=runtime))
    s = q.astype(np.float64) @ k.astype(np.float64).T * 0.125
    p = np.exp(s - s.max(1, keepdims=True))
    np.testing.assert_allclose(out, p @ v.astype(np.float64) / p.sum(1, keepdims=True), atol=2e-3)
