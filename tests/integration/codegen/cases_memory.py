"""Loads, stores, slices, reshapes, transpositions and products."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from cases_vector import VEC, load
from generated import UNTOUCHED, Case

from pypto.ir.builder import Builder
from pypto.ir.nodes import CoreType, Value
from pypto.ir.types import BF16, FP16, FP32, INDEX, INT8, INT32, DType, MemorySpace, ScalarType, TileType

MAT, LEFT, RIGHT, ACC = MemorySpace.Mat, MemorySpace.Left, MemorySpace.Right, MemorySpace.Acc


def index(b: Builder, number: Value) -> Value:
    """An argument as an index."""
    return b.value("arith.cast", [number], types=(ScalarType(INDEX),))


def cases() -> Iterator[Case]:
    """All cases of this module."""
    for dtype in (FP32, FP16, INT32, INT8):
        yield shapes(dtype)
    yield columns_under_pressure()
    for dtype in (FP32, FP16, INT8):
        yield products(dtype)
    yield bfloat16_product()
    yield product_tail()


def shapes(dtype: DType) -> Case:
    shape = (8, 64)

    def body(b: Builder, x: list[Value], n: list[Value], o: list[Value]) -> None:
        tile = load(b, x[0], shape)
        start = index(b, n[0])

        def typed(name: str, operands: list[Value], rows: int, cols: int) -> Value:
            return b.value(name, operands, types=(TileType((rows, cols), dtype, VEC, (rows, cols)),))

        b.store(typed("tile.slice", [tile, b.constant(2), b.constant(16)], 4, 32), o[0], [0, 0])
        b.store(typed("tile.slice", [tile, start, b.constant(3)], 3, 5), o[1], [0, 0])
        b.store(typed("tile.reshape", [tile], 16, 32), o[2], [0, 0])
        column = load(b, x[1], (7, 1))
        b.store(typed("tile.reshape", [column], 1, 7), o[3], [0, 0])
        b.store(typed("tile.reshape", [load(b, x[2], (1, 7))], 7, 1), o[4], [0, 0])
        if dtype.is_float:
            turned = b.value("tile.transpose", [tile])
        else:
            turned = b.load(x[0], [0, 0], (64, 8), memory=VEC, transposed=True)
        b.store(turned, o[5], [0, 0])
        part = b.value("tile.set_validshape", [tile, start, b.constant(33)])
        b.store(part, o[6], [0, 0])
        b.store(b.value("tile.add", [part, part]), o[7], [2, 16])
        b.store(b.load(x[0], [0, 1], (9, 5), memory=VEC, transposed=True), o[8], [0, 0])
        # The tile that was re-shaped and cut is still whole.
        b.store(tile, o[9], [0, 0])
        b.store(b.full((3, 5), dtype, n[1]), o[10], [0, 0])

    def expected(a: np.ndarray, column: np.ndarray, row: np.ndarray, start: int, number: float) -> list[np.ndarray]:
        cut = np.full(shape, float(UNTOUCHED))
        cut[:start, :33] = a[:start, :33]
        moved = np.full((10, 64), float(UNTOUCHED))
        moved[2 : 2 + start, 16:49] = 2 * a[:start, :33]
        return [
            a[2:6, 16:48],
            a[start : start + 3, 3:8],
            a.reshape(16, 32),
            column.T,
            row.T,
            a.T,
            cut,
            moved,
            a[0:5, 1:10].T,
            a,
            np.full((3, 5), number),
        ]

    outputs = [(4, 32), (3, 5), (16, 32), (1, 7), (7, 1), (64, 8), shape, (10, 64), (9, 5), shape, (3, 5)]
    return Case(
        f"shapes_{dtype.name}",
        [(shape, dtype), ((7, 1), dtype), ((1, 7), dtype)],
        {f"o{i}": (s, dtype) for i, s in enumerate(outputs)},
        body,
        expected,
        numbers=[(INT32, 4), (FP32 if dtype.is_float else dtype, 5)],
        runs=[[4, 5], [0, -3], [5, 2]],
    )


def columns_under_pressure() -> Case:
    """Columns that are viewed as rows meanwhile, while the memory is full: their memory must not be given away."""
    shape = (64, 248)

    def body(b: Builder, x: list[Value], n: list[Value], o: list[Value]) -> None:
        tile = load(b, x[0], shape)
        columns = [b.value("tile.row_sum", [tile])]
        for _ in range(6):
            tile = b.value("tile.muls", [tile, b.constant(1.5)])
            columns.append(b.value("tile.muls", [b.value("tile.row_sum", [tile]), b.constant(0.5)]))
        total = columns[0]
        for column in columns[1:]:
            total = b.value("tile.add", [b.value("tile.adds", [total, b.constant(1.0)]), column])
        b.store(total, o[0], [0, 0])

    def expected(a: np.ndarray) -> list[np.ndarray]:
        sums = a.sum(1, keepdims=True)
        return [sums + sum(1 + sums * 1.5**i * 0.5 for i in range(1, 7))]

    return Case("columns_under_pressure", [(shape, FP32)], {"o": ((64, 1), FP32)}, body, expected, tolerance=1e-4)


PRODUCTS = [(16, 64, 32, False, False), (5, 24, 10, True, False), (5, 40, 7, False, True), (1, 32, 33, True, True)]


def matrix(b: Builder, tensor: Value, shape: tuple[int, int], memory: MemorySpace) -> Value:
    """An operand of a product."""
    return b.move(b.load(tensor, [0, 0], shape, memory=MAT), memory)


def products(dtype: DType) -> Case:
    result = INT32 if dtype == INT8 else FP32
    inputs, outputs = [], {}
    for m, k, n_, a_trans, b_trans in PRODUCTS:
        inputs += [((k, m) if a_trans else (m, k), dtype), ((n_, k) if b_trans else (k, n_), dtype)]
        outputs[f"product{m}x{k}x{n_}"] = ((m, n_), result)
    outputs["twice"] = ((16, 32), result)
    if dtype != INT8:
        outputs["half"] = ((16, 32), FP16)

    def body(b: Builder, x: list[Value], n: list[Value], o: list[Value]) -> None:
        for i, (_, _, _, a_trans, b_trans) in enumerate(PRODUCTS):
            left = matrix(b, x[2 * i], inputs[2 * i][0], LEFT)
            right = matrix(b, x[2 * i + 1], inputs[2 * i + 1][0], RIGHT)
            product = b.value("tile.matmul", [left, right], a_trans=a_trans, b_trans=b_trans)
            b.store(product, o[i], [0, 0])
        left, right = matrix(b, x[0], (16, 64), LEFT), matrix(b, x[1], (64, 32), RIGHT)
        acc = b.value("tile.create", types=(TileType((16, 32), result, ACC, (16, 32)),))
        for _ in range(2):
            acc = b.value("tile.matmul_acc", [acc, left, right])
        b.store(acc, o[len(PRODUCTS)], [0, 0])
        if dtype != INT8:
            b.store(b.value("tile.matmul", [left, right]), o[-1], [0, 0])

    def expected(*x: np.ndarray) -> list[np.ndarray]:
        pairs = zip(PRODUCTS, x[::2], x[1::2], strict=True)
        made = [(a.T if ta else a) @ (c.T if tb else c) for (_, _, _, ta, tb), a, c in pairs]
        return [*made, 2 * made[0], *([] if dtype == INT8 else [made[0]])]

    tolerance = 0 if dtype == INT8 else 4e-3
    return Case(f"products_{dtype.name}", inputs, outputs, body, expected, CoreType.AIC, tolerance=tolerance)


def bfloat16_product() -> Case:
    def body(b: Builder, x: list[Value], n: list[Value], o: list[Value]) -> None:
        left, right = matrix(b, x[0], (16, 64), LEFT), matrix(b, x[1], (32, 64), RIGHT)
        b.store(b.value("tile.matmul", [left, right], b_trans=True), o[0], [0, 0])

    return Case(
        "products_BF16",
        [((16, 64), BF16), ((32, 64), BF16)],
        {"o": ((16, 32), FP32)},
        body,
        lambda a, c: [a @ c.T],
        CoreType.AIC,
        tolerance=2e-5,
    )


def product_tail() -> Case:
    """Blocks of 32 columns, the last one of any length; accumulated over two halves of the inner dimension."""

    def body(b: Builder, x: list[Value], n: list[Value], o: list[Value]) -> None:
        total = index(b, n[0])
        with b.loop(0, total, 32) as blocks:
            rest = b.value("arith.sub", [total, blocks.index])
            width = b.value("arith.min", [rest, b.constant(32)])
            first = b.value("tile.create", types=(TileType((5, 32), FP32, ACC, (5, width)),))
            with b.loop(0, 64, 32, [first]) as inner:
                left = b.move(b.load(x[0], [0, inner.index], (5, 32), memory=MAT), LEFT)
                loaded = b.load(x[1], [blocks.index, inner.index], (32, 32), (width, 32), MAT)
                right = b.move(loaded, RIGHT)
                inner.carry(b.value("tile.matmul_acc", [inner.carried[0], left, right], b_trans=True))
            b.store(inner.results[0], o[0], [0, blocks.index])

    def expected(a: np.ndarray, c: np.ndarray, total: int) -> list[np.ndarray]:
        result = np.full((5, 80), float(UNTOUCHED))
        result[:, :total] = a @ c[:total].T
        return [result]

    return Case(
        "product_tail",
        [((5, 64), FP16), ((80, 64), FP16)],
        {"o": ((5, 80), FP32)},
        body,
        expected,
        CoreType.AIC,
        numbers=[(INT32, 80)],
        tolerance=2e-5,
        runs=[[0], [1], [31], [32], [33], [80]],
    )
