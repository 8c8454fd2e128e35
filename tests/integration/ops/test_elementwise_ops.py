"""Every element-wise operation, reduction and expansion of the table, over element types, shapes and valid lengths."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from generated import Library
from op_kernels import NUMPY, OpKernel, check

from pypto.ir.ops.registry import all_definitions
from pypto.ir.types import DTYPES

REAL = ("FP32", "FP16", "BF16")
SIGNED = ("INT8", "INT16", "INT32", "INT64")
WHOLE = (*SIGNED, "UINT8", "UINT16", "UINT32", "UINT64")

Function = Callable[..., Any]
_REAL_BINARY: dict[str, Function] = {"div": operator.truediv, "prelu": lambda a, b: np.where(a > 0, a, a * b)}
_BINARY: dict[str, Function] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "fmod": np.fmod,
    "rem": np.mod,
}
_BITS: dict[str, Function] = {"and_": np.bitwise_and, "or_": np.bitwise_or, "xor": np.bitwise_xor}
_SHIFTS: dict[str, Function] = {"shl": np.left_shift, "shr": np.right_shift}
_COMPARISONS: tuple[Function, ...] = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
_REAL_UNARY: dict[str, Function] = {
    "exp": np.exp,
    "sin": np.sin,
    "cos": np.cos,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "recip": lambda a: 1 / a,
}
# These take positive numbers.
_POSITIVE = ("log", "sqrt", "rsqrt", "recip")
_UNARY: dict[str, Function] = {"neg": np.negative, "abs": np.abs, "relu": lambda a: np.maximum(a, 0)}
_EXPANSIONS: dict[str, Function] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}
_REAL_EXPANSIONS: dict[str, Function] = {"div": operator.truediv, "expdif": lambda a, b: np.exp(a - b)}
_REDUCTIONS: dict[str, Function] = {
    "sum": np.sum,
    "max": np.max,
    "min": np.min,
    "prod": np.prod,
}


def numbers(rng: np.random.Generator, dtype: str, shape: tuple[int, int]) -> np.ndarray:
    """Data of an element type; small, so that products of a few elements fit."""
    if dtype in REAL:
        return rng.uniform(-2, 2, shape).astype(NUMPY[dtype])
    if dtype == "BOOL":
        return rng.integers(0, 2, shape).astype(np.bool_)
    return rng.integers(0 if dtype.startswith("U") else -50, 100, shape).astype(NUMPY[dtype])


def kernel(dtype: str, shape: tuple[int, int], valid: tuple[int, int] | None) -> OpKernel:
    """All operations on one element type and shape."""
    rng = np.random.default_rng(3)
    k = OpKernel(f"elementwise_{dtype}_{shape[0]}x{shape[1]}")
    rows, cols = shape
    a = k.load("a", numbers(rng, dtype, shape), valid)
    divisors = numbers(rng, dtype, shape)
    divisors[divisors == 0] = 3
    b = k.load("b", divisors, valid)
    c = k.load("c", numbers(rng, dtype, shape), valid)
    real, exact = dtype in REAL, NUMPY[dtype]
    k.body.append(f"tmp = pl.create_tile([{rows}, {cols}], dtype=pl.{dtype}, target_memory=pl.Mem.Vec)")

    def keep(expression: str, values: Any, **options: Any) -> None:
        k.store(expression, dtype, shape, values, **options)

    for name, f in {**_BINARY, **(_REAL_BINARY if real else _BITS)}.items():
        scratch = ", tmp" if name in ("rem", "prelu", "xor") else ""
        keep(f"pl.{name}(t_a, t_b{scratch})", f(a, b))
    number = 3 if not real else 1.5
    scalar = exact(number) if not real else np.float64(number)
    for name, f in {**_BINARY, **({"div": operator.truediv} if real else _BITS)}.items():
        given = name.rstrip("_") + "s"
        scratch = ", tmp" if name in ("rem", "xor") else ""
        keep(f"pl.{given}(t_a, {number}{scratch})", f(a, scalar))
    keep(f"{number} - t_a", scalar - a)
    keep(f"t_a // {3 if real else number}", np.floor_divide(a, exact(3)), tolerance=1.01 if real else None)
    if real:
        keep("1.5 / t_b", 1.5 / b)
    keep("t_a // t_b", np.floor_divide(a, b), tolerance=1.01 if real else None)
    keep(f"(t_a % {number}) ** 2 + -t_c", np.mod(a, scalar) ** 2 - c, tolerance=0.1 if dtype == "BF16" else None)
    keep("pl.addc(t_a, t_b, t_c)", a + b + c, tolerance=6e-2 if dtype == "BF16" else None)
    keep("pl.subc(t_a, t_b, t_c)", a - b + c, tolerance=6e-2 if dtype == "BF16" else None)
    keep(f"pl.addsc(t_a, {number}, t_b)", a + scalar + b, tolerance=6e-2 if dtype == "BF16" else None)
    keep(f"pl.subsc(t_a, {number}, t_b)", a - scalar + b, tolerance=6e-2 if dtype == "BF16" else None)
    for kind, f in enumerate(_COMPARISONS):
        keep(f"pl.cmp(t_a, t_c, cmp_type={kind})", f(a, c))
    keep(f"pl.cmps(t_a, {number}, {4})", a > scalar)
    keep(f"{number} > t_a", a < scalar)
    keep("pl.sel(t_a < t_b, t_a, t_c, tmp)", np.where(a < b, a, c))
    keep(f"pl.sels(t_a >= t_b, t_c, tmp, {number})", np.where(a >= b, c, scalar))
    for name, f in {**_UNARY, **(_REAL_UNARY if real else {"not_": np.invert})}.items():
        positive = name in _POSITIVE
        keep(
            f"pl.{name}({'pl.abs(t_b) + 0.5' if positive else 't_a'})",
            f(np.abs(b) + 0.5 if positive else a),
            tolerance=3e-2 if dtype == "BF16" else None,
        )
    if real:
        keep("pl.lrelu(t_a, 0.5)", np.where(a > 0, a, a * 0.5))
        keep("pl.div(t_a, t_b, high_precision=True)", a / b)
    else:
        # Shifts by up to one more than the width.
        bits = DTYPES[dtype].bits
        counts = k.load("counts", rng.integers(0, min(bits, 31), shape).astype(exact), valid)
        for name, f in _SHIFTS.items():
            keep(f"pl.{name}(t_a, t_counts)", f(a, counts))
            keep(f"pl.{name}s(t_a, 2)", f(a, exact(2)))
        keep(f"pl.shrs(t_a, {bits})", np.where(a < 0, -1, 0))
        keep("(t_a << 1) ^ (t_c >> 1) | t_b & 7", (a << exact(1)) ^ (c >> exact(1)) | b & exact(7))
    if valid is None and rows > 1 and cols > 1:
        part = k.load("part", numbers(rng, dtype, shape), (rows - 3, cols))
        for name, f in (("add", np.add), ("mul", np.multiply), ("max", np.maximum), ("min", np.minimum)):
            both = a.copy()
            both[: rows - 3] = f(a[: rows - 3], part)
            keep(f"pl.part_{name}(t_a, t_part)", both)
    return k


def reductions(dtype: str, shape: tuple[int, int], valid: tuple[int, int] | None) -> OpKernel:
    """All reductions and expansions on one element type and shape."""
    rng = np.random.default_rng(5)
    k = OpKernel(f"reductions_{dtype}_{shape[0]}x{shape[1]}")
    rows, cols = shape
    valid_rows, valid_cols = valid or shape
    real, exact = dtype in REAL, NUMPY[dtype]
    a = k.load("a", numbers(rng, dtype, shape), valid)
    column = k.load("column", numbers(rng, dtype, (rows, 1)) + exact(1), (valid_rows, 1) if valid else None)
    row = k.load("row", numbers(rng, dtype, (1, cols)) + exact(1), (1, valid_cols) if valid else None)
    if real:
        near_one = k.load("near", (1 + numbers(rng, dtype, shape).astype(np.float64) / 50).astype(exact), valid)
    for axis, kept, along in ((1, (rows, 1), "row"), (0, (1, cols), "col")):
        for name, f in _REDUCTIONS.items():
            source, values = ("t_near", near_one) if real and name == "prod" else ("t_a", a)
            made = f(values, axis=axis, keepdims=True)
            tolerance = {"FP16": 2e-2, "BF16": 5e-2}.get(dtype) if name == "sum" else None
            k.store(f"pl.{along}_{name}({source})", dtype, kept, made.astype(exact) if not real else made, tolerance)
        if along == "row":
            for name, place in (("argmax", np.argmax), ("argmin", np.argmin)):
                k.store(f"pl.row_{name}(t_a, t_a)", "INT32", kept, place(a, axis=1, keepdims=True))
        else:
            for name, place in (("argmax", np.argmax), ("argmin", np.argmin)):
                k.store(f"pl.col_{name}(t_a, t_a)", "INT32", kept, place(a, axis=0, keepdims=True))
        beside, values = ("t_column", column) if along == "row" else ("t_row", row)
        for name, f in {**_EXPANSIONS, **(_REAL_EXPANSIONS if real else {})}.items():
            if name == "div":
                k.store(
                    f"pl.{along}_expand_div(t_a, {beside} + 4.0)",
                    dtype,
                    shape,
                    a / (values + 4),
                    4e-2 if dtype == "BF16" else None,
                )
                continue
            tolerance = {"FP16": 1e-2, "BF16": 6e-2}.get(dtype) if name == "expdif" else None
            k.store(f"pl.{along}_expand_{name}(t_a, {beside})", dtype, shape, f(a, values), tolerance)
        k.store(f"pl.{along}_expand(t_a, {beside})", dtype, shape, np.broadcast_to(values, a.shape))
        k.store(f"{beside} - t_a", dtype, shape, values - a)
        k.store(f"t_a * {beside}", dtype, shape, a * values)
        k.store(f"pl.minimum({beside}, t_a)", dtype, shape, np.minimum(a, values))
        k.store(f"t_a < {beside}", dtype, shape, a < values)
    k.store("pl.expands(t_a, 3)", dtype, shape, np.full(a.shape, 3))
    return k


_MODES: dict[str, Function] = {
    "rint": np.rint,
    "round": lambda a: np.trunc(a + np.copysign(0.5, a)),
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "none": np.rint,
}


def clipped(values: np.ndarray, dtype: str) -> np.ndarray:
    """Whole numbers of an element type, the nearest ones that it can hold."""
    limits = np.iinfo(NUMPY[dtype])
    made = np.zeros(values.shape, NUMPY[dtype])
    inside = (values > limits.min) & (values < float(limits.max))
    made[inside] = values[inside]
    made[values <= limits.min] = limits.min
    made[values >= float(limits.max)] = limits.max
    return made


def casts(dtype: str) -> OpKernel:
    """Conversions from one element type to all."""
    rng = np.random.default_rng(11)
    k = OpKernel(f"casts_{dtype}")
    shape = (6, 64)
    data = rng.integers(-9, 9, shape) / 2 if dtype in REAL else numbers(rng, dtype, shape)
    data = np.asarray(data).astype(NUMPY[dtype])
    if dtype in REAL:
        data[0, :6] = [300, -300, 40000, -40000, np.inf, -np.inf]
    if dtype == "FP32":
        data[1, :5] = [3e9, -3e9, 1e20, -1e20, np.nan]
    a = k.load("a", data, (5, 39))
    for target in (*REAL, *WHOLE, "BOOL"):
        if target in REAL or dtype not in REAL:
            with np.errstate(over="ignore"):
                made = a != 0 if target == "BOOL" else a.astype(NUMPY[target])
            k.store(f"pl.cast(t_a, pl.{target})", target, shape, made)
            continue
        for mode, f in _MODES.items():
            # Numbers that the target cannot hold become the nearest one that it can, and what is no number 0.
            made = a != 0 if target == "BOOL" else clipped(f(a), target)
            k.store(f"pl.cast(t_a, pl.{target}, mode='{mode}')", target, shape, made)
    return k


def flags() -> OpKernel:
    """Truth values: work on bits, choices, and what repeats them."""
    rng = np.random.default_rng(13)
    k = OpKernel("flags")
    shape = (16, 32)
    a, b = (k.load(name, numbers(rng, "BOOL", shape)) for name in "ab")
    x = k.load("x", numbers(rng, "FP32", shape))
    row, column = k.load("row", numbers(rng, "BOOL", (1, 32))), k.load("column", numbers(rng, "BOOL", (16, 1)))
    bits = k.load("bits", numbers(rng, "UINT8", (16, 4)))
    k.body.append("tmp = pl.create_tile([16, 32], dtype=pl.BOOL)")
    packed = np.unpackbits(bits, axis=1, bitorder="little").astype(bool)
    for expression, exact in (
        ("t_a & t_b | (t_a ^ t_b)", a & b | (a ^ b)),
        ("~t_a", ~a),
        ("pl.sel(t_a, t_b, ~t_b, tmp)", np.where(a, b, ~b)),
        ("pl.row_expand(t_a, t_column)", np.broadcast_to(column, shape)),
        ("pl.col_expand(t_a, t_row)", np.broadcast_to(row, shape)),
        ("pl.full([16, 32], pl.BOOL, True)", np.ones(shape, bool)),
    ):
        k.store(expression, "BOOL", shape, exact)
    k.store("pl.sel(t_a, t_x, -t_x, tmp)", "FP32", shape, np.where(a, x, -x))
    k.store("pl.sel(t_bits, t_x, -t_x, tmp)", "FP32", shape, np.where(packed, x, -x))
    k.store("pl.sels(t_bits, t_x, tmp, 7.0)", "FP32", shape, np.where(packed, x, 7))
    return k


def quotients_by_zero(dtype: str) -> OpKernel:
    """Divisions by zero give infinity, and what is no number, in every form."""
    k = OpKernel(f"zeros_{dtype}")
    shape = (8, 32)
    data = np.zeros(shape, NUMPY[dtype])
    data[:, ::2] = [[2], [-4], [0.5], [1], [8], [-2], [16], [-1]]
    a = k.load("a", data)
    zeros = k.load("zeros", np.zeros((8, 1), NUMPY[dtype]))
    with np.errstate(divide="ignore", invalid="ignore"):
        for expression, exact in (
            ("t_a / t_a", a / a),
            ("t_a / 0.0", a / 0.0),
            ("1.0 / t_a", 1 / a),
            ("pl.recip(t_a)", 1 / a),
            ("pl.rsqrt(pl.abs(t_a))", 1 / np.sqrt(np.abs(a))),
            ("pl.log(pl.abs(t_a))", np.log(np.abs(a))),
            ("t_a / t_zeros", a / zeros),
            ("pl.fmod(t_a, t_a)", np.fmod(a, a)),
        ):
            k.store(expression, dtype, shape, exact)
    return k


def run_time_numbers(dtype: str) -> OpKernel:
    """Scalars that are known when the kernel runs, beside tiles."""
    rng = np.random.default_rng(17)
    k = OpKernel(f"numbers_{dtype}")
    shape = (4, 32)
    a = k.load("a", numbers(rng, dtype, shape))
    real = dtype in REAL
    k.numbers["n"] = ("FP32", 2.5) if real else ("INT32", 5)
    k.body.append("s = n" if real else f"s = pl.cast(n * 3 // 2, pl.{dtype})")
    s = 2.5 if real else NUMPY[dtype](7)
    for expression, exact in (
        ("t_a + s", a + s),
        ("s - t_a", s - a),
        ("t_a * s", a * s),
        ("pl.maximums(t_a, s)", np.maximum(a, s)),
        ("pl.sels(t_a > s, t_a, t_a, s)", np.maximum(a, s)),
        (f"pl.full([4, 32], pl.{dtype}, s)", np.full(shape, s)),
        ("pl.rems(t_a, s, t_a)", np.mod(a, s)),
    ):
        k.store(expression, dtype, shape, exact)
    if dtype == "FP32":
        # As tiles are: rounded by the mode, the nearest number that the target can hold, and 0 for what is no number.
        for factor in (1.0, -1.4, 3.0, 1e10, -1e10, float("nan")):
            product = np.float32(2.5) * np.float32(factor)
            for mode, f in _MODES.items():
                scaled = "(n - n) / (n - n)" if np.isnan(factor) else f"n * {factor}"
                expression = f"pl.full([1, 8], pl.INT32, pl.cast({scaled}, pl.INT32, mode='{mode}'))"
                k.store(expression, "INT32", (1, 8), np.full((1, 8), clipped(f(product), "INT32")))
    return k


GENERAL = ((16, 64), (13, 37))
KERNELS = [
    flags(),
    *(quotients_by_zero(dtype) for dtype in REAL),
    *(casts(dtype) for dtype in (*REAL, *WHOLE, "BOOL")),
    *(run_time_numbers(dtype) for dtype in ("FP32", "BF16", "INT32", "INT16", "UINT8", "INT64")),
    *(made(dtype, *GENERAL) for dtype in (*REAL, *WHOLE) for made in (kernel, reductions)),
    *(
        made(dtype, shape, valid)
        for dtype in ("FP32", "INT32")
        for shape, valid in (((5, 13), None), ((1, 64), (1, 50)))
        for made in (kernel, reductions)
    ),
    *(made("FP16", (16, 1), (9, 1)) for made in (kernel, reductions)),
    *(made(dtype, (8, 1), None) for dtype in ("FP32", "INT32") for made in (kernel, reductions)),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=[k.name for k in KERNELS])
def test_operations_agree_with_numpy(kernel: OpKernel, operations: Library) -> None:
    check(kernel, operations)


def test_every_vector_operation_stands_in_a_kernel() -> None:
    written = "\n".join(line for k in KERNELS for line in k.body)
    for name, known in all_definitions().items():
        short = name.removeprefix("tile.")
        if not known.pointwise and not short.startswith(("row_", "col_")):
            continue
        if short in ("floordiv", "floordivs", "rdivs"):
            short = {"floordiv": "t_a // t_b", "floordivs": "t_a // 3", "rdivs": "1.5 / t_b"}[short]
        else:
            short = f"pl.{short}("
        assert short in written, f"no kernel uses {name}"
