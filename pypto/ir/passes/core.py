"""Core inference: each incore function runs on one kind of core, given by its operations."""

from __future__ import annotations

from pypto.ir.errors import IRError
from pypto.ir.nodes import Block, CoreType, Function, Op, Program, Value
from pypto.ir.ops.registry import definition
from pypto.ir.types import MemorySpace, TileType
from pypto.ir.values import defining_op

_WORK = {CoreType.AIC: "matrix", CoreType.AIV: "vector"}


def infer_cores(program: Program) -> None:
    """Set the core type of every incore function; before memory inference it finds what can be known by then.

    Raises:
        IRError: a function mixes matrix and vector work; says how to split it.
    """
    for function in program.incore_functions():
        if function.extern is None:
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


def crosses(op: Op, value: Value) -> bool:
    """Whether an operation uses a tile that can only reach it through global memory."""
    known = definition(op.name)
    if not op.name.startswith("tile.") or not isinstance(value.type, TileType):
        return False
    return any(v is value and known.operand(i).crosses(value.type.memory) for i, v in enumerate(op.operands))


def mixes(block: Block) -> bool:
    """Whether a block cannot run as one task: two kinds of work, or tiles that have to go through global memory."""
    ops = list(block.walk())
    return (
        len({c for c in map(core_of, ops) if c is not None}) > 1
        or any(crosses(o, v) for o in ops for v in o.operands)
        or _adds_to_loaded(ops)
    )


def _adds_to_loaded(ops: list[Op]) -> bool:
    """Whether a product is added to a loaded tile: nothing but products gets into an accumulator."""
    begins = {
        id(arg): init
        for op in ops
        if op.name == "scf.for"
        for arg, init in zip(op.regions[0].args[1:], op.operands[3:], strict=True)
    }
    for op in ops:
        if op.name == "tile.matmul_acc":
            value = op.operands[0]
            while id(value) in begins:
                value = begins[id(value)]
            source = defining_op(value)
            if source is not None and source.name == "tile.load" and core_of(source) is None:
                return True
    return False


def _mixed(function: Function, earlier: Op, later: Op, earlier_core: CoreType, later_core: CoreType) -> str:
    return (
        f"{definition(later.name).label} is {_WORK[later_core]} work, but {function.name} already has "
        f"{_WORK[earlier_core]} work ({definition(earlier.name).label}); these run on different cores: split it into "
        "two functions or scopes that hand the data on through a tensor made with pl.create_tensor"
    )
