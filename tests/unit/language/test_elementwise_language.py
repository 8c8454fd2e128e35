"""Element-wise names, operators and broadcasting as users write them, on tiles and on whole tensors of any size."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernel_texts import lowered

from pypto.ir.reference.interpreter import run

Meaning = Callable[..., Any]
# Expressions of x, y, w [M, N], column [M, 1], row [1, N], and what NumPy says.
REAL: dict[str, Meaning] = {
    "x - column": lambda x, column, **_: x - column,
    "column - x": lambda x, column, **_: column - x,
    "row / x": lambda x, row, **_: row / x,
    "x * row + row": lambda x, row, **_: x * row + row,
    "pl.maximum(row, x)": lambda x, row, **_: np.maximum(row, x),
    "x ** 3 - x ** -1": lambda x, **_: x**3 - 1 / x,
    "pl.abs(x) ** 0.5": lambda x, **_: np.sqrt(np.abs(x)),
    "2.0 - -x": lambda x, **_: 2 + x,
    "+x // 0.5 % 3.0": lambda x, **_: x // 0.5 % 3,
    "7.0 // x": lambda x, **_: 7 // x,
    "pl.fmod(x, 0.5)": lambda x, **_: np.fmod(x, 0.5),
    "pl.fmod(1.5, x)": lambda x, **_: np.fmod(1.5, x),
    "pl.fmods(x, 0.5)": lambda x, **_: np.fmod(x, 0.5),
    "x > y": lambda x, y, **_: x > y,
    "1.0 <= x": lambda x, **_: x >= 1,
    "x != row": lambda x, row, **_: x != row,
    "pl.cmp(x, y, 'ge')": lambda x, y, **_: x >= y,
    "pl.cmp(x, y, cmp_type=2)": lambda x, y, **_: x < y,
    "pl.part_min(x, y)": lambda x, y, **_: np.minimum(x, y),
    "pl.sin(x) + pl.cos(input=y)": lambda x, y, **_: np.sin(x) + np.cos(y),
    "pl.row_expand_expdif(x, column)": lambda x, column, **_: np.exp(x - column),
    "pl.col_expand_max(x, row)": lambda x, row, **_: np.maximum(x, row),
    "pl.col_expand_expdif(x, row)": lambda x, row, **_: np.exp(x - row),
    "pl.row_expand_min(lhs=x, rhs=column)": lambda x, column, **_: np.minimum(x, column),
    "pl.row_expand(x, column)": lambda x, column, **_: np.broadcast_to(column, x.shape),
    "pl.col_expand(x, row) * x": lambda x, row, **_: row * x,
    "pl.expands(x, 2.0)": lambda x, **_: np.full(x.shape, 2.0),
    "pl.max(x, y)": lambda x, y, **_: np.maximum(x, y),
    "pl.log(pl.abs(x), high_precision=True)": lambda x, **_: np.log(np.abs(x)),
    "pl.rsqrt(pl.abs(x), high_precision=True)": lambda x, **_: 1 / np.sqrt(np.abs(x)),
    "pl.sel(x > y, x, 0.5, x)": lambda x, y, **_: np.where(x > y, x, 0.5),
    "pl.sel(x > y, 0.25, y, x)": lambda x, y, **_: np.where(x > y, 0.25, y),
    "pl.sels(x > y, x, x, -1.0)": lambda x, y, **_: np.where(x > y, x, -1),
    "pl.addc(x, y, w)": lambda x, y, w, **_: x + y + w,
    "pl.subsc(x, 0.5, y)": lambda x, y, **_: x - 0.5 + y,
    "pl.prelu(x, y, w)": lambda x, y, **_: np.where(x > 0, x, x * y),
    "pl.lrelu(x, 0.25)": lambda x, **_: np.where(x > 0, x, x / 4),
    "pl.rem(x, y, w)": lambda x, y, **_: np.mod(x, y),
    "pl.sel(0.5 < x <= 2.0, x, y, w)": lambda x, y, **_: np.where((x > 0.5) & (x <= 2), x, y),
    "pl.sel((x > 0.0) & ~(y > 0.0) | (x == y), x, y, w)": (
        lambda x, y, **_: np.where((x > 0) & ~(y > 0) | (x == y), x, y)
    ),
    "(x > 0.0) ^ (y > row)": lambda x, y, row, **_: (x > 0) ^ (y > row),
    "column * row": lambda column, row, **_: column * row,
    "row - column": lambda column, row, **_: row - column,
    "x - pl.row_max(pl.col_max(x))": lambda x, **_: x - x.max(),
    "pl.col_min(pl.row_min(x)) / x": lambda x, **_: x.min() / x,
    "pl.row_sum(x, w)": lambda x, **_: x.sum(1, keepdims=True),
    "pl.col_sum(x, tmp_tile=w)": lambda x, **_: x.sum(0, keepdims=True),
    "pl.row_prod(1.0 + x * 0.001)": lambda x, **_: (1 + x / 1000).prod(1, keepdims=True),
    "pl.col_prod(1.0 + x * 0.001)": lambda x, **_: (1 + x / 1000).prod(0, keepdims=True),
    "pl.col_min(x)": lambda x, **_: x.min(0, keepdims=True),
}
WHOLE: dict[str, Meaning] = {
    "x & y | 4": lambda x, y, **_: x & y | 4,
    "x ^ 3 ^ y": lambda x, y, **_: x ^ 3 ^ y,
    "~x": lambda x, **_: ~x,
    "x << 2": lambda x, **_: x << 2,
    "1 << pl.abs(y)": lambda y, **_: 1 << np.abs(y),
    "x >> 1": lambda x, **_: x >> 1,
    "x // y": lambda x, y, **_: x // y,
    "x % 3 + 3 % y": lambda x, y, **_: x % 3 + 3 % y,
    "pl.and_(x, row)": lambda x, row, **_: x & row,
    "pl.xors(x, 5, y)": lambda x, **_: x ^ 5,
    "pl.shrs(x, 1)": lambda x, **_: x >> 1,
    "pl.row_max(x)": lambda x, **_: x.max(1, keepdims=True),
    "pl.row_argmax(x)": lambda x, **_: x.argmax(1)[:, None],
    "pl.row_argmin(x)": lambda x, **_: x.argmin(1)[:, None],
    "pl.col_argmax(x)": lambda x, **_: x.argmax(0)[None, :],
    "pl.col_argmin(x)": lambda x, **_: x.argmin(0)[None, :],
}
# As tiles, in blocks of rows, and so large that a row does not fit either.
SMALL, LARGE, WIDE = (24, 40), (300, 520), (40, 50_000)
CASES = [
    *((expression, shape, "FP32") for expression in REAL for shape in (SMALL, LARGE)),
    *((expression, shape, "INT32") for expression in WHOLE for shape in (SMALL, LARGE)),
    *((f"pl.{axis}_{name}(x)", WIDE, "INT32") for axis in ("row", "col") for name in ("argmax", "argmin")),
]


def arrays(shape: tuple[int, int], dtype: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    sizes = {"x": shape, "y": shape, "w": shape, "column": (shape[0], 1), "row": (1, shape[1])}
    made = {name: rng.integers(1, 20, size) * rng.choice([-1, 1], size) for name, size in sizes.items()}
    return made if dtype == "INT32" else {name: (value / 8).astype(np.float64) for name, value in made.items()}


@pytest.mark.parametrize(("expression", "shape", "dtype"), CASES)
def test_expression_means_what_numpy_says(expression: str, shape: tuple[int, int], dtype: str) -> None:
    given = arrays(shape, dtype)
    exact = np.asarray({**REAL, **WHOLE}[expression](**given)).astype(np.float64)
    params = ", ".join(f"{name}: pl.Tensor[{list(array.shape)}, pl.{dtype}]" for name, array in given.items())
    body = f"with pl.at(level=pl.Level.CORE_GROUP):\n    out[:] = {expression}\nreturn out"
    text = (
        f"@entry\ndef main({params}, out: pl.Out[pl.Tensor[{list(exact.shape)}, pl.{dtype}]]):\n"
        f"{textwrap.indent(body, '    ')}\n"
    )
    values = {name: array.astype(np.float64) for name, array in given.items()}
    got = {**values, "out": np.zeros(exact.shape)}
    run(lowered(text), got)
    np.testing.assert_allclose(got["out"], exact, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "expression", ["n & 6 | 1", "n ^ 5", "n << 3 >> 1", "n ** 3", "(7 - n) >> 70", "n // 2 ** 2", "~5 + n"]
)
def test_numbers_on_bits_and_powers(expression: str) -> None:
    text = (
        "@entry\ndef main(a: pl.Tensor[[8, 64], pl.FP32], n: int, out: pl.Out[pl.Tensor[[8, 64], pl.FP32]]):\n"
        f"    k = {expression}\n    with pl.at(level=pl.Level.CORE_GROUP):\n"
        "        out[:] = a * pl.cast(k, pl.FP32) + (k - pl.full([8, 64], pl.FP32, k))\n    return out\n"
    )
    for n in (3, 12):
        got = {"a": np.ones((8, 64)), "n": n, "out": np.zeros((8, 64))}
        run(lowered(text), got)
        assert (got["out"] == eval(expression, {"n": n})).all()


def test_rows_of_tensors_with_leading_dimensions() -> None:
    text = (
        "@entry\ndef main(a: pl.Tensor[[3, 20, 64], pl.FP32], out: pl.Out[pl.Tensor[[3, 20, 64], pl.FP32]]):\n"
        "    with pl.at(level=pl.Level.CORE_GROUP):\n"
        "        out[:] = pl.col_expand_mul(a - pl.col_min(a), pl.col_max(a)) + pl.row_max(a)\n    return out\n"
    )
    a = np.random.default_rng(2).integers(-9, 9, (3, 20, 64)) / 4.0
    got = {"a": a, "out": np.zeros_like(a)}
    run(lowered(text), got)
    exact = (a - a.min(1, keepdims=True)) * a.max(1, keepdims=True) + a.max(2, keepdims=True)
    np.testing.assert_array_equal(got["out"], exact)


@pytest.mark.parametrize(
    ("expression", "exact"),
    [
        ("float('-inf')", -np.inf),
        ("float(max(3, 7) // 2)", 3.0),
        ("abs(-2.5) + len([1, 2, 3])", 5.5),
        ("float(int(2.9)) + round(1.6)", 4.0),
    ],
)
def test_builtin_functions_of_known_numbers(expression: str, exact: float) -> None:
    text = (
        "@entry\ndef main(out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):\n"
        "    with pl.at(level=pl.Level.CORE_GROUP):\n"
        f"        pl.store(pl.full([8, 8], pl.FP32, {expression}), [0, 0], out)\n    return out\n"
    )
    got = {"out": np.zeros((8, 8))}
    run(lowered(text), got)
    assert (got["out"] == exact).all()


def test_other_valid_lengths_of_a_tile() -> None:
    text = (
        "@entry\ndef main(a: pl.Tensor[[8, 64], pl.FP32], n: int, out: pl.Out[pl.Tensor[[8, 64], pl.FP32]]):\n"
        "    with pl.at(level=pl.Level.CORE_GROUP):\n"
        "        t = pl.load(a, [0, 0], [8, 64])\n"
        "        pl.store(pl.set_validshape(t, n, 40) * 2.0, [0, 0], out)\n    return out\n"
    )
    a = np.random.default_rng(2).integers(-9, 9, (8, 64)) / 4.0
    got = {"a": a, "n": 5, "out": np.zeros_like(a)}
    run(lowered(text), got)
    exact = np.zeros_like(a)
    exact[:5, :40] = 2 * a[:5, :40]
    np.testing.assert_array_equal(got["out"], exact)


def test_matrix_memory_is_made_under_its_tensor_name() -> None:
    text = (
        "@entry\ndef main(a: pl.Tensor[[32, 32], pl.FP16], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):\n"
        "    with pl.at(level=pl.Level.CORE_GROUP):\n"
        "        held = pl.tensor.create_l1([32, 32], pl.FP16)\n"
        "        held = pl.gather_row(held, a, [0, 0], [0, 0], [32, 32])\n"
        "        pl.store(pl.matmul(held, a), [0, 0], out)\n    return out\n"
    )
    a = np.random.default_rng(2).integers(-9, 9, (32, 32)) / 4.0
    got = {"a": a, "out": np.zeros_like(a)}
    run(lowered(text), got)
    np.testing.assert_array_equal(got["out"], a @ a)
