"""Matrix product with FP16 operands and FP32 accumulation, for any number of rows."""

import pypto.language as pl

K = 256
N = 256
BLOCK = 64

M = pl.dynamic("M")


@pl.jit.incore
def multiply_block(
    a: pl.Tensor[[M, K], pl.FP16],
    b: pl.Tensor[[K, N], pl.FP16],
    row: pl.Scalar[pl.INDEX],
    count: pl.Scalar[pl.INDEX],
    column: pl.Scalar[pl.INDEX],
    c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
):
    """One block of the result: ``count`` rows from ``row`` on, BLOCK columns from ``column`` on."""
    left = pl.load(a, [row, 0], [BLOCK, BLOCK], valid_shape=[count, BLOCK])
    total = pl.matmul(left, pl.load(b, [0, column], [BLOCK, BLOCK]))
    for k in pl.range(BLOCK, K, BLOCK):
        left = pl.load(a, [row, k], [BLOCK, BLOCK], valid_shape=[count, BLOCK])
        total = pl.matmul_acc(total, left, pl.load(b, [k, column], [BLOCK, BLOCK]))
    pl.store(total, [row, column], c)


@pl.jit
def matmul(
    a: pl.Tensor[[M, K], pl.FP16],
    b: pl.Tensor[[K, N], pl.FP16],
    c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
):
    """``c = a @ b``."""
    rows = a.shape[0]
    for row in pl.range(0, rows, BLOCK):
        for column in pl.range(0, N, BLOCK):
            multiply_block(a, b, row, pl.min(rows - row, BLOCK), column, c)
    return c
