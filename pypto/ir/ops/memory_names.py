"""Names for making, moving and re-shaping tiles and tensors."""

from __future__ import annotations

from pypto.ir.ops.user_names import ON_BOTH, ON_TILES, PL, user_name

user_name(
    "slice",
    "input, shape, offset, valid_shape=None, drop_dims=None, pad_value=None, clamp=False",
    "A window of a tensor (a view) or of a tile (a copy).",
    ON_BOTH,
    also=(
        "tile, shape, offset, valid_shape, drop_dims, pad_value",
        "tensor, shape, offset, valid_shape, drop_dims, pad_value, clamp",
    ),
)
user_name(
    "reshape",
    "input, shape",
    "The same elements in another shape; tiles only.",
    ON_BOTH,
    also=(
        "tile, shape",
        "tensor, shape",
    ),
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
    ("One element of an input of the entry, as a scalar; read on the host while tasks are put together."),
    ON_BOTH,
    also=(
        "tile, indices",
        "tensor, indices",
    ),
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
    "assemble",
    "target, source, offset, *, atomic=None",
    "Write a tile or tensor into a tensor at an offset; gives the tensor.",
    ON_BOTH,
)
user_name(
    "concat",
    "src0, src1",
    "Two tensors or tiles beside each other: the columns of the first, then those of the second.",
    ON_BOTH,
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
)
user_name(
    "full",
    "shape, dtype, value",
    "A tile filled with a scalar.",
    ON_BOTH,
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
    "alloc",
    "memory_space, size, *, pinned=False",
    "On-chip memory of a certain size.",
    ON_BOTH,
    unsupported="ptoas places every tile by itself",
)
user_name(
    "extract",
    "src, index_row, index_col, shape, *, target_memory",
    "A part of a tile, in another memory.",
    ON_TILES,
)
user_name(
    "aiv_shard",
    "x, span=None",
    "A tile of the matrix core, for the vector cores of `pl.split_aiv`.",
    ON_TILES,
)
user_name(
    "aic_gather",
    "x, span=None",
    "A tile that the vector cores of `pl.split_aiv` made, for the matrix core.",
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
user_name(
    "fillpad_inplace",
    "tile, pad_value=PadValue.zero",
    "As ``fillpad``, in the memory of the tile.",
    ON_TILES,
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
