"""Causal grouped-query attention over a whole prompt.

Blocks of query rows are independent tasks. For each, the blocks of K and V up to the diagonal are taken one after the
other with the softmax computed online; only the block on the diagonal needs a mask.
"""

import pypto.language as pl

HEADS = 4
KV_HEADS = 2
HEAD_SIZE = 64
GROUP = HEADS // KV_HEADS
BLOCK = 64
SCALE = HEAD_SIZE**-0.5
LOWEST = -1.0e30

T = pl.dynamic("T")


@pl.jit
def prefill(
    q: pl.Tensor[[HEADS, T, HEAD_SIZE], pl.FP16],
    k: pl.Tensor[[KV_HEADS, T, HEAD_SIZE], pl.FP16],
    v: pl.Tensor[[KV_HEADS, T, HEAD_SIZE], pl.FP16],
    out: pl.Out[pl.Tensor[[HEADS, T, HEAD_SIZE], pl.FP32]],
):
    """Row ``t`` of each head attends to rows 0 to ``t`` of its group's K and V."""
    tokens = q.shape[1]
    for head in pl.parallel(HEADS):
        group = head // GROUP
        for row in pl.parallel(0, tokens, BLOCK):
            rows = pl.min(tokens - row, BLOCK)
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="attend"):
                query = pl.load(q, [head, row, 0], [1, BLOCK, HEAD_SIZE], valid_shape=[1, rows, HEAD_SIZE])
                top = pl.set_validshape(pl.full([BLOCK, 1], pl.FP32, LOWEST), rows, 1)
                mass = pl.set_validshape(pl.full([BLOCK, 1], pl.FP32, 0.0), rows, 1)
                total = pl.set_validshape(pl.full([BLOCK, HEAD_SIZE], pl.FP32, 0.0), rows, HEAD_SIZE)
                for start in pl.range(0, row + rows, BLOCK):
                    columns = pl.min(tokens - start, BLOCK)
                    keys = pl.load(k, [group, start, 0], [1, BLOCK, HEAD_SIZE], valid_shape=[1, columns, HEAD_SIZE])
                    values = pl.load(v, [group, start, 0], [1, BLOCK, HEAD_SIZE], valid_shape=[1, columns, HEAD_SIZE])
                    scores = pl.matmul(query, keys, b_trans=True) * SCALE
                    if start == row:
                        seen = pl.tri(0, [BLOCK, BLOCK], valid_shape=[rows, columns], dtype=pl.FP32)
                        scores = scores * seen + (seen - 1.0) * -LOWEST
                    new_top = pl.maximum(top, pl.row_max(scores))
                    weights = pl.exp(pl.row_expand_sub(scores, new_top))
                    shrink = pl.exp(top - new_top)
                    mass = mass * shrink + pl.row_sum(weights)
                    total = pl.row_expand_mul(total, shrink) + pl.matmul(pl.cast(weights, pl.FP16), values)
                    top = new_top
                pl.store(pl.row_expand_div(total, mass), [head, row, 0], out)
    return out
