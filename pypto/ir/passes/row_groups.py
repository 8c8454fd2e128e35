"""Operations on whole tensors that are computed together, some rows at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pypto.ir.builder import Builder
from pypto.ir.nodes import Block, Op, Value
from pypto.ir.passes import blocking
from pypto.ir.passes.blocking import BUDGET, LINE, Span, extent, is_tensor, padded, up
from pypto.ir.passes.shapes import Role, is_row_local, role, tensor_type
from pypto.ir.types import MemorySpace, TileType
from pypto.ir.values import same_value

if TYPE_CHECKING:
    from pypto.ir.passes.tensors import _Lowering

_MOST_ROWS = 128
_COLUMN_ROWS = 16


def is_flat(op: Op) -> bool:
    """Whether an operation is about tensors of one dimension, whose tiles have one row."""
    leader = op.operands[0] if op.name == "tensor.assign" or not op.results else op.result
    return tensor_type(leader).rank == 1


class RowGroup:
    """Operations with the same rows, whose rows all fit on chip."""

    def __init__(self, lowering: _Lowering, first: Op) -> None:
        self.lowering = lowering
        self.ops: list[Op] = [first]
        # Lengths are compared before anything is emitted; what is computed for that is not kept.
        self.scratch = Builder(Block())

    def made(self) -> set[int]:
        """Identities of the tensors that the group makes."""
        return {id(r) for op in self.ops for r in op.results}

    def joins(self, op: Op) -> bool:
        """Add an operation, if it can be computed with the others."""
        if not is_row_local(op) or not self.same_rows(op) or self.conflicts(op):
            return False
        self.ops.append(op)
        if self.fits():
            return True
        self.ops.pop()
        return False

    # Shapes

    def shape(self, op: Op) -> list[int | Value]:
        """Leading lengths and rows that an operation is computed over."""
        leader = op.operands[0] if op.name == "tensor.assign" or not op.results else op.result
        rank = tensor_type(leader).rank
        lengths = [extent(self.scratch, self.lowering.function, leader, axis) for axis in range(rank)]
        return [1] if rank == 1 else lengths[:-1]

    def same_rows(self, op: Op) -> bool:
        if is_flat(self.ops[0]) != is_flat(op):
            return False
        mine, other = self.shape(self.ops[0]), self.shape(op)
        return len(mine) == len(other) and all(same_value(a, b) for a, b in zip(mine, other, strict=True))

    def tensors(self) -> dict[int, tuple[Value, bool]]:
        """All tensors that need a tile, and whether they are rows that are the same for all blocks."""
        found: dict[int, tuple[Value, bool]] = {}
        for op in self.ops:
            for index, value in enumerate(op.operands[:1] if op.name == "tensor.assign" else op.operands):
                if is_tensor(value):
                    row = op.name == "tensor.apply" and role(op.attrs["tile"], index) is Role.ROW
                    found.setdefault(id(value), (value, row))
            for result in op.results:
                found.setdefault(id(result), (result, False))
        return found

    def fits(self) -> bool:
        """Whether at least one row of everything fits on chip."""
        values = [value for value, _ in self.tensors().values()]
        if not all(isinstance(tensor_type(v).shape[-1], int) for v in values):
            return False
        return self.row_bytes() + self.fixed_bytes() <= BUDGET

    def columns(self, value: Value) -> int:
        last = tensor_type(value).shape[-1]
        if not isinstance(last, int):
            raise TypeError(f"{value.name} has no known columns")
        return last

    def unit(self) -> int:
        """Rows of a tile come in multiples of this where that many fit: columns fill whole blocks."""
        if is_flat(self.ops[0]):
            return 1
        columns = [v for v, row in self.tensors().values() if not row and self.columns(v) == 1]
        return max([_COLUMN_ROWS, *(32 // tensor_type(v).dtype.nbytes for v in columns)]) if columns else 1

    def row_bytes(self) -> int:
        """Bytes of one row of all tiles."""
        return sum(self.bytes_of(v) for v, row in self.tensors().values() if not row)

    def fixed_bytes(self) -> int:
        return sum(self.bytes_of(v) for v, row in self.tensors().values() if row)

    def bytes_of(self, value: Value) -> int:
        return self.width(value) * tensor_type(value).dtype.nbytes

    def width(self, value: Value) -> int:
        """Columns of the tile of a tensor; where tiles have one row, one element has a whole line."""
        columns = self.columns(value)
        return up(columns, self.line()) if is_flat(self.ops[0]) else padded(columns, self.line())

    def line(self) -> int:
        """Columns come in multiples of this: conversions keep the shape of a tile."""
        return max(LINE // tensor_type(v).dtype.nbytes for v, _ in self.tensors().values())

    # Order of loads and stores

    def conflicts(self, op: Op) -> bool:
        """Whether an operation needs all rows of what the group makes, or meets a store of it."""
        made, roots = self.made(), self.lowering.roots
        assigned = [o.operands[1] for o in self.ops if o.name == "tensor.assign"]
        sources = op.operands[:1] if op.name == "tensor.assign" else op.operands
        for index, value in enumerate(sources):
            if not is_tensor(value):
                continue
            if id(value) in made and op.name == "tensor.apply" and role(op.attrs["tile"], index) is Role.ROW:
                return True
            if id(value) not in made and any(roots(value) & roots(target) for target in assigned):
                return True
        if op.name != "tensor.assign":
            return False
        target = op.operands[1]
        if any(roots(target) & roots(other) and other is not target for other in assigned):
            return True
        return any(
            roots(value) & roots(target) and (value is not target or row)
            for value, row in self.tensors().values()
            if id(value) not in made
        )

    # Code

    def emit(self, builder: Builder) -> None:
        """Append workspaces, loops and scopes."""
        builder.loc = self.ops[0].loc
        inside = set(self.ops)
        made = [op for op in self.ops if op.results and not self.lowering.users_of(op.result) <= inside]
        kept = [value for op in made for value in blocking.materialize(builder, op)]
        leader = self.ops[0].operands[0] if self.ops[0].name == "tensor.assign" else self.ops[0].result
        rank = tensor_type(leader).rank
        lengths = [extent(builder, self.lowering.function, leader, axis) for axis in range(rank)]
        lead, rows = ([], 1) if rank == 1 else (lengths[:-2], lengths[-2])
        unit = self.unit()
        fitting = min((BUDGET - self.fixed_bytes()) // self.row_bytes(), _MOST_ROWS)
        size = fitting // unit * unit or fitting
        if isinstance(rows, int):
            size = min(size, blocking.up(rows, unit))
        stored = {id(v) for v in kept}

        def block(indices: tuple[int | Value, ...], span: Span) -> None:
            blocking.scope(builder, "", lambda: self.compute(builder, indices, span, stored))

        blocking.each_leading(
            builder, lead, lambda indices: blocking.each(builder, rows, size, lambda span: block(indices, span))
        )

    def compute(self, builder: Builder, lead: tuple[int | Value, ...], rows: Span, stored: set[int]) -> None:
        """The body of a scope, for one block of rows."""
        tiles: dict[int, Value] = {}

        def tile(value: Value, row: bool = False) -> Value:
            if id(value) not in tiles:
                here = Span(0, 1, 1) if row else rows
                tiles[id(value)] = blocking.load(builder, value, lead, here, self.span(value))
            return tiles[id(value)]

        for op in self.ops:
            builder.loc = op.loc
            if op.name == "tensor.assign":
                source, target = op.operands
                blocking.store(builder, tile(source), target, lead, rows, self.span(source))
                tiles[id(target)] = tiles[id(source)]
                continue
            name = op.attrs["tile"]
            if name == "full":
                span = self.span(op.result)
                wanted = TileType(
                    (rows.size, span.size), tensor_type(op.result).dtype, MemorySpace.Vec, (rows.valid, span.valid)
                )
                made = builder.op("tile.full", op.operands, {}, (wanted,), hint=op.result.name).result
            else:
                operands = [
                    tile(v, role(name, i) is Role.ROW) if is_tensor(v) else v for i, v in enumerate(op.operands)
                ]
                made = blocking.tile_op(builder, op, operands)
            tiles[id(op.result)] = made
            if id(op.result) in stored:
                blocking.store(builder, made, op.result, lead, rows, self.span(op.result))

    def span(self, value: Value) -> Span:
        return Span(0, self.width(value), self.columns(value))
