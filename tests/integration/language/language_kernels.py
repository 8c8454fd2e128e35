"""Kernels that use the language in ways that the kernels of the project do not."""

import language_helpers

import pypto.language as pl

M = pl.dynamic("M")
K = pl.dynamic("K")
N = pl.dynamic("N")
S = pl.dynamic("S")


@pl.jit.incore
def step(t: pl.Tensor[[64, 64], pl.FP32], by: float, o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    o[:] = language_helpers.weights(t, pl.row_max(t)) + by


@pl.jit.opaque
def steps(a, n, p, q):
    step(a, 0.0, p)
    while n > 0:
        step(p, 1.0, q)
        p, q = q, p
        n = n - 1
    for _, (s,) in pl.range(2, init_values=(p,)):
        t = pl.create_tensor([64, 64], dtype=pl.FP32)
        step(s, 2.0, t)
        last = pl.yield_(t)
    return last


@pl.jit
def control(a: pl.Tensor[[64, 64], pl.FP32], n: int, out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    p = pl.create_tensor([64, 64], dtype=pl.FP32)
    q = pl.create_tensor([64, 64], dtype=pl.FP32)
    r = steps(a, n, p, q)
    z = a
    if n > 3:
        z = r
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = z
    return out


@pl.jit
def attention(
    q: pl.Tensor[[16, 64], pl.FP16],
    k: pl.Tensor[[S, 64], pl.FP16],
    v: pl.Tensor[[S, 64], pl.FP16],
    out: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
):
    """One scope with products and vector work in a loop that carries tiles."""
    with pl.at(level=pl.Level.CORE_GROUP):
        query = pl.load(q, [0, 0], [16, 64])
        high = pl.full([16, 1], pl.FP32, -3.0e38)
        mass = pl.full([16, 1], pl.FP32, 0.0)
        total = pl.full([16, 64], pl.FP32, 0.0)
        for start in pl.range(0, k.shape[0], 32):
            keys = pl.load(k, [start, 0], [32, 64], clamp=True)
            values = pl.load(v, [start, 0], [32, 64], valid_shape=[pl.min(k.shape[0] - start, 32), 64])
            scores = pl.matmul(query, keys, b_trans=True) * 0.125
            top = pl.maximum(high, pl.row_max(scores))
            part = language_helpers.weights(scores, top)
            shrink = pl.exp(high - top)
            mass = mass * shrink + pl.row_sum(part)
            total = pl.row_expand_mul(total, shrink) + pl.matmul(pl.cast(part, pl.FP16), values)
            high = top
        pl.store(pl.row_expand_div(total, mass), [0, 0], out)
    return out


@pl.jit
def arrays(
    a: pl.Tensor[[M, K], pl.FP32],
    b: pl.Tensor[[K, N], pl.FP32],
    c: pl.Tensor[[M, N], pl.FP32],
    out: pl.Out[pl.Tensor[[M, N], pl.FP32]],
):
    """Whole tensors of any size."""
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.matmul(a, b) + c
        p = language_helpers.weights(t, pl.row_max(t))
        share = pl.row_expand_div(p, pl.row_sum(p))
        out[:] = pl.col_expand_sub(share, pl.col_min(share))
    return out


@pl.jit
def crowded(
    x: pl.Tensor[[95, 256], pl.FP32],
    gain: pl.Tensor[[1, 256], pl.FP32],
    bias: pl.Tensor[[1, 256], pl.FP32],
    out: pl.Out[pl.Tensor[[95, 256], pl.FP32]],
    codes: pl.Out[pl.Tensor[[95, 256], pl.INT8]],
    scales: pl.Out[pl.Tensor[[95, 1], pl.FP32]],
):
    """Two tiles of this size fill the vector memory."""
    with pl.at(level=pl.Level.CORE_GROUP):
        centered = x - pl.row_sum(x) * (1 / 256)
        y = centered * pl.rsqrt(pl.row_sum(centered * centered) * (1 / 256) + 1e-5)
        out[:] = pl.col_expand_add(pl.col_expand_mul(y, gain), bias)
    with pl.at(level=pl.Level.CORE_GROUP):
        half = pl.cast(pl.cast(out, pl.FP16), pl.FP32)
        scale = pl.row_max(pl.abs(half)) * (1.0 / 127)
        codes[:] = pl.cast(pl.cast(pl.row_expand_div(half, scale), pl.INT32, mode="rint"), pl.INT8)
        scales[:] = scale
    return out, codes, scales


@pl.jit
def counted(a: pl.Tensor[[M, N], pl.FP32], start: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor[[M, N], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        places = pl.cast(pl.tensor.ci(start, [1, a.shape[1]], descending=True), pl.FP32)
        out[:] = a * pl.tri(1, [a.shape[0], a.shape[1]], dtype=pl.FP32) + places
    return out


@pl.jit
def large(
    a: pl.Tensor[[300, 512], pl.FP16],
    b: pl.Tensor[[200, 512], pl.FP16],
    c: pl.Tensor[[300, 200], pl.FP16],
    out: pl.Out[pl.Tensor[[200, 300], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.matmul(a, b, b_trans=True) + pl.cast(c, pl.FP32)
        out[:] = pl.transpose(t, 0, 1)
    return out


@pl.jit
def half(a: pl.Tensor[[M, K], pl.FP16], b: pl.Tensor[[N, K], pl.FP16], out: pl.Out[pl.Tensor[[M, N], pl.FP16]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.matmul(a, b, out_dtype=pl.FP16, b_trans=True)
        out[:] = pl.maximum(t, 0.0)
    return out


@pl.jit
def layer(
    x: pl.Tensor[[2, 24, 96], pl.FP32],
    w: pl.Tensor[[96, 64], pl.FP32],
    gain: pl.Tensor[[96], pl.FP32],
    out: pl.Out[pl.Tensor[[2, 24, 64], pl.FP32]],
):
    """Normalisation and projection of a batch."""
    with pl.at(level=pl.Level.CORE_GROUP):
        rows = pl.reshape(x, [48, 96])
        mean = pl.row_sum(rows * rows) * (1.0 / 96)
        normal = pl.col_expand_mul(pl.row_expand_mul(rows, pl.rsqrt(mean + 1e-6)), pl.reshape(gain, [1, 96]))
        out[:] = pl.reshape(pl.matmul(normal, w), [2, 24, 64])
    return out


@pl.jit.incore
def rows_of_blocks(a: pl.Tensor[[3, 4, 32, 64], pl.FP32], out: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):
    row = a[:, :, 5, :]
    for i in pl.range(3):
        out[i, :] = row[i, 1, :] * 2.0


@pl.jit
def elements(
    a: pl.Tensor[[3, 4, 32, 64], pl.FP32],
    f: pl.Tensor[[8], pl.FP16],
    places: pl.Tensor[[4], pl.INT32],
    k: int,
    out: pl.Out[pl.Tensor[[4, 32, 64], pl.FP32]],
    rows: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        z = pl.slice(a, [1, 1, 32, 64], [k, 2, 0, 0], drop_dims=[0, 1])
        out[3] = (z + a[places[k], 1, 0:32, :]) * f[3]
        pl.write(out, [0, 1, 2], 7.5)
    rows_of_blocks(a, rows)
    with pl.at(level=pl.Level.CORE_GROUP):
        t = rows[0:8, :] + 1.0
        rows[8:16] = t
    return out, rows


@pl.jit
def triangle(x: pl.Tensor[[16, 64], pl.FP32], n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        total = pl.load(x, [0, 0], [16, 64])
        for i in pl.range(n):
            for j in pl.range(i, i * 2):
                total = total + pl.cast(j, pl.FP32)
        pl.store(total, [0, 0], out)


@pl.jit
def shift_rows(a: pl.InOut[pl.Tensor[[N, 64], pl.FP32]]):
    n = a.shape[0]
    with pl.at(level=pl.Level.CORE_GROUP):
        a[1:n, :] = a[0 : n - 1, :]
