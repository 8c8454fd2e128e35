"""Tiles: making, loading, storing, moving and re-shaping them."""

from __future__ import annotations

from pypto.ir.nodes import CoreType
from pypto.ir.ops.lowering import Template
from pypto.ir.ops.registry import Attr, Call, Kind, OpDef, Operand, register
from pypto.ir.ops.tensor import READ_AS
from pypto.ir.ops.user_names import ON_BOTH, ON_TILES, PL, user_name
from pypto.ir.types import BF16, FP16, FP32, MemorySpace, ScalarType, TileType, Type, Valid
from pypto.ir.values import constant_of, same_value, simplified

_VEC = (MemorySpace.Vec,)
# Moves from an accumulator or between the kinds of cores go through global memory, as stores and loads.
_MOVES = {
    MemorySpace.Mat: (MemorySpace.Left, MemorySpace.Right, MemorySpace.Bias),
    MemorySpace.Vec: (MemorySpace.Vec, MemorySpace.Mat),
    MemorySpace.Acc: (MemorySpace.Vec, MemorySpace.Mat),
}


def check_valid(call: Call, shape: tuple[int, int], valid: tuple[Valid, Valid]) -> None:
    """Known valid lengths must lie between 1 and the allocated size."""
    for axis, (size, length) in enumerate(zip(shape, valid, strict=True)):
        if isinstance(length, int) and not 1 <= length <= size:
            raise call.error(f"valid length {length} of axis {axis} is outside 1..{size}")


def _create(call: Call) -> tuple[Type, ...]:
    wanted = call.wanted_tile()
    for size in wanted.shape:
        if size <= 0:
            raise call.error(f"every dimension must be positive, got {list(wanted.shape)}")
    check_valid(call, wanted.shape, wanted.valid)
    return (wanted,)


def _full(call: Call) -> tuple[Type, ...]:
    (wanted,) = _create(call)
    assert_scalar_fits(call, call.wanted_tile(), 0)
    return (wanted,)


def assert_scalar_fits(call: Call, tile: TileType, index: int) -> None:
    """A scalar beside a tile has the tile's element type, or is FP32 beside FP16 or BF16."""
    dtype = call.scalar(index)
    if dtype != tile.dtype and not (tile.dtype in (FP16, BF16) and dtype == FP32):
        raise call.error(f"the scalar is {dtype}, but the tile's elements are {tile.dtype}; use pl.cast or pl.const")


def _window(call: Call, tile: TileType, tensor_index: int, transposed: bool) -> None:
    tensor = call.tensor(tensor_index)
    offsets = call.operands[tensor_index + 1 :]
    if len(offsets) != tensor.rank:
        raise call.error(f"needs {tensor.rank} offsets for {tensor}, got {len(offsets)}")
    lengths: tuple[Valid, ...] = tile.valid[::-1] if transposed else tile.valid
    if tensor.rank == 1:
        if tile.shape[0] != 1:
            raise call.error(f"a tensor of one dimension holds tiles of one row, not {tile.shape[0]} rows")
        lengths = lengths[1:]
    lengths = (1,) * (tensor.rank - len(lengths)) + lengths
    for axis, (offset, length, dim) in enumerate(zip(offsets, lengths, tensor.shape, strict=True)):
        start = constant_of(offset)
        if isinstance(start, int) and start < 0:
            raise call.error(f"the offset {start} of axis {axis} is negative")
        if isinstance(length, int) and isinstance(dim, int) and int(start or 0) + length > dim:
            raise call.error(
                f"axis {axis} ends at {int(start or 0) + length}, but the tensor has {dim} there; "
                "make the tile smaller or give valid_shape"
            )


def _load(call: Call) -> tuple[Type, ...]:
    (wanted,) = _create(call)
    tile, tensor = call.wanted_tile(), call.tensor(0)
    if tile.dtype != tensor.dtype:
        raise call.error(f"a tile of {tile.dtype} cannot be loaded from a tensor of {tensor.dtype}")
    if tile.memory not in (None, MemorySpace.Vec, MemorySpace.Mat, MemorySpace.Bias):
        raise call.error(f"cannot load into {tile.memory.value}; load into Vec or Mat and use pl.move")
    _window(call, tile, 0, call.attrs.get("transposed", False))
    return (wanted,)


def _store(call: Call) -> tuple[Type, ...]:
    tile, tensor = call.tile(0), call.tensor(1)
    narrowed = tile.memory is MemorySpace.Acc and (tile.dtype, tensor.dtype) == (FP32, FP16)
    if tile.dtype != tensor.dtype and not narrowed:
        raise call.error(f"a tile of {tile.dtype} cannot be stored into a tensor of {tensor.dtype}; use pl.cast")
    _window(call, tile, 1, False)
    return ()


def _move(call: Call) -> tuple[Type, ...]:
    source, wanted = call.tile(0), call.wanted_tile()
    if wanted.memory is None:
        raise call.error("needs a target memory")
    allowed = _MOVES.get(source.memory, ()) if source.memory else tuple(MemorySpace)
    if wanted.memory not in allowed:
        here = source.memory.value if source.memory else "an unknown memory"
        can = ", ".join(m.value for m in allowed) or "nowhere; store it to a tensor instead"
        raise call.error(f"a tile in {here} cannot move to {wanted.memory.value}; it can move to: {can}")
    return (TileType(source.shape, source.dtype, wanted.memory, source.valid),)


def _slice(call: Call) -> tuple[Type, ...]:
    source, (wanted,) = call.tile(0), _create(call)
    tile = call.wanted_tile()
    for axis in (0, 1):
        start = constant_of(call.operands[1 + axis])
        if isinstance(start, int) and start < 0:
            raise call.error(f"the offset {start} of axis {axis} is negative")
        if int(start or 0) + tile.shape[axis] > source.shape[axis]:
            raise call.error(
                f"axis {axis} ends at {int(start or 0) + tile.shape[axis]}, but the tile has {source.shape[axis]} there"
            )
    if tile.dtype != source.dtype:
        raise call.error(f"keeps the element type {source.dtype}, got {tile.dtype}")
    return (wanted,)


def _reshape(call: Call) -> tuple[Type, ...]:
    source, wanted = call.tile(0), call.wanted_tile()
    (rows, cols), (new_rows, new_cols) = source.shape, wanted.shape
    if rows * cols != new_rows * new_cols or min(new_rows, new_cols) < 1:
        raise call.error(f"[{rows}, {cols}] has {rows * cols} elements, [{new_rows}, {new_cols}] does not")
    if source.shape == wanted.shape:
        valid = source.valid
    elif 1 in source.shape and wanted.shape == source.shape[::-1]:
        valid = source.valid[::-1]
    elif all(same_value(v, s) for v, s in zip(source.valid, source.shape, strict=True)):
        valid = wanted.shape
    else:
        raise call.error("a tile that is partly valid can only be turned from a column into a row and back")
    return (TileType(wanted.shape, source.dtype, MemorySpace.Vec, valid),)


def _transpose(call: Call) -> tuple[Type, ...]:
    source = call.tile(0)
    return (TileType(source.shape[::-1], source.dtype, MemorySpace.Vec, source.valid[::-1]),)


def _set_validshape(call: Call) -> tuple[Type, ...]:
    source = call.tile(0)
    valid = (simplified(call.operands[1]), simplified(call.operands[2]))
    check_valid(call, source.shape, valid)
    return (TileType(source.shape, source.dtype, source.memory, valid),)


def _read(call: Call) -> tuple[Type, ...]:
    _element(call)
    dtype = call.tile(0).dtype
    if dtype not in READ_AS:
        raise call.error(f"elements of {dtype} cannot be read as numbers")
    return (ScalarType(READ_AS[dtype]),)


def _write(call: Call) -> tuple[Type, ...]:
    _element(call)
    assert_scalar_fits(call, call.tile(0), 3)
    return (call.tile(0),)


def _element(call: Call) -> None:
    tile = call.tile(0)
    for axis in (0, 1):
        index = constant_of(call.operands[1 + axis])
        if isinstance(index, int) and not 0 <= index < tile.shape[axis]:
            raise call.error(f"index {index} is outside axis {axis} of length {tile.shape[axis]}")


_OFFSETS = Operand("offsets", Kind.INDEX, variadic=True)
_TENSOR = Operand("tensor", Kind.TENSOR)
_ANY_TILE = Operand("tile", Kind.TILE)
_VEC_TILE = Operand("tile", Kind.TILE, memory=_VEC)


def _gather_row(call: Call) -> tuple[Type, ...]:
    target, tensor = call.tile(0), call.tensor(1)
    if target.dtype != tensor.dtype:
        raise call.error(f"a tile of {target.dtype} cannot take rows of {tensor.dtype}")
    if len(call.operands) != 6 + tensor.rank:
        raise call.error(f"needs {tensor.rank} offsets for {tensor}, got {len(call.operands) - 6}")
    lengths = [simplified(v) for v in call.operands[4:6]]
    for axis, length in enumerate(lengths[:: -1 if call.attrs["turned"] else 1]):
        start = constant_of(call.operands[2 + axis])
        if isinstance(length, int) and int(start or 0) + length > target.shape[axis]:
            raise call.error(f"axis {axis} ends at {int(start or 0) + length}, but the tile has {target.shape[axis]}")
    return (target,)


def _transpose_view(call: Call) -> tuple[Type, ...]:
    source = call.tile(0)
    return (TileType(source.shape[::-1], source.dtype, source.memory, source.valid[::-1]),)


_PLACE = (_VEC_TILE, Operand("row", Kind.INDEX), Operand("col", Kind.INDEX))

register(OpDef("tile.create", (), _create))
# A block of a tensor, with `rows` and `cols`, brought to `row` and `col` of a tile; also of matrix memory.
register(
    OpDef(
        "tile.gather_row",
        (
            Operand("dst", Kind.TILE, memory=(MemorySpace.Vec, MemorySpace.Mat)),
            _TENSOR,
            *(Operand(name, Kind.INDEX) for name in ("row", "col", "rows", "cols")),
            _OFFSETS,
        ),
        _gather_row,
        (Attr("turned", bool),),
        inplace=0,
    )
)
register(OpDef("tile.transpose_view", (_ANY_TILE,), _transpose_view))
# One element as a number, and a tile with another number in one place.
register(OpDef("tile.read", _PLACE, _read, core=CoreType.AIV))
register(
    OpDef(
        "tile.write",
        (*_PLACE, Operand("value", Kind.SCALAR)),
        _write,
        core=CoreType.AIV,
        lowering=Template("write", ("row", "col", "value")),
        inplace=0,
        result_memory=MemorySpace.Vec,
    )
)
register(
    OpDef(
        "tile.full",
        (Operand("value", Kind.SCALAR),),
        _full,
        core=CoreType.AIV,
        result_memory=MemorySpace.Vec,
    )
)
register(OpDef("tile.load", (_TENSOR, _OFFSETS), _load, (Attr("transposed", bool, required=False),)))
register(
    OpDef(
        "tile.store",
        (Operand("tile", Kind.TILE, memory=(MemorySpace.Vec, MemorySpace.Acc)), _TENSOR, _OFFSETS),
        _store,
        (Attr("atomic", str, required=False, choices=("none", "add")),),
        pure=False,
    )
)
register(OpDef("tile.move", (_ANY_TILE,), _move))
register(
    OpDef(
        "tile.slice",
        (Operand("tile", Kind.TILE, memory=_VEC), Operand("row", Kind.INDEX), Operand("col", Kind.INDEX)),
        _slice,
        core=CoreType.AIV,
        result_memory=MemorySpace.Vec,
    )
)
register(OpDef("tile.reshape", (_VEC_TILE,), _reshape, core=CoreType.AIV, result_memory=MemorySpace.Vec))
register(
    OpDef(
        "tile.transpose",
        (_VEC_TILE,),
        _transpose,
        core=CoreType.AIV,
        result_memory=MemorySpace.Vec,
    )
)
register(
    OpDef(
        "tile.set_validshape",
        (_VEC_TILE, Operand("rows", Kind.INDEX), Operand("cols", Kind.INDEX)),
        _set_validshape,
        core=CoreType.AIV,
        result_memory=MemorySpace.Vec,
    )
)

user_name(
    "slice",
    "input, shape, offset, valid_shape=None, drop_dims=None, pad_value=None, clamp=False",
    "A window of a tensor (a view) or of a tile (a copy).",
    ON_BOTH,
    also=(
        "tile, shape, offset, valid_shape, drop_dims, pad_value",
        "tensor, shape, offset, valid_shape, drop_dims, pad_value, clamp",
    ),
    ops=("tensor.view", "tile.slice"),
)
user_name(
    "reshape",
    "input, shape",
    "The same elements in another shape: another handle of a tensor, or a tile.",
    ON_BOTH,
    also=(
        "tile, shape",
        "tensor, shape",
    ),
    ops=("tile.reshape", "tensor.reshape"),
)
user_name(
    "transpose",
    "input, axis1, axis2, tmp_tile=None",
    "Rows and columns of a tile swapped.",
    ON_BOTH,
    also=(
        "tile, axis1, axis2, tmp_tile",
        "tensor, axis1, axis2",
    ),
)
user_name(
    "set_validshape",
    "input, valid_rows, valid_cols",
    "The tile with other valid lengths.",
    ON_BOTH,
    also=(
        "tile, valid_rows, valid_cols",
        "tensor, valid_rows, valid_cols",
    ),
)
user_name(
    "load",
    "tensor, offsets, shapes, valid_shape=None, target_memory=MemorySpace.Vec, clamp=False",
    (
        "A tile from a window of a tensor. Args: offsets: one per dimension of the tensor, in "
        "elements; may be run-time values. shapes: known sizes of the window; all but the last two "
        "are 1. valid_shape: sizes that hold data, at most ``shapes``; may be run-time values. "
        "target_memory: Vec or Mat. Unless given, a tile that only matrix operations use goes to "
        "Mat, others to Vec. clamp: of the window, only what the tensor has there holds data."
    ),
    ON_TILES,
)
user_name(
    "store",
    "tile, offsets, output_tensor, shapes=None, *, atomic=None",
    "Write the valid part of a tile into a tensor; gives the tensor.",
    ON_TILES,
)
user_name(
    "read",
    "src, offset",
    "One element as a scalar: of a tile or tensor on a core, or of an input in the entry, before tasks run.",
    ops=("tile.read", "tensor.read"),
)
user_name(
    "write",
    "dst, offset, value",
    "Write one number into a tensor, on a core; gives the tensor.",
    ON_BOTH,
    also=(
        "tile, indices, value",
        "tensor, indices, value",
    ),
)
user_name(
    "concat",
    "src0, src1",
    "Two tensors or tiles beside each other: the columns of the first, then those of the second.",
    ON_BOTH,
    ops=("tile.full", "tile.assemble"),
)
user_name(
    "move",
    "tile, target_memory, blayout=None, slayout=None",
    "The tile in another on-chip memory.",
    ON_TILES,
)
user_name(
    "create",
    "shape, dtype, target_memory=MemorySpace.Vec, transpose=None, *, flat_layout=None",
    "A tile without values yet.",
    ON_TILES,
)
user_name(
    "create_tile",
    "shape, dtype, target_memory=MemorySpace.Vec",
    "A tile without values yet.",
    (PL,),
    ops=("tile.create",),
)
user_name(
    "full",
    "shape, dtype, value",
    "A tile filled with a scalar.",
    ON_BOTH,
)
user_name(
    "alloc",
    "memory_space, size, *, pinned=False",
    "On-chip memory of a certain size.",
    ON_BOTH,
    unsupported="ptoas places every tile by itself",
)
user_name(
    "aiv_shard",
    "x, span=None",
    "This vector core's half of a tile of the matrix core, in ``pl.split_aiv``; all of it under ``SplitMode.NONE``.",
    ON_TILES,
)
user_name(
    "aic_gather",
    "x, span=None",
    "One tile of the halves that the vector cores of ``pl.split_aiv`` made, for use behind the region.",
    ON_TILES,
)
user_name(
    "fillpad_inplace",
    "tile, pad_value=PadValue.zero",
    "As ``fillpad``, in the memory of the tile.",
    ON_TILES,
    ops=("tile.fillpad",),
)
user_name(
    "get_block_idx",
    "",
    "Number of this block among those of a launch; 0 outside of one.",
    ON_BOTH,
)
user_name(
    "get_subblock_idx",
    "",
    "Number of this vector core within its block; 0 outside of `pl.split_aiv`.",
    ON_BOTH,
)
user_name(
    "get_block_num",
    "",
    "How many blocks the launch has; 1 outside of one.",
    ON_BOTH,
)
user_name(
    "transpose_view",
    "tile",
    "Rows and columns of a tile swapped, in the same memory.",
    ON_TILES,
)
