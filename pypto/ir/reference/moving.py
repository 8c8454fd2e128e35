"""What the operations that move, gather and scatter elements do, in NumPy; arrays hold the valid elements only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pypto.ir.nodes import Op, Value
from pypto.ir.ops.tile_filling import pad_number
from pypto.ir.ops.tile_index import chosen
from pypto.ir.types import TensorType, TileType


def _whole(value: Any) -> Any:
    """Indices, which stand in float64 arrays."""
    return np.asarray(value).astype(np.int64)


def _inside(index: Any, size: int) -> Any:
    if (index < 0).any() or (index >= size).any():
        raise IndexError(f"an index is outside of 0 to {size - 1}")
    return index


def _filled(op: Op, tile: Any) -> Any:
    type = op.result.type
    assert isinstance(type, TileType)
    made = np.full(type.shape, float(pad_number(type.dtype, op.attrs["pad"])))
    made[: tile.shape[0], : tile.shape[1]] = tile
    return made


def _placed(target: Any, source: Any, row: int, col: int) -> Any:
    made = target.copy()
    if row + source.shape[0] > made.shape[0] or col + source.shape[1] > made.shape[1]:
        raise IndexError("a tile is put outside of another one")
    made[row : row + source.shape[0], col : col + source.shape[1]] = source
    return made


def _gather_row(op: Op, target: Any, tensor: Any, *numbers: int) -> Any:
    row, col, rows, cols, *start = numbers
    part = tensor[(*start[:-2], slice(start[-2], start[-2] + rows), slice(start[-1], start[-1] + cols))]
    return _placed(target, part.T if op.attrs["turned"] else part, row, col)


def _columns(op: Op, count: int) -> Any:
    """Which columns a mask pattern chooses."""
    pattern = op.attrs["pattern"]
    first = {1: 0, 2: 1, 7: 0}.get(pattern, pattern - 3)
    return np.arange(first, count, chosen(pattern))


def _scatter_mask(op: Op, target: Any, source: Any) -> Any:
    made = np.zeros_like(target)
    made[..., _columns(op, target.shape[-1])] = source
    return made


def _scatter(op: Op, target: Any, source: Any, index: Any) -> Any:
    made, axis = target.copy(), op.attrs.get("axis", 0)
    np.put_along_axis(made, _inside(_whole(index), made.shape[axis]), source, axis)
    return made


def _scatter_update(op: Op, target: Any, index: Any, source: Any) -> Any:
    made = target.copy()
    for row, place in zip(source, _inside(_whole(index), made.shape[0]).ravel(), strict=False):
        made[place] = row
    return made


def _along(op: Op, source: Any, index: Any) -> Any:
    axis = op.attrs["axis"]
    return np.take_along_axis(source, _inside(_whole(index), source.shape[axis]), axis)


def _mgather(op: Op, tensor: Any, index: Any) -> Any:
    where = _whole(index).ravel() if op.attrs["rows"] else _whole(index)
    table = tensor if op.attrs["rows"] else tensor.ravel()
    size, outside = len(table), op.attrs["outside"]
    if outside == 0:
        _inside(where, size)
    found = table[np.clip(where, 0, size - 1) if outside == 1 else where % size]
    if outside == 3:
        missing = (where < 0) | (where >= size)
        found = np.where(missing[..., None] if op.attrs["rows"] else missing, 0, found)
    return found


def _written(tile: Any, row: int, col: int, value: Any) -> Any:
    made = tile.copy()
    made[row, col] = value
    return made


def _counted(op: Op, start: int) -> Any:
    numbers = np.arange(_shape(op)[1])
    return (start - numbers if op.attrs["descending"] else start + numbers)[None].astype(np.float64)


def _shape(op: Op) -> tuple[int, int]:
    type = op.result.type
    assert isinstance(type, (TileType, TensorType))
    rows, cols = ((1, *type.shape) if len(type.shape) == 1 else type.shape)[-2:]
    assert isinstance(rows, int) and isinstance(cols, int)
    return rows, cols


def _counted_whole(op: Op, *operands: Any) -> Any:
    made = MOVING[op.attrs["tile"]](op, *operands)
    return made[0] if isinstance(op.result.type, TensorType) and op.result.type.rank == 1 else made


def _triangle(op: Op, diagonal: int) -> Any:
    ones = np.ones(_shape(op))
    return np.triu(ones, diagonal) if op.attrs["upper"] else np.tril(ones, diagonal)


MOVING: dict[str, Callable[..., Any]] = {
    "fillpad": _filled,
    "fillpad_expand": _filled,
    "assemble": lambda op, *operands: _placed(*operands),
    "gather_row": _gather_row,
    "transpose_view": lambda op, tile: tile.T,
    "read": lambda op, tile, row, col: tile[row, col],
    "write": lambda op, *operands: _written(*operands),
    "ci": _counted,
    "tri": _triangle,
    "gather": lambda op, tile, index: tile.ravel()[_inside(_whole(index), tile.size)],
    "gather_along": _along,
    "gather_mask": lambda op, tile: tile[..., _columns(op, tile.shape[-1])],
    "scatter": _scatter,
    "scatter_along": _scatter,
    "scatter_mask": _scatter_mask,
    "scatter_update": _scatter_update,
    "mgather": _mgather,
    "matmul_bias": lambda op, left, right, bias: left @ right + bias,
}
"""By name without its family; the first argument is the operation."""


def _along_part(op: Op, source: Any, index: Any) -> Any:
    """As `_along`, where the index is shorter along the other axes."""
    axis = op.attrs["axis"]
    part = source[tuple(slice(None) if a == axis else slice(n) for a, n in enumerate(index.shape))]
    return _along(op, part, index)


def _scattered_part(op: Op, target: Any, source: Any, index: Any) -> Any:
    made, axis = target.copy(), op.attrs["axis"]
    part = made[tuple(slice(None) if a == axis else slice(n) for a, n in enumerate(index.shape))]
    np.put_along_axis(part, _inside(_whole(index), part.shape[axis]), source, axis)
    return made


def _scattered_flat(op: Op, target: Any, source: Any, index: Any) -> Any:
    made = target.copy()
    made.reshape(-1)[_inside(_whole(index), made.size).ravel()] = source.ravel()
    return made


def _compared(op: Op, source: Any, key: Any, offset: int) -> Any:
    """Flat positions in the whole tensor or tile; rows are filled up with zeros."""
    positions, counts = (np.zeros(_lengths(r, source)) for r in op.results)
    keys = key.reshape(*source.shape[:-1], 1)
    holds = source == keys if op.attrs["compared"] == 0 else source > keys
    type = op.operands[0].type
    width = type.shape[-1] if isinstance(type, TileType) else source.shape[-1]
    places = offset + np.arange(source.size // source.shape[-1])[:, None] * width + np.arange(source.shape[-1])
    places = places.reshape(source.shape)
    for row in np.ndindex(source.shape[:-1]):
        found = places[row][holds[row]]
        positions[row][: len(found)], counts[row] = found, len(found)
    return positions, counts


def _lengths(result: Value, source: Any) -> tuple[int, ...]:
    assert isinstance(result.type, (TensorType, TileType)) and isinstance(result.type.shape[-1], int)
    return (*source.shape[:-1], result.type.shape[-1])


def _spread(op: Op, source: Any) -> Any:
    wide = (*source.shape[:-1], source.shape[-1] * chosen(op.attrs["pattern"]))
    return _scatter_mask(op, np.zeros(wide), source)


WHOLE: dict[str, Callable[..., Any]] = {
    **{name: MOVING[name] for name in ("gather", "gather_mask", "mgather", "scatter_update")},
    "ci": _counted_whole,
    "tri": _counted_whole,
    "gather_along": _along_part,
    "scatter_along": _scattered_part,
    "scatter_mask": _spread,
    "mscatter": _scattered_flat,
    "gather_compare": _compared,
}
"""What they do with whole tensors."""


def changes_elements(op: Op) -> bool:
    """Whether an operation sees bytes as elements of another type, which these arrays do not have."""
    types = [v.type for v in (*op.operands[:1], *op.results[:1])]
    dtypes = {t.dtype for t in types if isinstance(t, (TileType, TensorType))}
    return (op.name in ("tile.gather_mask", "tile.gatherb") or op.attrs.get("tile") == "gather_mask") and len(
        dtypes
    ) > 1
