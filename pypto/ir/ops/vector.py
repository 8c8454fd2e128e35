"""What the modules of vector work share: element types, checks of tiles, how an operation is registered."""

from __future__ import annotations

from pypto.ir.nodes import CoreType
from pypto.ir.ops.lowering import ByElement, Instruction, Lowering, Template
from pypto.ir.ops.registry import Attr, Call, Kind, OpDef, Operand, Rule, register
from pypto.ir.types import (
    BF16,
    BOOL,
    FP16,
    FP32,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DType,
    MemorySpace,
    TileType,
    Type,
    Valid,
)
from pypto.ir.values import length_text, same_value

VEC = (MemorySpace.Vec,)
REAL = (FP32, FP16, BF16)
SIGNED = (INT8, INT16, INT32, INT64)
WHOLE = (*SIGNED, UINT8, UINT16, UINT32, UINT64)
NUMBER = (*REAL, *WHOLE)
BITS = (*WHOLE, BOOL)
ANY = (*NUMBER, BOOL)


def text(shape: tuple[Valid, ...]) -> str:
    """A shape in words."""
    return "[" + ", ".join(map(length_text, shape)) + "]"


def vec(
    like: TileType, shape: tuple[int, int], valid: tuple[Valid, Valid], dtype: DType | None = None
) -> tuple[Type, ...]:
    """The types of one result in vector memory."""
    return (TileType(shape, dtype or like.dtype, MemorySpace.Vec, valid),)


def same_dtype(call: Call, a: TileType, b: TileType) -> None:
    """Two tiles must have one element type."""
    if a.dtype != b.dtype:
        raise call.error(f"needs tiles of one element type, got {a.dtype} and {b.dtype}; use pl.cast")


def check_lengths(call: Call, a: Valid, b: Valid, what: str) -> None:
    """Two valid lengths must be known to be equal."""
    if not same_value(a, b):
        raise call.error(
            f"the {what} are not known to be equal: {length_text(a)} and {length_text(b)}; "
            "give both tiles the same length, or use pl.set_validshape"
        )


def tile_operand(name: str, dtypes: tuple[DType, ...] = ()) -> Operand:
    """A tile in vector memory."""
    return Operand(name, Kind.TILE, memory=VEC, dtypes=dtypes)


def vector_op(
    name: str,
    operands: tuple[Operand, ...],
    rule: Rule,
    lowering: Lowering,
    attrs: tuple[Attr, ...] = (),
    *,
    pointwise: bool = True,
    inplace: int | None = None,
) -> None:
    """Register ``tile.<name>``, work of the vector core."""
    register(
        OpDef(
            f"tile.{name}",
            operands,
            rule,
            attrs,
            core=CoreType.AIV,
            lowering=lowering,
            pointwise=pointwise,
            inplace=inplace,
            result_memory=MemorySpace.Vec,
        )
    )


def own(template: str, *ins: str, isa: str = "") -> Template:
    """A call of one of our templates; its own arguments are classes of the same namespace: ``binary<Fmod>``."""
    name = template.replace("<", "<pypto::tiles::").replace(", ", ", pypto::tiles::")
    return Template(name, ins, isa)


def either(dtypes: tuple[DType, ...], instruction: Instruction, template: Template) -> ByElement:
    """An instruction for some element types."""
    return ByElement(frozenset((d, d) for d in dtypes), (instruction,), template)
