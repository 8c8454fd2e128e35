"""Blocks of tensors: sizes that fit on chip, loops over them, and lengths of the last ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pypto.ir.builder import Builder
from pypto.ir.nodes import Block, Function, Op, Value
from pypto.ir.passes.shapes import tensor_type
from pypto.ir.types import DynDim, TensorType, TileType, Valid
from pypto.ir.values import simplified

# Bytes of vector memory for the tiles of one scope; the rest is for temporaries of single operations.
BUDGET = 128 * 1024
# Bytes of which a row of a tile is a multiple.
LINE = 32


def padded(length: int, unit: int) -> int:
    """The columns of a tile that holds ``length`` of them; one column stays one."""
    return 1 if length == 1 else -(-length // unit) * unit


def up(number: int, unit: int) -> int:
    """The next multiple of a unit."""
    return -(-number // unit) * unit


@dataclass(frozen=True)
class Span:
    """A block along one axis: where it begins, how long its tile is and how much of that holds data."""

    start: int | Value
    size: int
    valid: Valid


def extent(builder: Builder, function: Function, tensor: Value, axis: int) -> int | Value:
    """The length of an axis; a dynamic one is read from the first parameter that has it."""
    dim = tensor_type(tensor).shape[axis]
    if not isinstance(dim, DynDim):
        return dim
    for param in function.params:
        if isinstance(param.type, TensorType) and dim in param.type.shape:
            tensor, axis = param.value, param.type.shape.index(dim)
            break
    return builder.value("tensor.dim", (tensor,), dim.name, axis=axis)


def remaining(builder: Builder, start: int | Value, length: int | Value, size: int) -> Valid:
    """How much of a block of ``size`` at ``start`` an axis of ``length`` has."""
    if isinstance(length, int) and (isinstance(start, int) or length % size == 0):
        return min(size, length - start) if isinstance(start, int) else size
    rest = builder.value("arith.sub", (builder.index(length), builder.index(start)), "rest")
    return simplified(builder.value("arith.min", (rest, builder.index(size)), "count"))


def each(builder: Builder, length: int | Value, size: int, body: Callable[[Span], None], name: str = "row") -> None:
    """Run ``body`` for every block along an axis: once, or in a loop."""
    if isinstance(length, int) and length <= size:
        body(Span(0, size, length))
        return
    with builder.loop(0, length, size, name=name) as loop:
        body(Span(loop.index, size, remaining(builder, loop.index, length, size)))


def each_leading(
    builder: Builder, lengths: Sequence[int | Value], body: Callable[[tuple[int | Value, ...]], None]
) -> None:
    """Run ``body`` for every index of the leading axes."""

    def inner(position: int, indices: tuple[int | Value, ...]) -> None:
        if position == len(lengths):
            body(indices)
            return
        each(builder, lengths[position], 1, lambda span: inner(position + 1, (*indices, span.start)), "index")

    inner(0, ())


def scope(builder: Builder, name: str, body: Callable[[], None]) -> None:
    """Append a scope."""
    block = Block()
    with builder.inside(block):
        body()
    builder.op("func.scope", attrs={"name": name}, regions=[block])


@dataclass(frozen=True)
class Plane:
    """Two axes of a tensor, of which the last one goes along the columns of tiles; all others have one index each."""

    tensor: Value
    down: int

    def others(self) -> list[int]:
        """The axes that have one index."""
        rank = tensor_type(self.tensor).rank
        return [axis for axis in range(rank - 1) if axis != self.down]

    def view(self, builder: Builder, function: Function, at: Mapping[int, int | Value]) -> Value:
        """The plane as a tensor of two dimensions, for one index of each other axis."""
        rank = tensor_type(self.tensor).rank
        if rank == 2:
            return self.tensor
        sizes = [1 if axis in at else extent(builder, function, self.tensor, axis) for axis in range(rank)]
        starts = [at.get(axis, 0) for axis in range(rank)]
        return builder.view(self.tensor, starts, sizes, self.tensor.name, tuple(sorted(at)))

    def load(
        self, builder: Builder, function: Function, at: Mapping[int, int | Value], rows: Span, cols: Span
    ) -> Value:
        """The tile of a block."""
        tensor, offsets = self._placed(builder, function, at, rows, cols)
        return builder.load(tensor, offsets, (rows.size, cols.size), (rows.valid, cols.valid), hint=self.tensor.name)

    def store(
        self, builder: Builder, function: Function, tile: Value, at: Mapping[int, int | Value], rows: Span, cols: Span
    ) -> None:
        """Store the tile of a block."""
        tensor, offsets = self._placed(builder, function, at, rows, cols)
        builder.store(tile, tensor, offsets)

    def _placed(
        self, builder: Builder, function: Function, at: Mapping[int, int | Value], rows: Span, cols: Span
    ) -> tuple[Value, list[int | Value]]:
        rank = tensor_type(self.tensor).rank
        if self.down == rank - 2:
            return self.tensor, [*(at[axis] for axis in self.others()), rows.start, cols.start][-rank:]
        return self.view(builder, function, at), [rows.start, cols.start][-rank:]


def load(builder: Builder, tensor: Value, lead: Sequence[int | Value], rows: Span, cols: Span) -> Value:
    """The tile of a block; leading axes of length 1, and those that the tensor does not have, are repeated."""
    shape = tensor_type(tensor).shape
    offsets = [*lead, rows.start, cols.start][-len(shape) :]
    offsets[:-2] = [0 if dim == 1 else start for start, dim in zip(offsets[:-2], shape[:-2], strict=True)]
    return builder.load(tensor, offsets, (rows.size, cols.size), (rows.valid, cols.valid), hint=tensor.name)


def store(builder: Builder, tile: Value, tensor: Value, lead: Sequence[int | Value], rows: Span, cols: Span) -> None:
    """Store the tile of a block."""
    offsets = [*lead, rows.start, cols.start]
    builder.store(tile, tensor, offsets[-tensor_type(tensor).rank :])


def materialize(builder: Builder, op: Op) -> list[Value]:
    """Make the results of an operation workspaces that stand here; they stay the same values."""
    return [_materialized(builder, result) for result in op.results]


def _materialized(builder: Builder, value: Value) -> Value:
    type = tensor_type(value)
    made = builder.op(
        "tensor.create",
        [builder.index(d) for d in type.shape if not isinstance(d, DynDim)],
        {},
        (type,),
        hint=value.name,
    )
    made.results, value.owner, value.type = [value], made, made.result.type
    return value


def tile_op(builder: Builder, op: Op, operands: Sequence[Value]) -> Value:
    """The operation on tiles that does for a block what ``op`` does for the tensor."""
    name = op.attrs["tile"]
    attrs = {k: v for k, v in op.attrs.items() if k not in ("tile", "axes")}
    types: tuple[TileType, ...] = ()
    if name == "cast":
        source = operands[0].type
        if isinstance(source, TileType):
            types = (TileType(source.shape, tensor_type(op.result).dtype, None, source.valid),)
    return builder.op(f"tile.{name}", operands, attrs, types, hint=op.result.name).result


def is_tensor(value: Value) -> bool:
    """Whether a value is a tensor."""
    return isinstance(value.type, TensorType)
