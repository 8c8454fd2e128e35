"""Gathering, scattering and sorting elements of tiles."""

from __future__ import annotations

from pypto.ir.ops.user_names import ON_BOTH, ON_TILES, user_name

user_name(
    "gather_row",
    "dst, src, dst_offset, src_offset, shapes, transpose=False, *, valid_shape=None",
    "Rows of a tensor, brought into a tile.",
    ON_BOTH,
    also=("acc, src, dst_offset, src_offset, shapes, transpose, valid_shape",),
    unsupported="not implemented yet",
)
user_name(
    "scatter_update",
    "input, *args, **kwargs",
    "Rows of a tensor written at the positions that an index names.",
    ON_BOTH,
    unsupported="not implemented yet",
)
user_name(
    "sort32",
    "src, idx",
    "Each block of 32 elements sorted, with their positions.",
    ON_BOTH,
    unsupported="not implemented yet",
)
user_name(
    "mrgsort",
    "src0, src1=None, src2=None, src3=None, tmp=None, *, exhausted=False, block_len=None",
    "Sorted runs merged.",
    ON_BOTH,
    also=("src0, src1, src2, src3, exhausted, block_len",),
    unsupported="not implemented yet",
)
user_name(
    "gather",
    "src, indices, tmp",
    "The elements of ``src`` at flat positions.",
    ON_TILES,
    unsupported="not implemented yet",
)
user_name(
    "gatherb",
    "src, offset, *, output_dtype=None",
    "Blocks of ``src`` at byte offsets.",
    ON_TILES,
    unsupported="not implemented yet",
)
user_name(
    "gather_mask",
    "src, mask_pattern, *, output_dtype=None",
    "The elements of each row that a pattern chooses.",
    ON_TILES,
    unsupported="not implemented yet",
)
user_name(
    "gather_compare",
    "src, kvalue, tmp, *, cmp_mode='eq', offset=0, out_cols, count_dtype=None",
    "Positions of the elements that compare true.",
    ON_TILES,
    unsupported="not implemented yet",
)
user_name(
    "scatter",
    "dst, src, indexes",
    "Elements written to the rows that an index names.",
    ON_TILES,
    unsupported="not implemented yet",
)
user_name(
    "scatter_mask",
    "dst, src, mask_pattern",
    "Elements written where a pattern chooses.",
    ON_TILES,
    unsupported="not implemented yet",
)
user_name(
    "mscatter",
    "src, idx, output_tensor",
    "Elements written to a tensor at the positions that an index names.",
    ON_TILES,
    unsupported="not implemented yet",
)
user_name(
    "mgather",
    (
        "mem, idx, coalesce='row', *, gather_oob='undefined', target_memory=MemorySpace.Vec, "
        "scratch=None, valid_shape=None"
    ),
    "Elements or rows of a tensor at the positions that an index names.",
    ON_TILES,
    unsupported="not implemented yet",
)
