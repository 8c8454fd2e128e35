"""One operation on whole tensors at a time, block by block in both directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pypto.ir.builder import Builder
from pypto.ir.errors import IRError
from pypto.ir.nodes import Op, Value
from pypto.ir.passes import blocking
from pypto.ir.passes.blocking import BUDGET, Span, extent, is_tensor, up
from pypto.ir.passes.indexed import INDEXED, UPDATES
from pypto.ir.passes.shapes import COLUMN_REDUCTIONS, PLACES, ROW_REDUCTIONS, Role, role, tensor_type
from pypto.ir.types import INT32, MemorySpace, ScalarType, TileType

if TYPE_CHECKING:
    from pypto.ir.passes.tensors import _Lowering

_COLUMNS = 256
_MADE_ROWS = 64
_TURNED = 64
_PRODUCT_ROWS = 128
_PRODUCT_COLUMNS = 128
# Bytes along the inner axis of a product: 128 rows of it fill half of the left and right memories.
_INNER_BYTES = 256

_Lead = tuple[int | Value, ...]


class Blocked:
    """An operation, and the assignment of its result when nothing else needs that."""

    def __init__(self, lowering: _Lowering, op: Op) -> None:
        self.lowering = lowering
        self.op = op
        self.targets: list[Value] = []

    def made(self) -> set[int]:
        """Identities of the tensors that are made."""
        return {id(r) for r in self.op.results}

    def joins(self, op: Op) -> bool:
        """Take over the target of an assignment."""
        if op.name != "tensor.assign" or self.targets or len(self.op.results) != 1:
            return False
        result, roots = self.op.result, self.lowering.roots
        source, target = op.operands
        if source is not result or self.lowering.users_of(result) != {op}:
            return False
        read = self.op.operands
        if self.op.attrs["tile"] in UPDATES and read[0] is target:
            read = read[1:]
        if any(is_tensor(v) and roots(v) & roots(target) for v in read):
            return False
        self.targets = [target]
        return True

    def emit(self, builder: Builder) -> None:
        """Append a workspace unless there is a target, loops and scopes.

        Raises:
            IRError: the operation needs whole rows, and they do not fit on chip.
        """
        op = self.op
        builder.loc = op.loc
        if op.name == "tensor.assign":
            self.targets, name = [op.operands[1]], "move"
        else:
            name = op.attrs["tile"]
            if not self.targets:
                self.targets = blocking.materialize(builder, op)
        if name in ROW_REDUCTIONS:
            self.reduction(builder, ROW_REDUCTIONS[name], along_rows=True)
        elif name in COLUMN_REDUCTIONS:
            self.reduction(builder, COLUMN_REDUCTIONS[name], along_rows=False)
        elif name in PLACES:
            self.place(builder, name)
        elif name == "matmul":
            self.product(builder)
        elif name == "transpose":
            self.transposition(builder)
        elif name in ("ci", "tri"):
            self.counted(builder)
        elif name in INDEXED:
            INDEXED[name](self, builder)
        elif role(name, 0) is Role.BLOCK:
            self.blocks(builder)
        else:
            raise IRError(f"pl.{name}: a row of this tensor does not fit on chip; use shorter rows", op.loc)

    def lengths(self, builder: Builder, tensor: Value) -> tuple[list[int | Value], int | Value, int | Value]:
        """Leading lengths, rows and columns of a tensor."""
        rank = tensor_type(tensor).rank
        found = [extent(builder, self.lowering.function, tensor, axis) for axis in range(rank)]
        return (found[:-2], found[-2], found[-1]) if rank > 1 else ([], 1, found[-1])

    def out(self, position: int = 0) -> Value:
        """Where a result goes."""
        return self.targets[position]

    def begin_with(self, builder: Builder, source: Value) -> None:
        """Let the result have the elements of a tensor, before some of them are changed."""
        if source is not self.out():
            Blocked(self.lowering, Op("tensor.assign", [source, self.out()], [], {}, [], self.op.loc)).emit(builder)

    def over(
        self,
        builder: Builder,
        lead: list[int | Value],
        rows: tuple[int | Value, int],
        cols: tuple[int | Value, int],
        body: Callable[[_Lead, Span, Span], None],
    ) -> None:
        """A scope for every block of the leading axes, rows and columns."""
        blocking.each_leading(
            builder,
            lead,
            lambda index: blocking.each(
                builder,
                *rows,
                lambda row: blocking.each(
                    builder,
                    *cols,
                    lambda col: blocking.scope(builder, "", lambda: body(index, row, col)),
                    "col",
                ),
            ),
        )

    def blocks(self, builder: Builder) -> None:
        """Element by element, with columns and rows beside each element."""
        op = self.op
        out = op.operands[0] if op.name == "tensor.assign" else op.result
        lead, rows, cols = self.lengths(builder, out)
        operands = op.operands[:1] if op.name == "tensor.assign" else op.operands
        dtypes = [tensor_type(v).dtype for v in (*operands, out) if is_tensor(v)]
        width = _COLUMNS if not isinstance(cols, int) else min(_COLUMNS, up(cols, 32))
        height = min(BUDGET // (width * sum(d.nbytes for d in dtypes)), 64) // 32 * 32
        if isinstance(rows, int):
            height = min(height, rows if not self.has_column() else up(rows, 32))

        def body(index: _Lead, row: Span, col: Span) -> None:
            tiles: list[Value] = []
            for position, value in enumerate(operands):
                kind = Role.BLOCK if op.name == "tensor.assign" else role(op.attrs["tile"], position)
                if not is_tensor(value):
                    tiles.append(value)
                elif kind is Role.ROW:
                    tiles.append(blocking.load(builder, value, index, Span(0, 1, 1), col))
                else:
                    tiles.append(
                        blocking.load(builder, value, index, row, Span(0, 1, 1) if kind is Role.COLUMN else col)
                    )
            if op.name == "tensor.assign":
                made = tiles[0]
            elif op.attrs["tile"] == "full":
                wanted = TileType((row.size, col.size), tensor_type(out).dtype, MemorySpace.Vec, (row.valid, col.valid))
                made = builder.op("tile.full", tiles, {}, (wanted,), hint=out.name).result
            else:
                made = blocking.tile_op(builder, op, tiles)
            blocking.store(builder, made, self.out(), index, row, col)

        self.over(builder, lead, (rows, height), (cols, width), body)

    def counted(self, builder: Builder) -> None:
        """Numbers that count along a row, or a triangle of ones: each block begins where it stands in the tensor."""
        op, out = self.op, self.out()
        type = tensor_type(op.result)
        _, rows, cols = self.lengths(builder, op.result)
        width = min(_COLUMNS, up(cols, 32)) if isinstance(cols, int) else _COLUMNS
        height = min(_MADE_ROWS, rows) if isinstance(rows, int) else _MADE_ROWS
        attrs = {k: v for k, v in op.attrs.items() if k != "tile"}

        def moved(number: Value, sign: str, by: int | Value) -> Value:
            if by == 0:
                return number
            step = builder.index(by)
            if op.attrs["tile"] == "ci":
                step = builder.op("arith.cast", [step], {}, (number.type,)).result
            return builder.value(f"arith.{sign}", (number, step), "first")

        def body(index: _Lead, row: Span, col: Span) -> None:
            first = op.operands[0]
            if op.attrs["tile"] == "ci":
                first = moved(first, "sub" if op.attrs["descending"] else "add", col.start)
            else:
                first = moved(moved(first, "add", row.start), "sub", col.start)
            wanted = TileType((row.size, col.size), type.dtype, MemorySpace.Vec, (row.valid, col.valid))
            made = builder.op(f"tile.{op.attrs['tile']}", [first], attrs, (wanted,), hint=op.result.name).result
            blocking.store(builder, made, out, index, row, col)

        self.over(builder, [], (rows, height), (cols, width), body)

    def has_column(self) -> bool:
        """Whether a tile has one column, so that its rows come in lines."""
        op = self.op
        shapes = [tensor_type(v).shape for v in (*op.operands, *op.results) if is_tensor(v)]
        return any(len(shape) > 1 and shape[-1] == 1 for shape in shapes)

    def reduction(self, builder: Builder, combine: str, along_rows: bool) -> None:
        """A reduction of rows or of columns, by combining what blocks give."""

        def part(tile: Value, start: int | Value) -> list[Value]:
            return [blocking.tile_op(builder, self.op, [tile])]

        def combined(old: list[Value], new: list[Value]) -> list[Value]:
            return [builder.value(f"tile.{combine}", (old[0], new[0]), self.op.result.name)]

        self.reduced(builder, along_rows, part, combined)

    def place(self, builder: Builder, name: str) -> None:
        """The position of the largest or smallest element of rows or of columns: with what it is, block by block."""
        axis, _, which = name.partition("_arg")
        pred = "gt" if which == "max" else "lt"

        def part(tile: Value, start: int | Value) -> list[Value]:
            position = builder.value(f"tile.{name}", (tile,), "position")
            if start != 0:
                first = builder.value("arith.cast", (builder.index(start),), "first", (ScalarType(INT32),))
                position = builder.value("tile.adds", (position, first), "position")
            return [position, builder.value(f"tile.{axis}_{which}", (tile,), "best")]

        def combined(old: list[Value], new: list[Value]) -> list[Value]:
            # The first one of equal elements stays.
            better = builder.value("tile.cmp", (new[1], old[1]), "better", pred=pred)
            position = builder.value("tile.sel", (better, new[0], old[0]), "position", mask="elements")
            return [position, builder.value(f"tile.{which}imum", (old[1], new[1]), "best")]

        self.reduced(builder, axis == "row", part, combined)

    def reduced(
        self,
        builder: Builder,
        along_rows: bool,
        part: Callable[[Value, int | Value], list[Value]],
        combined: Callable[[list[Value], list[Value]], list[Value]],
    ) -> None:
        """What ``part`` gives for blocks along rows or columns, combined; the first of it is the result."""
        source = self.op.operands[0]
        lead, rows, cols = self.lengths(builder, source)
        dtype = tensor_type(source).dtype
        height = 32 if along_rows or not isinstance(rows, int) else min(32, rows)
        width = up(min(_COLUMNS, cols), 32) if isinstance(cols, int) else _COLUMNS
        # A single column would be a column tile.
        width = max(width, 32 // dtype.nbytes)
        length, size = (cols, width) if along_rows else (rows, height)

        def body(index: _Lead, row: Span, col: Span) -> None:
            def loaded(start: int | Value) -> list[Value]:
                along = Span(start, size, blocking.remaining(builder, start, length, size))
                block = (row, along) if along_rows else (along, col)
                return part(blocking.load(builder, source, index, *block), start)

            total = loaded(0)
            if not isinstance(length, int) or length > size:
                with builder.loop(size, length, size, total, name="part") as loop:
                    loop.carry(*combined(loop.carried, loaded(loop.index)))
                total = loop.results
            here = (row, Span(0, 1, 1)) if along_rows else (Span(0, 1, 1), col)
            blocking.store(builder, total[0], self.out(), index, *here)

        down = (rows, height) if along_rows else (1, 1)
        across = (1, 1) if along_rows else (cols, width)
        self.over(builder, lead, down, across, body)

    def transposition(self, builder: Builder) -> None:
        """Two axes swapped: the tiles have the last axis as their columns, and turn if it is one of the two."""
        source, (first, second) = self.op.operands[0], self.op.attrs["axes"]
        rank = tensor_type(source).rank
        function = self.lowering.function
        *lengths, cols = (extent(builder, function, source, axis) for axis in range(rank))
        turns = second == rank - 1
        down = first if turns or _longer(lengths[first], lengths[second]) else second
        swapped = {first: second, second: first}
        here = blocking.Plane(source, down)
        there = blocking.Plane(self.out(), first if turns else swapped[down])
        others = here.others()

        def body(index: _Lead, row: Span, col: Span) -> None:
            at = dict(zip(others, index, strict=True))
            tile = here.load(builder, function, at, row, col)
            moved = at if turns else {swapped.get(axis, axis): start for axis, start in at.items()}
            if turns:
                there.store(builder, function, blocking.tile_op(builder, self.op, [tile]), moved, col, row)
            else:
                there.store(builder, function, tile, moved, row, col)

        width = _TURNED if turns else _COLUMNS
        self.over(builder, [lengths[axis] for axis in others], (lengths[down], _TURNED), (cols, width), body)

    def product(self, builder: Builder) -> None:
        """A matrix product, over blocks of the result and along the inner axis inside each."""
        left, right = self.op.operands
        turned = [self.op.attrs.get(name, False) for name in ("a_trans", "b_trans")]
        lead, _, _ = self.lengths(builder, self.op.result)
        _, rows, inner = self.lengths(builder, left)
        _, inner_right, cols = self.lengths(builder, right)
        if turned[0]:
            rows, inner = inner, rows
        if turned[1]:
            cols = inner_right
        dtype = tensor_type(left).dtype
        depth, unit = _INNER_BYTES // dtype.nbytes, max(16, 32 // dtype.nbytes)
        size = _fitted(inner, depth, unit)

        def body(index: _Lead, row: Span, col: Span) -> None:
            def operands(along: Span) -> list[Value]:
                a = (along, row) if turned[0] else (row, along)
                b = (col, along) if turned[1] else (along, col)
                return [blocking.load(builder, left, index, *a), blocking.load(builder, right, index, *b)]

            attrs = {"a_trans": turned[0], "b_trans": turned[1]}
            first = operands(Span(0, size, blocking.remaining(builder, 0, inner, size)))
            total = builder.op("tile.matmul", first, attrs, hint=self.op.result.name).result
            if not isinstance(inner, int) or inner > size:
                with builder.loop(size, inner, size, [total], name="inner") as loop:
                    start = loop.index
                    next_ = operands(Span(start, size, blocking.remaining(builder, start, inner, size)))
                    loop.carry(builder.op("tile.matmul_acc", [loop.carried[0], *next_], attrs, hint="acc").result)
                (total,) = loop.results
            blocking.store(builder, total, self.out(), index, row, col)

        height, width = _fitted(rows, _PRODUCT_ROWS, unit), _fitted(cols, _PRODUCT_COLUMNS, unit)
        self.over(builder, lead, (rows, height), (cols, width), body)


def _longer(a: int | Value, b: int | Value) -> bool:
    """Whether a length is known to be larger than another one, or not known at all."""
    return not isinstance(a, int) or (isinstance(b, int) and a > b)


def _fitted(length: int | Value, size: int, unit: int) -> int:
    """A block size that is not longer than needed."""
    return min(size, up(length, unit)) if isinstance(length, int) else size
