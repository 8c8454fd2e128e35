"""Calls that fill tiles up, join and cut them, count, or see them as other elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pypto.ir.nodes import Value
from pypto.ir.ops.tile_filling import PADS
from pypto.ir.types import (
    BF16,
    FP16,
    FP32,
    INDEX,
    INT16,
    INT32,
    INT64,
    UINT16,
    UINT32,
    DType,
    MemorySpace,
    PadValue,
    TileType,
    Valid,
)
from pypto.ir.values import simplified
from pypto.language.parsing.arguments import (
    dtype_argument,
    flag_argument,
    made_shape,
    memory_argument,
    offsets_argument,
    shape_argument,
)
from pypto.language.parsing.binding import Bound
from pypto.language.parsing.frame import Frame, tile_type
from pypto.language.parsing.model import Model, describe, is_number

# Element types of numbers that count, and of triangles of ones.
COUNTED = (INT32, INT16, UINT32, UINT16)
TRIANGLES = (*COUNTED, FP32, FP16, BF16)


def pad_argument(frame: Frame, bound: Bound, name: str = "pad_value") -> int:
    """Which value fills up, by its position in :data:`pypto.ir.ops.tile_filling.PADS`."""
    model = bound[name]
    if is_number(model) and not isinstance(model, bool):
        # The numbers of PADS.
        model = {0: PadValue.zero, math.inf: PadValue.max, -math.inf: PadValue.min}.get(model, model)
    if not isinstance(model, PadValue) or model.value not in PADS:
        wanted = ", ".join(f"pl.PadValue.{p}" for p in PADS)
        raise frame.error(
            f"{bound.label}: {name} must be one of {wanted}, 0 or an infinity, not {describe(model)}", bound.place(name)
        )
    return PADS.index(model.value)


def fill_tile(frame: Frame, tile: Value, pad: int, bound: Bound) -> Value:
    """The tile, valid throughout."""
    return frame.op("tile.fillpad", [tile], bound.node, (), pad=pad).result


def _fillpad(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    name = next(iter(bound.models))
    tile = frame.tile(bound[name], bound.place(name), f"{bound.label}: {name}")
    return fill_tile(frame, tile, pad_argument(frame, bound), bound)


def _fillpad_expand(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    tile = frame.tile(bound["value"], bound.place("value"), f"{bound.label}: value")
    shape = shape_argument(frame, bound, "shape")
    wanted = TileType(shape, tile_type(tile).dtype, MemorySpace.Vec, shape)
    pad = pad_argument(frame, bound)
    return frame.op("tile.fillpad_expand", [tile], bound.node, (wanted,), pad=pad).result


def assemble_tile(frame: Frame, bound: Bound) -> Model:
    """``pl.assemble`` into a tile."""
    frame.need_core(bound.label, bound.node)
    source = frame.tile(bound["source"], bound.place("source"), f"{bound.label}: source")
    offsets = offsets_argument(frame, bound, "offset", 2, "the tile")
    return frame.op("tile.assemble", [bound["target"], source, *offsets], bound.node).result


def _concat(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    left, right = (frame.tile(bound[name], bound.place(name), f"{bound.label}: {name}") for name in ("src0", "src1"))
    first, second = tile_type(left), tile_type(right)
    if first.dtype != second.dtype or first.shape[0] != second.shape[0]:
        raise frame.error(f"{bound.label}: cannot join {describe(left)} and {describe(right)}", bound.node)
    shape = (first.shape[0], first.shape[1] + second.shape[1])
    start = frame.index(first.valid[1], bound.node, "a length")
    end = frame.op("arith.add", [start, frame.index(second.valid[1], bound.node, "a length")], bound.node).result
    lengths = [v for v in (first.valid[1], second.valid[1]) if isinstance(v, int)]
    columns: Valid = sum(lengths) if len(lengths) == 2 else simplified(end)
    zero, value = frame.index(0, bound.node, "an offset"), frame.zero(first.dtype, bound.node)
    wanted = TileType(shape, first.dtype, MemorySpace.Vec, (first.valid[0], columns))
    made = frame.op("tile.full", [value], bound.node, (wanted,)).result
    made = frame.op("tile.assemble", [made, left, zero, zero], bound.node).result
    return frame.op("tile.assemble", [made, right, zero, start], bound.node).result


def _extract(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    tile = frame.tile(bound["src"], bound.place("src"), f"{bound.label}: src")
    shape, memory = shape_argument(frame, bound, "shape"), memory_argument(frame, bound, "target_memory")
    offsets = [
        frame.index(bound[name], bound.place(name), f"{bound.label}: {name}") for name in ("index_row", "index_col")
    ]
    wanted = TileType(shape, tile_type(tile).dtype, memory, shape)
    name = "tile.slice" if memory is MemorySpace.Vec else "tile.extract"
    return frame.op(name, [tile, *offsets], bound.node, (wanted,)).result


def _reinterpret_view(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    tile = frame.tile(bound["data"], bound.place("data"), f"{bound.label}: data")
    type, dtype = tile_type(tile), dtype_argument(frame, bound, "dtype")
    if bound["shape"] is not None:
        shape = shape_argument(frame, bound, "shape")
    else:
        row = type.shape[1] * type.dtype.nbytes
        if row % dtype.nbytes:
            raise frame.error(f"{bound.label}: a row of {row} bytes holds no whole number of {dtype}", bound.node)
        shape = (type.shape[0], row // dtype.nbytes)
    wanted = TileType(shape, dtype, MemorySpace.Vec, shape)
    return frame.op("tile.reinterpret_view", [tile], bound.node, (wanted,)).result


def made_dtype(frame: Frame, bound: Bound, dtypes: tuple[DType, ...]) -> DType:
    """The element type of what a call makes, one of ``dtypes``."""
    dtype = dtype_argument(frame, bound, "dtype")
    if dtype not in dtypes:
        names = ", ".join(t.name for t in dtypes)
        raise frame.error(f"{bound.label}: dtype must be one of {names}, not {dtype}", bound.place("dtype"))
    return dtype


def _made_type(frame: Frame, bound: Bound, dtypes: tuple[DType, ...]) -> TileType:
    """The tile that a call makes from nothing; its ``valid_shape`` is optional."""
    frame.need_core(bound.label, bound.node)
    shape, dtype = made_shape(frame, bound, "shape"), made_dtype(frame, bound, dtypes)
    valid: tuple[Valid, Valid] = shape
    if bound.models.get("valid_shape") is not None:
        valid = frame.valid_shape(bound["valid_shape"], shape, 2, bound.place("valid_shape"))
    return TileType(shape, dtype, MemorySpace.Vec, valid)


def _ci(frame: Frame, bound: Bound) -> Model:
    wanted = _made_type(frame, bound, COUNTED)
    start = frame.scalar(bound["start"], INT64, bound.place("start"), f"{bound.label}: start")
    descending = flag_argument(frame, bound, "descending")
    return frame.op("tile.ci", [start], bound.node, (wanted,), descending=descending).result


def _tri(frame: Frame, bound: Bound) -> Model:
    wanted = _made_type(frame, bound, TRIANGLES)
    diagonal = frame.scalar(bound["diagonal"], INDEX, bound.place("diagonal"), f"{bound.label}: diagonal")
    upper = flag_argument(frame, bound, "upper")
    return frame.op("tile.tri", [diagonal], bound.node, (wanted,), upper=upper).result


def _random(frame: Frame, bound: Bound) -> Model:
    wanted = _made_type(frame, bound, (UINT32, INT32))
    rounds = frame.known(bound["rounds"], bound.place("rounds"), f"{bound.label}: rounds")
    words = [
        frame.scalar(bound[name], INT64, bound.place(name), f"{bound.label}: {name}")
        for name in ("key0", "key1", "counter0", "counter1", "counter2", "counter3")
    ]
    return frame.op("tile.random", words, bound.node, (wanted,), rounds=rounds).result


def _transpose_view(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    tile = frame.tile(bound["tile"], bound.place("tile"), f"{bound.label}: tile")
    return frame.op("tile.transpose_view", [tile], bound.node).result


HANDLERS: dict[str, Callable[[Frame, Bound], Any]] = {
    "fillpad": _fillpad,
    "fillpad_inplace": _fillpad,
    "fillpad_expand": _fillpad_expand,
    "concat": _concat,
    "extract": _extract,
    "transpose_view": _transpose_view,
    "reinterpret_view": _reinterpret_view,
    "ci": _ci,
    "tri": _tri,
    "random": _random,
    "tensor.random": _random,
}
OPTIONS = frozenset({("fillpad", "pad_value"), ("fillpad_inplace", "pad_value"), ("fillpad_expand", "pad_value")})
