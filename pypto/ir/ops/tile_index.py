"""Gathering, scattering and sorting elements of tiles."""

from __future__ import annotations

import functools

from pypto.ir.nodes import CoreType
from pypto.ir.ops.lowering import Template
from pypto.ir.ops.registry import Attr, Call, Kind, OpDef, Operand, register
from pypto.ir.ops.tile_memory import check_valid
from pypto.ir.ops.user_names import ON_BOTH, ON_TILES, user_name
from pypto.ir.ops.vector import VEC, tile_operand, vector_op
from pypto.ir.types import (
    BF16,
    FP16,
    FP32,
    INT16,
    INT32,
    UINT16,
    UINT32,
    DType,
    DynDim,
    MemorySpace,
    TensorType,
    TileType,
    Type,
)
from pypto.ir.values import same_value

_POSITIONS = (INT32, UINT32, INT16, UINT16)
_SORTED = (FP32, FP16, BF16, INT32, INT16)

PATTERNS = ("P0101", "P1010", "P0001", "P0010", "P0100", "P1000", "P1111")
"""Mask patterns; the number of one is its position plus 1. The first element of a group is the last digit."""
OUTSIDE = ("undefined", "clamp", "wrap", "zero")
"""What `pl.mgather` does with an index outside of its tensor; undefined is an error of the run."""
COMPARED = ("eq", "gt")
"""How `pl.gather_compare` compares."""


def chosen(pattern: int) -> int:
    """Of how many elements a pattern chooses one."""
    return (2, 2, 4, 4, 4, 4, 1)[pattern - 1]


def _vec(shape: tuple[int, int], dtype: DType, like: TileType) -> TileType:
    return TileType(shape, dtype, MemorySpace.Vec, like.valid if like.shape == shape else shape)


def _same_shape(call: Call, a: int, b: int) -> None:
    """Two operands stand beside each other, element by element."""
    left, right = call.tile(a), call.tile(b)
    names = call.op.operand(a).name, call.op.operand(b).name
    if left.shape != right.shape or not all(same_value(x, y) for x, y in zip(left.valid, right.valid, strict=True)):
        raise call.error(
            f"{names[0]} is {list(left.shape)} and {names[1]} is {list(right.shape)}; they need one shape and equal "
            "valid lengths"
        )


def _same_dtype(call: Call, a: int, b: int) -> None:
    if call.tile(a).dtype != call.tile(b).dtype:
        names = call.op.operand(a).name, call.op.operand(b).name
        raise call.error(f"{names[0]} is of {call.tile(a).dtype} and {names[1]} of {call.tile(b).dtype}; use pl.cast")


def _gather(call: Call) -> tuple[Type, ...]:
    source, index = call.tile(0), call.tile(1)
    return (_vec(index.shape, source.dtype, index),)


def _gather_along(call: Call) -> tuple[Type, ...]:
    source, index = call.tile(0), call.tile(1)
    _check_beside(call, index, source, 1 - call.attrs["axis"])
    return (_vec(index.shape, source.dtype, index),)


def _check_beside(call: Call, index: TileType, tile: TileType, axis: int) -> None:
    """Along an axis that nothing is chosen along, an index is at most as long as the tile."""
    pairs = [(type.valid[axis], type.shape[axis]) for type in (index, tile)]
    wanted, have = (valid if isinstance(valid, int) else size for valid, size in pairs)
    if wanted > have:
        raise call.error(f"the index has {wanted} {('rows', 'columns')[axis]}, the tile {have}")


def _gather_blocks(call: Call) -> tuple[Type, ...]:
    source, offset, wanted = call.tile(0), call.tile(1), call.wanted_tile()
    elements = 32 // source.dtype.nbytes
    if wanted.dtype.nbytes != source.dtype.nbytes:
        raise call.error(f"output_dtype {wanted.dtype} and {source.dtype} have different sizes")
    if wanted.shape != (offset.shape[0], offset.shape[1] * elements):
        raise call.error(f"{list(offset.shape)} offsets name blocks of {elements} elements each")
    return (wanted,)


def _pattern_of(call: Call) -> int:
    pattern: int = call.attrs["pattern"]
    return pattern


def _gather_mask(call: Call) -> tuple[Type, ...]:
    source, wanted = call.tile(0), call.wanted_tile()
    share = chosen(_pattern_of(call))
    if source.shape[1] % share:
        raise call.error(f"{source.shape[1]} columns are not a multiple of {share}, as the pattern needs")
    if wanted.dtype.nbytes != source.dtype.nbytes:
        raise call.error(f"output_dtype {wanted.dtype} and {source.dtype} have different sizes")
    return (wanted,)


def _scatter_mask(call: Call) -> tuple[Type, ...]:
    target, source = call.tile(0), call.tile(1)
    share = chosen(_pattern_of(call))
    _same_dtype(call, 0, 1)
    if target.shape != (source.shape[0], source.shape[1] * share):
        raise call.error(
            f"dst must be {[source.shape[0], source.shape[1] * share]} for this pattern, is {list(target.shape)}"
        )
    return (target,)


def _gather_compare(call: Call) -> tuple[Type, ...]:
    source, key = call.tile(0), call.tile(1)
    if key.shape not in ((source.shape[0], 1), (1, source.shape[0])):
        raise call.error(f"kvalue needs one element for each of {source.shape[0]} rows, is {list(key.shape)}")
    if len(call.types) != 2 or not all(isinstance(t, TileType) for t in call.types):
        raise call.error("needs two tile types as its results")
    return tuple(call.types)


def _scatter(call: Call) -> tuple[Type, ...]:
    _same_dtype(call, 0, 1)
    _same_shape(call, 1, 2)
    target, source = call.tile(0), call.tile(1)
    if source.shape[1] > target.shape[1]:
        raise call.error(f"src has {source.shape[1]} columns, dst {target.shape[1]}")
    return (target,)


def _scatter_along(call: Call) -> tuple[Type, ...]:
    target, source, index = call.tile(0), call.tile(1), call.tile(2)
    _same_dtype(call, 0, 1)
    for axis in (0, 1):
        _check_beside(call, index, source, axis)
    _check_beside(call, index, target, 1 - call.attrs["axis"])
    return (target,)


def _scatter_rows(call: Call) -> tuple[Type, ...]:
    target, index, source = call.tile(0), call.tile(1), call.tile(2)
    _same_dtype(call, 0, 2)
    if index.shape[0] * index.shape[1] < source.shape[0]:
        raise call.error(f"src has {source.shape[0]} rows, the index {index.shape[0] * index.shape[1]} elements")
    if source.shape[1] != target.shape[1]:
        raise call.error(f"src has {source.shape[1]} columns, input {target.shape[1]}")
    return (target,)


def _sort32(call: Call) -> tuple[Type, ...]:
    source = call.tile(0)
    _same_shape(call, 0, 1)
    share = 8 // source.dtype.nbytes
    if source.valid[1] != source.shape[1]:
        raise call.error("src must be valid in all its columns; use pl.fillpad first")
    shape = (source.shape[0], source.shape[1] * share)
    return (TileType(shape, source.dtype, MemorySpace.Vec, (source.valid[0], shape[1])),)


def _merge_blocks(call: Call) -> tuple[Type, ...]:
    source, length = call.tile(0), call.attrs["block_len"]
    share = 8 // source.dtype.nbytes
    if length <= 0 or length % share:
        raise call.error(f"block_len counts elements of pairs, a multiple of {share}; got {length}")
    return (source,)


def _merge_runs(call: Call) -> tuple[Type, ...]:
    tiles = [call.tile(i) for i in range(len(call.operands))]
    if not 2 <= len(tiles) <= 4:
        raise call.error(f"merges two to four runs, got {len(tiles)}")
    first = tiles[0]
    for index, tile in enumerate(tiles):
        _same_dtype(call, 0, index)
        if tile.shape[0] != first.shape[0]:
            raise call.error(f"src{index} has {tile.shape[0]} rows, src0 {first.shape[0]}")
        if tile.valid[1] != tile.shape[1] or not same_value(tile.valid[0], first.valid[0]):
            raise call.error(f"src{index} must be valid in all its columns and in as many rows as src0")
    shape = (first.shape[0], sum(tile.shape[1] for tile in tiles))
    return (TileType(shape, first.dtype, MemorySpace.Vec, (first.valid[0], shape[1])),)


def _matrix(call: Call, index: int) -> TensorType:
    tensor = call.tensor(index)
    if tensor.rank > 2 and tensor.is_view:
        raise call.error(
            f"takes views of one or two dimensions, got {tensor.rank}; use pl.reshape or pl.slice with drop_dims"
        )
    return tensor


def _mgather(call: Call) -> tuple[Type, ...]:
    tensor, index, wanted = _matrix(call, 0), call.tile(1), call.wanted_tile()
    check_valid(call, wanted.shape, wanted.valid)
    if tensor.dtype != wanted.dtype:
        raise call.error(f"a tile of {wanted.dtype} cannot take elements of {tensor.dtype}")
    if not call.attrs["rows"]:
        return (_vec(index.shape, tensor.dtype, index),)
    if 1 not in index.shape or max(index.shape) != wanted.shape[0]:
        raise call.error(f"{wanted.shape[0]} rows need as many indices in one row or column, got {list(index.shape)}")
    return (wanted,)


def _names_rows(index: TileType, source: TileType) -> bool:
    """Whether an index has an element for each row of a tile."""
    if index.shape[0] * index.shape[1] != source.shape[0]:
        return False
    if 1 not in index.shape:
        return index.valid == index.shape
    return index.valid == index.shape or same_value(index.valid[index.shape[0] == 1], source.valid[0])


def _has_columns(tensor: TensorType, source: TileType) -> bool:
    """Whether the rows of a tile are as long as those of a tensor."""
    last = tensor.shape[-1]
    return source.shape[1] == last or (not isinstance(last, DynDim) and same_value(source.valid[1], last))


def _mscatter(call: Call) -> tuple[Type, ...]:
    source, index = call.tile(0), call.tile(1)
    if not call.attrs["rows"]:
        _same_shape(call, 0, 1)
    elif not _names_rows(index, source):
        raise call.error(f"{source.shape[0]} rows need as many indices, got {list(index.shape)}")
    elif not _has_columns(call.tensor(2), source):
        raise call.error(f"the rows have {source.shape[1]} columns, those of the tensor {call.tensor(2).shape[-1]}")
    if _matrix(call, 2).dtype != call.tile(0).dtype:
        raise call.error(
            f"a tensor of {call.tensor(2).dtype} cannot take elements of {call.tile(0).dtype}; use pl.cast"
        )
    return ()


_indexing = functools.partial(vector_op, pointwise=False)


_SRC, _DST = tile_operand("src"), tile_operand("dst")
_INDEX = tile_operand("indices", _POSITIONS)
_SOURCE_SIZES = ("src.rows", "src.cols")
_PATTERN = Attr("pattern", int, choices=tuple(range(1, len(PATTERNS) + 1)))
_AXIS = Attr("axis", int, choices=(0, 1))

_indexing("gather", (_SRC, _INDEX), _gather, Template("gather", ("src", "indices", *_SOURCE_SIZES), "TGATHER"))
_indexing("gather_along", (_SRC, _INDEX), _gather_along, Template("gather_along", ("src", "indices", "axis")), (_AXIS,))
_indexing(
    "gatherb",
    (_SRC, tile_operand("offset", _POSITIONS)),
    _gather_blocks,
    Template("gather_blocks", ("src", "offset", *_SOURCE_SIZES), "TGATHERB"),
)
_indexing("gather_mask", (_SRC,), _gather_mask, Template("gather_mask", ("src", "pattern"), "TGATHER"), (_PATTERN,))
_indexing(
    "gather_compare",
    (
        tile_operand("src", (FP32, FP16, BF16, INT32, INT16)),
        tile_operand("kvalue"),
        Operand("offset", Kind.INDEX),
    ),
    _gather_compare,
    Template("gather_compare", ("src", "kvalue", "compared", "offset", "src.cols", "result.cols"), "TGATHER"),
    (Attr("compared", int, choices=tuple(range(len(COMPARED)))),),
)
_indexing(
    "scatter",
    (_DST, _SRC, tile_operand("indexes", _POSITIONS)),
    _scatter,
    Template("scatter", ("src", "indexes"), "TSCATTER"),
    inplace=0,
)
_indexing(
    "scatter_along",
    (_DST, _SRC, tile_operand("indexes", _POSITIONS)),
    _scatter_along,
    Template("scatter_along", ("src", "indexes", "axis")),
    (_AXIS,),
    inplace=0,
)
_indexing(
    "scatter_mask",
    (_DST, _SRC),
    _scatter_mask,
    Template("scatter_mask", ("src", "pattern"), "TSCATTER"),
    (_PATTERN,),
    inplace=0,
)
_indexing(
    "scatter_update",
    (tile_operand("input"), tile_operand("index", _POSITIONS), _SRC),
    _scatter_rows,
    Template("scatter_rows", ("index", "src", "index.cols")),
    inplace=0,
)
_indexing(
    "sort32",
    (tile_operand("src", _SORTED), tile_operand("idx", (INT32, UINT32))),
    _sort32,
    Template("sort32", ("src", "idx"), "TSORT32"),
)
_indexing(
    "mrgsort_blocks",
    (tile_operand("src", _SORTED),),
    _merge_blocks,
    Template("merge_blocks", ("src", "block_len"), "TMRGSORT"),
    (Attr("block_len", int),),
)
_indexing(
    "mrgsort",
    (Operand("src", Kind.TILE, memory=VEC, dtypes=_SORTED, variadic=True),),
    _merge_runs,
    Template("merge_runs", ("exhausted", "src"), "TMRGSORT"),
    (Attr("exhausted", bool),),
)
_TENSOR = Operand("tensor", Kind.TENSOR)
# Rows, or elements at flat positions, of a tensor of one or two dimensions.
register(
    OpDef(
        "tile.mgather",
        (_TENSOR, _INDEX),
        _mgather,
        (Attr("rows", bool), Attr("outside", int, choices=tuple(range(len(OUTSIDE))))),
        core=CoreType.AIV,
        result_memory=MemorySpace.Vec,
    )
)
register(
    OpDef(
        "tile.mscatter",
        (_SRC, tile_operand("idx", _POSITIONS), _TENSOR),
        _mscatter,
        (Attr("rows", bool),),
        core=CoreType.AIV,
        pure=False,
    )
)

user_name(
    "gather_row",
    "dst, src, dst_offset, src_offset, shapes, transpose=False, *, valid_shape=None",
    "A block of a tensor, brought to a place of a tile in Vec or Mat; `transpose` turns it.",
    ON_BOTH,
    also=("acc, src, dst_offset, src_offset, shapes, transpose, valid_shape",),
)
user_name(
    "scatter_update",
    "input, dim=None, index=None, src=None",
    "Row `index[k]` becomes row `k` of `src`: in a tile, or in place in a tensor that may be written.",
    ON_BOTH,
    ops=("tile.scatter_update", "tile.mscatter"),
)
user_name(
    "sort32",
    "src, idx",
    (
        "Each block of 32 columns from the largest to the smallest, as pairs of 8 bytes: value, and position "
        "in the last 4."
    ),
    ON_BOTH,
)
user_name(
    "mrgsort",
    "src0, src1=None, src2=None, src3=None, tmp=None, *, exhausted=False, block_len=None",
    "Sorted runs of pairs merged: two to four tiles, or with `block_len` every four neighbouring runs of a row.",
    ON_BOTH,
    also=("src0, src1, src2, src3, exhausted, block_len",),
    ops=("tile.mrgsort", "tile.mrgsort_blocks"),
)
user_name(
    "gather",
    "src, indices, tmp",
    "`out[i, j]` is the element of `src` at the flat position `indices[i, j]`; outside is an error of the run.",
    ON_TILES,
)
user_name(
    "gatherb",
    "src, offset, *, output_dtype=None",
    "Blocks of 32 bytes of `src` at byte offsets.",
    ON_TILES,
)
user_name(
    "gather_mask",
    "src, mask_pattern, *, output_dtype=None",
    "Every second or fourth column of each row, as `pl.MaskPattern` says.",
    ON_TILES,
)
user_name(
    "gather_compare",
    "src, kvalue, tmp, *, cmp_mode='eq', offset=0, out_cols, count_dtype=None",
    (
        "For each row the flat positions of the elements that equal (`gt`: exceed) its key, from `offset` on, "
        "and their number."
    ),
    ON_TILES,
)
user_name(
    "scatter",
    "dst, src, indexes",
    "`dst` with `dst[indexes[i, j], j] = src[i, j]`; the last one wins.",
    ON_TILES,
)
user_name(
    "scatter_mask",
    "dst, src, mask_pattern",
    "The elements of `src` in the columns that a pattern chooses, zeros in the others.",
    ON_TILES,
)
user_name(
    "mscatter",
    "src, idx, output_tensor",
    "Elements written to a tensor at the flat positions that an index names; outside is an error of the run.",
    ON_TILES,
)
user_name(
    "mgather",
    (
        "mem, idx, coalesce='row', *, gather_oob='undefined', target_memory=MemorySpace.Vec, "
        "scratch=None, valid_shape=None"
    ),
    (
        "Rows of a tensor, or (`elem`) its elements at flat positions; `gather_oob`: undefined (an error), "
        "clamp, wrap, zero."
    ),
    ON_TILES,
)
