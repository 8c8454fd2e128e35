"""The gate of a mixture of experts: for each token the experts with the largest probabilities, and their weights."""

import pypto.language as pl

HIDDEN = 256
EXPERTS = 64
TOP_K = 4
TOP_K_TILE = 8  # a row of a tile is a multiple of 32 bytes
ROWS = 16

N = pl.dynamic("N")


@pl.jit
def moe_gate(
    x: pl.Tensor[[N, HIDDEN], pl.FP16],
    w: pl.Tensor[[HIDDEN, EXPERTS], pl.FP16],
    weights: pl.Out[pl.Tensor[[N, TOP_K], pl.FP32]],
    experts: pl.Out[pl.Tensor[[N, TOP_K], pl.INT32]],
):
    """``experts[i]`` by falling probability (of equal ones the first), ``weights[i]`` theirs, divided by their sum."""
    tokens = x.shape[0]
    for row in pl.parallel(0, tokens, ROWS):
        count = pl.min(tokens - row, ROWS)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="gate"):
            tile = pl.load(x, [row, 0], [ROWS, HIDDEN], valid_shape=[count, HIDDEN])
            logits = pl.matmul(tile, pl.load(w, [0, 0], [HIDDEN, EXPERTS]))
            rest = pl.exp(pl.row_expand_sub(logits, pl.row_max(logits)))
            # Probabilities before their division by a common sum, which falls out again; no expert is chosen twice.
            numbers = pl.col_expand(pl.cast(rest, pl.INT32), pl.ci(0, [1, EXPERTS], dtype=pl.INT32))
            total = pl.row_max(rest) * 0.0
            for place in pl.unroll(TOP_K):
                best = pl.row_max(rest)
                expert = pl.row_argmax(rest)
                pl.store(best, [row, place], weights)
                pl.store(expert, [row, place], experts)
                total = total + best
                rest = pl.sel(pl.cmp(numbers, pl.row_expand(numbers, expert)), rest * 0.0 - 1.0, rest)
            chosen = pl.load(weights, [row, 0], [ROWS, TOP_K_TILE], valid_shape=[count, TOP_K])
            pl.store(pl.row_expand_div(chosen, total), [row, 0], weights)
    return weights, experts
