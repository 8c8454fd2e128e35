"""Scopes that mix matrix and vector work become several scopes, each for one kind of core.

The parts exchange tiles through workspaces in global memory. Loops and branches that mix become loops and branches of
the entry; what they carry or result in stands in workspaces too. Scalars, views and sizes move into the entry, where
every part can use them. Loads and constant tiles float: each part that uses one makes it itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pypto.ir.builder import Builder
from pypto.ir.effects import tensor_read, tensor_written
from pypto.ir.errors import IRError
from pypto.ir.handles import Handles
from pypto.ir.nodes import Block, CoreType, Direction, Function, Op, Program, Value
from pypto.ir.passes.core import core_of, crosses, mixes
from pypto.ir.passes.lift import is_structure, lift, loaded
from pypto.ir.rewrite import blocks, captured, cloned, cloned_block, last_op, substitute
from pypto.ir.types import MemorySpace, TileType
from pypto.ir.values import defining_op


def split_mixed(program: Program) -> None:
    """Split every scope of the entry that mixes kinds of work, and every call of an incore function that does."""
    entry = program.entry_function
    mixing = {f.name: f for f in program.incore_functions() if f.extern is None and mixes(f.body)}
    for block in list(blocks(entry.body)):
        for op in block.ops:
            if op.name == "func.call" and op.attrs["callee"] in mixing:
                _to_scope(op, mixing[op.attrs["callee"]])
    for name in mixing:
        del program.functions[name]
    _in_block(entry.body, entry)


def _to_scope(call: Op, function: Function) -> None:
    mapping = {id(p.value): v for p, v in zip(function.params, call.operands, strict=True)}
    body = cloned_block(function.body, mapping)
    body.ops.pop()
    call.name, call.attrs, call.operands, call.regions = "func.scope", {"name": function.name}, [], [body]


def _in_block(block: Block, function: Function) -> None:
    ops = block.ops
    block.ops = []
    for op in ops:
        if op.name == "func.scope":
            if mixes(op.regions[0]):
                _Splitter(op.attrs["name"], function, op.regions[0]).run(block)
                continue
        else:
            for region in op.regions:
                _in_block(region, function)
        block.ops.append(op)


@dataclass(eq=False)
class _Part:
    """Operations that become one scope."""

    core: CoreType
    ops: list[Op] = field(default_factory=list)


class _Splitter:
    """Splits the body of one scope.

    Attributes:
        owner: the part of each tile that is made in one, by identity.
        runs: for each block what its operations become, in order: parts, or loops and branches of the entry.
        exchanged: tiles that other parts use, by identity, and their workspaces once they exist.
        floating: tiles that each part makes for itself, by identity.
        mixed: loops and branches, and whether they become ones of the entry.
    """

    def __init__(self, name: str, function: Function, body: Block) -> None:
        self.name = name
        self.function = function
        self.body = body
        self.owner: dict[int, _Part] = {}
        self.runs: dict[Block, list[Op | _Part]] = {}
        self.exchanged: dict[int, Value | None] = {}
        self.floating: set[int] = set()
        self.mixed: dict[Op, bool] = {}

    def run(self, target: Block) -> None:
        """Append what stands for the scope to ``target``."""
        _drop_moves(self.body)
        lift(self.body, self.is_mixed)
        self.handles = Handles(Block([], [*self.function.body.ops, *self.body.ops]))
        self.arrange(self.body)
        for items in self.runs.values():
            for part in items:
                if isinstance(part, _Part):
                    self.note_exchanged(part)
        self.emit(self.body, target)

    def is_mixed(self, op: Op) -> bool:
        """Whether a loop or branch has to become one of the entry; decided when it is first seen."""
        if op not in self.mixed:
            self.mixed[op] = self.has_to_mix(op)
        return self.mixed[op]

    def has_to_mix(self, op: Op) -> bool:
        if not is_structure(op) or not _has_tiles(op):
            return False
        inside = Block([], [op])
        if not any(o.name.startswith("tile.") for o in inside.walk()):
            # It only hands tiles on.
            return True
        if mixes(inside) or _changes_memory(op):
            return True
        if any(not isinstance(r.type, TileType) for r in op.results):
            return True
        kinds = {core_of(o) for o in inside.walk()} - {None}
        if kinds != {CoreType.AIC} or op.name != "scf.for":
            return False
        # An accumulator cannot be brought into a matrix core.
        inits = [defining_op(v) for v in op.operands[3:]]
        return any(init is None or (core_of(init) is not CoreType.AIC and init.name != "tile.create") for init in inits)

    # Which operation belongs where

    def arrange(self, block: Block) -> None:
        """Distribute the operations of a block over parts."""
        self.find_floating(block)
        items: list[Op | _Part] = []
        self.runs[block] = items
        current = _Run(self)
        for op in list(block.ops):
            if self.is_mixed(op):
                items.extend(current.parts)
                items.append(op)
                current = _Run(self)
                for region in op.regions:
                    self.arrange(region)
            elif op.name == "tile.read" or (op.name == "tensor.read" and not self.is_input(op.operands[0])):
                # What was stored so far has to be there.
                items.extend(current.parts)
                items.append(op)
                current = _Run(self)
                if op.name == "tile.read":
                    self.exchanged.setdefault(id(op.operands[0]), None)
            elif not _has_tiles(op):
                # Numbers and views; a `yield` stays at the end.
                if op.name != "scf.yield":
                    items.append(op)
            elif not op.results or id(op.results[0]) not in self.floating:
                current.place(op)
        items.extend(current.parts)

    def is_input(self, tensor: Value) -> bool:
        """Whether a tensor is certainly one that no task writes."""
        inputs = {id(param.value) for param in self.function.params if param.direction is Direction.In}
        return all(id(root) in inputs for root in self.handles.roots(tensor))

    def find_floating(self, block: Block) -> None:
        """Tiles that every user may make for itself: nothing writes what they are loaded from in between."""
        read = {id(op.operands[0]) for op in self.body.walk() if op.name == "tile.read"}
        for position, op in enumerate(block.ops):
            if op.results and id(op.results[0]) in read:
                continue
            if op.name in ("tile.full", "tile.create") or (
                op.name == "tile.move" and id(op.operands[0]) in self.floating
            ):
                self.floating.add(id(op.result))
            elif op.name == "tile.load":
                last = self.last_use(block, position)
                between = block.ops[position + 1 : last + 1]
                if between and not is_structure(between[-1]):
                    between = between[:-1]
                roots = {id(r) for r in self.handles.roots(op.operands[0])}
                if not any(roots & self.written(other) for other in between):
                    self.floating.add(id(op.result))

    def last_use(self, block: Block, position: int) -> int:
        """Position of the last operation of the block that needs a tile or what is moved from it."""
        names = {id(block.ops[position].result)}
        last = position
        for index in range(position + 1, len(block.ops)):
            op = block.ops[index]
            if any(id(v) in names for v in captured(Block([], [op]))):
                last = index
                if op.name == "tile.move":
                    names.add(id(op.result))
        return last

    def written(self, op: Op) -> set[int]:
        """Roots of the tensors that an operation stores into."""
        targets = [target for o in Block([], [op]).walk() if (target := tensor_written(o)) is not None]
        return {id(root) for target in targets for root in self.handles.roots(target)}

    def loads(self, op: Op) -> set[int]:
        """Roots of the tensors that an operation loads from, the loads of its floating operands included."""
        found: set[int] = set()
        for inner in Block([], [op]).walk():
            source = tensor_read(inner)
            if source is not None:
                found.update(id(root) for root in self.handles.roots(source))
        for value in captured(Block([], [op])):
            maker = defining_op(value)
            if id(value) in self.floating and maker is not None:
                found |= self.loads(maker)
        return found

    def note_exchanged(self, part: _Part) -> None:
        for op in part.ops:
            for value in self.needed(op):
                if self.owner.get(id(value)) is not part:
                    self.exchanged.setdefault(id(value), None)

    def needed(self, op: Op) -> Iterator[Value]:
        """Tiles from elsewhere that an operation needs and that do not float; floating ones ask for theirs."""
        for value in captured(Block([], [op])):
            if not isinstance(value.type, TileType):
                continue
            source = defining_op(value)
            if id(value) in self.floating and source is not None:
                yield from self.needed(source)
            else:
                yield value

    # Writing it down

    def emit(self, block: Block, target: Block) -> None:
        """Append the items of a block as operations of the entry."""
        end = block.ops[-1] if block.ops and block.ops[-1].name == "scf.yield" else None
        for item in self.runs[block]:
            if isinstance(item, _Part):
                self.emit_part(item, target)
                continue
            if item.regions and self.is_mixed(item):
                for index, region in enumerate(item.regions):
                    inner = Block(region.args)
                    for arg in inner.args:
                        arg.owner = inner
                    self.emit(region, inner)
                    item.regions[index] = inner
            if item.name == "tile.read":
                self.read_workspace(item)
            target.ops.append(item)
        if end is not None:
            target.ops.append(end)

    def read_workspace(self, op: Op) -> None:
        """An element of a tile as a number of the entry, which reads it when the part that makes the tile is over."""
        place = self.exchanged[id(op.operands[0])]
        if place is None:
            raise IRError("not supported: an element of this tile as a number; read it where the tile is made", op.loc)
        op.name, op.operands = "tensor.read", [place, *op.operands[1:]]

    def emit_part(self, part: _Part, target: Block) -> None:
        block = Block()
        mapping: dict[int, Value] = {}
        for op in part.ops:
            for value in captured(Block([], [op])):
                if isinstance(value.type, TileType):
                    self.provide(value, part, block, mapping)
            substitute(Block([], [op]), mapping)
            block.ops.append(op)
            for result in op.results:
                if id(result) in self.exchanged and isinstance(result.type, TileType):
                    type = result.type
                    place = Builder(target, op.loc).create_tensor(type.shape, type.dtype, result.name)
                    self.exchanged[id(result)] = place
                    Builder(block, op.loc).store(result, place, [0, 0])
        target.ops.append(Op("func.scope", [], [], {"name": self.name}, [block], part.ops[0].loc))

    def provide(self, value: Value, part: _Part, block: Block, mapping: dict[int, Value]) -> None:
        """Make a tile available in a part."""
        if id(value) in mapping or self.owner.get(id(value)) is part:
            return
        source = defining_op(value)
        if id(value) in self.floating and source is not None:
            for operand in source.operands:
                if isinstance(operand.type, TileType):
                    self.provide(operand, part, block, mapping)
            block.ops.append(cloned(source, mapping))
            return
        place = self.exchanged[id(value)]
        if place is None or source is None:
            raise TypeError(f"{value.name} is used before it is made")
        mapping[id(value)] = loaded(value, place, source, block)


class _Run:
    """Operations of a block between two loops of the entry, distributed over parts in a valid order."""

    def __init__(self, splitter: _Splitter) -> None:
        self.splitter = splitter
        self.parts: list[_Part] = []
        # Position of the last part that reads or writes a tensor, by root.
        self.read: dict[int, int] = {}
        self.wrote: dict[int, int] = {}

    def place(self, op: Op) -> None:
        """Put an operation into the earliest part that may hold it."""
        core = self.core(op)
        if op.name == "tile.store" and core is CoreType.AIC and not self.can_store(op):
            core = CoreType.AIV
        reads, writes = self.splitter.loads(op), self.splitter.written(op)
        first = self.after_tensors(reads, writes, core)
        if op.name == "tile.matmul_acc" and not self.continues(op, first):
            self.place_sum(op)
            return
        for value in self.splitter.needed(op):
            index = self.position(value)
            if index is not None and crosses(op, value):
                first = max(first, index + 1)
            first = self.after(first, index, core)
        index = first
        while index < len(self.parts) and self.parts[index].core is not core:
            index += 1
        if index == len(self.parts):
            self.parts.append(_Part(core))
        self.parts[index].ops.append(op)
        for result in op.results:
            self.splitter.owner[id(result)] = self.parts[index]
        for root in reads:
            self.read[root] = max(index, self.read.get(root, 0))
        for root in writes:
            self.wrote[root] = max(index, self.wrote.get(root, 0))

    def core(self, op: Op) -> CoreType:
        kinds = [core for o in Block([], [op]).walk() if (core := core_of(o)) is not None]
        if op.name == "tile.store":
            owner = self.splitter.owner.get(id(op.operands[0]))
            kinds = [owner.core] if owner in self.parts and owner is not None else []
        return kinds[0] if kinds else CoreType.AIV

    def after_tensors(self, reads: set[int], writes: set[int], core: CoreType) -> int:
        """The first position that keeps the order of loads and stores."""
        first = 0
        for root in reads | writes:
            first = self.after(first, self.wrote.get(root), core)
        for root in writes:
            first = self.after(first, self.read.get(root), core)
        return first

    def can_store(self, op: Op) -> bool:
        """Whether a store can stand in the part that makes the accumulator."""
        index = self.position(op.operands[0])
        first = self.after_tensors(self.splitter.loads(op), self.splitter.written(op), CoreType.AIC)
        return index is not None and first <= index

    def position(self, value: Value) -> int | None:
        part = self.splitter.owner.get(id(value))
        return self.parts.index(part) if part in self.parts else None

    def after(self, first: int, index: int | None, core: CoreType) -> int:
        """The first position that may follow a part: the part itself when it has the same core."""
        if index is None:
            return first
        return max(first, index if self.parts[index].core is core else index + 1)

    def continues(self, op: Op, first: int) -> bool:
        """Whether the accumulator of a product is still there when its operands are."""
        index = self.position(op.operands[0])
        source = defining_op(op.operands[0])
        if index is None or source is None or self.parts[index].core is not CoreType.AIC:
            return False
        for operand in op.operands[1:]:
            for value in [operand] if self.position(operand) is not None else []:
                first = self.after(first, self.position(value), CoreType.AIC)
        return first <= index

    def place_sum(self, op: Op) -> None:
        """A product, and its sum with what is not in the accumulator, as vector work."""
        acc, left, right = op.operands
        builder = Builder(Block(), op.loc)
        product = builder.op("tile.matmul", [left, right], dict(op.attrs), hint=op.result.name)
        self.place(product)
        result = op.result
        added = builder.op("tile.add", [acc, product.result], hint=result.name)
        result.type, result.owner = added.result.type, added
        added.results = [result]
        self.place(added)


def _changes_memory(op: Op) -> bool:
    """Whether what a loop or branch hands on is in one memory at first and in another one later."""
    offset = 3 if op.name == "scf.for" else 0
    groups = [op.operands[offset:]] if offset else []
    groups += [last_op(region).operands for region in op.regions]
    for position, result in enumerate(op.results):
        types = [result.type, *(group[position].type for group in groups)]
        if len({t.memory for t in types if isinstance(t, TileType)} - {None}) > 1:
            return True
    return False


def _drop_moves(body: Block) -> None:
    """Moves between memories that do not touch: the tile is handed on through global memory anyway."""
    for block in blocks(body):
        dropped: dict[int, Value] = {}
        kept: list[Op] = []
        for op in block.ops:
            source, target = (v.type for v in (op.operands[0], op.result)) if op.name == "tile.move" else (None, None)
            if isinstance(source, TileType) and isinstance(target, TileType) and _is_handed_on(source, target):
                dropped[id(op.result)] = dropped.get(id(op.operands[0]), op.operands[0])
            else:
                kept.append(op)
        block.ops = kept
        substitute(body, dropped)


def _is_handed_on(source: TileType, target: TileType) -> bool:
    if source.memory is MemorySpace.Acc or target.memory is MemorySpace.Mat:
        return True
    return source.memory is not None and (source.memory is MemorySpace.Vec) != (target.memory is MemorySpace.Vec)


def _has_tiles(op: Op) -> bool:
    return any(
        o.name.startswith("tile.") or any(isinstance(r.type, TileType) for r in o.results)
        for o in Block([], [op]).walk()
    )
