"""Kernels whose tasks the program launches, names and orders."""

import pypto.language as pl


@pl.jit.incore
def scaled(a: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    i = pl.get_block_idx() * 16
    out = pl.store(pl.mul(pl.load(a, [i, 0], [16, 64]), pl.cast(pl.get_block_num(), pl.FP32)), [i, 0], out)
    return out


@pl.jit.incore
def chosen(a: pl.Tensor[[64, 64], pl.FP32], e: int, counts: pl.Out[pl.Tensor[[4], pl.INT32]]):
    pl.write(counts, [e], pl.cast(e, pl.INT32) - 1)


@pl.jit
def tasks(
    a: pl.Tensor[[64, 64], pl.FP32],
    n: int,
    out: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
    gated: pl.InOut[pl.Tensor[[64, 64], pl.FP32]],
):
    t = pl.create_tensor([64, 64], dtype=pl.FP32, manual_dep=True)
    u = pl.create_tensor([64, 64], dtype=pl.FP32)
    counts = pl.create_tensor([4], dtype=pl.INT32)
    # Only the names order what goes through `t`.
    t, written = pl.spmd_submit(scaled, a, t, core_num=4)
    last = None
    for _ in pl.range(n):
        with pl.at(level=pl.Level.CORE_GROUP, deps=[written, last]) as last:
            t[:] = t[:, :] + 1.0
    with pl.spmd(4, deps=[written, last], name_hint="doubled") as copied:
        i = pl.get_block_idx() * 16
        pl.store(pl.load(t, [i, 0], [16, 64]) * 2.0, [i, 0], u)
    with pl.cluster() as group:
        for b in pl.spmd(4):
            for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):
                r = b * 16 + lane * 8
                out[r : r + 8, :] = u[r : r + 8, :] - 1.0
    for e in pl.range(4):
        chosen(a, e, counts)
    for e in pl.range(4):
        with pl.spmd(2, predicate=(counts[e] > 0), deps=[group, copied]):
            r = e * 16 + pl.get_block_idx() * 8
            gated[r : r + 8, :] = a[r : r + 8, :]
    return out


@pl.jit
def layers(
    a: pl.Tensor[[pl.dynamic("R"), 64], pl.FP32], n: int, out: pl.Out[pl.Tensor[[pl.dynamic("R"), 64], pl.FP32]]
):
    """One workspace for each turn and row block."""
    rows = a.shape[0]
    for _ in pl.range(n):
        for r in pl.parallel(0, rows, 16):
            w = pl.create_tensor([16, 64], dtype=pl.FP32)
            with pl.at(level=pl.Level.CORE_GROUP):
                w[:] = a[r : r + 16, :] + 1.0
            with pl.at(level=pl.Level.CORE_GROUP):
                out[r : r + 16, :] = w[:, :] * 2.0
    return out


@pl.jit
def early(a: pl.Tensor[[64, 64], pl.FP32], n: int, out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    """Loops that end early on a core and in the entry; two ways to return."""
    if n < 0:
        with pl.at(level=pl.Level.CORE_GROUP):
            out[:] = a - 1.0
        return out
    for r in pl.range(0, 64, 32):
        if r >= n * 32:
            break
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(a, [r, 0], [32, 64])
            k = 0
            while k * k < n:
                k += 1
                if k == 2:
                    continue
                t = t + 1.0
            for i in pl.range(10):
                if i == n:
                    break
                t = t * 2.0 if i > 0 else t
            pl.store(t, [r, 0], out)
    # What tasks wrote decides how many follow.
    while out[63, 63] > 100.0:
        with pl.at(level=pl.Level.CORE_GROUP):
            out[32:64, :] *= 0.5
    return out


@pl.jit
def chains(a: pl.Tensor[[64, 64], pl.FP32], n: int, out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    """Tiles that come and go around loops and branches, for the planners of on-chip memory."""
    with pl.at(level=pl.Level.CORE_GROUP):
        x = pl.load(a, [0, 0], [64, 64])
        low = pl.row_min(x)
        y = pl.exp(pl.row_expand_sub(x, pl.row_max(x)))
        z = y * 2.0
        for i in pl.range(n):
            w = pl.load(a, [0, 0], [64, 64]) + z
            if i % 2 == 0:
                high = pl.row_max(w)
                z = pl.row_expand_sub(w, high)
            else:
                z = w * 0.5
        v = pl.neg(pl.load(a, [0, 0], [64, 64]))
        u = pl.abs(v) + pl.row_expand_add(z, low)
        pl.store(u, [0, 0], out)
    return out
