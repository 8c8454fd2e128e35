"""Work on whole tensors, of any size: gone after :mod:`pypto.ir.passes.tensors`, which makes tiles and loops of it.

A result is a new tensor, as if it stood in a workspace of its own from that point on.
"""

from __future__ import annotations

from pypto.ir.ops.registry import Attr, Call, Kind, OpDef, Operand, register
from pypto.ir.types import TensorType, Type


def _asked(call: Call) -> tuple[Type, ...]:
    if not call.types or not all(isinstance(type, TensorType) for type in call.types):
        raise call.error("needs tensor types as its results")
    return tuple(call.types)


def _assign(call: Call) -> tuple[Type, ...]:
    source, target = call.tensor(0), call.tensor(1)
    if source.dtype != target.dtype:
        raise call.error(f"a tensor of {target.dtype} cannot take elements of {source.dtype}; use pl.cast")
    if source.rank != target.rank:
        raise call.error(f"a tensor of {target.rank} dimensions cannot take one of {source.rank}")
    return ()


# What the operation `tile.<tile>` does, for tensors; scalars stand where they stand in that operation.
register(
    OpDef(
        "tensor.apply",
        (Operand("operands", Kind.ANY, variadic=True),),
        _asked,
        (
            Attr("tile", str),
            Attr("mode", str, required=False),
            Attr("pred", str, required=False),
            Attr("mask", str, required=False),
            Attr("a_trans", bool, required=False),
            Attr("b_trans", bool, required=False),
            Attr("axes", tuple, required=False),
            *(Attr(name, int, required=False) for name in ("axis", "pattern", "compared", "outside", "block_len")),
            *(Attr(name, bool, required=False) for name in ("rows", "exhausted", "descending", "upper")),
        ),
        incore=False,
        entry=True,
    )
)
register(
    OpDef(
        "tensor.assign",
        (Operand("source", Kind.TENSOR), Operand("target", Kind.TENSOR)),
        _assign,
        pure=False,
        incore=False,
        entry=True,
    )
)
