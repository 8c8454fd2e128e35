"""Tiles that are filled, joined, counted up or seen as other elements: work that only templates of ours do."""

from __future__ import annotations

import functools

from pypto.ir.nodes import CoreType
from pypto.ir.ops.lowering import Template
from pypto.ir.ops.registry import Attr, Call, Kind, OpDef, Operand, register
from pypto.ir.ops.tile_memory import check_valid
from pypto.ir.ops.user_names import ON_BOTH, ON_TILES, user_name
from pypto.ir.ops.vector import tile_operand, vector_op
from pypto.ir.types import DType, MemorySpace, TileType, Type
from pypto.ir.values import constant_of, same_value

PADS = ("zero", "max", "min")
"""What may fill a tile up; the position is what the template takes."""


def pad_number(dtype: DType, pad: int) -> int | float:
    """The number that a pad stands for in a dtype."""
    if pad == 0:
        return 0.0 if dtype.is_float else 0
    if dtype.is_float:
        return float("inf") if pad == 1 else float("-inf")
    signed = dtype.kind == "int"
    largest = (1 << (dtype.bits - signed)) - 1
    return largest if pad == 1 else -largest - 1 if signed else 0


def _wanted(call: Call) -> tuple[Type, ...]:
    wanted = call.wanted_tile()
    for size in wanted.shape:
        if size <= 0:
            raise call.error(f"every dimension must be positive, got {list(wanted.shape)}")
    check_valid(call, wanted.shape, wanted.valid)
    return (wanted,)


def _fillpad(call: Call) -> tuple[Type, ...]:
    source = call.tile(0)
    return (TileType(source.shape, source.dtype, MemorySpace.Vec, source.shape),)


def _fillpad_expand(call: Call) -> tuple[Type, ...]:
    source, (wanted,) = call.tile(0), _wanted(call)
    shape = call.wanted_tile().shape
    if any(new < old for new, old in zip(shape, source.shape, strict=True)):
        raise call.error(f"the shape {list(shape)} is smaller than that of the tile, {list(source.shape)}")
    return (wanted,)


def _assemble(call: Call) -> tuple[Type, ...]:
    target, source = call.tile(0), call.tile(1)
    if target.dtype != source.dtype:
        raise call.error(f"a tile of {target.dtype} cannot take one of {source.dtype}; use pl.cast")
    for axis in (0, 1):
        start, length, size = constant_of(call.operands[2 + axis]), source.valid[axis], target.shape[axis]
        if isinstance(start, int) and start < 0:
            raise call.error(f"the offset {start} of axis {axis} is negative")
        if isinstance(length, int) and int(start or 0) + length > size:
            raise call.error(f"axis {axis} ends at {int(start or 0) + length}, but the tile has {size} there")
    return (target,)


def _extract(call: Call) -> tuple[Type, ...]:
    source, (wanted,) = call.tile(0), _wanted(call)
    tile = call.wanted_tile()
    if tile.memory not in (MemorySpace.Left, MemorySpace.Right, MemorySpace.Mat):
        where = tile.memory.value if tile.memory else "an unknown memory"
        raise call.error(f"target_memory must be Vec, Left, Right or Mat, not {where}")
    for axis in (0, 1):
        start = constant_of(call.operands[1 + axis])
        if isinstance(start, int) and start < 0:
            raise call.error(f"the offset {start} of axis {axis} is negative")
        if int(start or 0) + tile.shape[axis] > source.shape[axis]:
            end = int(start or 0) + tile.shape[axis]
            raise call.error(f"axis {axis} ends at {end}, but the tile has {source.shape[axis]} there")
    return (wanted,)


def _reinterpret(call: Call) -> tuple[Type, ...]:
    source, (wanted,) = call.tile(0), _wanted(call)
    tile = call.wanted_tile()
    if not all(same_value(v, s) for v, s in zip(source.valid, source.shape, strict=True)):
        raise call.error("the tile is only partly valid; use pl.fillpad first")
    if source.nbytes != tile.nbytes:
        raise call.error(
            f"the tile has {source.nbytes} bytes, [{', '.join(map(str, tile.shape))}] of {tile.dtype} has {tile.nbytes}"
        )
    return (wanted,)


def _ci(call: Call) -> tuple[Type, ...]:
    (wanted,) = _wanted(call)
    if call.wanted_tile().shape[0] != 1:
        raise call.error(f"counts along one row, got {call.wanted_tile().shape[0]} rows")
    return (wanted,)


_filling = functools.partial(vector_op, pointwise=False)


_TILE = tile_operand("tile")
_PAD = Attr("pad", int, choices=tuple(range(len(PADS))))
_SIZES = ("result.rows", "result.cols")
_OFFSETS = (Operand("row", Kind.INDEX), Operand("col", Kind.INDEX))

_filling("fillpad", (_TILE,), _fillpad, Template("fillpad", ("tile", "pad", *_SIZES), "TFILLPAD"), (_PAD,))
_filling(
    "fillpad_expand",
    (_TILE,),
    _fillpad_expand,
    Template("fillpad", ("tile", "pad", *_SIZES), "TFILLPAD_EXPAND"),
    (_PAD,),
)
_filling(
    "assemble",
    (tile_operand("target"), tile_operand("source"), *_OFFSETS),
    _assemble,
    Template("insert", ("source", "row", "col"), "TINSERT"),
    inplace=0,
)
# A part of a tile in matrix memory as an operand of a product.
register(
    OpDef(
        "tile.extract",
        (Operand("src", Kind.TILE, memory=(MemorySpace.Mat,)), *_OFFSETS),
        _extract,
        core=CoreType.AIC,
    )
)
_filling(
    "reinterpret_view",
    (_TILE,),
    _reinterpret,
    Template("reinterpret", ("tile", "tile.rows", "tile.cols", "result.cols")),
)
_filling(
    "ci",
    (Operand("start", Kind.SCALAR),),
    _ci,
    Template("count", ("start", "descending"), "TCI"),
    (Attr("descending", bool),),
)
_filling(
    "tri",
    (Operand("diagonal", Kind.INDEX),),
    _wanted,
    Template("triangle", ("diagonal", "upper"), "TTRI"),
    (Attr("upper", bool),),
)
_WORDS = tuple(Operand(n, Kind.SCALAR) for n in ("key0", "key1", "counter0", "counter1", "counter2", "counter3"))
_filling(
    "random",
    _WORDS,
    _wanted,
    Template("random", (*(o.name for o in _WORDS), "rounds"), "TRANDOM"),
    (Attr("rounds", int, choices=(7, 10)),),
)

user_name(
    "assemble",
    "target, source, offset, *, atomic=None",
    "Write a tile or tensor into a tensor at an offset; gives the tensor.",
    ON_BOTH,
    ops=("tile.store", "tile.assemble"),
)
user_name(
    "reinterpret_view",
    "data, dtype, *, shape=None",
    "The same bytes as elements of another type.",
    ON_BOTH,
)
user_name(
    "fillpad",
    "value, pad_value=PadValue.zero",
    "The tile with a value where it is not valid; valid throughout.",
    ON_BOTH,
    also=(
        "tile, pad_value",
        "tensor, pad_value",
    ),
)
user_name(
    "fillpad_expand",
    "value, shape, pad_value=PadValue.zero",
    "A larger tile, filled with a value where ``value`` does not reach.",
    ON_BOTH,
    also=(
        "tile, shape, pad_value",
        "tensor, shape, pad_value",
    ),
)
user_name(
    "extract",
    "src, index_row, index_col, shape, *, target_memory",
    "A part of a tile, in another memory.",
    ON_TILES,
)
user_name(
    "ci",
    "start, shape, dtype=INT32, descending=False",
    "A row of whole numbers that count up, or down, from ``start``.",
    ON_BOTH,
)
user_name(
    "tri",
    "diagonal, shape, valid_shape=None, dtype=INT32, upper=False",
    "A triangle of ones: where ``column <= row + diagonal``, or above it.",
    ON_TILES,
)
user_name(
    "random",
    ("key0, key1, counter0, counter1, counter2, counter3, shape, valid_shape=None, dtype=UINT32, rounds=10"),
    "Random bits from a counter and a key.",
    ON_TILES,
)
