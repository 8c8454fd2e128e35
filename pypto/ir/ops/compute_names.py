"""Names of element-wise work, reductions and expansions."""

from __future__ import annotations

from pypto.ir.ops.user_names import ON_BOTH, ON_TILES, user_name

user_name(
    "add",
    "lhs, rhs",
    "Element by element: ``lhs + rhs``; either side may be a scalar.",
    ON_BOTH,
)
user_name(
    "sub",
    "lhs, rhs",
    "Element by element: ``lhs - rhs``; either side may be a scalar.",
    ON_BOTH,
)
user_name(
    "mul",
    "lhs, rhs",
    "Element by element: ``lhs * rhs``; either side may be a scalar.",
    ON_BOTH,
)
user_name(
    "div",
    "lhs, rhs, high_precision=False",
    "Element by element: ``lhs / rhs``; either side may be a scalar.",
    ON_BOTH,
)
user_name(
    "maximum",
    "lhs, rhs",
    "Element by element: the larger one; either side may be a scalar.",
    ON_BOTH,
)
user_name(
    "minimum",
    "lhs, rhs",
    "Element by element: the smaller one; either side may be a scalar.",
    ON_BOTH,
)
user_name(
    "adds",
    "lhs, rhs",
    "``lhs + rhs`` of a tile and a scalar.",
    ON_BOTH,
)
user_name(
    "subs",
    "lhs, rhs",
    "``lhs - rhs`` of a tile and a scalar.",
    ON_BOTH,
)
user_name(
    "muls",
    "lhs, rhs",
    "``lhs * rhs`` of a tile and a scalar.",
    ON_BOTH,
)
user_name(
    "divs",
    "lhs, rhs",
    "``lhs / rhs`` of a tile and a scalar.",
    ON_BOTH,
)
user_name(
    "maximums",
    "lhs, rhs",
    "The larger one of each element and a scalar.",
    ON_TILES,
)
user_name(
    "minimums",
    "lhs, rhs",
    "The smaller one of each element and a scalar.",
    ON_TILES,
)
user_name(
    "exp",
    "input",
    "e to the power of each element.",
    ON_BOTH,
    also=("tile",),
)
user_name(
    "log",
    "input, high_precision=False",
    "Natural logarithm of each element.",
    ON_BOTH,
    also=("tile, high_precision",),
)
user_name(
    "sqrt",
    "input",
    "Square root of each element.",
    ON_BOTH,
    also=("tile",),
)
user_name(
    "rsqrt",
    "input, high_precision=False",
    "One over the square root of each element.",
    ON_BOTH,
    also=("tile, tmp",),
)
user_name(
    "recip",
    "input, high_precision=False",
    "One over each element.",
    ON_BOTH,
    also=("tile, high_precision",),
)
user_name(
    "neg",
    "input",
    "Each element negated.",
    ON_BOTH,
    also=("tile",),
)
user_name(
    "abs",
    "input",
    "Absolute value of each element.",
    ON_BOTH,
    also=("tile",),
)
user_name(
    "relu",
    "input",
    "The larger one of each element and 0.",
    ON_TILES,
    also=("tile",),
)
user_name(
    "row_sum",
    "input, tmp_tile=None",
    "Sum of each row: a column ``[rows, 1]``. ``tmp_tile`` is accepted and not needed.",
    ON_BOTH,
    also=("tile, tmp_tile",),
)
user_name(
    "row_max",
    "input, tmp_tile=None",
    "Largest element of each row: a column ``[rows, 1]``. ``tmp_tile`` is accepted and not needed.",
    ON_BOTH,
    also=("tile, tmp_tile",),
)
user_name(
    "row_min",
    "input, tmp_tile=None",
    "Smallest element of each row: a column ``[rows, 1]``. ``tmp_tile`` is accepted and not needed.",
    ON_BOTH,
    also=("tile, tmp_tile",),
)
user_name(
    "col_sum",
    "input, tmp_tile=None",
    "Sum of each column: a row ``[1, cols]``.",
    ON_BOTH,
    also=("tile, tmp_tile",),
)
user_name(
    "col_max",
    "input",
    "Largest element of each column: a row ``[1, cols]``.",
    ON_BOTH,
    also=("tile",),
)
user_name(
    "col_min",
    "input",
    "Smallest element of each column: a row ``[1, cols]``.",
    ON_BOTH,
    also=("tile",),
)
user_name(
    "row_expand",
    "lhs, rhs",
    "The column ``rhs`` ``[rows, 1]`` repeated to the shape of ``lhs``.",
    ON_BOTH,
    also=("target, row_vec",),
)
user_name(
    "row_expand_add",
    "lhs, rhs, tmp=None",
    "``lhs + rhs`` with the column ``rhs`` ``[rows, 1]`` beside each column of ``lhs``.",
    ON_BOTH,
    also=(
        "tile, row_vec, tmp",
        "tensor, row_vec",
    ),
)
user_name(
    "row_expand_sub",
    "lhs, rhs",
    "``lhs - rhs`` with the column ``rhs`` ``[rows, 1]`` beside each column of ``lhs``.",
    ON_BOTH,
    also=(
        "tile, row_vec",
        "tensor, row_vec",
    ),
)
user_name(
    "row_expand_mul",
    "lhs, rhs",
    "``lhs * rhs`` with the column ``rhs`` ``[rows, 1]`` beside each column of ``lhs``.",
    ON_BOTH,
    also=(
        "tile, row_vec",
        "tensor, row_vec",
    ),
)
user_name(
    "row_expand_div",
    "lhs, rhs",
    "``lhs / rhs`` with the column ``rhs`` ``[rows, 1]`` beside each column of ``lhs``.",
    ON_BOTH,
    also=(
        "tile, row_vec",
        "tensor, row_vec",
    ),
)
user_name(
    "row_expand_max",
    "lhs, rhs",
    "The larger one of each element and its row's element in the column ``rhs`` ``[rows, 1]``.",
    ON_BOTH,
    also=(
        "tile, row_vec",
        "tensor, row_vec",
    ),
)
user_name(
    "row_expand_min",
    "lhs, rhs",
    "The smaller one of each element and its row's element in the column ``rhs`` ``[rows, 1]``.",
    ON_BOTH,
    also=(
        "tile, row_vec",
        "tensor, row_vec",
    ),
)
user_name(
    "col_expand",
    "lhs, rhs",
    "The row ``rhs`` ``[1, cols]`` repeated to the shape of ``lhs``.",
    ON_BOTH,
    also=(
        "target, col_vec",
        "tensor, col_vec",
    ),
)
user_name(
    "col_expand_add",
    "lhs, rhs",
    "``lhs + rhs`` with the row ``rhs`` ``[1, cols]`` beside each row of ``lhs``.",
    ON_BOTH,
    also=(
        "tile, col_vec",
        "tensor, col_vec",
    ),
)
user_name(
    "col_expand_sub",
    "lhs, rhs",
    "``lhs - rhs`` with the row ``rhs`` ``[1, cols]`` beside each row of ``lhs``.",
    ON_BOTH,
    also=(
        "tile, col_vec",
        "tensor, col_vec",
    ),
)
user_name(
    "col_expand_mul",
    "lhs, rhs",
    "``lhs * rhs`` with the row ``rhs`` ``[1, cols]`` beside each row of ``lhs``.",
    ON_BOTH,
    also=(
        "tile, col_vec",
        "tensor, col_vec",
    ),
)
user_name(
    "col_expand_div",
    "lhs, rhs",
    "``lhs / rhs`` with the row ``rhs`` ``[1, cols]`` beside each row of ``lhs``.",
    ON_BOTH,
    also=(
        "tile, col_vec",
        "tensor, col_vec",
    ),
)
user_name(
    "expands",
    "target, scalar",
    "A tile of the shape and dtype of ``target``, filled with a scalar.",
    ON_BOTH,
)
user_name(
    "cast",
    "input, target_type, mode='round'",
    "Another element type, for tiles and scalars. ``mode``: none, rint, round, floor, ceil, trunc.",
    ON_BOTH,
    also=("tile, target_type, mode",),
)
user_name(
    "min",
    "lhs, rhs",
    "The smaller one of two scalars.",
    ON_TILES,
)
user_name(
    "max",
    "lhs, rhs",
    "The larger one of two scalars.",
    ON_TILES,
)
user_name(
    "part_add",
    "lhs, rhs",
    "XX",
    ON_BOTH,
    also=("src0, src1",),
    unsupported="not implemented yet",
)
user_name(
    "part_mul",
    "lhs, rhs",
    "XX",
    ON_BOTH,
    also=("src0, src1",),
    unsupported="not implemented yet",
)
user_name(
    "part_max",
    "lhs, rhs",
    "XX",
    ON_BOTH,
    also=("src0, src1",),
    unsupported="not implemented yet",
)
user_name(
    "part_min",
    "lhs, rhs",
    "XX",
    ON_BOTH,
    also=("src0, src1",),
    unsupported="not implemented yet",
)
user_name(
    "fmod",
    "lhs, rhs",
    "XX",
    ON_BOTH,
    unsupported="not implemented yet",
)
user_name(
    "fmods",
    "lhs, rhs",
    "XX",
    ON_BOTH,
    unsupported="not implemented yet",
)
user_name(
    "sin",
    "input",
    "XX",
    ON_BOTH,
    also=("tile",),
    unsupported="not implemented yet",
)
user_name(
    "cos",
    "input",
    "XX",
    ON_BOTH,
    also=("tile",),
    unsupported="not implemented yet",
)
user_name(
    "row_expand_expdif",
    "lhs, rhs",
    "XX",
    ON_BOTH,
    also=(
        "tile, row_vec",
        "tensor, row_vec",
    ),
    unsupported="not implemented yet",
)
user_name(
    "col_expand_max",
    "lhs, rhs",
    "XX",
    ON_BOTH,
    also=(
        "tile, col_vec",
        "tensor, col_vec",
    ),
    unsupported="not implemented yet",
)
user_name(
    "col_expand_min",
    "lhs, rhs",
    "XX",
    ON_BOTH,
    also=(
        "tile, col_vec",
        "tensor, col_vec",
    ),
    unsupported="not implemented yet",
)
user_name(
    "col_expand_expdif",
    "lhs, rhs",
    "XX",
    ON_BOTH,
    also=(
        "tile, col_vec",
        "tensor, col_vec",
    ),
    unsupported="not implemented yet",
)
user_name(
    "row_prod",
    "input, tmp_tile=None",
    "XX",
    ON_BOTH,
    also=("tile, tmp_tile",),
    unsupported="not implemented yet",
)
user_name(
    "col_prod",
    "input",
    "XX",
    ON_BOTH,
    also=("tile",),
    unsupported="not implemented yet",
)
user_name(
    "row_argmax",
    "input, tmp_tile=None",
    "XX",
    ON_BOTH,
    also=("tile, tmp_tile",),
    unsupported="not implemented yet",
)
user_name(
    "row_argmin",
    "input, tmp_tile=None",
    "XX",
    ON_BOTH,
    also=("tile, tmp_tile",),
    unsupported="not implemented yet",
)
user_name(
    "col_argmax",
    "input, tmp_tile=None",
    "XX",
    ON_BOTH,
    also=("tile, tmp_tile",),
    unsupported="not implemented yet",
)
user_name(
    "col_argmin",
    "input, tmp_tile=None",
    "XX",
    ON_BOTH,
    also=("tile, tmp_tile",),
    unsupported="not implemented yet",
)
user_name(
    "cmp",
    "lhs, rhs, cmp_type=0",
    "XX",
    ON_BOTH,
    unsupported="not implemented yet",
)
user_name(
    "and_",
    "lhs, rhs",
    "XX",
    ON_BOTH,
    unsupported="not implemented yet",
)
user_name(
    "ands",
    "lhs, rhs",
    "XX",
    ON_BOTH,
    unsupported="not implemented yet",
)
user_name(
    "or_",
    "lhs, rhs",
    "XX",
    ON_BOTH,
    unsupported="not implemented yet",
)
user_name(
    "ors",
    "lhs, rhs",
    "XX",
    ON_BOTH,
    unsupported="not implemented yet",
)
user_name(
    "xor",
    "lhs, rhs, tmp=None",
    "XX",
    ON_BOTH,
    unsupported="not implemented yet",
)
user_name(
    "xors",
    "lhs, rhs, tmp=None",
    "XX",
    ON_BOTH,
    unsupported="not implemented yet",
)
user_name(
    "not_",
    "input",
    "XX",
    ON_BOTH,
    also=("tile",),
    unsupported="not implemented yet",
)
user_name(
    "shl",
    "lhs, rhs",
    "XX",
    ON_BOTH,
    unsupported="not implemented yet",
)
user_name(
    "shls",
    "lhs, rhs",
    "XX",
    ON_BOTH,
    unsupported="not implemented yet",
)
user_name(
    "shr",
    "lhs, rhs",
    "XX",
    ON_BOTH,
    unsupported="not implemented yet",
)
user_name(
    "shrs",
    "lhs, rhs",
    "XX",
    ON_BOTH,
    unsupported="not implemented yet",
)
user_name(
    "cmps",
    "lhs, rhs, cmp_type=0",
    "XX",
    ON_TILES,
    unsupported="not implemented yet",
)
user_name(
    "rem",
    "lhs, rhs, tmp",
    "XX",
    ON_TILES,
    unsupported="not implemented yet",
)
user_name(
    "rems",
    "lhs, rhs, tmp",
    "XX",
    ON_TILES,
    unsupported="not implemented yet",
)
user_name(
    "prelu",
    "tile, slope, tmp",
    "XX",
    ON_TILES,
    unsupported="not implemented yet",
)
user_name(
    "addc",
    "lhs, rhs, rhs2",
    "XX",
    ON_TILES,
    unsupported="not implemented yet",
)
user_name(
    "subc",
    "lhs, rhs, rhs2",
    "XX",
    ON_TILES,
    unsupported="not implemented yet",
)
user_name(
    "addsc",
    "lhs, rhs, rhs2",
    "XX",
    ON_TILES,
    unsupported="not implemented yet",
)
user_name(
    "subsc",
    "lhs, rhs, rhs2",
    "XX",
    ON_TILES,
    unsupported="not implemented yet",
)
user_name(
    "lrelu",
    "tile, slope",
    "XX",
    ON_TILES,
    unsupported="not implemented yet",
)
user_name(
    "sel",
    "mask, lhs, rhs, tmp",
    "XX",
    ON_TILES,
    unsupported="not implemented yet",
)
user_name(
    "sels",
    "mask, src, tmp, scalar",
    "XX",
    ON_TILES,
    unsupported="not implemented yet",
)
