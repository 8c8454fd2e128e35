"""Memory inference: in which on-chip memory each tile stands, and the moves in front of matrix products."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pypto.ir.errors import IRError
from pypto.ir.nodes import Block, Function, Loc, Op, Program, Value
from pypto.ir.ops.registry import Kind, definition
from pypto.ir.rewrite import blocks, last_op
from pypto.ir.types import MemorySpace, TileType


def infer_memory(program: Program) -> None:
    """Give every tile of every incore function a memory and insert moves where a product needs them.

    A tile whose memory is open goes to Mat when only matrix products and moves from Mat use it, to Bias when only
    products add it, to Vec otherwise.

    Raises:
        IRError: values that stand for each other need different memories.
    """
    for function in program.incore_functions():
        _infer(function)
        _insert_moves(function.body)


class _Groups:
    """Tiles that must share a memory: what a loop carries, what an `if` merges."""

    def __init__(self) -> None:
        self.parent: dict[int, int] = {}
        self.values: dict[int, Value] = {}

    def add(self, value: Value) -> int:
        self.values.setdefault(id(value), value)
        return self.parent.setdefault(id(value), id(value))

    def find(self, value: Value) -> int:
        self.add(value)
        key = id(value)
        while self.parent[key] != key:
            key = self.parent[key]
        return key

    def join(self, values: Iterable[Value]) -> None:
        tiles = [v for v in values if isinstance(v.type, TileType)]
        for value in tiles[1:]:
            self.parent[self.find(value)] = self.find(tiles[0])

    def members(self) -> list[list[Value]]:
        found: dict[int, list[Value]] = {}
        for value in self.values.values():
            found.setdefault(self.find(value), []).append(value)
        return list(found.values())


def _infer(function: Function) -> None:
    groups = _Groups()
    for op in function.body.walk():
        for value in (*op.operands, *op.results):
            if isinstance(value.type, TileType):
                groups.add(value)
        for parts in _joined(op):
            groups.join(parts)
    wanted = _wishes(function.body)
    places = _first_places(function.body)
    for members in groups.members():
        known = {v.type.memory for v in members if isinstance(v.type, TileType) and v.type.memory is not None}
        if len(known) > 1:
            names = " and ".join(sorted(m.value for m in known))
            name = members[0].name
            raise IRError(f"{name} stands in {names} at once; use one memory for it", places.get(id(members[0])))
        if known:
            (memory,) = known
        else:
            wishes = {w for v in members for w in wanted.get(id(v), ())}
            memory = next(iter(wishes)) if len(wishes) == 1 else MemorySpace.Vec
        for value in members:
            if isinstance(value.type, TileType):
                value.type = replace(value.type, memory=memory)


_SAME_MEMORY = frozenset({"tile.set_validshape", "tile.transpose_view", "tile.gather_row"})


def _joined(op: Op) -> Iterable[tuple[Value, ...]]:
    if op.name == "scf.for":
        (body,) = op.regions
        yield from zip(op.operands[3:], body.args[1:], last_op(body).operands, op.results, strict=True)
    elif op.name == "scf.if":
        yields = [last_op(region).operands for region in op.regions]
        yield from zip(op.results, *yields, strict=True)
    elif op.name in _SAME_MEMORY:
        yield op.operands[0], op.result


def _wishes(body: Block) -> dict[int, list[MemorySpace]]:
    """For each tile, the memories its uses would like."""
    wishes: dict[int, list[MemorySpace]] = {}
    for op in body.walk():
        for index, value in enumerate(op.operands):
            if not isinstance(value.type, TileType) or op.name.startswith("scf."):
                continue
            if op.name == "tile.transpose_view":
                continue
            wish = MemorySpace.Vec
            if op.name == "tile.move":
                target = op.result.type
                moved = isinstance(target, TileType) and target.memory is not MemorySpace.Vec
                wish = MemorySpace.Mat if moved else MemorySpace.Vec
            elif definition(op.name).operand(index).moved_from:
                (wish,) = definition(op.name).operand(index).moved_from
            wishes.setdefault(id(value), []).append(wish)
    return wishes


def _first_places(body: Block) -> dict[int, Loc | None]:
    places: dict[int, Loc | None] = {}
    for op in body.walk():
        for value in (*op.results, *op.operands):
            places.setdefault(id(value), op.loc)
    return places


def _insert_moves(body: Block) -> None:
    for block in blocks(body):
        ops: list[Op] = []
        for op in block.ops:
            known = definition(op.name)
            for index, value in enumerate(op.operands):
                if not known.operands or known.operand(index).kind is not Kind.TILE:
                    continue
                operand, type = known.operand(index), value.type
                if (
                    isinstance(type, TileType)
                    and type.memory in operand.moved_from
                    and type.memory not in operand.memory
                ):
                    move = Op("tile.move", [value], [], {}, [], op.loc)
                    move.results = [Value(value.name, replace(type, memory=operand.memory[0]), move)]
                    ops.append(move)
                    op.operands[index] = move.result
            ops.append(op)
        block.ops = ops
