"""Gathering, scattering and sorting of whole tensors: which block of each operand a block of the result needs.

Elements that an index chooses are looked up in global memory, one line along the axis at a time, so that the axis can
have any length and an index outside of it is found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pypto.ir.builder import Builder
from pypto.ir.errors import IRError
from pypto.ir.nodes import Op, Value
from pypto.ir.ops.registry import definition
from pypto.ir.ops.tile_index import chosen
from pypto.ir.passes import blocking
from pypto.ir.passes.blocking import BUDGET, Plane, Span, extent, up
from pypto.ir.passes.shapes import tensor_type
from pypto.ir.types import INT32, MemorySpace, TileType

if TYPE_CHECKING:
    from pypto.ir.passes.blocked import Blocked

_ROWS = 32
_COLUMNS = 256
# Lines of one block, and elements of a line, where each line is looked up by itself.
_LINES = 32
_ALONG = 256
_ONE = Span(0, 1, 1)
# Columns of rows that an index chooses.
_WIDE = 512
# Columns that are sorted together.
_SORTED = 32


_Load = Callable[[Value], Value]
_Store = Callable[[Value, Value], None]


def _by_lines(
    work: Blocked, builder: Builder, memory: Value, shape: Value, body: Callable[[Value, _Load, _Store], None]
) -> None:
    """Run ``body`` for each line of ``memory`` along the axis of the operation, and for blocks of ``shape`` along it.

    Args:
        body: takes a line, a function that loads what stands beside it of a tensor shaped as ``shape``, and one that
            stores a tile there.
    """
    function, rank, axis = work.lowering.function, tensor_type(shape).rank, work.op.attrs["axis"]
    across = axis == rank - 1
    down = rank - 2 if across else axis
    lengths = [extent(builder, function, shape, a) for a in range(rank)]
    others = Plane(shape, down).others()
    size = extent(builder, function, memory, axis)

    def block(index: tuple[int | Value, ...], row: Span, col: Span) -> None:
        at = dict(zip(others, index, strict=True))
        table = Plane(memory, down).view(builder, function, at)
        lines = row if across else col
        end = builder.value("arith.add", (builder.index(lines.start), builder.index(lines.valid)), "end")

        def line(number: int | Value) -> None:
            here = (Span(number, 1, 1), col) if across else (row, Span(number, 1, 1))
            part = table
            if rank > 1:
                starts, sizes = ([number, 0], [1, size]) if across else ([0, number], [size, 1])
                part = builder.view(table, starts, sizes, memory.name)
            body(
                part,
                lambda tensor: Plane(tensor, down).load(builder, function, at, *here),
                lambda tensor, tile: Plane(tensor, down).store(builder, function, tile, at, *here),
            )

        if rank == 1:
            line(0)
            return
        with builder.loop(lines.start, end, 1, name="line") as loop:
            line(loop.index)

    rows = 1 if rank == 1 else lengths[down]
    height, width = (_LINES, _ALONG) if across else (_ALONG, _LINES)
    work.over(
        builder,
        [lengths[a] for a in others],
        (rows, _fitted(rows, height, 1)),
        (lengths[-1], _fitted(lengths[-1], width, 32)),
        block,
    )


def _fitted(length: int | Value, size: int, unit: int) -> int:
    return min(size, up(length, unit)) if isinstance(length, int) else size


def _gather_along(work: Blocked, builder: Builder) -> None:
    source, index = work.op.operands

    def body(line: Value, load: _Load, store: _Store) -> None:
        store(work.out(), _looked_up(builder, work.op, line, load(index)))

    _by_lines(work, builder, source, index, body)


def _looked_up(builder: Builder, op: Op, memory: Value, index: Value, outside: int = 0) -> Value:
    """The elements of a tensor at the flat positions that a tile names."""
    type = index.type
    assert isinstance(type, TileType)
    wanted = TileType(type.shape, tensor_type(op.result).dtype, MemorySpace.Vec, type.valid)
    return builder.value("tile.mgather", (memory, index), op.result.name, (wanted,), rows=False, outside=outside)


def _scatter_along(work: Blocked, builder: Builder) -> None:
    target, source, index = work.op.operands
    work.begin_with(builder, target)

    def body(line: Value, load: _Load, store: _Store) -> None:
        builder.op("tile.mscatter", [load(source), load(index), line], {"rows": False})

    _by_lines(work, builder, work.out(), index, body)


def _gather(work: Blocked, builder: Builder) -> None:
    """Elements at flat positions."""
    memory, index = work.op.operands
    lead, rows, cols = work.lengths(builder, index)

    def body(at: tuple[int | Value, ...], row: Span, col: Span) -> None:
        tile = blocking.load(builder, index, at, row, col)
        made = _looked_up(builder, work.op, memory, tile, work.op.attrs.get("outside", 0))
        blocking.store(builder, made, work.out(), at, row, col)

    work.over(builder, lead, (rows, _fitted(rows, _ROWS, 1)), (cols, _fitted(cols, _COLUMNS, 32)), body)


def _mscatter(work: Blocked, builder: Builder) -> None:
    """Elements written to flat positions."""
    target, source, index = work.op.operands
    work.begin_with(builder, target)
    lead, rows, cols = work.lengths(builder, index)

    def body(at: tuple[int | Value, ...], row: Span, col: Span) -> None:
        tiles = [blocking.load(builder, tensor, at, row, col) for tensor in (source, index)]
        builder.op("tile.mscatter", [*tiles, work.out()], {"rows": False})

    work.over(builder, lead, (rows, _fitted(rows, _ROWS, 1)), (cols, _fitted(cols, _COLUMNS, 32)), body)


def _mgather(work: Blocked, builder: Builder) -> None:
    """Rows, or elements at flat positions."""
    if not work.op.attrs["rows"]:
        _gather(work, builder)
        return
    memory, index = work.op.operands
    attrs = {"rows": True, "outside": work.op.attrs["outside"]}

    def body(part: Value, row: Span, col: Span) -> None:
        tile = _positions(builder, index, row)
        wanted = _vector(work.op.result, row, col)
        made = builder.value("tile.mgather", (part, tile), work.op.result.name, (wanted,), **attrs)
        blocking.store(builder, made, work.out(), (), row, col)

    _by_rows(work, builder, memory, work.op.result, body)


def _by_rows(
    work: Blocked, builder: Builder, memory: Value, rows: Value, body: Callable[[Value, Span, Span], None]
) -> None:
    """Run ``body`` for blocks of ``rows``, each with the columns of ``memory`` that stand beside it."""
    _, count, width = work.lengths(builder, rows)
    depth = extent(builder, work.lowering.function, memory, 0)
    size = _fitted(width, _WIDE, 1)

    def block(at: tuple[int | Value, ...], row: Span, col: Span) -> None:
        whole = isinstance(width, int) and width == size
        part = memory if whole else builder.view(memory, [0, col.start], [depth, col.valid], memory.name)
        body(part, row, col)

    work.over(builder, [], (count, _ROWS), (width, size), block)


def _positions(builder: Builder, index: Value, rows: Span) -> Value:
    """As many elements of an index of one row or column as there are rows."""
    shape = tensor_type(index).shape
    if len(shape) > 1 and shape[-1] == 1:
        return blocking.load(builder, index, (), rows, _ONE)
    return blocking.load(builder, index, (), _ONE, rows)


def _scatter_update(work: Blocked, builder: Builder) -> None:
    """Rows of a tensor replaced where an index says."""
    target, index, source = work.op.operands
    work.begin_with(builder, target)

    def body(part: Value, row: Span, col: Span) -> None:
        rows = blocking.load(builder, source, (), row, col)
        builder.op("tile.mscatter", [rows, _positions(builder, index, row), part], {"rows": True})

    _by_rows(work, builder, work.out(), source, body)


def _known_columns(work: Blocked, tensor: Value) -> int:
    last = tensor_type(tensor).shape[-1]
    if not isinstance(last, int):
        raise IRError(f"{_label(work)}: the length of a row must be known while compiling", work.op.loc)
    return last


def _label(work: Blocked) -> str:
    return definition(f"tile.{work.op.attrs['tile']}").label


def _rows_that_fit(work: Blocked, row_bytes: int, what: str) -> int:
    """How many rows of all operands fit on chip."""
    if row_bytes > BUDGET:
        raise IRError(
            f"{_label(work)}: {what} take {row_bytes} bytes on chip, of {BUDGET} that there are for them; use "
            "shorter ones",
            work.op.loc,
        )
    return min(_ROWS, BUDGET // row_bytes)


def _gather_mask(work: Blocked, builder: Builder) -> None:
    """Every second or fourth column."""
    (source,), share = work.op.operands, chosen(work.op.attrs["pattern"])
    lead, rows, cols = work.lengths(builder, work.op.result)

    def body(at: tuple[int | Value, ...], row: Span, col: Span) -> None:
        tile = blocking.load(builder, source, at, row, _times(builder, col, share))
        wanted = _vector(work.op.result, row, col)
        made = builder.value("tile.gather_mask", (tile,), work.op.result.name, (wanted,), pattern=_pattern(work))
        blocking.store(builder, made, work.out(), at, row, col)

    work.over(builder, lead, (rows, _fitted(rows, _ROWS, 1)), (cols, _fitted(cols, _COLUMNS, 32)), body)


def _pattern(work: Blocked) -> int:
    pattern: int = work.op.attrs["pattern"]
    return pattern


def _vector(tensor: Value, row: Span, col: Span) -> TileType:
    return TileType((row.size, col.size), tensor_type(tensor).dtype, MemorySpace.Vec, (row.valid, col.valid))


def _times(builder: Builder, span: Span, factor: int) -> Span:
    """As many blocks of ``factor`` elements as the span has elements."""

    def multiplied(number: int | Value) -> int | Value:
        if isinstance(number, int):
            return number * factor
        return builder.value("arith.mul", (number, builder.index(factor)), number.name)

    return span if factor == 1 else Span(multiplied(span.start), span.size * factor, multiplied(span.valid))


def _scatter_mask(work: Blocked, builder: Builder) -> None:
    """The elements of the source in every second or fourth column, zeros in the others."""
    (source,), share = work.op.operands, chosen(work.op.attrs["pattern"])
    lead, rows, cols = work.lengths(builder, source)
    dtype = tensor_type(source).dtype

    def body(at: tuple[int | Value, ...], row: Span, col: Span) -> None:
        wide = _times(builder, col, share)
        zero = builder.constant(0.0 if dtype.is_float else 0, dtype)
        zeros = builder.value("tile.full", (zero,), "zeros", (_vector(source, row, wide),))
        tile = blocking.load(builder, source, at, row, col)
        made = builder.value("tile.scatter_mask", (zeros, tile), work.op.result.name, pattern=_pattern(work))
        blocking.store(builder, made, work.out(), at, row, wide)

    work.over(builder, lead, (rows, _fitted(rows, _ROWS, 1)), (cols, _fitted(cols, _COLUMNS // 4, 32)), body)


def _gather_compare(work: Blocked, builder: Builder) -> None:
    """Positions of the elements of each row that compare with its key, and how many there are."""
    source, key, offset = work.op.operands
    positions, counts = work.op.results
    width, found = _known_columns(work, source), _known_columns(work, positions)
    dtype = tensor_type(source).dtype
    row_bytes = (up(width, 32) + 32) * dtype.nbytes + up(found, 32) * 4 + 64
    height = _rows_that_fit(work, row_bytes, f"a row of {width} elements of {dtype} and {found} positions")
    lead, rows, _ = work.lengths(builder, source)

    def body(at: tuple[int | Value, ...], row: Span, col: Span) -> None:
        first: Value = builder.index(row.start)
        for position in range(len(at)):
            # The rows in front of this plane.
            before = builder.index(at[position])
            for length in (*lead[position + 1 :], rows):
                before = builder.value("arith.mul", (before, builder.index(length)), "before")
            first = builder.value("arith.add", (first, before), "first")
        elements = builder.value("arith.mul", (first, builder.index(width)), "start")
        start = builder.value("arith.add", (elements, offset), "start")
        tile = blocking.load(builder, source, at, row, Span(0, width, width))
        in_row = tensor_type(key).shape[-1] != 1
        keys = _positions(builder, key, row) if in_row else blocking.load(builder, key, at, row, _ONE)
        wanted = (
            TileType((row.size, found), INT32, MemorySpace.Vec, (row.valid, found)),
            TileType((row.size, 1), tensor_type(counts).dtype, MemorySpace.Vec, (row.valid, 1)),
        )
        made = builder.op("tile.gather_compare", (tile, keys, start), {"compared": work.op.attrs["compared"]}, wanted)
        blocking.store(builder, made.results[0], work.out(0), at, row, Span(0, found, found))
        blocking.store(builder, made.results[1], work.out(1), at, row, _ONE)

    work.over(builder, lead, (rows, height), (1, 1), body)


def _sort32(work: Blocked, builder: Builder) -> None:
    """Blocks of 32 columns as sorted pairs; a last block can be shorter."""
    source, index = work.op.operands
    dtype = tensor_type(source).dtype
    share, width = 8 // dtype.nbytes, _known_columns(work, source)
    lead, rows, _ = work.lengths(builder, source)
    whole = width // _SORTED * _SORTED

    def part(begin: int, length: int, size: int) -> None:
        def body(at: tuple[int | Value, ...], row: Span, col: Span) -> None:
            here = Span(begin or col.start, col.size, col.size)
            tiles = [blocking.load(builder, tensor, at, row, here) for tensor in (source, index)]
            made = builder.value("tile.sort32", tiles, work.op.result.name)
            blocking.store(builder, made, work.out(), at, row, _times(builder, here, share))

        work.over(builder, lead, (rows, _fitted(rows, _ROWS, 1)), (length, size), body)

    if whole:
        size = next(s for s in range(min(whole, _COLUMNS), 0, -_SORTED) if whole % s == 0)
        part(0, whole, size)
    if width > whole:
        part(whole, width - whole, width - whole)


def _merge_blocks(work: Blocked, builder: Builder) -> None:
    """Every four neighbouring runs of a row merged."""
    (source,), length = work.op.operands, work.op.attrs["block_len"]
    dtype = tensor_type(source).dtype
    lead, rows, cols = work.lengths(builder, source)
    group = 4 * length if not isinstance(cols, int) else min(4 * length, cols)
    _rows_that_fit(work, 2 * group * dtype.nbytes, f"four runs of {length} elements of {dtype} and what they become")
    width = group * max(1, _COLUMNS // group)
    height = min(_ROWS, BUDGET // (2 * width * dtype.nbytes))

    def body(at: tuple[int | Value, ...], row: Span, col: Span) -> None:
        tile = blocking.load(builder, source, at, row, col)
        made = builder.value("tile.mrgsort_blocks", (tile,), work.op.result.name, block_len=length)
        blocking.store(builder, made, work.out(), at, row, col)

    work.over(builder, lead, (rows, height), (cols, width), body)


def _merge_runs(work: Blocked, builder: Builder) -> None:
    """Two to four sorted tensors, row by row."""
    sources = work.op.operands
    widths = [_known_columns(work, source) for source in sources]
    dtype = tensor_type(sources[0]).dtype
    row_bytes = 2 * sum(up(width, 32) for width in widths) * dtype.nbytes
    height = _rows_that_fit(
        work, row_bytes, f"runs of {' + '.join(map(str, widths))} elements of {dtype} and their sum"
    )
    lead, rows, _ = work.lengths(builder, sources[0])

    def body(at: tuple[int | Value, ...], row: Span, col: Span) -> None:
        tiles = [
            blocking.load(builder, source, at, row, Span(0, width, width))
            for source, width in zip(sources, widths, strict=True)
        ]
        made = builder.value("tile.mrgsort", tiles, work.op.result.name, exhausted=work.op.attrs["exhausted"])
        blocking.store(builder, made, work.out(), at, row, Span(0, sum(widths), sum(widths)))

    work.over(builder, lead, (rows, height), (1, 1), body)


INDEXED: dict[str, Callable[[Blocked, Builder], None]] = {
    "gather_along": _gather_along,
    "gather": _gather,
    "mgather": _mgather,
    "gather_mask": _gather_mask,
    "gather_compare": _gather_compare,
    "scatter_along": _scatter_along,
    "scatter_mask": _scatter_mask,
    "scatter_update": _scatter_update,
    "mscatter": _mscatter,
    "sort32": _sort32,
    "mrgsort_blocks": _merge_blocks,
    "mrgsort": _merge_runs,
}
"""How each operation is divided, by its name on tiles."""

UPDATES = frozenset({"scatter_along", "scatter_update", "mscatter"})
"""Operations that change some elements of their first operand."""
