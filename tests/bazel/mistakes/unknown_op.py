"""A kernel with an operation that does not exist."""

import pypto.language as pl


@pl.jit
def unknown_op(
    x: pl.Tensor[[64, 64], pl.FP32],
    out: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.expp(pl.load(x, [0, 0], [64, 64])), [0, 0], out)
