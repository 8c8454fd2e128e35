"""Control flow, mixed scopes, whole tensors and elements on the simulator, against NumPy in float64."""

from __future__ import annotations

from typing import Any

import language_kernels as kernels
import numpy as np

from pypto.runtime.config import RunConfig

EPS32 = 2.0**-24
EPS16 = 2.0**-11


def numbers(seed: int, shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def untouched(*shape: int) -> np.ndarray:
    return np.full(shape, np.nan, np.float32)


def softmax(t: np.ndarray) -> np.ndarray:
    p = np.exp(t - t.max(1, keepdims=True))
    return p / p.sum(1, keepdims=True)


def test_loops_carry_tensors(checked: RunConfig) -> None:
    a = numbers(1, (64, 64))
    for n in (0, 4, 5):
        out = untouched(64, 64)
        kernels.control(a, n, out, config=checked)
        expected = a.astype(np.float64)
        for by in (0, *[1] * n, 2, 2):
            expected = np.exp(expected - expected.max(1, keepdims=True)) + by
        if n <= 3:
            np.testing.assert_array_equal(out, a)
        else:
            assert np.abs(out - expected).max() <= 64 * EPS32 * np.abs(expected).max()


def test_scope_of_both_kinds_of_work(checked: RunConfig) -> None:
    q = numbers(1, (16, 64), np.float16)
    for length in (1, 31, 32, 100):
        k, v = numbers(2, (length, 64), np.float16), numbers(3, (length, 64), np.float16)
        out = untouched(16, 64)
        kernels.attention(q, k, v, out, config=checked)
        expected = softmax(q.astype(np.float64) @ k.T.astype(np.float64) / 8) @ v.astype(np.float64)
        # Weights are rounded to FP16, and they sum to 1.
        assert np.abs(out - expected).max() <= EPS16 * float(np.abs(v).max()), length


def test_whole_tensors_of_run_time_sizes(checked: RunConfig) -> None:
    for m, k, n in ((33, 130, 300), (1, 1, 1), (130, 65, 17)):
        a, b, c, out = numbers(1, (m, k)), numbers(2, (k, n)), numbers(3, (m, n)), untouched(m, n)
        kernels.arrays(a, b, c, out, config=checked)
        share = softmax(a.astype(np.float64) @ b + c)
        # The error of a sum of k products is in the exponent.
        limit = (k + n) * EPS32 * float(np.abs(a).max() * np.abs(b).max())
        assert np.abs(out - (share - share.min(0, keepdims=True))).max() <= limit, (m, k, n)


def test_large_tensors(checked: RunConfig) -> None:
    a, b, c = numbers(1, (300, 512), np.float16), numbers(2, (200, 512), np.float16), numbers(3, (300, 200), np.float16)
    out = untouched(200, 300)
    kernels.large(a, b, c, out, config=checked)
    exact = [x.astype(np.float64) for x in (a, b, c)]
    bound = 512 * EPS32 * (np.abs(exact[0]) @ np.abs(exact[1]).T + np.abs(exact[2])).T
    assert np.all(np.abs(out - (exact[0] @ exact[1].T + exact[2]).T) <= bound)


def test_numbers_that_count_and_triangles(checked: RunConfig) -> None:
    for m, n in ((1, 1), (150, 300)):
        a, out = numbers(1, (m, n)), untouched(m, n)
        kernels.counted(a, -4, out, config=checked)
        np.testing.assert_allclose(out, np.tril(a.astype(np.float64), 1) - 4 - np.arange(n), rtol=4 * EPS32)


def test_tensors_that_nearly_fill_a_memory(checked: RunConfig) -> None:
    x, gain, bias, out = numbers(1, (95, 256)), numbers(2, (1, 256)), numbers(3, (1, 256)), untouched(95, 256)
    codes, scales = np.zeros((95, 256), np.int8), untouched(95, 1)
    kernels.crowded(x, gain, bias, out, codes, scales, config=checked)
    exact = x.astype(np.float64)
    exact = (exact - exact.mean(1, keepdims=True)) / np.sqrt(exact.var(1, keepdims=True) + 1e-5) * gain + bias
    assert np.abs(out - exact).max() <= 256 * EPS32 * np.abs(exact).max()
    np.testing.assert_allclose(scales[:, 0], np.abs(exact).max(1) / 127, rtol=2 * EPS16)
    assert np.all(np.abs(codes * scales - exact) <= scales * 0.51 + 2 * EPS16 * np.abs(exact))


def test_products_in_half_precision(checked: RunConfig) -> None:
    for m, k, n in ((33, 65, 17), (200, 300, 40)):
        a, b = numbers(1, (m, k), np.float16), numbers(2, (n, k), np.float16)
        out = np.full((m, n), np.nan, np.float16)
        kernels.half(a, b, out, config=checked)
        exact = np.maximum(a.astype(np.float64) @ b.T.astype(np.float64), 0)
        bound = EPS16 * exact + k * EPS32 * (np.abs(a).astype(np.float64) @ np.abs(b).T.astype(np.float64))
        assert np.all(np.abs(out - exact) <= bound), (m, k, n)


def test_batch_of_rows(checked: RunConfig) -> None:
    x, w, gain, out = numbers(1, (2, 24, 96)), numbers(2, (96, 64)), numbers(3, (96,)), untouched(2, 24, 64)
    kernels.layer(x, w, gain, out, config=checked)
    exact = x.astype(np.float64)
    exact = exact / np.sqrt((exact * exact).mean(-1, keepdims=True) + 1e-6) * gain
    bound = 2 * 96 * EPS32 * (np.abs(exact) @ np.abs(w))
    assert np.all(np.abs(out - exact @ w) <= bound)


def test_elements_and_single_indices(checked: RunConfig) -> None:
    a, f = numbers(1, (3, 4, 32, 64)), numbers(2, (8,), np.float16)
    out, rows = np.zeros((4, 32, 64), np.float32), np.zeros((32, 64), np.float32)
    kernels.elements(a, f, np.array([1, 2, 0, 1], np.int32), 1, out, rows, config=checked)
    expected = np.zeros((4, 32, 64))
    expected[3] = (a[1, 2].astype(np.float64) + a[2, 1]) * float(f[3])
    expected[0, 1, 2] = 7.5
    assert np.abs(out - expected).max() <= 16 * EPS32
    expected = np.zeros((32, 64))
    expected[:3] = a[:, 1, 5] * 2.0
    expected[8:16] = expected[:8] + 1
    assert np.abs(rows - expected).max() <= 16 * EPS32


def test_a_loop_that_starts_at_another_loops_variable(checked: RunConfig) -> None:
    out = untouched(16, 64)
    kernels.triangle(np.zeros((16, 64), np.float32), 5, out, config=checked)
    np.testing.assert_array_equal(out, sum(j for i in range(5) for j in range(i, i * 2)))


def test_a_tensor_shifted_in_its_own_place(checked: RunConfig) -> None:
    for rows in (2, 1500):
        a = numbers(1, (rows, 64))
        expected = np.concatenate([a[:1], a[:-1]])
        kernels.shift_rows(a, config=checked)
        np.testing.assert_array_equal(a, expected)
