"""Core inference: each incore function runs on one kind of core, given by its operations."""

from __future__ import annotations

from pypto.ir.errors import IRError
from pypto.ir.nodes import CoreType, Function, Op, Program
from pypto.ir.ops.registry import definition
from pypto.ir.types import MemorySpace, TileType

_WORK = {CoreType.AIC: "matrix", CoreType.AIV: "vector"}


def infer_cores(program: Program) -> None:
    """Set the core type of every incore function; before memory inference it finds what can be known by then.

    Raises:
        IRError: a function mixes matrix and vector work; says how to split it.
    """
    for function in program.incore_functions():
        function.core = _core(function)


def _core(function: Function) -> CoreType:
    first: dict[CoreType, Op] = {}
    for op in function.body.walk():
        core = core_of(op)
        if core is None:
            continue
        other = CoreType.AIV if core is CoreType.AIC else CoreType.AIC
        if other in first:
            raise IRError(_mixed(function, first[other], op, other, core), op.loc, first[other].loc)
        first.setdefault(core, op)
    return next(iter(first), CoreType.AIV)


def core_of(op: Op) -> CoreType | None:
    """The core type that one operation needs: its own, or that of the memory its tiles stand in."""
    own = definition(op.name).core
    if own is not None or not op.name.startswith("tile."):
        return own
    for value in (*op.results, *op.operands):
        if isinstance(value.type, TileType) and value.type.memory is not None:
            return CoreType.AIV if value.type.memory is MemorySpace.Vec else CoreType.AIC
    return None


def _mixed(function: Function, earlier: Op, later: Op, earlier_core: CoreType, later_core: CoreType) -> str:
    return (
        f"{definition(later.name).label} is {_WORK[later_core]} work, but {function.name} already has "
        f"{_WORK[earlier_core]} work ({definition(earlier.name).label}); these run on different cores: split it into "
        "two functions or scopes that hand the data on through a tensor made with pl.create_tensor"
    )
