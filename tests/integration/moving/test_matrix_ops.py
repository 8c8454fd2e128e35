"""Matrix products, with bias, of rows, in batches and of gathered rows, against NumPy in float64."""

from __future__ import annotations

import matrix_kernels as kernels
import numpy as np
import pytest

from pypto.runtime.config import RunConfig

F, H, Z, B = np.float32, np.float16, np.int32, np.int8
EPS32, EPS16 = 2.0**-24, 2.0**-11


def numbers(seed: int, *shape: int, dtype: type = H) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if np.issubdtype(dtype, np.integer):
        return rng.integers(-100, 100, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def close(found: np.ndarray, expected: np.ndarray, terms: int, unit: float = EPS32) -> None:
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=2 * unit, atol=terms * 8 * EPS32 + unit)


@pytest.mark.parametrize("k", [24, 13])
def test_products(checked: RunConfig, k: int) -> None:
    a, b, bt = numbers(1, 20, 24), numbers(2, 24, 40), numbers(3, 40, 24)
    bias, wide, row = numbers(4, 1, 40, dtype=F), numbers(5, 1, 40), numbers(6, 1, 24)
    i, j, ibias = numbers(7, 20, 48, dtype=B), numbers(8, 48, 24, dtype=B), numbers(9, 1, 24, dtype=Z)
    shapes = [(20, 40)] * 4 + [(1, 40)] * 3
    out = [np.full(s, np.nan, F) for s in shapes]
    whole, inner, chosen = np.zeros((20, 24), Z), np.full((20, 40), np.nan, F), np.full((16, 16), np.nan, F)
    narrow = np.zeros((20, 40), H)
    kernels.products(a, b, bt, bias, wide, row, i, j, ibias, k, *out, whole, inner, chosen, narrow, config=checked)
    plain, turned, biased, cast, vector, vector_acc, vector_bias = out
    x, y, z, r = (t.astype(np.float64) for t in (a, b, bt, row))
    close(plain, x @ y, 24)
    close(turned, x @ z.T + x @ y, 48)
    close(biased, x @ y + bias, 25)
    close(cast, x @ y + wide, 25)
    close(vector, r @ y, 24)
    close(vector_acc, 2 * (r @ y), 48)
    close(vector_bias, r @ y + bias, 25)
    np.testing.assert_array_equal(whole, i.astype(Z) @ j.astype(Z) + ibias)
    close(inner, x[:, :k] @ y[:k], 24)
    close(chosen, x[4:20, 8:24] @ y[8:24, k : k + 16], 16)
    close(narrow, x @ y, 24, EPS16)


def test_rows_that_a_table_names(checked: RunConfig) -> None:
    q, cache = numbers(1, 16, 32), numbers(2, 64, 32)
    table = np.random.default_rng(3).permutation(64)[:16].astype(Z)
    out, twice = np.full((16, 16), np.nan, F), np.full((32, 16), np.nan, F)
    kernels.gathered_product(q, cache, table, out, twice, config=checked)
    x, y = q.astype(np.float64), cache.astype(np.float64)
    close(out, x @ y[table].T, 32)
    close(twice, x.T @ x[:, :16], 16)


def test_batches_and_heads(checked: RunConfig) -> None:
    a, b, x = numbers(1, 2, 3, 20, 24), numbers(2, 2, 3, 24, 40), numbers(3, 2, 8, 3, 32, dtype=F)
    product, more, heads = np.zeros((2, 3, 20, 40), F), np.zeros((2, 3, 20, 40), F), np.zeros_like(x)
    sums = np.zeros((2, 8, 3, 1), F)
    kernels.batches(a, b, x, product, more, heads, sums, config=checked)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    close(product, expected, 24)
    close(more, 2 * expected, 48)
    wanted = x + F(1)
    wanted[:, :4] = x[:, :4] * 2
    np.testing.assert_array_equal(heads, wanted)
    np.testing.assert_allclose(sums, np.exp(x.astype(np.float64)).sum(-1, keepdims=True), rtol=64 * EPS32)
