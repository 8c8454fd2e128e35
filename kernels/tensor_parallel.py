"""A linear layer with its inner dimension divided among ranks: every rank multiplies its part, the sums are for all."""

import pypto.language as pl
import pypto.language.distributed as pld
from kernels.matmul import K, M, N, matmul

BLOCK = 32

NR = pl.dynamic("NR")


@pl.jit
def activate(sums: pl.Tensor[[M, N], pl.FP32], y: pl.Out[pl.Tensor[[M, N], pl.FP32]]):
    """``y = max(sums, 0)``."""
    rows = sums.shape[0]
    for row in pl.range(0, rows, BLOCK):
        with pl.at(level=pl.Level.CORE_GROUP):
            count = pl.min(rows - row, BLOCK)
            block = pl.load(sums, [row, 0], [BLOCK, N], valid_shape=[count, N])
            pl.store(pl.relu(block), [row, 0], y)
    return y


@pl.jit.host
def tensor_parallel(
    x: pl.Tensor[[NR, M, K], pl.FP16],
    w: pl.Tensor[[NR, K, N], pl.FP16],
    y: pl.Out[pl.Tensor[[NR, M, N], pl.FP32]],
):
    """``y[r] = max(sum over s of x[s] @ w[s], 0)`` on every rank r."""
    buffer = pld.alloc_window_buffer([x.shape[1], N], dtype=pl.FP32)
    sums = pld.window(buffer, [x.shape[1], N], dtype=pl.FP32)
    for r in pl.range(pld.world_size()):
        matmul(x[r], w[r], sums, device=r)
    sums = pld.tensor.allreduce(sums, op=pld.ReduceOp.Sum)
    for r in pl.range(pld.world_size()):
        activate(sums, y[r], device=r)
    return y
