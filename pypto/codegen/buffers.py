"""Which tiles share a buffer.

ptoas has no loop-carried or branch results: a tile that a loop carries is one buffer that the body writes in place.
This pass joins the values that must be one buffer where their lifetimes allow it, and asks for copies where they do
not.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from pypto.codegen.lowering import lowering_of
from pypto.codegen.tiles import Frame, vector_line
from pypto.ir.errors import IRError
from pypto.ir.nodes import Block, Function, Loc, Op, Value
from pypto.ir.ops.registry import definition
from pypto.ir.types import MemorySpace, TileType
from pypto.ir.values import same_value

# Beside those that are pointwise; copies.
_COPIES = frozenset({"tile.move"})


@dataclass(eq=False)
class Buffer:
    """One allocation.

    Attributes:
        type: type of its tiles; valid sizes included.
        number: position in order of first definition, for names.
        name, loc: of the first tile that stands in it.
    """

    type: TileType
    number: int
    name: str
    loc: Loc | None


@dataclass
class Copies:
    """Copies that happen at one place at the same time: pairs of (target, source)."""

    moves: list[tuple[Value, Value]] = field(default_factory=list)


@dataclass
class BufferPlan:
    """The result of the pass.

    Attributes:
        buffer: of each tile value.
        before: copies in front of a loop, into what it carries.
        at_end: copies at the end of a block, into what its loop carries or its branch results in.
    """

    buffer: dict[Value, Buffer]
    before: dict[Op, Copies]
    at_end: dict[Block, Copies]


class _Wish(enum.Enum):
    """Why two values should be one buffer; the first ones are granted first."""

    NEEDED = "no copy is possible"
    COPY = "saves a copy"
    SPACE = "saves memory"


def plan_buffers(function: Function, planner: str = "PYPTO") -> BufferPlan:
    """Assign buffers to all tiles of an incore function.

    Args:
        planner: who reuses memory. ``PTOAS``: the assembler alone, so that each tile has a buffer; ``PYPTO``: tiles are
            computed in place of operands that are not needed again; ``DSA_RP``: also any buffer of equal storage whose
            tiles are not needed any more is used again.

    Raises:
        IRError: an accumulator would have to be copied.
    """
    return _Planner(function, planner).plan()


def is_tile(value: Value) -> bool:
    """Whether a value is a tile."""
    return isinstance(value.type, TileType)


class _Planner:
    def __init__(self, function: Function, planner: str) -> None:
        self.function = function
        self.wishes = [wish for wish in _Wish if planner != "PTOAS" or wish is not _Wish.SPACE]
        self.reuses = planner == "DSA_RP"
        self.line = vector_line(function)
        # The block and the place in which each value is made; blocks from the outermost on.
        self.homes: dict[Value, Block] = {}
        self.depths: dict[Block, int] = {}
        self.places: dict[Value, Loc | None] = {}
        self.order: dict[Value, int] = {}
        self.conflicts: dict[Value, set[Value]] = {}
        # (target, source, operation to blame, how much they should be one buffer); backwards in program order.
        self.affinities: list[tuple[Value, Value, Op, _Wish]] = []
        self.before: dict[Op, Copies] = {}
        self.at_end: dict[Block, Copies] = {}
        self.same: dict[Value, Value] = {}

    def plan(self) -> BufferPlan:
        self._number(self.function.body)
        self._block(self.function.body, set(), ())
        members = self._join()
        buffers: dict[Value, Buffer] = {}
        numbered: dict[int, Buffer] = {}
        for value in self.order:
            group = members[self._root(value)]
            key = id(group)
            if key not in numbered:
                numbered[key] = Buffer(_tile_type(value), len(numbered), value.name, self.places[value])
            buffers[value] = numbered[key]
        for alias, value in self.same.items():
            buffers[alias] = buffers[value]
        return BufferPlan(buffers, self.before, self.at_end)

    # The value that stands for a loop's carried tile also stands for the loop's result.
    def _root(self, value: Value) -> Value:
        return self.same.get(value, value)

    def _define(self, value: Value, op: Op, block: Block) -> None:
        Frame.of(_tile_type(value), self.line, op.loc)
        self.homes[value], self.places[value] = block, op.loc
        self.order[value] = len(self.order)
        self.conflicts[value] = set()

    def _number(self, block: Block) -> None:
        self.depths[block] = len(self.depths)
        for op in block.ops:
            if op.name == "scf.for":
                body = op.regions[0]
                for arg, result in zip(body.args[1:], op.results, strict=True):
                    if is_tile(arg):
                        self._define(arg, op, block)
                        self.same[result] = arg
            else:
                for result in op.results:
                    if is_tile(result):
                        self._define(result, op, block)
            for region in op.regions:
                self._number(region)

    def _conflict(self, value: Value, others: set[Value]) -> None:
        for other in others:
            if other is not value:
                self.conflicts[value].add(other)
                self.conflicts[other].add(value)

    def _copy(self, copies: Copies, live: set[Value], op: Op) -> None:
        """Parallel copies, walked backwards: ``live`` is what is needed afterwards, then what is needed before."""
        targets = [t for t, _ in copies.moves]
        for target, source in copies.moves:
            self._conflict(target, (live | set(targets)) - {source})
            if source in live:
                self._conflict(target, {source})
            self.affinities.append((target, source, op, _Wish.COPY))
        live.difference_update(targets)
        live.update(s for _, s in copies.moves)

    def _block(self, block: Block, live: set[Value], targets: tuple[Value, ...], owner: Op | None = None) -> None:
        """Walk a block backwards.

        Args:
            live: what is needed after it; becomes what is needed before it.
            targets: what the yielded tiles go to.
            owner: the loop or branch.
        """
        ops = list(block.ops)
        if ops and ops[-1].name == "scf.yield":
            terminator = ops.pop()
            copies = Copies(
                [
                    (target, self._root(source))
                    for target, source in zip(targets, (v for v in terminator.operands if is_tile(v)), strict=True)
                    if target is not self._root(source)
                ]
            )
            self.at_end[block] = copies
            self._copy(copies, live, owner or terminator)
        for op in reversed(ops):
            if op.name == "scf.for":
                self._loop(op, live)
            elif op.name == "scf.if":
                self._branch(op, live)
            else:
                self._simple(op, live)

    def _simple(self, op: Op, live: set[Value]) -> None:
        sources = [self._root(v) for v in op.operands if is_tile(v)]
        found = definition(op.name)
        for result in op.results:
            if not is_tile(result):
                continue
            self._conflict(result, live)
            live.discard(result)
            if found.inplace is not None:
                copied = _tile_type(result).memory is MemorySpace.Vec
                wish = _Wish.COPY if copied else _Wish.NEEDED
                self.affinities.append((result, self._root(op.operands[found.inplace]), op, wish))
                others = [s for i, s in enumerate(op.operands) if i != found.inplace and is_tile(s)]
                self._conflict(result, {self._root(s) for s in others})
            elif not _in_place(op):
                self._conflict(result, set(sources))
            else:
                self.affinities += [(result, source, op, _Wish.SPACE) for source in reversed(sources)]
        live.update(sources)

    def _branch(self, op: Op, live: set[Value]) -> None:
        results = tuple(r for r in op.results if is_tile(r))
        needed: set[Value] = set()
        for region in op.regions:
            inside = set(live)
            self._block(region, inside, results, op)
            needed |= inside
        for result in results:
            needed.discard(result)
        live.clear()
        live.update(needed)

    def _loop(self, op: Op, live: set[Value]) -> None:
        body = op.regions[0]
        carried = tuple(a for a in body.args[1:] if is_tile(a))
        entry: set[Value] = set(live) | set(carried)
        while True:
            inside = set(entry)
            known = len(self.affinities)
            self._block(body, inside, carried, op)
            grown = entry | inside
            if grown == entry:
                break
            # Another turn needs more than was known at the end of this one.
            del self.affinities[known:]
            entry = grown
        inits = [self._root(v) for v in op.operands[3:] if is_tile(v)]
        copies = Copies([(arg, init) for arg, init in zip(carried, inits, strict=True) if arg is not init])
        self.before[op] = copies
        live.clear()
        live.update(entry)
        self._copy(copies, live, op)

    def _join(self) -> dict[Value, list[Value]]:
        members = {value: [value] for value in self.order}
        for wish in self.wishes:
            for target, source, op, wanted in reversed(self.affinities):
                if wanted is not wish or members[target] is members[source]:
                    continue
                if self._compatible(members[target], members[source]):
                    members[target].extend(members[source])
                    for value in members[source]:
                        members[value] = members[target]
                elif wish is _Wish.NEEDED:
                    raise IRError(
                        "the accumulator is needed again after it was added to, and cannot be copied; "
                        "store it first, or use only the new value from here on",
                        op.loc,
                    )
        if self.reuses:
            self._reuse(members)
        return members

    def _reuse(self, members: dict[Value, list[Value]]) -> None:
        """Give each buffer to later tiles of its block as soon as its own are not needed any more."""
        kept: list[list[Value]] = []
        for value in self.order:
            group = members[self._root(value)]
            if any(group is other for other in kept):
                continue
            for other in kept:
                # Elsewhere the buffer would have to be allocated further out, where ptoas keeps it longer.
                if self._home(other) is self._home(group) and self._compatible(other, group):
                    other.extend(group)
                    for moved in group:
                        members[moved] = other
                    break
            else:
                kept.append(group)

    def _home(self, group: list[Value]) -> Block:
        """The outermost block in which a tile of a buffer is made: there it is allocated, or further out."""
        return min((self.homes[value] for value in group), key=self.depths.__getitem__)

    def _compatible(self, a: list[Value], b: list[Value]) -> bool:
        first, second = _tile_type(a[0]), _tile_type(b[0])
        if Frame.of(first, self.line) != Frame.of(second, self.line) or first.shape != second.shape:
            return False
        if not all(same_value(x, y) for x, y in zip(first.valid, second.valid, strict=True)):
            return False
        return all(self.conflicts[x].isdisjoint(b) for x in a)


def ordered(moves: list[tuple[Buffer, Buffer]]) -> tuple[list[Buffer], list[tuple[Buffer, Buffer]]]:
    """Parallel copies (target, source) as a sequence.

    Returns:
        Buffers to save in temporaries first, and the copies in an order that is right when a saved buffer is read from
        its temporary.
    """
    pending = [(t, s) for t, s in moves if t is not s]
    saved: list[Buffer] = []
    sequence: list[tuple[Buffer, Buffer]] = []
    while pending:
        for index, (target, _) in enumerate(pending):
            others = (s for i, (_, s) in enumerate(pending) if i != index)
            if all(s is not target or s in saved for s in others):
                sequence.append(pending.pop(index))
                break
        else:
            saved.append(pending[0][0])
    return saved, sequence


def _in_place(op: Op) -> bool:
    """Whether each element is read before the same element is written, so that result and source may be one buffer."""
    lowering = lowering_of(op)
    steps = len(lowering) if isinstance(lowering, tuple) else 1
    return op.name in _COPIES or (definition(op.name).pointwise and steps == 1)


def _tile_type(value: Value) -> TileType:
    if not isinstance(value.type, TileType):
        raise TypeError(f"{value.name} is no tile")
    return value.type
