"""Structured control flow, scopes and the submission of incore functions."""

from __future__ import annotations

from pypto.ir.ops.registry import Attr, Call, Kind, OpDef, Operand, register
from pypto.ir.types import BOOL, ScalarType, TensorType, TileType, Type


def _nothing(call: Call) -> tuple[Type, ...]:
    return ()


def _for(call: Call) -> tuple[Type, ...]:
    carried = tuple(v.type for v in call.operands[3:])
    for value in call.operands[3:]:
        if isinstance(value.type, TensorType):
            raise call.error(f"cannot carry the tensor {value.name}; store into it instead")
    return carried


def _if(call: Call) -> tuple[Type, ...]:
    for type in call.types:
        if not isinstance(type, (ScalarType, TileType)):
            raise call.error(f"cannot result in {type}")
    return tuple(call.types)


register(
    OpDef(
        "scf.for",
        (
            Operand("start", Kind.INDEX),
            Operand("stop", Kind.INDEX),
            Operand("step", Kind.INDEX),
            Operand("inits", Kind.ANY, variadic=True),
        ),
        _for,
        (Attr("kind", str, choices=("range",)),),
        pure=False,
        regions=1,
        entry=True,
    )
)
register(OpDef("scf.if", (Operand("condition", Kind.SCALAR, dtypes=(BOOL,)),), _if, pure=False, regions=2, entry=True))
register(OpDef("scf.yield", (Operand("values", Kind.ANY, variadic=True),), _nothing, pure=False, entry=True))
register(OpDef("scf.return", (), _nothing, pure=False, entry=True))
register(
    OpDef(
        "func.call",
        (Operand("arguments", Kind.ANY, variadic=True),),
        _nothing,
        (Attr("callee", str),),
        pure=False,
        incore=False,
        entry=True,
    )
)
# A scope of an entry before outlining: its block becomes an incore function.
register(OpDef("func.scope", (), _nothing, (Attr("name", str),), pure=False, regions=1, incore=False, entry=True))
