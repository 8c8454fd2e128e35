"""Paged attention, top-k, ragged sums, routed experts, shifted windows, against NumPy in float64."""

from __future__ import annotations

import itertools

import algorithms as kernels
import numpy as np

from pypto.runtime.config import RunConfig

F, H, Z = np.float32, np.float16, np.int32
EPS32, EPS16 = 2.0**-24, 2.0**-11


def numbers(seed: int, *shape: int, dtype: type = F) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def test_attention_over_pages(checked: RunConfig) -> None:
    q, keys, values = numbers(1, 16, 64, dtype=H), numbers(2, 256, 64, dtype=H), numbers(3, 256, 64, dtype=H)
    table, lengths, out = np.array([[3, 0, 7, 5], [1, 2, 6, 4]], Z), np.array([100, 32], Z), np.zeros((2, 16, 64), F)
    kernels.paged_attention(q, keys, values, table, lengths, out, config=checked)
    for b in range(2):
        rows = np.concatenate([np.arange(32 * page, 32 * page + 32) for page in table[b]])[: lengths[b]]
        s = q.astype(np.float64) @ keys[rows].T.astype(np.float64) / 8
        p = np.exp(s - s.max(1, keepdims=True))
        expected = p / p.sum(1, keepdims=True) @ values[rows].astype(np.float64)
        # Weights are rounded to FP16, and they sum to 1.
        assert np.abs(out[b] - expected).max() <= EPS16 * float(np.abs(values).max())


def test_the_largest_elements_and_their_places(checked: RunConfig) -> None:
    x, positions = numbers(1, 4, 128), np.arange(128, dtype=np.uint32)[None]
    values, places = np.zeros((4, 8), F), np.zeros((4, 8), Z)
    kernels.top_8(x, positions, values, places, config=checked)
    order = np.argsort(-x, 1)[:, :8]
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))


def test_ragged_means(checked: RunConfig) -> None:
    x, starts, flags = numbers(1, 64, 32), np.array([0, 3, 3, 40, 64]), np.array([True, True, False, True])
    out, best = np.zeros((4, 32), F), np.zeros((1, 8), F)
    kernels.ragged_means(x, starts, flags, out, best, config=checked)
    for g, (low, high) in enumerate(itertools.pairwise(starts)):
        expected = x[low:high].astype(np.float64).sum(0) / (max(high - low, 1) if flags[g] else 1)
        assert np.abs(out[g] - expected).max() <= 64 * EPS32 * 4
        assert best[0, 2 * g] == out[g].max()
        assert best[0, 2 * g + 1] == out[g].argmax()


def test_experts_that_a_table_chooses(checked: RunConfig) -> None:
    x, w, out = numbers(1, 32, 64, dtype=H), numbers(2, 4, 64, 64, dtype=H), np.ones((32, 64), F)
    route = np.random.default_rng(3).integers(0, 4, 32).astype(Z)
    kernels.experts(x, w, route, out, config=checked)
    expected = 1 + np.stack([x[i].astype(np.float64) @ w[route[i]].astype(np.float64) for i in range(32)])
    assert np.abs(out - expected).max() <= 64 * 8 * EPS32 * float(np.abs(x).max() * np.abs(w).max())


def test_a_window_larger_than_a_tile(checked: RunConfig) -> None:
    a, out, expected = numbers(1, 2000, 64), np.full((2000, 64), 7, F), np.zeros((2000, 64), F)
    kernels.shifted(a, out, 1500, config=checked)
    expected[:500] = a[1500:] * 2
    np.testing.assert_array_equal(out, expected)


def test_rows_of_a_cache_are_replaced(checked: RunConfig) -> None:
    cache, new, rows = np.zeros((8, 128, 1, 64), H), numbers(1, 1, 8, 1, 64, dtype=H), numbers(2, 8, 64)
    slots = 2 + np.random.default_rng(3).permutation(990)[:8].reshape(4, 2).astype(Z)
    table, back = np.zeros((1000, 64), F), np.zeros((8, 64), H)
    kernels.cache_update(cache, new, slots, rows, table, back, config=checked)
    expected = np.zeros((1024, 64), H)
    expected[slots.ravel()] = new.reshape(8, 64)
    np.testing.assert_array_equal(cache.reshape(1024, 64), expected)
    np.testing.assert_array_equal(back, new.reshape(8, 64))
    wide = np.zeros((1000, 64), F)
    wide[slots.ravel()] = rows
    wide[1, 1] = rows[1, 6]
    np.testing.assert_array_equal(table, wide)


def test_numbers_between_matrix_and_vector_work(checked: RunConfig) -> None:
    a = np.abs(numbers(1, 64, 64, dtype=H))
    product = a.astype(np.float64) @ a.astype(np.float64)
    for k in (0, 5):
        out, acc = np.zeros((64, 64), F), np.zeros((64, 64))
        kernels.scaled_powers(a, out, k, config=checked)
        for _ in range(3):
            acc = (product + acc) / (product + acc)[k].max()
        acc[0, 0] = acc[2, 3]
        assert np.abs(out - acc).max() <= 64 * 8 * EPS32
