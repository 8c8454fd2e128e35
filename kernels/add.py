"""Element-wise sum of two matrices with any number of rows."""

import pypto.language as pl

COLUMNS = 512
ROWS = 16

N = pl.dynamic("N")


@pl.jit
def add(
    a: pl.Tensor[[N, COLUMNS], pl.FP32],
    b: pl.Tensor[[N, COLUMNS], pl.FP32],
    out: pl.Out[pl.Tensor[[N, COLUMNS], pl.FP32]],
):
    """``out = a + b``, ROWS rows at a time."""
    rows = a.shape[0]
    for row in pl.range(0, rows, ROWS):
        count = pl.min(rows - row, ROWS)
        with pl.at(level=pl.Level.CORE_GROUP):
            x = pl.load(a, [row, 0], [ROWS, COLUMNS], valid_shape=[count, COLUMNS])
            y = pl.load(b, [row, 0], [ROWS, COLUMNS], valid_shape=[count, COLUMNS])
            pl.store(x + y, [row, 0], out)
    return out
