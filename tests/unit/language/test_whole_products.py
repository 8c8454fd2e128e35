"""Products, transpositions and repeated dimensions of whole tensors: what NumPy gives, whatever the number of axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from whole_texts import Given, check, real, refused

from pypto.ir.reference.tiles import TILES

Shape = tuple[int, ...]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 70, 150), (150, 90)),
        ((2, 300, 150), (150, 90)),
        ((70, 150), (3, 150, 90)),
        ((1, 70, 150), (3, 150, 90)),
        ((2, 1, 40, 150), (3, 150, 90)),
        ((2, 3, 40, 150), (2, 1, 150, 7)),
        ((5, 1, 150), (150, 90)),
        ((1, 50, 30), (1, 30, 20)),
        ((1, 50, 30), (30, 20)),
    ],
)
def test_products_repeat_leading_dimensions(a: Shape, b: Shape, dynamic: bool) -> None:
    given: Given = {"a": real(1, *a), "b": real(2, *b)}
    product = given["a"][0] @ given["b"][0]
    check("out[:] = pl.matmul(a, b)", given, product, dynamic=dynamic)
    check("t = pl.batch_matmul(a, b)\nout[:] = pl.exp(t * 0.01) + t", given, np.exp(product * 0.01) + product)


@pytest.mark.parametrize("flags", [(True, False), (False, True), (True, True)])
def test_products_of_turned_operands(flags: tuple[bool, bool]) -> None:
    a, b = real(1, 2, 1, *((150, 40) if flags[0] else (40, 150))), real(2, 3, *((90, 150) if flags[1] else (150, 90)))
    left, right = (np.swapaxes(m, -1, -2) if f else m for (m, _), f in zip((a, b), flags, strict=True))
    for name in ("matmul", "batch_matmul"):
        call = f"pl.{name}(a, b, out_dtype=pl.FP32, a_trans={flags[0]}, b_trans={flags[1]})"
        check(f"out[:] = {call} - 1.0", {"a": a, "b": b}, left @ right - 1)


def test_products_of_slices_and_sums() -> None:
    given: Given = {"x": real(1, 3, 50, 30), "b": real(2, 30, 20), "acc": real(3, 3, 50, 20)}
    x, b, acc = (array for array, _ in given.values())
    check("out[:] = pl.matmul(x[1:3], b)", given, x[1:3] @ b)
    check("out[:] = pl.matmul(x[1], b)", given, x[1] @ b)
    check("out[:] = pl.matmul_acc(acc, x, b)", given, acc + x @ b)
    check("out[:] = pl.batch_matmul_acc(acc, x, b)", given, acc + x @ b)
    body = "t = pl.full([3, 50, 20], pl.FP32, 0.0)\nfor i in pl.range(3):\n    t = t + pl.matmul(x[i], b)\nout[:] = t"
    check(body, given, np.broadcast_to((x @ b).sum(0), (3, 50, 20)))


def test_products_with_a_bias_and_of_rows() -> None:
    given: Given = {"x": real(1, 3, 50, 300), "w": real(2, 300, 90), "b": real(3, 1, 90), "r": real(4, 3, 1, 300)}
    x, w, b, r = (array for array, _ in given.values())
    check("out[:] = pl.matmul_bias(x, w, b)", given, x @ w + b)
    check("out[:] = pl.gemv_bias(r, w, b) * 2.0", given, (r @ w + b) * 2)
    check("t = pl.gemv(r, w)\nout[:] = pl.gemv_acc(t, r, w)", given, r @ w * 2)
    assert "lhs must be a row [1, K]" in refused("out[:] = pl.gemv(⟦x⟧, w)", given)


def test_explicit_columns_and_rows_are_repeated() -> None:
    given: Given = {"x": real(1, 6, 200, 300), "m": real(2, 200, 300), "r": real(3, 6, 1, 300), "v": real(4, 300)}
    x, m, r, v = (array for array, _ in given.values())
    check("out[:] = pl.row_expand_mul(x, pl.row_sum(m))", given, x * m.sum(-1, keepdims=True))
    check("out[:] = pl.col_expand_sub(m, r)", given, m - r)
    check("out[:] = pl.col_expand_add(x, v)", given, x + v)


SHAPES: tuple[Shape, ...] = ((3, 70, 300), (5, 7, 66, 130), (1, 200, 40), (2, 3, 4, 5, 6), (200, 300))


@pytest.mark.parametrize(
    ("shape", "axes"), [(s, (i, j)) for s in SHAPES for j in range(len(s)) for i in range(j)], ids=str
)
def test_any_two_axes_are_swapped(shape: Shape, axes: tuple[int, int]) -> None:
    x, (first, second) = real(1, *shape), axes
    check(f"out[:] = pl.transpose(x, {first}, {second - len(shape)})", {"x": x}, np.swapaxes(x[0], *axes))
    turned = np.swapaxes(x[0] * 2, *axes) + 1
    check(f"out[:] = pl.transpose(x * 2.0, {second}, {first}) + 1.0", {"x": x}, turned, dynamic=True)


def test_transpositions_beside_products_and_slices() -> None:
    given: Given = {"a": real(1, 2, 128, 8, 64), "b": real(2, 2, 8, 64, 128)}
    a, b = (array for array, _ in given.values())
    check("q = pl.transpose(a, 1, 2)\nout[:] = pl.matmul(q, b)", given, np.swapaxes(a, 1, 2) @ b)
    check("out[:] = pl.transpose(a[0:1, 5:40], 0, 1)", given, np.swapaxes(a[:1, 5:40], 0, 1))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2, 3, 40, 15), (40, 15)),
        ((40, 15), (2, 3, 40, 15)),
        ((2, 1, 40, 15), (1, 3, 40, 15)),
        ((2, 1, 40, 15), (3, 40, 1)),
        ((40, 15), (3, 1, 15)),
        ((3, 1, 15), (40, 15)),
        ((15,), (3, 1, 15)),
        ((3, 40, 15), (15,)),
        ((3, 40, 1), (3, 1, 15)),
        ((40, 1), (3, 1, 15)),
        ((1, 1), (3, 4, 15)),
        ((1, 1, 1), (40,)),
        ((3, 1, 1), (40,)),
        ((3, 4, 15), (3, 1, 1)),
    ],
)
def test_dimensions_are_repeated(a: Shape, b: Shape, dynamic: bool) -> None:
    given: Given = {"a": real(1, *a), "b": real(2, *b)}
    x, y = (array for array, _ in given.values())
    for call, wanted in (("a - b", x - y), ("b * a", x * y), ("pl.maximum(a, b)", np.maximum(x, y)), ("b / a", y / x)):
        check(f"out[:] = {call}", given, wanted, dynamic=dynamic)
    # Beside each other in one group of rows.
    check("t = a * b + b\nout[:] = t - a", given, x * y + y - x)


REDUCED: dict[str, Callable[..., Any]] = {
    **{name: TILES[name] for name in ("row_sum", "col_max", "row_min", "col_prod")},
    **{f"{axis}_{name}": TILES[f"{axis}_{name}"] for axis in ("row", "col") for name in ("argmax", "argmin")},
}


@pytest.mark.parametrize("shape", [(3, 70, 300), (2, 3, 4, 500), (70, 70000), (3, 70000, 7)])
@pytest.mark.parametrize("name", REDUCED)
def test_reductions_of_tensors_larger_than_the_chip(name: str, shape: Shape) -> None:
    array, dtype = real(1, *shape)
    x = (1 + array * 1e-3 if name.endswith("prod") else array, dtype)
    check(f"out[:] = pl.{name}(x)", {"x": x}, REDUCED[name](x[0]), "INT32" if "arg" in name else "FP32")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("out[:] = ⟦pl.matmul(x, y)⟧", "[3, 70, 150] by [4, 150, 90]: the leading dimensions are neither equal nor 1"),
        ("out[:] = ⟦pl.matmul(x, z)⟧", "[150] columns meet [70] rows"),
        ("out[:] = ⟦pl.batch_matmul(y, v)⟧", "[4, 150, 90] by [90]: needs two dimensions or more; use pl.reshape"),
        ("out[:] = pl.transpose(x, 0, ⟦3⟧)", "axis2 is 3, but the tensor has the axes 0 to 2"),
        ("out[:] = ⟦pl.transpose(x, 1, -2)⟧", "axis1 and axis2 are both 1"),
        ("out[:] = ⟦x + y⟧", "+: needs tensors of one shape, got [3, 70, 150] and [4, 150, 90]"),
    ],
)
def test_mistakes_with_products(body: str, message: str) -> None:
    given: Given = {"x": real(1, 3, 70, 150), "y": real(1, 4, 150, 90), "z": real(1, 3, 70, 90), "v": real(1, 90)}
    assert message in refused(body, given)
