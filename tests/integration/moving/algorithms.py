"""Kernels as users write them: numbers from memory decide what is loaded, and where results go."""

import pypto.language as pl

F, H, Z = pl.FP32, pl.FP16, pl.INT32


@pl.jit
def paged_attention(
    q: pl.Tensor[[16, 64], H],
    keys: pl.Tensor[[256, 64], H],
    values: pl.Tensor[[256, 64], H],
    table: pl.Tensor[[2, 4], Z],
    lengths: pl.Tensor[[2], Z],
    out: pl.Out[pl.Tensor[[2, 16, 64], F]],
):
    for b in pl.range(2):
        n = pl.read(lengths, [b])
        with pl.at(level=pl.Level.CORE_GROUP):
            high, total = pl.full([16, 1], F, -1e30), pl.full([16, 1], F, 0.0)
            acc = pl.full([16, 64], F, 0.0)
            for j in pl.range((n + 31) // 32):
                page = pl.read(table, [b, j])
                count = pl.min(n - j * 32, 32)
                k = pl.load(keys, [page * 32, 0], [32, 64], valid_shape=[count, 64])
                v = pl.load(values, [page * 32, 0], [32, 64], valid_shape=[count, 64])
                s = pl.matmul(q, k, b_trans=True) * 0.125
                higher = pl.maximum(high, pl.row_max(s))
                p = pl.exp(pl.row_expand_sub(s, higher))
                scale = pl.exp(high - higher)
                total = total * scale + pl.row_sum(p)
                acc = pl.row_expand_mul(acc, scale) + pl.matmul(pl.cast(p, H), v)
                high = higher
            pl.store(pl.row_expand_div(acc, total), [b, 0, 0], out)


@pl.jit
def top_8(
    x: pl.Tensor[[4, 128], F],
    positions: pl.Tensor[[1, 128], pl.UINT32],
    values: pl.Out[pl.Tensor[[4, 8], F]],
    places: pl.Out[pl.Tensor[[4, 8], Z]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        p = pl.load(positions, [0, 0], [1, 128])
        for r in pl.range(4):
            pairs = pl.mrgsort(pl.sort32(pl.load(x, [r, 0], [1, 128]), p), block_len=64)
            pl.store(pl.gather_mask(pairs, pl.MaskPattern.P0101)[:, 0:8], [r, 0], values)
            pl.store(pl.gather_mask(pairs, pl.MaskPattern.P1010, output_dtype=Z)[:, 0:8], [r, 0], places)


@pl.jit
def ragged_means(
    x: pl.Tensor[[64, 32], F],
    starts: pl.Tensor[[5], pl.INT64],
    flags: pl.Tensor[[4], pl.BOOL],
    out: pl.Out[pl.Tensor[[4, 32], F]],
    best: pl.InOut[pl.Tensor[[1, 8], F]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        for g in pl.range(4):
            low, high = pl.read(starts, [g]), pl.read(starts, [g + 1])
            acc = pl.full([1, 32], F, 0.0)
            for r in pl.range(low, high):
                acc = acc + pl.load(x, [r, 0], [1, 32])
            if pl.read(flags, [g]) and high > low:
                acc = acc / pl.cast(high - low, F)
            pl.store(acc, [g, 0], out)
            largest, where = acc[0, 0], 0
            for c in pl.range(32):
                if acc[0, c] > largest:
                    largest = acc[0, c]
                    where = c
            pl.write(best, [0, 2 * g], largest)
            pl.write(best, [0, 2 * g + 1], pl.cast(where, F))


@pl.jit
def experts(
    x: pl.Tensor[[32, 64], H],
    w: pl.Tensor[[4, 64, 64], H],
    route: pl.Tensor[[32], Z],
    out: pl.InOut[pl.Tensor[[32, 64], F]],
):
    for t in pl.range(0, 32, 16):
        for e in pl.range(4):
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.matmul(pl.load(x, [t, 0], [16, 64]), pl.load(w, [e, 0, 0], [1, 64, 64]))
                mask = pl.full([16, 1], F, 0.0)
                for i in pl.range(16):
                    if pl.read(route, [t + i]) == e:
                        pl.write(mask, [i, 0], 1.0)
                pl.store(pl.row_expand_mul(y, mask), [t, 0], out, atomic=pl.AtomicType.Add)


@pl.jit
def shifted(a: pl.Tensor[[2000, 64], F], out: pl.Out[pl.Tensor[[2000, 64], F]], n: pl.Scalar[Z]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.slice(a, [2000, 64], [n, 0], pad_value=pl.PadValue.zero, clamp=True) * 2.0


@pl.jit
def cache_update(
    cache: pl.InOut[pl.Tensor[[8, 128, 1, 64], H]],
    new: pl.Tensor[[1, 8, 1, 64], H],
    slots: pl.Tensor[[4, 2], Z],
    rows: pl.Tensor[[8, 64], F],
    table: pl.InOut[pl.Tensor[[1000, 64], F]],
    back: pl.Out[pl.Tensor[[8, 64], H]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        cache = pl.tensor.scatter_update(cache, -2, pl.reshape(slots, [1, 8]), new)
        table = pl.scatter_update(table, -2, slots, rows)
        back[:] = pl.mgather(cache, pl.reshape(slots, [1, 8]))
        pl.write(table, 65, pl.read(rows, 70))


@pl.jit
def scaled_powers(a: pl.Tensor[[64, 64], H], out: pl.Out[pl.Tensor[[64, 64], F]], k: pl.Scalar[Z]):
    """Numbers of tiles between matrix and vector work: tasks that wait for each other."""
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.full([64, 64], F, 0.0)
        for _ in pl.range(3):
            s = pl.matmul(a, a) + acc
            top = pl.row_max(s)[k, 0]
            acc = s * (1.0 / top)
        out[:] = acc
        if acc[1, k] > 0.0:
            pl.write(out, [0, 0], acc[2, 3])
