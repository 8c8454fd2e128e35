"""Another attention than the one in kernels/: 5 heads of size 64, blocks of 32, all scores in one workspace.

It shows that nothing in the compiler knows the kernel it was first written for. Five heads do not fill the 16 rows of a
matrix tile, so every tile is partly valid.
"""

import pypto.language as pl

HEADS = 5
ROWS = 16
SIZE = 64
BLOCK = 32

T = pl.dynamic("T")
L = pl.dynamic("L")


@pl.jit.incore
def dot(
    query: pl.Tensor[[HEADS, SIZE], pl.FP16],
    keys: pl.Tensor[[T, SIZE], pl.FP16],
    first: int,
    size: int,
    scores: pl.InOut[pl.Tensor[[HEADS, L], pl.FP32]],
):
    left = pl.load(query, [0, 0], [ROWS, SIZE], valid_shape=[HEADS, SIZE])
    right = pl.load(keys, [first, 0], [BLOCK, SIZE], valid_shape=[size, SIZE])
    pl.store(pl.matmul(left, right, b_trans=True), [0, first], scores)


@pl.jit.incore
def first_step(
    scores: pl.Tensor[[HEADS, L], pl.FP32],
    size: int,
    factor: float,
    probabilities: pl.Out[pl.Tensor[[HEADS, BLOCK], pl.FP16]],
    high: pl.Out[pl.Tensor[[HEADS, 1], pl.FP32]],
    mass: pl.Out[pl.Tensor[[HEADS, 1], pl.FP32]],
):
    block = pl.load(scores, [0, 0], [ROWS, BLOCK], valid_shape=[HEADS, size]) * factor
    top = pl.row_max(block)
    part = pl.exp(pl.row_expand_sub(block, top))
    pl.store(pl.cast(part, pl.FP16), [0, 0], probabilities)
    pl.store(top, [0, 0], high)
    pl.store(pl.row_sum(part), [0, 0], mass)


@pl.jit.incore
def next_step(
    scores: pl.Tensor[[HEADS, L], pl.FP32],
    first: int,
    size: int,
    factor: float,
    probabilities: pl.Out[pl.Tensor[[HEADS, BLOCK], pl.FP16]],
    high: pl.InOut[pl.Tensor[[HEADS, 1], pl.FP32]],
    mass: pl.InOut[pl.Tensor[[HEADS, 1], pl.FP32]],
    result: pl.InOut[pl.Tensor[[HEADS, SIZE], pl.FP32]],
):
    block = pl.load(scores, [0, first], [ROWS, BLOCK], valid_shape=[HEADS, size]) * factor
    before = pl.load(high, [0, 0], [ROWS, 1], valid_shape=[HEADS, 1])
    top = pl.maximum(before, pl.row_max(block))
    shrink = pl.exp(before - top)
    part = pl.exp(pl.row_expand_sub(block, top))
    held = pl.load(mass, [0, 0], [ROWS, 1], valid_shape=[HEADS, 1])
    sums = pl.load(result, [0, 0], [ROWS, SIZE], valid_shape=[HEADS, SIZE])
    pl.store(pl.cast(part, pl.FP16), [0, 0], probabilities)
    pl.store(pl.row_expand_mul(sums, shrink), [0, 0], result)
    pl.store(held * shrink + pl.row_sum(part), [0, 0], mass)
    pl.store(top, [0, 0], high)


@pl.jit.incore
def apply(
    probabilities: pl.Tensor[[HEADS, BLOCK], pl.FP16],
    values: pl.Tensor[[T, SIZE], pl.FP16],
    first: int,
    size: int,
    product: pl.Out[pl.Tensor[[HEADS, SIZE], pl.FP32]],
):
    left = pl.load(probabilities, [0, 0], [ROWS, BLOCK], valid_shape=[HEADS, size])
    right = pl.load(values, [first, 0], [BLOCK, SIZE], valid_shape=[size, SIZE])
    pl.store(pl.matmul(left, right), [0, 0], product)


@pl.jit.incore
def add_to(product: pl.Tensor[[HEADS, SIZE], pl.FP32], result: pl.InOut[pl.Tensor[[HEADS, SIZE], pl.FP32]]):
    new = pl.load(product, [0, 0], [ROWS, SIZE], valid_shape=[HEADS, SIZE])
    pl.store(pl.load(result, [0, 0], [ROWS, SIZE], valid_shape=[HEADS, SIZE]) + new, [0, 0], result)


@pl.jit.incore
def divide(mass: pl.Tensor[[HEADS, 1], pl.FP32], result: pl.InOut[pl.Tensor[[HEADS, SIZE], pl.FP32]]):
    sums = pl.load(result, [0, 0], [ROWS, SIZE], valid_shape=[HEADS, SIZE])
    held = pl.load(mass, [0, 0], [ROWS, 1], valid_shape=[HEADS, 1])
    pl.store(pl.row_expand_div(sums, held), [0, 0], result)


@pl.jit
def attend(
    length: int,
    factor: float,
    values: pl.Tensor[[T, SIZE], pl.FP16],
    keys: pl.Tensor[[T, SIZE], pl.FP16],
    query: pl.Tensor[[HEADS, SIZE], pl.FP16],
    result: pl.Out[pl.Tensor[[HEADS, SIZE], pl.FP32]],
):
    scores = pl.create_tensor([HEADS, length], dtype=pl.FP32)
    probabilities = pl.create_tensor([HEADS, BLOCK], dtype=pl.FP16)
    high = pl.create_tensor([HEADS, 1], dtype=pl.FP32)
    mass = pl.create_tensor([HEADS, 1], dtype=pl.FP32)
    for first in pl.range(0, length, BLOCK):
        dot(query, keys, first, pl.min(BLOCK, length - first), scores)
    head = pl.min(BLOCK, length)
    first_step(scores, head, factor, probabilities, high, mass)
    apply(probabilities, values, 0, head, result)
    for first in pl.range(BLOCK, length, BLOCK):
        size = pl.min(BLOCK, length - first)
        product = pl.create_tensor([HEADS, SIZE], dtype=pl.FP32)
        next_step(scores, first, size, factor, probabilities, high, mass, result)
        apply(probabilities, values, first, size, product)
        add_to(product, result)
    divide(mass, result)
    return result
