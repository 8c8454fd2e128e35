"""The kernel of `jit_cache_latency.py`: one vector function."""

from __future__ import annotations

import pypto.language as pl

ROWS = 16
COLUMNS = 64


@pl.jit
def scaled(x: pl.Tensor[[ROWS, COLUMNS], pl.FP32], factor: float, out: pl.Out[pl.Tensor[[ROWS, COLUMNS], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [ROWS, COLUMNS]) * factor, [0, 0], out)
    return out
