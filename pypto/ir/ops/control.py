"""Structured control flow, scopes and the submission of incore functions."""

from __future__ import annotations

from dataclasses import replace

from pypto.ir.ops.registry import Attr, Call, Kind, OpDef, Operand, register
from pypto.ir.types import BOOL, TASKS, ScalarType, TensorType, Type


def _nothing(call: Call) -> tuple[Type, ...]:
    return ()


def _tasks(call: Call) -> tuple[Type, ...]:
    return (ScalarType(TASKS),)


def _carried(type: Type) -> Type:
    """A carried tensor may become a view of another one."""
    return replace(type, is_view=True) if isinstance(type, TensorType) else type


def _for(call: Call) -> tuple[Type, ...]:
    return tuple(_carried(v.type) for v in call.operands[3:])


def _while(call: Call) -> tuple[Type, ...]:
    return tuple(_carried(v.type) for v in call.operands)


def _if(call: Call) -> tuple[Type, ...]:
    return tuple(_carried(type) for type in call.types)


# In the kind `while` the last carried value is a condition: the loop also ends in front of a turn where it is false.
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
        (Attr("kind", str, choices=("range", "blocks", "while")),),
        pure=False,
        regions=1,
        entry=True,
    )
)
# The first region gives the condition, the second one the next values; entries only.
register(
    OpDef(
        "scf.while",
        (Operand("inits", Kind.ANY, variadic=True),),
        _while,
        pure=False,
        regions=2,
        incore=False,
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
# Tasks submitted up to the matching `task.leave` wait for these. Among each other they are ordered by their data, by
# that and their order (`serial`), or by the data of their block (`blocks`; each turn of the loop inside is one).
register(
    OpDef(
        "task.enter",
        (Operand("after", Kind.SCALAR, dtypes=(TASKS,), variadic=True),),
        _nothing,
        (Attr("order", str, choices=("data", "serial", "blocks")),),
        pure=False,
        incore=False,
        entry=True,
    )
)
# The tasks of the group that was entered last.
register(OpDef("task.leave", (), _tasks, pure=False, incore=False, entry=True))
# The tasks of the innermost group only run if one element, read when they could start, fulfils a condition.
register(
    OpDef(
        "task.when",
        (Operand("element", Kind.TENSOR),),
        _nothing,
        (Attr("pred", str, choices=("eq", "ne", "lt", "le", "gt", "ge")), Attr("number", int)),
        pure=False,
        incore=False,
        entry=True,
    )
)
# A scope of an entry before outlining: its block becomes an incore function.
register(OpDef("func.scope", (), _nothing, (Attr("name", str),), pure=False, regions=1, incore=False, entry=True))
