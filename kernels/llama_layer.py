"""One layer of a small Llama-style model, decoding one token for each sequence of a batch.

RMS normalisation, QKV projection, rotary position embedding, grouped-query attention over each sequence's own K and V
cache, output projection, and the gated MLP with SiLU. Weights and activations are FP16, sums and the residual FP32.
"""

import pypto.language as pl

BATCH = 16
HIDDEN = 256
HEADS = 4
KV_HEADS = 2
HEAD_SIZE = 64
GROUP = HEADS // KV_HEADS
INTERMEDIATE = 512
BLOCK = 64
HALF = HEAD_SIZE // 2
SCALE = HEAD_SIZE**-0.5
EPSILON = 1e-6
LOWEST = -3.0e38

S = pl.dynamic("S")


@pl.jit.inline
def normalize(x, weight):
    """Rows of ``x`` divided by their root mean square, times ``weight``; FP16."""
    mean_square = pl.row_sum(x * x) * (1.0 / HIDDEN)
    return pl.cast(pl.col_expand_mul(pl.row_expand_mul(x, pl.rsqrt(mean_square + EPSILON)), weight), pl.FP16)


@pl.jit.inline
def silu(x):
    return x / (pl.exp(-x) + 1.0)


@pl.jit.incore
def rotate(
    x: pl.Tensor,
    cos: pl.Tensor[[BATCH, HALF], pl.FP32],
    sin: pl.Tensor[[BATCH, HALF], pl.FP32],
    column: pl.Scalar[pl.INDEX],
    out: pl.Out[pl.Tensor],
):
    """Rotary embedding of one head: pairs ``(x[i], x[i + HALF])`` turned by each sequence's angles."""
    low = pl.load(x, [0, column], [BATCH, HALF])
    high = pl.load(x, [0, column + HALF], [BATCH, HALF])
    c = pl.load(cos, [0, 0], [BATCH, HALF])
    s = pl.load(sin, [0, 0], [BATCH, HALF])
    pl.store(pl.cast(low * c - high * s, pl.FP16), [0, column], out)
    pl.store(pl.cast(high * c + low * s, pl.FP16), [0, column + HALF], out)


@pl.jit
def llama_layer(
    x: pl.Tensor[[BATCH, HIDDEN], pl.FP32],
    input_norm: pl.Tensor[[1, HIDDEN], pl.FP32],
    wq: pl.Tensor[[HIDDEN, HEADS * HEAD_SIZE], pl.FP16],
    wk: pl.Tensor[[HIDDEN, KV_HEADS * HEAD_SIZE], pl.FP16],
    wv: pl.Tensor[[HIDDEN, KV_HEADS * HEAD_SIZE], pl.FP16],
    cos: pl.Tensor[[BATCH, HALF], pl.FP32],
    sin: pl.Tensor[[BATCH, HALF], pl.FP32],
    positions: pl.Tensor[[BATCH], pl.INT32],
    k_cache: pl.InOut[pl.Tensor[[BATCH, KV_HEADS, S, HEAD_SIZE], pl.FP16]],
    v_cache: pl.InOut[pl.Tensor[[BATCH, KV_HEADS, S, HEAD_SIZE], pl.FP16]],
    wo: pl.Tensor[[HEADS * HEAD_SIZE, HIDDEN], pl.FP16],
    mlp_norm: pl.Tensor[[1, HIDDEN], pl.FP32],
    w_gate: pl.Tensor[[HIDDEN, INTERMEDIATE], pl.FP16],
    w_up: pl.Tensor[[HIDDEN, INTERMEDIATE], pl.FP16],
    w_down: pl.Tensor[[INTERMEDIATE, HIDDEN], pl.FP16],
    out: pl.Out[pl.Tensor[[BATCH, HIDDEN], pl.FP32]],
):
    """``out`` is the layer's output; row ``positions[b]`` of each cache takes the new token, and counts too."""
    normal = pl.create_tensor([BATCH, HIDDEN], dtype=pl.FP16)
    q = pl.create_tensor([BATCH, HEADS * HEAD_SIZE], dtype=pl.FP32)
    k = pl.create_tensor([BATCH, KV_HEADS * HEAD_SIZE], dtype=pl.FP32)
    v = pl.create_tensor([BATCH, KV_HEADS * HEAD_SIZE], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP):
        normal[:] = normalize(x, input_norm)
    with pl.at(level=pl.Level.CORE_GROUP):
        q[:] = pl.matmul(normal, wq)
    with pl.at(level=pl.Level.CORE_GROUP):
        k[:] = pl.matmul(normal, wk)
    with pl.at(level=pl.Level.CORE_GROUP):
        v[:] = pl.matmul(normal, wv)

    queries = pl.create_tensor([BATCH, HEADS * HEAD_SIZE], dtype=pl.FP16)
    keys = pl.create_tensor([BATCH, KV_HEADS * HEAD_SIZE], dtype=pl.FP16)
    for head in pl.range(HEADS):
        rotate(q, cos, sin, head * HEAD_SIZE, queries)
    for head in pl.range(KV_HEADS):
        rotate(k, cos, sin, head * HEAD_SIZE, keys)

    attended = pl.create_tensor([BATCH, HEADS * HEAD_SIZE], dtype=pl.FP16)
    for b in pl.parallel(BATCH):
        position = positions[b]
        for g in pl.parallel(KV_HEADS):
            column = g * HEAD_SIZE
            with pl.at(level=pl.Level.CORE_GROUP):
                k_cache[b, g, position : position + 1, :] = keys[b : b + 1, column : column + HEAD_SIZE]
                v_cache[b, g, position : position + 1, :] = pl.cast(v[b : b + 1, column : column + HEAD_SIZE], pl.FP16)
            for h in pl.range(GROUP):
                place = (g * GROUP + h) * HEAD_SIZE
                with pl.at(level=pl.Level.CORE_GROUP):
                    query = pl.load(queries, [b, place], [16, HEAD_SIZE], valid_shape=[1, HEAD_SIZE])
                    top = pl.set_validshape(pl.full([16, 1], pl.FP32, LOWEST), 1, 1)
                    mass = pl.set_validshape(pl.full([16, 1], pl.FP32, 0.0), 1, 1)
                    total = pl.set_validshape(pl.full([16, HEAD_SIZE], pl.FP32, 0.0), 1, HEAD_SIZE)
                    for start in pl.range(0, position + 1, BLOCK):
                        valid = [1, 1, pl.min(position + 1 - start, BLOCK), HEAD_SIZE]
                        block_k = pl.load(k_cache, [b, g, start, 0], [1, 1, BLOCK, HEAD_SIZE], valid_shape=valid)
                        block_v = pl.load(v_cache, [b, g, start, 0], [1, 1, BLOCK, HEAD_SIZE], valid_shape=valid)
                        scores = pl.matmul(query, block_k, b_trans=True) * SCALE
                        new_top = pl.maximum(top, pl.row_max(scores))
                        weights = pl.exp(pl.row_expand_sub(scores, new_top))
                        shrink = pl.exp(top - new_top)
                        mass = mass * shrink + pl.row_sum(weights)
                        total = pl.row_expand_mul(total, shrink) + pl.matmul(pl.cast(weights, pl.FP16), block_v)
                        top = new_top
                    pl.store(pl.cast(pl.row_expand_div(total, mass), pl.FP16), [b, place], attended)

    middle = pl.create_tensor([BATCH, HIDDEN], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP):
        middle[:] = x + pl.matmul(attended, wo)
    mlp_in = pl.create_tensor([BATCH, HIDDEN], dtype=pl.FP16)
    with pl.at(level=pl.Level.CORE_GROUP):
        mlp_in[:] = normalize(middle, mlp_norm)
    hidden = pl.create_tensor([BATCH, INTERMEDIATE], dtype=pl.FP16)
    with pl.at(level=pl.Level.CORE_GROUP):
        hidden[:] = pl.cast(silu(pl.matmul(mlp_in, w_gate)) * pl.matmul(mlp_in, w_up), pl.FP16)
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = middle + pl.matmul(hidden, w_down)
    return out
