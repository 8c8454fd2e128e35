"""Calls that gather, scatter and sort elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pypto.ir.nodes import Direction, Value
from pypto.ir.ops.tile_index import COMPARED, OUTSIDE, chosen
from pypto.ir.types import INT32, DType, MemorySpace, TensorType, TileType
from pypto.language.parsing.arguments import (
    choice_argument,
    dtype_argument,
    flag_argument,
    memory_argument,
    need_matrix,
    offsets_argument,
    one_of,
    pattern_argument,
    scalar_argument,
    shape_argument,
    tensor_argument,
)
from pypto.language.parsing.binding import Bound
from pypto.language.parsing.frame import Frame, tile_type
from pypto.language.parsing.memory_calls import plane
from pypto.language.parsing.model import Model, describe, is_number, is_scalar, is_tensor, is_tile


def _tile(frame: Frame, bound: Bound, name: str) -> Value:
    return frame.tile(bound[name], bound.place(name), f"{bound.label}: {name}")


def _gather(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    return frame.op("tile.gather", [_tile(frame, bound, "src"), _tile(frame, bound, "indices")], bound.node).result


def _gatherb(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    source, offset = _tile(frame, bound, "src"), _tile(frame, bound, "offset")
    dtype, type = _output_dtype(frame, bound, tile_type(source).dtype), tile_type(offset)
    shape = (type.shape[0], type.shape[1] * (32 // dtype.nbytes))
    wanted = TileType(shape, dtype, MemorySpace.Vec, (type.valid[0], shape[1]))
    if type.valid[1] != type.shape[1]:
        raise frame.error(f"{bound.label}: offset must be valid in all its columns", bound.place("offset"))
    return frame.op("tile.gatherb", [source, offset], bound.node, (wanted,)).result


def _output_dtype(frame: Frame, bound: Bound, default: DType) -> DType:
    return default if bound["output_dtype"] is None else dtype_argument(frame, bound, "output_dtype")


def _gather_mask(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    return _masked(
        frame, bound, _tile(frame, bound, next(iter(bound.models))), pattern_argument(frame, bound, "mask_pattern")
    )


def _masked(frame: Frame, bound: Bound, source: Value, pattern: int) -> Value:
    type = tile_type(source)
    if type.valid[1] != type.shape[1]:
        raise frame.error(f"{bound.label}: the source must be valid in all its columns", bound.node)
    shape = (type.shape[0], type.shape[1] // chosen(pattern))
    wanted = TileType(shape, _output_dtype(frame, bound, type.dtype), MemorySpace.Vec, (type.valid[0], shape[1]))
    return frame.op("tile.gather_mask", [source], bound.node, (wanted,), pattern=pattern).result


def _gather_compare(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    source = _tile(frame, bound, next(iter(bound.models)))
    type = tile_type(source)
    if is_number(bound["kvalue"]) or is_scalar(bound["kvalue"]):
        value = frame.scalar(
            float(bound["kvalue"]) if type.dtype.is_float and is_number(bound["kvalue"]) else bound["kvalue"],
            type.dtype,
            bound.place("kvalue"),
            f"{bound.label}: kvalue",
        )
        column = TileType((type.shape[0], 1), type.dtype, MemorySpace.Vec, (type.valid[0], 1))
        key = frame.op("tile.full", [value], bound.node, (column,)).result
    else:
        key = _tile(frame, bound, "kvalue")
    mode = 0 if bound["cmp_mode"] is None else choice_argument(frame, bound, "cmp_mode", COMPARED)
    if bound["out_cols"] is None:
        raise frame.error(f"{bound.label}: kvalue needs out_cols, the most positions of a row", bound.node)
    columns = frame.known(bound["out_cols"], bound.place("out_cols"), f"{bound.label}: out_cols")
    offset = frame.index(bound["offset"], bound.place("offset"), f"{bound.label}: offset")
    count = INT32 if bound["count_dtype"] is None else dtype_argument(frame, bound, "count_dtype")
    rows, valid = type.shape[0], type.valid[0]
    types = (
        TileType((rows, columns), INT32, MemorySpace.Vec, (valid, columns)),
        TileType((rows, 1), count, MemorySpace.Vec, (valid, 1)),
    )
    made = frame.op("tile.gather_compare", [source, key, offset], bound.node, types, compared=mode)
    return tuple(made.results)


def _tensor_gather(frame: Frame, bound: Bound) -> Model:
    """``pl.tensor.gather``: along an axis, by a mask, or by comparing."""
    frame.need_core(bound.label, bound.node)
    one_of(frame, bound, ("index", "mask_pattern", "kvalue"))
    for name in ("input", "index"):
        need_matrix(frame, bound, name, flat=bound["dim"] in (None, -1, 1))
    source = _tile(frame, bound, "input")
    if bound["mask_pattern"] is not None:
        return _masked(frame, bound, source, pattern_argument(frame, bound, "mask_pattern"))
    if bound["kvalue"] is not None:
        return _gather_compare(frame, bound)
    if bound["index"] is None:
        raise frame.error(f"{bound.label}: needs index, mask_pattern or kvalue", bound.node)
    index = _tile(frame, bound, "index")
    return frame.op("tile.gather_along", [source, index], bound.node, (), axis=_axis(frame, bound)).result


def _axis(frame: Frame, bound: Bound) -> int:
    axis = frame.known(-1 if bound["dim"] is None else bound["dim"], bound.place("dim"), f"{bound.label}: dim")
    if axis not in (0, 1, -1, -2):
        raise frame.error(f"{bound.label}: dim must be 0 or 1, or -1 or -2, not {axis}", bound.place("dim"))
    return axis % 2


def _scatter(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    operands = [_tile(frame, bound, name) for name in ("dst", "src", "indexes")]
    return frame.op("tile.scatter", operands, bound.node).result


def _scatter_mask(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    operands = [_tile(frame, bound, name) for name in ("dst", "src")]
    return frame.op(
        "tile.scatter_mask", operands, bound.node, (), pattern=pattern_argument(frame, bound, "mask_pattern")
    ).result


def _tensor_scatter(frame: Frame, bound: Bound) -> Model:
    """``pl.tensor.scatter``: along an axis, or by a mask."""
    frame.need_core(bound.label, bound.node)
    one_of(frame, bound, ("index", "mask_pattern"))
    for name in ("input", "index", "src"):
        need_matrix(frame, bound, name, flat=bound["dim"] in (None, -1, 1))
    if bound["mask_pattern"] is not None:
        pattern, source = pattern_argument(frame, bound, "mask_pattern"), _tile(frame, bound, "input")
        if bound["dst"] is not None:
            target = _tile(frame, bound, "dst")
        else:
            type = tile_type(source)
            shape = (type.shape[0], type.shape[1] * chosen(pattern))
            wanted = TileType(shape, type.dtype, MemorySpace.Vec, (type.valid[0], shape[1]))
            zero = frame.zero(type.dtype, bound.node)
            target = frame.op("tile.full", [zero], bound.node, (wanted,)).result
        return frame.op("tile.scatter_mask", [target, source], bound.node, (), pattern=pattern).result
    if bound["index"] is None or bound["src"] is None:
        raise frame.error(f"{bound.label}: needs index and src, or mask_pattern", bound.node)
    target, index = _tile(frame, bound, "input"), _tile(frame, bound, "index")
    if is_number(bound["src"]) or is_scalar(bound["src"]):
        number = scalar_argument(frame, bound, "src", tile_type(target).dtype)
        like = replace(tile_type(index), dtype=tile_type(target).dtype, memory=MemorySpace.Vec)
        source = frame.op("tile.full", [number], bound.node, (like,)).result
    else:
        source = _tile(frame, bound, "src")
    operands = [target, source, index]
    return frame.op("tile.scatter_along", operands, bound.node, (), axis=_axis(frame, bound)).result


def _scatter_update(frame: Frame, bound: Bound) -> Model:
    """Rows of a tile replaced where an index says; in PyPTO's two orders of arguments."""
    frame.need_core(bound.label, bound.node)
    axis, index, source = bound["dim"], bound["index"], bound["src"]
    if isinstance(axis, Value):  # (input, index, src)
        axis, index, source = (-2 if source is None else source), axis, index
    if axis not in (-2, 0):
        raise frame.error(f"{bound.label}: dim must be -2, not {describe(axis)}", bound.node)
    target = bound["input"]
    if is_tensor(target) and frame.direction(target) is not Direction.In:
        return _update_tensor(frame, bound, target, index, source)
    target = _tile(frame, bound, "input")
    operands = [frame.tile(m, bound.node, f"{bound.label}: {n}") for m, n in ((index, "index"), (source, "src"))]
    return frame.op("tile.scatter_update", [target, *operands], bound.node).result


def _update_tensor(frame: Frame, bound: Bound, target: Value, index: Model, source: Model) -> Value:
    """Rows of a tensor that may be written, in place."""
    if is_tensor(source):
        frame.check_reads(source, bound.node)
        dims = frame.dims(source, bound.node)
        if len(dims) > 2:
            zeros = [frame.index(0, bound.node, "an offset") for _ in dims]
            source, start, axes = plane(frame, bound, source, zeros, dims, bound.node)
            shape = [frame.known(dims[axis], bound.node, f"{bound.label}: a size of src") for axis in axes]
            with frame.at(bound.node):
                source = frame.builder.load(source, start, (shape[0], shape[1]), hint="rows")
    tile = frame.tile(source, bound.node, f"{bound.label}: src")
    where = frame.tile(index, bound.node, f"{bound.label}: index")
    frame.op("tile.mscatter", [tile, where, target], bound.node, (), rows=True)
    return target


def _gather_row(frame: Frame, bound: Bound) -> Model:
    """Rows of a tensor, loaded and put into a tile at an offset."""
    frame.need_core(bound.label, bound.node)
    name = next(iter(bound.models))
    if is_tensor(bound[name]):
        raise frame.divisible(f"{bound.label}: {name} is a tensor, in code for tiles", bound.place(name))
    if not is_tile(bound[name]):
        raise frame.error(f"{bound.label}: {name} must be a tile, not {describe(bound[name])}", bound.place(name))
    tensor = tensor_argument(frame, bound, "src")
    frame.check_reads(tensor, bound.node)
    rank = tensor.type.rank if isinstance(tensor.type, TensorType) else 0
    source = offsets_argument(frame, bound, "src_offset", rank, tensor.name)
    target = offsets_argument(frame, bound, "dst_offset", 2, "the tile")
    shape = shape_argument(frame, bound, "shapes")
    valid = frame.valid_shape(bound["valid_shape"], shape, 2, bound.place("valid_shape"))
    lengths = [frame.index(length, bound.place("valid_shape"), f"{bound.label}: a length") for length in valid]
    turned = flag_argument(frame, bound, "transpose")
    operands = [bound[name], tensor, *target, *lengths, *source]
    return frame.op("tile.gather_row", operands, bound.node, (), turned=turned).result


def _mgather(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    tensor, index = tensor_argument(frame, bound, "mem"), _tile(frame, bound, "idx")
    frame.check_reads(tensor, bound.node)
    if memory_argument(frame, bound, "target_memory") is not MemorySpace.Vec:
        raise frame.error(f"{bound.label}: target_memory must be Vec; use pl.move", bound.place("target_memory"))
    rows = choice_argument(frame, bound, "coalesce", ("elem", "row")) == 1
    outside = choice_argument(frame, bound, "gather_oob", OUTSIDE)
    type = tile_type(index)
    dtype = tensor.type.dtype if isinstance(tensor.type, TensorType) else type.dtype
    shape, valid = type.shape, type.valid
    if rows:
        columns = frame.dims(tensor, bound.node)[-1]
        width = frame.known(columns, bound.place("mem"), f"{bound.label}: the last dimension of mem")
        count = type.valid[1] if type.shape[0] == 1 else type.valid[0]
        shape = (max(type.shape), width)
        valid = (count, width)
    if bound["valid_shape"] is not None:
        valid = frame.valid_shape(bound["valid_shape"], shape, 2, bound.place("valid_shape"))
    wanted = TileType(shape, dtype, MemorySpace.Vec, valid)
    return frame.op("tile.mgather", [tensor, index], bound.node, (wanted,), rows=rows, outside=outside).result


def _mscatter(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    tensor = tensor_argument(frame, bound, "output_tensor")
    frame.check_writes(tensor, bound.place("output_tensor"))
    operands = [_tile(frame, bound, "src"), _tile(frame, bound, "idx"), tensor]
    frame.op("tile.mscatter", operands, bound.node, (), rows=False)
    return tensor


def _sort32(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    return frame.op("tile.sort32", [_tile(frame, bound, "src"), _tile(frame, bound, "idx")], bound.node).result


def _mrgsort(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    names = [name for name in ("src0", "src1", "src2", "src3") if bound[name] is not None]
    sources = [_tile(frame, bound, name) for name in names]
    if bound["block_len"] is not None:
        if len(sources) != 1:
            raise frame.error(f"{bound.label}: block_len goes with one source", bound.place("block_len"))
        length = frame.known(bound["block_len"], bound.place("block_len"), f"{bound.label}: block_len")
        return frame.op("tile.mrgsort_blocks", sources, bound.node, (), block_len=length).result
    if len(sources) < 2:
        raise frame.error(f"{bound.label}: needs two to four sources, or one and block_len", bound.node)
    exhausted = flag_argument(frame, bound, "exhausted")
    return frame.op("tile.mrgsort", sources, bound.node, (), exhausted=exhausted).result


HANDLERS: dict[str, Callable[[Frame, Bound], Any]] = {
    "gather": _gather,
    "gatherb": _gatherb,
    "gather_mask": _gather_mask,
    "gather_compare": _gather_compare,
    "tensor.gather": _tensor_gather,
    "scatter": _scatter,
    "scatter_mask": _scatter_mask,
    "tensor.scatter": _tensor_scatter,
    "scatter_update": _scatter_update,
    "gather_row": _gather_row,
    "mgather": _mgather,
    "mscatter": _mscatter,
    "sort32": _sort32,
    "mrgsort": _mrgsort,
}
# (operation, parameter) whose meaning is handled here.
OPTIONS = frozenset({("gather_row", "shapes"), ("gather_row", "transpose")})
