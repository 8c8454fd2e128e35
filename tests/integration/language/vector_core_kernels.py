"""Kernels whose work both vector cores of a block share."""

import pypto.language as pl

ROWS, KEYS, WIDTH = 32, 64, 64


@pl.jit
def halves(
    a: pl.Tensor[[64, 64], pl.FP16],
    w: pl.Tensor[[64, 64], pl.FP16],
    b: pl.Tensor[[64, 64], pl.FP32],
    n: int,
    rows: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
    columns: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
    plain: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        s = pl.matmul(a, w)
        for core in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
            h = pl.aiv_shard(s) + pl.load(b, [core * 32, 0], [32, 64])
            m = pl.row_max(h)
            h = pl.aic_gather(pl.cast(pl.exp(pl.row_expand_sub(h, m)), pl.FP16))
        t = pl.matmul(h, w)
        for core in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
            pl.store(pl.row_expand_mul(pl.aiv_shard(t), m), [core * 32, 0], rows)
        for core in pl.split_aiv(2, mode=pl.SplitMode.LEFT_RIGHT):
            pl.store(pl.aiv_shard(t) * 2.0, [0, core * 32], columns)
    with pl.at(level=pl.Level.CORE_GROUP):
        u = pl.load(b, [0, 0], [64, 64], valid_shape=[n, 64])
        for core in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
            pl.store(pl.aiv_shard(u) + 1.0, [core * 32, 0], plain)
        for _ in pl.split_aiv(2, mode=pl.SplitMode.LEFT_RIGHT):
            pl.store(pl.load(b, [0, 0], [8, 64]) * 3.0, [0, 0], plain)
    return rows, columns, plain


@pl.jit
def attention(
    q: pl.Tensor[[ROWS, WIDTH], pl.FP16],
    k: pl.Tensor[[pl.dynamic("S"), WIDTH], pl.FP16],
    v: pl.Tensor[[pl.dynamic("S"), WIDTH], pl.FP16],
    out: pl.Out[pl.Tensor[[ROWS, WIDTH], pl.FP32]],
):
    half = ROWS // 2
    with pl.at(level=pl.Level.CORE_GROUP):
        for _ in pl.split_aiv(2, mode=pl.SplitMode.NONE):
            high = pl.full([half, 1], pl.FP32, -1e30)
            total = pl.full([half, 1], pl.FP32, 0.0)
            acc = pl.full([half, WIDTH], pl.FP32, 0.0)
        for j in pl.range(0, k.shape[0], KEYS):
            s = pl.matmul(q, pl.load(k, [j, 0], [KEYS, WIDTH]), b_trans=True)
            for _ in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
                p = pl.aiv_shard(s) * 0.125
                higher = pl.maximum(high, pl.row_max(p))
                p = pl.exp(pl.row_expand_sub(p, higher))
                decay = pl.exp(high - higher)
                total = total * decay + pl.row_sum(p)
                high = higher
                weights = pl.aic_gather(pl.cast(p, pl.FP16))
            part = pl.matmul(weights, pl.load(v, [j, 0], [KEYS, WIDTH]))
            for _ in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
                acc = pl.row_expand_mul(acc, decay) + pl.aiv_shard(part)
        for core in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
            pl.store(pl.row_expand_div(acc, total), [core * half, 0], out)
    return out
