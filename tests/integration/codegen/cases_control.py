"""Loops and branches with carried tiles and numbers, and numbers that ptoas cannot compute."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from cases_memory import index
from cases_vector import load
from generated import UNTOUCHED, Case

from pypto.ir.builder import Builder
from pypto.ir.nodes import Block, Value
from pypto.ir.types import FP32, INDEX, INT32, ScalarType, Type

SHAPE = (8, 64)
NUMBER = [(INT32, 0)]


def kernel(
    name: str,
    inputs: int,
    outputs: Sequence[int],
    body: Callable[[Builder, list[Value], Value, list[Value]], None],
    expected: Callable[..., Sequence[np.ndarray]],
    runs: Sequence[int],
) -> Case:
    """A kernel of one index argument; outputs are given by their numbers of blocks of eight rows."""

    def whole(b: Builder, x: list[Value], n: list[Value], o: list[Value]) -> None:
        body(b, [load(b, v, SHAPE) for v in x], index(b, n[0]), o)

    return Case(
        name,
        [(SHAPE, FP32)] * inputs,
        {f"o{i}": ((8 * blocks, 64), FP32) for i, blocks in enumerate(outputs)},
        whole,
        expected,
        numbers=NUMBER,
        tolerance=1e-5,
        runs=[[n] for n in runs],
    )


def branch(
    b: Builder, condition: Value, then: Callable[[], list[Value]], otherwise: Callable[[], list[Value]], *types: Type
) -> list[Value]:
    """Results of a branch."""
    blocks = Block(), Block()
    for block, make in zip(blocks, (then, otherwise), strict=True):
        with b.inside(block):
            b.op("scf.yield", make())
    return b.op("scf.if", [condition], types=types, regions=blocks).results


def compare(b: Builder, pred: str, a: Value, c: int) -> Value:
    return b.value("arith.cmp", [a, b.constant(c)], pred=pred)


def times(b: Builder, a: Value, c: int) -> Value:
    return b.value("arith.mul", [a, b.constant(c)])


def blocks_of(count: int) -> np.ndarray:
    return np.full((8 * count, 64), float(UNTOUCHED))


def cases() -> Iterator[Case]:
    """All cases of this module."""
    yield kernel("swapped_tiles", 2, [1, 1], swapped_tiles, swapped_tiles_expected, [0, 1, 5])
    yield kernel("rotated_tiles", 3, [1, 1, 1, 1], rotated_tiles, rotated_tiles_expected, [0, 1, 4])
    yield kernel("shared_start", 0, [1, 1], shared_start, shared_start_expected, [3])
    yield kernel("nested_loops", 1, [1], nested_loops, lambda a, n: [a * 7], [0])
    yield kernel("branch_in_loop", 1, [1], branch_in_loop, lambda a, n: [a * 2 ** (n // 2)], [0, 1, 7])
    yield kernel("branch_results", 2, [1, 1, 6], branch_results, branch_results_expected, [2, 4])
    yield kernel("empty_branch", 1, [1], empty_branch, lambda a, n: [a if n > 3 else -a], [2, 4])
    yield kernel("numbers_in_loop", 1, [5, 3, 1], numbers_in_loop, numbers_in_loop_expected, [0, 1, 6])
    yield kernel("steps", 1, [6, 6], steps, steps_expected, [1, 2, 5])
    yield kernel("loop_in_branch", 1, [9], loop_in_branch, loop_in_branch_expected, [1, 2, 3])
    yield kernel("signs", 1, [6], signs, signs_expected, [-7, 7, 0])


def swapped_tiles(b: Builder, x: list[Value], n: Value, o: list[Value]) -> None:
    with b.loop(0, n, 1, x) as loop:
        first, second = loop.carried
        loop.carry(second, b.value("tile.add", [first, second]))
    for result, out in zip(loop.results, o, strict=True):
        b.store(result, out, [0, 0])


def swapped_tiles_expected(a: np.ndarray, c: np.ndarray, n: int) -> list[np.ndarray]:
    for _ in range(n):
        a, c = c, a + c
    return [a, c]


def rotated_tiles(b: Builder, x: list[Value], n: Value, o: list[Value]) -> None:
    with b.loop(0, n, 1, x) as loop:
        loop.carry(*loop.carried[1:], loop.carried[0])
    # The start of the loop is used again behind it.
    for result, out in zip([*loop.results, x[0]], o, strict=True):
        b.store(result, out, [0, 0])


def rotated_tiles_expected(*values: np.ndarray) -> list[np.ndarray]:
    *tiles, n = values
    turn = int(n) % 3
    return [*tiles[turn:], *tiles[:turn], tiles[0]]


def shared_start(b: Builder, x: list[Value], n: Value, o: list[Value]) -> None:
    start = b.full(SHAPE, FP32, 1.0)
    with b.loop(0, 3, 1, [start, start]) as loop:
        first, second = loop.carried
        grown = b.value("tile.adds", [first, b.constant(2.0)])
        product = b.value("tile.mul", [second, grown])
        loop.carry(grown, b.value("tile.add", [product, first]))
    b.store(b.value("tile.add", [loop.results[0], start]), o[0], [0, 0])
    b.store(loop.results[1], o[1], [0, 0])


def shared_start_expected(n: int) -> list[np.ndarray]:
    first = second = 1.0
    for _ in range(3):
        first, second = first + 2, second * (first + 2) + first
    return [np.full(SHAPE, first + 1), np.full(SHAPE, second)]


def nested_loops(b: Builder, x: list[Value], n: Value, o: list[Value]) -> None:
    with b.loop(0, 3, 1, [b.full(SHAPE, FP32, 0.0)]) as outer:
        # Starts from the same tile in every turn, which therefore must not be overwritten.
        with b.loop(0, outer.index, 1, [x[0]]) as inner:
            inner.carry(b.value("tile.muls", [inner.carried[0], b.constant(2.0)]))
        outer.carry(b.value("tile.add", [outer.carried[0], inner.results[0]]))
    b.store(outer.results[0], o[0], [0, 0])


def branch_in_loop(b: Builder, x: list[Value], n: Value, o: list[Value]) -> None:
    with b.loop(0, n, 1, [x[0]]) as loop:
        (tile,) = loop.carried
        odd = compare(b, "eq", b.value("arith.mod", [loop.index, b.constant(2)]), 1)
        loop.carry(*branch(b, odd, lambda: [b.value("tile.add", [tile, tile])], lambda: [tile], tile.type))
    b.store(loop.results[0], o[0], [0, 0])


def branch_results(b: Builder, x: list[Value], n: Value, o: list[Value]) -> None:
    a, c = x
    first, second, number = branch(
        b,
        compare(b, "gt", n, 3),
        lambda: [c, a, b.constant(5)],
        lambda: [b.value("tile.exp", [a]), b.value("tile.exp", [c]), n],
        a.type,
        c.type,
        ScalarType(INDEX),
    )
    b.store(first, o[0], [0, 0])
    b.store(second, o[1], [0, 0])
    b.store(b.value("tile.add", [a, c]), o[2], [times(b, number, 8), 0])


def branch_results_expected(a: np.ndarray, c: np.ndarray, n: int) -> list[np.ndarray]:
    sums = blocks_of(6)
    block = 5 if n > 3 else n
    sums[8 * block : 8 * block + 8] = a + c
    return [c, a, sums] if n > 3 else [np.exp(a), np.exp(c), sums]


def empty_branch(b: Builder, x: list[Value], n: Value, o: list[Value]) -> None:
    tile = x[0]
    results = branch(b, compare(b, "gt", n, 3), lambda: [tile], lambda: [b.value("tile.neg", [tile])], tile.type)
    b.store(results[0], o[0], [0, 0])


def numbers_in_loop(b: Builder, x: list[Value], n: Value, o: list[Value]) -> None:
    """Carried numbers, one of them from another one's old value; quotients, remainders and fractions of them."""
    zero = b.constant(0)
    with b.loop(0, n, 1, [x[0], b.constant(1.0), zero, zero]) as loop:
        tile, factor, place, last = loop.carried
        quotient = b.value("arith.floordiv", [times(b, loop.index, 7), b.constant(3)])
        fraction = b.value("arith.cast", [quotient], types=(ScalarType(FP32),))
        grown = b.value("tile.adds", [tile, b.value("arith.mul", [factor, fraction])])
        b.store(grown, o[0], [times(b, b.value("arith.mod", [place, b.constant(5)]), 8), 0])
        loop.carry(
            grown,
            b.value("arith.div", [factor, b.constant(2.0)]),
            b.value("arith.add", [place, b.constant(3)]),
            place,
        )
    tile, factor, _, last = loop.results
    b.store(tile, o[1], [times(b, b.value("arith.mod", [last, b.constant(3)]), 8), 0])
    b.store(b.value("tile.muls", [x[0], factor]), o[2], [0, 0])


def numbers_in_loop_expected(a: np.ndarray, n: int) -> list[np.ndarray]:
    turns, ends = blocks_of(5), blocks_of(3)
    tile, factor, place, last = a, 1.0, 0, 0
    for i in range(n):
        tile = tile + factor * (i * 7 // 3)
        turns[place % 5 * 8 : place % 5 * 8 + 8] = tile
        factor, place, last = factor / 2, place + 3, place
    ends[last % 3 * 8 : last % 3 * 8 + 8] = tile
    return [turns, ends, a * factor]


def steps(b: Builder, x: list[Value], n: Value, o: list[Value]) -> None:
    """Downwards, and with a step that is an argument."""
    tile = x[0]
    for bounds, out in (((5, -1, -2), o[0]), ((0, 6, n), o[1])):
        with b.loop(*bounds, [tile]) as loop:
            b.store(loop.carried[0], out, [times(b, loop.index, 8), 0])
            loop.carry(b.value("tile.adds", [loop.carried[0], b.constant(1.0)]))
        tile = loop.results[0]


def steps_expected(a: np.ndarray, n: int) -> list[np.ndarray]:
    result = []
    for bounds in ((5, -1, -2), (0, 6, n)):
        out = blocks_of(6)
        for i in range(*bounds):
            out[8 * i : 8 * i + 8] = a
            a = a + 1
        result.append(out)
    return result


def loop_in_branch(b: Builder, x: list[Value], n: Value, o: list[Value]) -> None:
    """A number that a loop inside one arm carries, used behind the branch."""
    tile = x[0]

    def doubled() -> list[Value]:
        with b.loop(0, n, 1, [b.constant(1)]) as loop:
            b.store(tile, o[0], [times(b, loop.index, 8), 0])
            loop.carry(times(b, loop.carried[0], 2))
        return [loop.results[0]]

    (place,) = branch(b, compare(b, "ge", n, 2), doubled, lambda: [b.constant(3)], ScalarType(INDEX))
    b.store(b.value("tile.neg", [tile]), o[0], [times(b, place, 8), 0])


def loop_in_branch_expected(a: np.ndarray, n: int) -> list[np.ndarray]:
    out = blocks_of(9)
    place = 2**n if n >= 2 else 3
    for i in range(n if n >= 2 else 0):
        out[8 * i : 8 * i + 8] = a
    out[8 * place : 8 * place + 8] = -a
    return [out]


def signs(b: Builder, x: list[Value], n: Value, o: list[Value]) -> None:
    """Quotients and remainders round as Python's do; a division that is not reached does not stop the kernel."""
    with b.loop(0, 2) as loop:
        shifted = b.value("arith.sub", [n, loop.index])
        quotient = b.value("arith.floordiv", [shifted, b.constant(-3)])
        rest = b.value("arith.mod", [shifted, b.constant(-3)])
        guarded = b.value("arith.floordiv", [b.constant(12), n])
        safe = b.value("arith.select", [compare(b, "ne", n, 0), guarded, b.constant(0)])
        for row, number in enumerate((quotient, rest, safe)):
            real = b.value("arith.cast", [number], types=(ScalarType(FP32),))
            place = b.value("arith.add", [times(b, loop.index, 24), b.constant(8 * row)])
            b.store(b.value("tile.muls", [x[0], real]), o[0], [place, 0])


def signs_expected(a: np.ndarray, n: int) -> list[np.ndarray]:
    numbers = [v for i in (0, 1) for v in ((n - i) // -3, (n - i) % -3, 12 // n if n else 0)]
    return [np.concatenate([a * v for v in numbers])]
