"""A kernel whose tasks are given whole tensors and a place in them."""

import pypto.language as pl

ROWS = 16


@pl.jit.incore
def twice(x: pl.Tensor[[64, 128], pl.FP32], row: pl.Scalar[pl.INDEX], o: pl.Out[pl.Tensor[[64, 128], pl.FP32]]):
    pl.store(pl.load(x, [row, 0], [ROWS, 128]) * 2.0, [row, 0], o)


@pl.jit
def relay(x: pl.Tensor[[64, 128], pl.FP32], out: pl.Out[pl.Tensor[[64, 128], pl.FP32]]):
    """Each block of rows is one chain of two tasks; the last block is written once more, from two blocks."""
    middle = pl.create_tensor([64, 128], dtype=pl.FP32)
    for row in pl.parallel(0, 64, ROWS):
        twice(x, row, middle)
    for row in pl.parallel(0, 64, ROWS):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="plus"):
            out[row : row + ROWS, :] = middle[row : row + ROWS, :] + 1.0
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="across"):
        out[48:64, :] = middle[8:24, :]
    return out
