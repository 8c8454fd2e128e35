"""Kernels whose scopes use what earlier ones made."""

import pypto.language as pl

N = pl.dynamic("N")
AT = pl.Level.CORE_GROUP


@pl.jit.incore
def twice(t: pl.Tensor[[64, 64], pl.FP32], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    doubled = t * 2.0
    o[:] = doubled
    return o, pl.row_sum(doubled)


@pl.jit
def tiles(
    a: pl.Tensor[[64, 64], pl.FP32],
    h: pl.Tensor[[64, 64], pl.FP16],
    x: pl.Tensor[[N, 64], pl.FP32],
    product: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
    doubled: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
    parts: pl.Out[pl.Tensor[[N, 64], pl.FP32]],
    chosen: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
):
    """Products, parts of tiles, and numbers that decide what the entry does."""
    with pl.at(level=AT):
        q = pl.matmul(h, h)
    with pl.at(level=AT):
        q = pl.matmul_acc(q, h, h)
        high = pl.row_max(q)
    with pl.at(level=AT):
        product[:] = pl.row_expand_sub(q, high)
    doubled, sums = twice(q, doubled)
    count = 0
    for row in pl.range(0, x.shape[0], 32):
        with pl.at(level=AT):
            rows = pl.min(x.shape[0] - row, 32)
            tile = pl.exp(pl.load(x, [row, 0], [32, 64], valid_shape=[rows, 64]))
            first = tile[0, 0]
            large = first > 1.0
            if large:
                count = count + 1
        if large:
            with pl.at(level=AT):
                tile[0, 1] = 0.0
        with pl.at(level=AT):
            pl.store(tile * first, [row, 0], parts)
    if count > 1:
        with pl.at(level=AT):
            r = pl.cast(a, pl.BF16)
    else:
        with pl.at(level=AT):
            r = pl.cast(a * 3.0, pl.BF16)
    with pl.at(level=AT):
        chosen[:] = pl.row_expand_add(pl.cast(r, pl.FP32) + count, sums)
    return product, doubled, parts, chosen


@pl.jit
def whole(
    x: pl.Tensor[[N, 1500], pl.FP32],
    n: int,
    out: pl.Out[pl.Tensor[[N, 1500], pl.FP32]],
):
    """Tensors that no core holds as a whole, and two that change places in a loop."""
    p = x
    with pl.at(level=AT):
        q = x + 1.0
    for _i in pl.range(n):
        with pl.at(level=AT):
            p, q = q, pl.row_expand_sub(p, pl.row_max(q))
    with pl.at(level=AT):
        out[:] = p * 2.0 + q
    return out


@pl.jit
def replaced(
    a: pl.Tensor[[64, 64], pl.FP32],
    b: pl.Tensor[[64, 64], pl.FP32],
    n: int,
    out: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
    other: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
):
    """Workspaces that loops within loops and branches replace, beside one that each turn still needs."""
    with pl.at(level=AT):
        first = a * 2.0
        y = b + 1.0
    x = first
    for i in pl.range(n):
        for _j in pl.range(i):
            with pl.at(level=AT):
                x = x + y - first
        if i % 2 == 1:
            with pl.at(level=AT):
                y = x - y
        else:
            y = x
    with pl.at(level=AT):
        out[:] = x * 2.0
        other[:] = y * 2.0
    return out, other
