"""out = 2 * (x + n * step): a kernel in C++, then one in Python."""

import pypto.language as pl
from tests.bazel.extern.step_add import step_add


@pl.jit
def doubled(x: pl.Tensor[[16, 64], pl.FP32], n: int, out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    between = pl.create_tensor([16, 64], dtype=pl.FP32)
    step_add(x, n, between)
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(between, [0, 0], [16, 64]) * 2.0, [0, 0], out)
    return out
