"""Numbers as C++ text."""

from __future__ import annotations

import pytest

from pypto.codegen import scalars
from pypto.codegen.scalars import Apply, Const, Expr, Leaf, binary
from pypto.ir.errors import IRError
from pypto.ir.types import BOOL, FP32, INDEX, INT8, INT32

N = Leaf("arg", 0, INDEX)


def text(expr: Expr) -> str:
    return scalars.text(expr, lambda leaf: f"a{leaf.index}")


def const(value: int) -> Const:
    return Const(value, INDEX)


@pytest.mark.parametrize(
    ("op", "a", "b", "result"),
    [
        ("add", 2, 3, 5),
        ("sub", 2, 3, -1),
        ("mul", -2, 3, -6),
        ("floordiv", -7, 2, -4),
        ("floordiv", 7, -2, -4),
        ("mod", -7, 3, 2),
        ("mod", 7, -3, -2),
        ("min", 2, 3, 2),
        ("max", 2, 3, 3),
    ],
)
def test_constants_are_folded_as_python_computes_them(op: str, a: int, b: int, result: int) -> None:
    assert binary(op, const(a), const(b)) == const(result)


def test_neutral_elements_vanish() -> None:
    assert binary("add", N, const(0)) is N
    assert binary("add", const(0), N) is N
    assert binary("mul", const(1), N) is N
    assert binary("sub", N, const(0)) is N


def test_division_by_a_constant_zero_is_left_to_run_time() -> None:
    assert text(binary("floordiv", const(1), const(0))) == "pypto::floordiv(1, 0)"


def test_fold_that_leaves_64_bits_is_not_made() -> None:
    assert isinstance(binary("mul", const(2**62), const(4)), Apply)


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (Apply("select", (Apply("lt", (N, const(3)), BOOL), const(1), const(2)), INDEX), "((a0 < 3) ? int64_t{1} : 2)"),
        (Apply("not", (Const(True, BOOL),), BOOL), "(!true)"),
        (Apply("cast", (N,), FP32), "static_cast<float>(a0)"),
        (Apply("cast", (Leaf("arg", 1, INT32),), INDEX), "a1"),
        (Apply("cast", (N,), INT8), "static_cast<int64_t>(static_cast<int8_t>(static_cast<int64_t>(a0)))"),
        (Apply("cast_ceil", (Leaf("arg", 1, FP32),), INT8), "pypto::saturated<int8_t>(pypto::rounded_up(a1))"),
        (Apply("cast_rint", (Leaf("arg", 1, FP32),), INDEX), "pypto::saturated<int64_t>(pypto::rounded_to_even(a1))"),
        (Apply("mod", (N, const(-3)), INDEX), "pypto::mod(a0, -3)"),
        (const(2**40), "INT64_C(1099511627776)"),
        (const(-(2**63)), "INT64_MIN"),
        (Const(0.1, FP32), "__builtin_bit_cast(float, 0x3DCCCCCDu)"),
        (Const(float("-inf"), FP32), "__builtin_bit_cast(float, 0xFF800000u)"),
    ],
)
def test_text(expr: Expr, expected: str) -> None:
    assert text(expr) == expected


def test_number_outside_of_its_type_is_an_error() -> None:
    with pytest.raises(IRError, match="outside the range of FP16"):
        scalars.float16_bits(1e6)
    with pytest.raises(IRError, match="outside the range of FP32"):
        scalars.float32_bits(1e60)
