"""out = x + OFFSET: a small kernel that names no hardware family."""

import pypto.language as pl
from tests.bazel.bundles.offset import OFFSET


@pl.jit
def shift(
    x: pl.Tensor[[64, 64], pl.FP32],
    out: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.adds(pl.load(x, [0, 0], [64, 64]), OFFSET), [0, 0], out)
    return out
