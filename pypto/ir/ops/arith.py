"""Scalar arithmetic: run-time numbers, in entries and in incore functions."""

from __future__ import annotations

from pypto.ir.ops.registry import Attr, Call, Kind, OpDef, Operand, register
from pypto.ir.rounding import CAST_MODES
from pypto.ir.types import BOOL, ScalarType, Type

_A = Operand("a", Kind.SCALAR)
_B = Operand("b", Kind.SCALAR)
_FLAGS = (BOOL,)

FUNCTIONS = ("sqrt", "exp", "log", "sin", "cos")
"""Functions of one floating-point number, by what they are called here and in `math`."""
PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge")


def _same(call: Call) -> tuple[Type, ...]:
    kinds = {call.scalar(i) for i in range(len(call.operands))}
    if len(kinds) != 1:
        raise call.error(f"needs scalars of one type, got {' and '.join(str(v.type) for v in call.operands)}")
    return (call.operands[0].type,)


def _number(call: Call) -> tuple[Type, ...]:
    result = _same(call)
    if call.scalar(0) == BOOL:
        raise call.error("needs numbers, got BOOL")
    return result


def _whole(call: Call) -> tuple[Type, ...]:
    result = _same(call)
    if not call.scalar(0).is_integer:
        raise call.error(f"needs whole numbers, got {call.scalar(0)}")
    return result


def _real(call: Call) -> tuple[Type, ...]:
    result = _same(call)
    if not call.scalar(0).is_float:
        raise call.error(f"needs floating-point numbers, got {call.scalar(0)}; for whole numbers use //")
    return result


def _compare(call: Call) -> tuple[Type, ...]:
    _same(call)
    return (ScalarType(BOOL),)


def _select(call: Call) -> tuple[Type, ...]:
    if call.scalar(1) != call.scalar(2):
        raise call.error(f"needs two values of one type, got {call.scalar(1)} and {call.scalar(2)}")
    return (call.operands[1].type,)


def _asked(call: Call) -> tuple[Type, ...]:
    if len(call.types) != 1 or not isinstance(call.types[0], ScalarType):
        raise call.error("needs one scalar type as its result")
    return (call.types[0],)


def _scalar_op(name: str, operands: tuple[Operand, ...], rule: object, attrs: tuple[Attr, ...] = ()) -> None:
    register(OpDef(f"arith.{name}", operands, rule, attrs, entry=True))  # type: ignore[arg-type]


_scalar_op("constant", (), _asked, (Attr("value", (bool, int, float)),))
for _name in ("add", "sub", "mul", "min", "max"):
    _scalar_op(_name, (_A, _B), _number)
_scalar_op("div", (_A, _B), _real)
for _name in ("floordiv", "mod", "bitand", "bitor", "bitxor", "shl", "shr"):
    _scalar_op(_name, (_A, _B), _whole)
_scalar_op("neg", (_A,), _number)
for _name in FUNCTIONS:
    _scalar_op(_name, (_A,), _real)
_scalar_op("cmp", (_A, _B), _compare, (Attr("pred", str, choices=PREDICATES),))
_FLAG_A, _FLAG_B = Operand("a", Kind.SCALAR, dtypes=_FLAGS), Operand("b", Kind.SCALAR, dtypes=_FLAGS)
for _name in ("and", "or"):
    _scalar_op(_name, (_FLAG_A, _FLAG_B), _same)
_scalar_op("not", (_FLAG_A,), _same)
_scalar_op("select", (Operand("condition", Kind.SCALAR, dtypes=_FLAGS), _A, _B), _select)
# From a floating-point to a whole number by the mode, towards zero without one.
_scalar_op("cast", (_A,), _asked, (Attr("mode", str, required=False, choices=CAST_MODES),))
