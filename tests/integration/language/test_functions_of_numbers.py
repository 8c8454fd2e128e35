"""Square roots, exponentials and the like of run-time numbers, on a core and in the entry."""

from __future__ import annotations

import math

import numpy as np

import pypto.language as pl
from pypto.runtime.config import RunConfig


@pl.jit
def functions(
    x: pl.Tensor[[8, 8], pl.FP32],
    factor: float,
    count: int,
    out: pl.Out[pl.Tensor[[8, 8], pl.FP32]],
):
    root, power = pl.sqrt(factor), pl.exp(-factor)
    if math.log(factor) > 0.5:
        root = root + 1.0
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [8, 8])
        for row in pl.range(count):
            number = pl.read(t, [row, 0])
            t[row, 1] = pl.sqrt(number)
            t[row, 2] = pl.exp(number)
            t[row, 3] = pl.log(number) + pl.sin(number)
            t[row, 4] = pl.cos(number) * pl.rsqrt(number)
            t[row, 5] = pl.recip(number) + number**0.5 * root
            t[row, 6] = power
            t[row, 7] = math.sqrt(count)
        pl.store(t, [0, 0], out)
    return out


def test_functions_on_a_core_and_in_the_entry(checked: RunConfig) -> None:
    x = np.random.default_rng(0).uniform(0.1, 20, (8, 8)).astype(np.float32)
    out = np.zeros_like(x)
    for factor in (2.5, 1.5):
        functions(x, factor, 7, out, config=checked)
        v = x[:7, 0]
        root = np.sqrt(np.float32(factor)) + np.float32(factor > math.exp(0.5))
        wanted = [v, np.sqrt(v), np.exp(v), np.log(v) + np.sin(v), np.cos(v) * (1 / np.sqrt(v))]
        wanted += [
            1 / v + np.sqrt(v) * root,
            np.full(7, np.exp(-np.float32(factor))),
            np.full(7, np.sqrt(np.float32(7))),
        ]
        np.testing.assert_array_equal(out[7], x[7])
        for column, values in enumerate(wanted):
            assert values.dtype == np.float32
            # One rounding of a function that has two of them in NumPy, and those of the sums.
            ulps = 1 if column in (1, 2, 6, 7) else 8
            np.testing.assert_array_max_ulp(out[:7, column], values, ulps)
