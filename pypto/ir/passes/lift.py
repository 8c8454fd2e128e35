"""Loops and branches whose tiles stand in workspaces of global memory instead of being carried."""

from __future__ import annotations

from collections.abc import Callable

from pypto.ir.builder import Builder
from pypto.ir.nodes import Block, Op, Value
from pypto.ir.rewrite import last_op, substitute
from pypto.ir.types import TileType
from pypto.ir.values import defining_op


def is_structure(op: Op) -> bool:
    """Whether an operation is a loop or branch."""
    return op.name in ("scf.for", "scf.if")


def lift(body: Block, chosen: Callable[[Op], bool]) -> None:
    """Take the tiles out of what the chosen loops and branches carry or result in, at every depth of ``body``."""
    made: list[Op] = []
    for op in list(body.ops):
        if not chosen(op):
            made.append(op)
            continue
        if any(isinstance(r.type, TileType) for r in op.results):
            made.extend(_loop(op, body) if op.name == "scf.for" else _branch(op, body))
        else:
            made.append(op)
        for region in op.regions:
            lift(region, chosen)
    body.ops = made


def _loop(op: Op, body: Block) -> list[Op]:
    (region,) = op.regions
    end = last_op(region)
    before, head, tail, after = Builder(Block(), op.loc), Block(), Block(), Block()
    mapping: dict[int, Value] = {}
    kept: list[int] = []
    for index, result in enumerate(op.results):
        if not isinstance(result.type, TileType):
            kept.append(index)
            continue
        place = before.create_tensor(result.type.shape, result.type.dtype, result.name)
        init = op.operands[3 + index]
        source = defining_op(init)
        # A tile without values yet leaves the workspace without values.
        if source is None or source.name != "tile.create":
            before.store(init, place, [0, 0])
        arg = region.args[1 + index]
        mapping[id(arg)] = loaded(arg, place, op, head)
        Builder(tail, op.loc).store(end.operands[index], place, [0, 0])
        mapping[id(result)] = loaded(result, place, op, after)
    op.operands = [*op.operands[:3], *(op.operands[3 + i] for i in kept)]
    region.args = [region.args[0], *(region.args[1 + i] for i in kept)]
    op.results = [op.results[i] for i in kept]
    end.operands = [end.operands[i] for i in kept]
    region.ops = [*head.ops, *region.ops[:-1], *tail.ops, end]
    substitute(region, mapping)
    substitute(body, mapping)
    return [*before.block.ops, op, *after.ops]


def _branch(op: Op, body: Block) -> list[Op]:
    before, after = Builder(Block(), op.loc), Block()
    mapping: dict[int, Value] = {}
    kept: list[int] = []
    places: dict[int, Value] = {}
    for index, result in enumerate(op.results):
        if isinstance(result.type, TileType):
            places[index] = before.create_tensor(result.type.shape, result.type.dtype, result.name)
            mapping[id(result)] = loaded(result, places[index], op, after)
        else:
            kept.append(index)
    for region in op.regions:
        end = region.ops.pop()
        for index, place in places.items():
            Builder(region, op.loc).store(end.operands[index], place, [0, 0])
        end.operands = [end.operands[i] for i in kept]
        region.ops.append(end)
    op.results = [op.results[i] for i in kept]
    substitute(body, mapping)
    return [*before.block.ops, op, *after.ops]


def loaded(value: Value, place: Value, op: Op, block: Block) -> Value:
    """Append a load of what ``value`` stood for; its memory follows from its uses."""
    type = value.type
    if not isinstance(type, TileType):
        raise TypeError(f"{value.name} is no tile")
    return Builder(block, op.loc).load(place, [0, 0], type.shape, type.valid, hint=value.name)
