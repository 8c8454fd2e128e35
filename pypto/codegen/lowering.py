"""How one operation is written: its entry of the registry, chosen for its element types."""

from __future__ import annotations

from pypto.ir.nodes import Op
from pypto.ir.ops.lowering import ByElement, Instruction, Template
from pypto.ir.ops.registry import definition
from pypto.ir.types import TileType


def lowering_of(op: Op) -> tuple[Instruction, ...] | Template | None:
    """Instructions or a template; ``None`` for what code generation handles by name."""
    lowering = definition(op.name).lowering
    if not isinstance(lowering, ByElement):
        return lowering
    source, result = op.operands[0].type, op.result.type
    if not isinstance(source, TileType) or not isinstance(result, TileType):
        raise TypeError(f"{op.name} is chosen by the element types of tiles")
    return lowering.chosen(source.dtype, result.dtype)
