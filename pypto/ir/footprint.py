"""How much on-chip memory a function needs at least: the tiles that live at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pypto.ir.errors import IRError
from pypto.ir.limits import ALIGNMENT, capacity, stored_shape, vector_line
from pypto.ir.nodes import Block, Function, Loc, Op, Value
from pypto.ir.ops.registry import definition
from pypto.ir.rewrite import last_op
from pypto.ir.types import MemorySpace, TileType


class MemoryLimitError(IRError):
    """Tiles do not fit into an on-chip memory.

    Attributes:
        tiles: the largest ones, which the message names.
    """

    def __init__(self, before: str, tiles: Sequence[TileBuffer], after: str, loc: Loc | None) -> None:
        self.before, self.tiles, self.after = before, tuple(tiles), after
        super().__init__(self.text(lambda _: None), loc)

    def text(self, line: Callable[[Loc], int | None]) -> str:
        """The message; ``line`` gives the line of a place in its file, if that is known."""
        # The error's own place is that of a single tile.
        lines = [line(tile.loc) if tile.loc and len(self.tiles) > 1 else None for tile in self.tiles]
        shown = ", ".join(_shown(tile, number) for tile, number in zip(self.tiles, lines, strict=True))
        return self.before + shown + self.after


@dataclass
class TileBuffer:
    """A tile's storage; values that a loop carries or an `if` merges share one.

    Attributes:
        nbytes: size in bytes, filled up as the memory wants it.
        first, last: positions of the operations that make it and that use it last, in program order.
        loc: where it is made.
    """

    name: str
    type: TileType
    memory: MemorySpace
    nbytes: int
    first: int
    last: int
    loc: Loc | None


class _Lifetimes:
    """First and last position of each buffer, in program order; a use inside a loop lasts until its end."""

    def __init__(self) -> None:
        self.position = 0
        self.buffer_of: dict[int, TileBuffer] = {}
        self.buffers: list[TileBuffer] = []

    def define(self, value: Value, loc: Loc | None) -> None:
        type = value.type
        if not isinstance(type, TileType) or type.memory is None or id(value) in self.buffer_of:
            return
        unit = ALIGNMENT[type.memory]
        nbytes = -(-type.nbytes // unit) * unit
        buffer = TileBuffer(value.name, type, type.memory, nbytes, self.position, self.position, loc)
        self.buffers.append(buffer)
        self.buffer_of[id(value)] = buffer

    def share(self, value: Value, other: Value) -> None:
        buffer = self.buffer_of.get(id(other))
        if buffer is not None:
            self.buffer_of[id(value)] = buffer

    def use(self, value: Value) -> None:
        buffer = self.buffer_of.get(id(value))
        if buffer is not None:
            buffer.last = max(buffer.last, self.position)

    def block(self, block: Block) -> None:
        for op in block.ops:
            self.op(op)

    def op(self, op: Op) -> None:
        self.position += 1
        for value in op.operands:
            self.use(value)
        if op.name == "scf.for":
            self.loop(op)
        elif op.name == "scf.if":
            for result in op.results:
                self.define(result, op.loc)
            for region in op.regions:
                self.block(region)
            self.position += 1
            for result in op.results:
                self.use(result)
        elif op.name != "scf.yield":
            for index, result in enumerate(op.results):
                if index == 0 and (op.name in _IN_PLACE or definition(op.name).inplace == 0):
                    self.share(result, op.operands[0])
                self.define(result, op.loc)

    def loop(self, op: Op) -> None:
        (body,) = op.regions
        start = self.position
        for arg, init, result in zip(body.args[1:], op.operands[3:], op.results, strict=True):
            # The carried buffer may be the initial one, so only one of them counts.
            self.share(arg, init)
            self.define(arg, op.loc)
            self.share(result, arg)
        outer = list(self.buffers)
        self.block(body)
        self.position += 1
        for value in last_op(body).operands:
            self.use(value)
        for buffer in outer:
            # Read in some turn, so kept for the next one.
            if buffer.last > start:
                buffer.last = self.position
        for result in op.results:
            self.use(result)


_IN_PLACE = frozenset({"tile.set_validshape", "tile.reshape"})


def tile_buffers(function: Function) -> tuple[list[TileBuffer], int]:
    """The storage of an incore function's tiles, and its number of operations; memory inference has run."""
    lifetimes = _Lifetimes()
    lifetimes.block(function.body)
    return lifetimes.buffers, lifetimes.position


def check_footprint(function: Function, backend_type: str) -> None:
    """Refuse a function whose live tiles cannot fit, however they are placed.

    Raises:
        MemoryLimitError: naming the memory, the sizes and the largest tiles.
    """
    found, _ = tile_buffers(function)
    for memory, limit in capacity(backend_type).items():
        buffers = [b for b in found if b.memory is memory]
        for buffer in buffers:
            if buffer.nbytes > limit:
                after = f" does not fit into {memory.value}, which has {_size(limit)}; use a smaller tile"
                raise MemoryLimitError("the tile ", [buffer], after, buffer.loc)
        for buffer in buffers:
            live = [b for b in buffers if b.first <= buffer.first <= b.last]
            total = sum(b.nbytes for b in live)
            if total > limit:
                largest = sorted(live, key=lambda b: -b.nbytes)[:3]
                before = f"{function.name} needs {_size(total)} of {memory.value} here, which has {_size(limit)}"
                after = "; use smaller tiles or fewer at a time"
                raise MemoryLimitError(f"{before}; the largest tiles: ", largest, after, buffer.loc)


def fits_in_order(function: Function, backend_type: str) -> bool:
    """Whether the tiles fit when each, in program order, gets the lowest free place, which is about what ptoas does.

    Stricter than :func:`check_footprint`: small tiles that are gone leave holes that larger ones cannot use.
    """
    found, _ = tile_buffers(function)
    line = vector_line(buffer.type for buffer in found)
    ends: dict[MemorySpace, int] = {}
    placed: list[tuple[int, int, TileBuffer]] = []
    for buffer in sorted(found, key=lambda buffer: buffer.first):
        rows, cols = stored_shape(buffer.type, line)
        unit = ALIGNMENT[buffer.memory]
        nbytes = -(-rows * cols * buffer.type.dtype.nbytes // unit) * unit
        placed = [entry for entry in placed if entry[2].last >= buffer.first]
        start = 0
        for low, high, other in placed:
            if other.memory is buffer.memory and low < start + nbytes and start < high:
                start = high
        placed.append((start, start + nbytes, buffer))
        placed.sort(key=lambda entry: entry[0])
        ends[buffer.memory] = max(ends.get(buffer.memory, 0), start + nbytes)
    limits = capacity(backend_type)
    return all(end <= limits[memory] for memory, end in ends.items())


def _shown(buffer: TileBuffer, line: int | None = None) -> str:
    rows, cols = buffer.type.shape
    place = f", line {line}" if line else ""
    return f"{buffer.name} [{rows}, {cols}] {buffer.type.dtype} ({_size(buffer.nbytes)}{place})"


def _size(nbytes: int) -> str:
    return f"{nbytes // 1024} KiB" if nbytes % 1024 == 0 else f"{nbytes} bytes"
