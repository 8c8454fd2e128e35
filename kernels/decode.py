"""Single-token grouped-query attention over a K and V cache.

One query token of 16 heads attends to ``seq_len`` rows of the cache, block by block, with the softmax computed online:
whatever the length, on-chip memory holds one block. Matrix products and vector work run on different cores, and each
block is four tasks that hand their results on through workspaces in global memory.
"""

import pypto.language as pl

HEADS = 16
HEAD_SIZE = 128
BLOCK = 64
SCALE = HEAD_SIZE**-0.5
LOWEST = -3.0e38

S = pl.dynamic("S")


@pl.jit.incore
def reset(
    row_max: pl.Out[pl.Tensor[[HEADS, 1], pl.FP32]],
    row_sum: pl.Out[pl.Tensor[[HEADS, 1], pl.FP32]],
    total: pl.Out[pl.Tensor[[HEADS, HEAD_SIZE], pl.FP32]],
):
    pl.store(pl.full([HEADS, 1], pl.FP32, LOWEST), [0, 0], row_max)
    pl.store(pl.full([HEADS, 1], pl.FP32, 0.0), [0, 0], row_sum)
    pl.store(pl.full([HEADS, HEAD_SIZE], pl.FP32, 0.0), [0, 0], total)


@pl.jit.incore
def score(
    q: pl.Tensor[[HEADS, HEAD_SIZE], pl.FP16],
    k: pl.Tensor[[S, HEAD_SIZE], pl.FP16],
    start: pl.Scalar[pl.INDEX],
    count: pl.Scalar[pl.INDEX],
    scores: pl.Out[pl.Tensor[[HEADS, BLOCK], pl.FP32]],
):
    """Scores of one block: ``q @ k[start : start + count].T``."""
    queries = pl.load(q, [0, 0], [HEADS, HEAD_SIZE])
    keys = pl.load(k, [start, 0], [BLOCK, HEAD_SIZE], valid_shape=[count, HEAD_SIZE])
    pl.store(pl.matmul(queries, keys, b_trans=True), [0, 0], scores)


@pl.jit.incore
def weigh(
    scores: pl.Tensor[[HEADS, BLOCK], pl.FP32],
    count: pl.Scalar[pl.INDEX],
    row_max: pl.InOut[pl.Tensor[[HEADS, 1], pl.FP32]],
    row_sum: pl.InOut[pl.Tensor[[HEADS, 1], pl.FP32]],
    weights: pl.Out[pl.Tensor[[HEADS, BLOCK], pl.FP16]],
    decay: pl.Out[pl.Tensor[[HEADS, 1], pl.FP32]],
):
    """Weights of one block relative to the new maximum, and the factor that brings earlier results down to it."""
    scaled = pl.muls(pl.load(scores, [0, 0], [HEADS, BLOCK], valid_shape=[HEADS, count]), SCALE)
    old_max = pl.load(row_max, [0, 0], [HEADS, 1])
    new_max = pl.maximum(old_max, pl.row_max(scaled))
    factor = pl.exp(old_max - new_max)
    block = pl.exp(pl.row_expand_sub(scaled, new_max))
    old_sum = pl.load(row_sum, [0, 0], [HEADS, 1])
    pl.store(new_max, [0, 0], row_max)
    pl.store(old_sum * factor + pl.row_sum(block), [0, 0], row_sum)
    pl.store(factor, [0, 0], decay)
    pl.store(pl.cast(block, pl.FP16), [0, 0], weights)


@pl.jit.incore
def mix(
    weights: pl.Tensor[[HEADS, BLOCK], pl.FP16],
    v: pl.Tensor[[S, HEAD_SIZE], pl.FP16],
    start: pl.Scalar[pl.INDEX],
    count: pl.Scalar[pl.INDEX],
    mixed: pl.Out[pl.Tensor[[HEADS, HEAD_SIZE], pl.FP32]],
):
    """One block's share of the result: ``weights @ v[start : start + count]``."""
    block = pl.load(weights, [0, 0], [HEADS, BLOCK], valid_shape=[HEADS, count])
    values = pl.load(v, [start, 0], [BLOCK, HEAD_SIZE], valid_shape=[count, HEAD_SIZE])
    pl.store(pl.matmul(block, values), [0, 0], mixed)


@pl.jit.incore
def gather(
    mixed: pl.Tensor[[HEADS, HEAD_SIZE], pl.FP32],
    decay: pl.Tensor[[HEADS, 1], pl.FP32],
    total: pl.InOut[pl.Tensor[[HEADS, HEAD_SIZE], pl.FP32]],
):
    earlier = pl.load(total, [0, 0], [HEADS, HEAD_SIZE])
    factor = pl.load(decay, [0, 0], [HEADS, 1])
    share = pl.load(mixed, [0, 0], [HEADS, HEAD_SIZE])
    pl.store(pl.row_expand_mul(earlier, factor) + share, [0, 0], total)


@pl.jit.incore
def normalize(
    total: pl.Tensor[[HEADS, HEAD_SIZE], pl.FP32],
    row_sum: pl.Tensor[[HEADS, 1], pl.FP32],
    out: pl.Out[pl.Tensor[[HEADS, HEAD_SIZE], pl.FP32]],
):
    weighted = pl.load(total, [0, 0], [HEADS, HEAD_SIZE])
    pl.store(pl.row_expand_div(weighted, pl.load(row_sum, [0, 0], [HEADS, 1])), [0, 0], out)


@pl.jit
def decode(
    q: pl.Tensor[[HEADS, HEAD_SIZE], pl.FP16],
    k: pl.Tensor[[S, HEAD_SIZE], pl.FP16],
    v: pl.Tensor[[S, HEAD_SIZE], pl.FP16],
    seq_len: pl.Scalar[pl.INT32],
    out: pl.Out[pl.Tensor[[HEADS, HEAD_SIZE], pl.FP32]],
):
    """Attention of one token over the first ``seq_len`` rows of the cache; ``seq_len`` is 1 to S."""
    row_max = pl.create_tensor([HEADS, 1], dtype=pl.FP32)
    row_sum = pl.create_tensor([HEADS, 1], dtype=pl.FP32)
    total = pl.create_tensor([HEADS, HEAD_SIZE], dtype=pl.FP32)
    reset(row_max, row_sum, total)
    for start in pl.range(0, seq_len, BLOCK):
        count = pl.min(seq_len - start, BLOCK)
        scores = pl.create_tensor([HEADS, BLOCK], dtype=pl.FP32)
        weights = pl.create_tensor([HEADS, BLOCK], dtype=pl.FP16)
        decay = pl.create_tensor([HEADS, 1], dtype=pl.FP32)
        mixed = pl.create_tensor([HEADS, HEAD_SIZE], dtype=pl.FP32)
        score(q, k, start, count, scores)
        weigh(scores, count, row_max, row_sum, weights, decay)
        mix(weights, v, start, count, mixed)
        gather(mixed, decay, total)
    normalize(total, row_sum, out)
    return out
