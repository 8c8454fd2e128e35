"""Root-mean-square normalisation of rows, as it stands in front of every transformer layer."""

import pypto.language as pl

HIDDEN = 512
ROWS = 16
EPSILON = 1e-6

N = pl.dynamic("N")


@pl.jit.incore
def normalize_rows(
    x: pl.Tensor[[N, HIDDEN], pl.FP16],
    weight: pl.Tensor[[1, HIDDEN], pl.FP32],
    row: pl.Scalar[pl.INDEX],
    count: pl.Scalar[pl.INDEX],
    out: pl.Out[pl.Tensor[[N, HIDDEN], pl.FP32]],
):
    values = pl.cast(pl.load(x, [row, 0], [ROWS, HIDDEN], valid_shape=[count, HIDDEN]), pl.FP32)
    mean_square = pl.row_sum(values * values) * (1.0 / HIDDEN)
    normalized = pl.row_expand_mul(values, pl.rsqrt(mean_square + EPSILON))
    pl.store(pl.col_expand_mul(normalized, pl.load(weight, [0, 0], [1, HIDDEN])), [row, 0], out)


@pl.jit
def rmsnorm(
    x: pl.Tensor[[N, HIDDEN], pl.FP16],
    weight: pl.Tensor[[1, HIDDEN], pl.FP32],
    out: pl.Out[pl.Tensor[[N, HIDDEN], pl.FP32]],
):
    """``out[i] = x[i] / sqrt(mean(x[i]^2) + EPSILON) * weight``."""
    rows = x.shape[0]
    for row in pl.range(0, rows, ROWS):
        normalize_rows(x, weight, row, pl.min(rows - row, ROWS), out)
    return out
