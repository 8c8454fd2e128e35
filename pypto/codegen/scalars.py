"""Run-time numbers as C++ text.

ptoas takes constants, arguments, loop variables, sums and products, and nothing else. Every other scalar is an
expression that C++ computes: in the orchestration, in a kernel's wrapper, or inside the kernel at places that the
repair step finds.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from pypto.ir.errors import IRError
from pypto.ir.nodes import Loc, Op
from pypto.ir.ops.arith import FUNCTIONS
from pypto.ir.rounding import rounded_to
from pypto.ir.types import BOOL, INDEX, DType, ScalarType


@dataclass(frozen=True)
class Const:
    """A known number."""

    value: int | float | bool
    dtype: DType


@dataclass(frozen=True)
class Leaf:
    """A number that stands in a variable.

    Attributes:
        kind: ``arg`` (argument slot of the task), ``loop`` (variable of a loop), ``state`` (value that a loop carries),
            ``read`` (element of memory).
        index: which one.
        loop: for ``loop`` and ``state``: the number of the loop it belongs to.
        after: for ``state``: the value when the loop has ended, instead of the one during a turn.
    """

    kind: str
    index: int
    dtype: DType
    loop: int = -1
    after: bool = False


@dataclass(frozen=True)
class Apply:
    """An operation on numbers; ``op`` is the name without its family.

    Comparisons are called by their predicate, and ``cast_<mode>`` rounds a floating-point to a whole number.
    """

    op: str
    args: tuple[Expr, ...]
    dtype: DType


Expr = Const | Leaf | Apply

_INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "and": "&&",
    "or": "||",
    "bitand": "&",
    "bitor": "|",
    "bitxor": "^",
}
_CALLS = {
    "floordiv": "pypto::floordiv",
    "mod": "pypto::mod",
    "min": "pypto::minimum",
    "max": "pypto::maximum",
    "shl": "pypto::shift_left",
    "shr": "pypto::shift_right",
}
# In pypto/functions.h.
_FUNCTIONS = {name: f"pypto::functions::{name}" for name in FUNCTIONS}
_ROUNDINGS = {
    "cast_none": "pypto::rounded_to_even",
    "cast_rint": "pypto::rounded_to_even",
    "cast_round": "pypto::rounded",
    "cast_floor": "pypto::rounded_down",
    "cast_ceil": "pypto::rounded_up",
    "cast_trunc": "pypto::rounded_to_zero",
}


def from_op(op: Op, args: tuple[Expr, ...]) -> Expr:
    """The expression of an ``arith`` operation whose operands are known; folds what is constant and cheap to see."""
    name = op.name.removeprefix("arith.")
    type = op.result.type
    if not isinstance(type, ScalarType):
        raise IRError(f"{op.name} must give a number", op.loc)
    dtype = type.dtype
    if name == "constant":
        return Const(op.attrs["value"], dtype)
    if name == "cmp":
        name = op.attrs["pred"]
    if name == "cast" and args[0].dtype == dtype:
        return args[0]
    if name == "cast" and dtype.is_integer and isinstance(args[0], Const) and args[0].dtype.is_integer:
        return Const(int(args[0].value), dtype)
    if name == "cast" and dtype.is_integer and args[0].dtype.is_float:
        mode = op.attrs.get("mode", "trunc")
        if isinstance(args[0], Const):
            return Const(rounded_to(args[0].value, dtype, mode), dtype)
        return Apply(f"cast_{mode}", args, dtype)
    return simplify(Apply(name, args, dtype))


def simplify(expr: Apply) -> Expr:
    """Integer arithmetic on constants, and neutral elements."""
    if not expr.dtype.is_integer or expr.op not in ("add", "sub", "mul", "neg", "min", "max", "floordiv", "mod"):
        return expr
    values = [int(a.value) if isinstance(a, Const) else None for a in expr.args]
    if expr.op == "neg":
        return expr if values[0] is None else Const(-values[0], expr.dtype)
    a, b = values
    if a is not None and b is not None:
        if expr.op in ("floordiv", "mod") and b == 0:
            return expr
        folded = {
            "add": lambda: a + b,
            "sub": lambda: a - b,
            "mul": lambda: a * b,
            "min": lambda: min(a, b),
            "max": lambda: max(a, b),
            "floordiv": lambda: a // b,
            "mod": lambda: a % b,
        }[expr.op]()
        return Const(folded, expr.dtype) if -(2**63) <= folded < 2**63 else expr
    if expr.op in ("add", "sub") and b == 0:
        return expr.args[0]
    if expr.op == "add" and a == 0:
        return expr.args[1]
    if expr.op == "mul" and b == 1:
        return expr.args[0]
    if expr.op == "mul" and a == 1:
        return expr.args[1]
    return expr


def binary(op: str, a: Expr, b: Expr) -> Expr:
    """Integer ``a op b``."""
    return simplify(Apply(op, (a, b), a.dtype))


def cpp_type(dtype: DType) -> str:
    """The C++ type in which scalars of this type are computed."""
    if dtype == BOOL:
        return "bool"
    return "float" if dtype.is_float else "int64_t"


def text(expr: Expr, leaf: Callable[[Leaf], str], shortcut: Callable[[Expr], str | None] = lambda expr: None) -> str:
    """C++ text of an expression.

    Args:
        leaf: text of a variable.
        shortcut: text of a subexpression that has a variable of its own, or ``None``.
    """
    known = shortcut(expr)
    if known is not None:
        return known
    if isinstance(expr, Const):
        return literal(expr)
    if isinstance(expr, Leaf):
        return leaf(expr)
    args = [text(a, leaf, shortcut) for a in expr.args]
    if expr.op == "select" and expr.dtype.is_integer:
        args[1] = f"int64_t{{{args[1]}}}"
    if expr.op in _INFIX:
        return f"({args[0]} {_INFIX[expr.op]} {args[1]})"
    if expr.op in _CALLS:
        return f"{_CALLS[expr.op]}({args[0]}, {args[1]})"
    if expr.op in _FUNCTIONS:
        return f"{_FUNCTIONS[expr.op]}({args[0]})"
    if expr.op == "neg":
        return f"(-{args[0]})"
    if expr.op == "not":
        return f"(!{args[0]})"
    if expr.op == "select":
        return f"({args[0]} ? {args[1]} : {args[2]})"
    if expr.op == "cast":
        return _cast(args[0], expr.args[0].dtype, expr.dtype)
    if expr.op in _ROUNDINGS:
        type = "int64_t" if expr.dtype == INDEX else f"{expr.dtype.kind}{expr.dtype.bits}_t"
        return f"pypto::saturated<{type}>({_ROUNDINGS[expr.op]}({args[0]}))"
    raise IRError(f"not supported: arith.{expr.op} in generated C++")


def _cast(value: str, source: DType, target: DType) -> str:
    if cpp_type(source) == "int64_t" and target.bits == 64 and target.is_integer:
        return value
    if target == BOOL:
        return f"({value} != 0)"
    if target.is_float:
        return f"static_cast<float>({value})"
    if target.is_integer and target.bits < 64:
        sign = "uint" if target.kind == "uint" else "int"
        return f"static_cast<int64_t>(static_cast<{sign}{target.bits}_t>(static_cast<int64_t>({value})))"
    return f"static_cast<int64_t>({value})"


def literal(const: Const) -> str:
    """C++ text that gives exactly this number."""
    if const.dtype == BOOL:
        return "true" if const.value else "false"
    if not const.dtype.is_float:
        number = int(const.value)
        if number == -(2**63):
            return "INT64_MIN"
        return str(number) if abs(number) < 2**31 else f"INT64_C({number})"
    return f"__builtin_bit_cast(float, 0x{float32_bits(const.value):08X}u)"


def float32_bits(value: float, loc: Loc | None = None) -> int:
    """The bits of the nearest float32."""
    try:
        (bits,) = struct.unpack("<I", struct.pack("<f", float(value)))
    except OverflowError:
        raise IRError(f"the number {value} is outside the range of FP32", loc) from None
    return int(bits)


def float16_bits(value: float, loc: Loc | None = None) -> int:
    """The bits of the nearest float16."""
    try:
        (bits,) = struct.unpack("<H", struct.pack("<e", float(value)))
    except OverflowError:
        raise IRError(f"the number {value} is outside the range of FP16", loc) from None
    return int(bits)
