"""Softmax along the rows of a matrix with any number of rows."""

import pypto.language as pl

COLUMNS = 256
ROWS = 16

N = pl.dynamic("N")


@pl.jit
def softmax(x: pl.Tensor[[N, COLUMNS], pl.FP32], out: pl.Out[pl.Tensor[[N, COLUMNS], pl.FP32]]):
    """``out[i] = exp(x[i]) / sum(exp(x[i]))``, computed relative to each row's maximum."""
    rows = x.shape[0]
    for row in pl.range(0, rows, ROWS):
        count = pl.min(rows - row, ROWS)
        with pl.at(level=pl.Level.CORE_GROUP):
            values = pl.load(x, [row, 0], [ROWS, COLUMNS], valid_shape=[count, COLUMNS])
            weights = pl.exp(pl.row_expand_sub(values, pl.row_max(values)))
            pl.store(pl.row_expand_div(weights, pl.row_sum(weights)), [row, 0], out)
    return out
