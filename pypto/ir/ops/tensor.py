"""Tensors in global memory: workspaces, dimensions, views."""

from __future__ import annotations

from math import prod

from pypto.ir.ops.registry import Attr, Call, Kind, OpDef, Operand, register
from pypto.ir.ops.user_names import PL, TENSOR, user_name
from pypto.ir.types import (
    BF16,
    BOOL,
    FP16,
    FP32,
    INDEX,
    INT8,
    INT16,
    INT32,
    INT64,
    MAX_RANK,
    UINT8,
    UINT16,
    UINT32,
    ScalarType,
    TensorType,
    Type,
)
from pypto.ir.values import constant_of, simplified


def _create(call: Call) -> tuple[Type, ...]:
    if len(call.types) != 1 or not isinstance(call.types[0], TensorType):
        raise call.error("needs one tensor type as its result")
    wanted = call.types[0]
    if wanted.rank != len(call.operands) or not 1 <= wanted.rank <= MAX_RANK:
        raise call.error(f"needs 1 to {MAX_RANK} dimensions, one operand each; got {wanted.rank}")
    shape = tuple(simplified(v) for v in call.operands)
    for dim in shape:
        if isinstance(dim, int) and dim <= 0:
            raise call.error(f"every dimension must be positive, got {dim}")
    return (TensorType(shape, wanted.dtype),)


def _dim(call: Call) -> tuple[Type, ...]:
    rank, axis = call.tensor(0).rank, call.attrs["axis"]
    if not 0 <= axis < rank:
        raise call.error(f"axis {axis} is outside a tensor of {rank} dimensions")
    return (ScalarType(INDEX),)


def _view(call: Call) -> tuple[Type, ...]:
    base, rank = call.tensor(0), call.attrs["rank"]
    numbers = call.operands[1:]
    if rank != base.rank or len(numbers) != 2 * rank:
        raise call.error(f"needs {base.rank} offsets and {base.rank} sizes for {base}")
    shape = tuple(simplified(v) for v in numbers[rank:])
    for axis, (offset, size, dim) in enumerate(zip(numbers[:rank], shape, base.shape, strict=True)):
        start = constant_of(offset)
        if isinstance(start, int) and start < 0:
            raise call.error(f"the offset {start} of axis {axis} is negative")
        if isinstance(size, int) and size <= 0:
            raise call.error(f"the size {size} of axis {axis} must be positive")
        if isinstance(size, int) and isinstance(dim, int) and size + (start or 0) > dim:
            raise call.error(f"axis {axis} ends at {size + int(start or 0)}, but the tensor has {dim} there")
    dropped = call.attrs.get("dropped", ())
    for axis in dropped:
        if not 0 <= axis < rank or shape[axis] != 1:
            raise call.error(f"only axes of length 1 can be dropped, not axis {axis}")
    if rank - 1 in dropped or len(dropped) != len(set(dropped)):
        raise call.error("the last axis cannot be dropped: its elements have to lie side by side")
    return (TensorType(tuple(d for a, d in enumerate(shape) if a not in dropped), base.dtype, is_view=True),)


def _reshape(call: Call) -> tuple[Type, ...]:
    base, shape = call.tensor(0), tuple(simplified(v) for v in call.operands[1:])
    if not 1 <= len(shape) <= MAX_RANK:
        raise call.error(f"needs 1 to {MAX_RANK} sizes, got {len(shape)}")
    for dim in shape:
        if isinstance(dim, int) and dim <= 0:
            raise call.error(f"every size must be positive, got {dim}")
    known = [d for d in base.shape if isinstance(d, int)], [d for d in shape if isinstance(d, int)]
    if len(known[0]) == base.rank and len(known[1]) == len(shape) and prod(known[0]) != prod(known[1]):
        raise call.error(f"a tensor of {prod(known[0])} elements cannot have a shape of {prod(known[1])}")
    return (TensorType(shape, base.dtype),)


# What a number that is read from a tensor is computed with.
READ_AS = {
    **{t: FP32 for t in (FP32, FP16, BF16)},
    **{t: INT32 for t in (INT8, INT16, INT32, UINT8, UINT16)},
    INT64: INT64,
    UINT32: INT64,
    BOOL: BOOL,
}


def _read(call: Call) -> tuple[Type, ...]:
    tensor = call.tensor(0)
    if len(call.operands) != 1 + tensor.rank:
        raise call.error(f"needs {tensor.rank} indices for {tensor}, got {len(call.operands) - 1}")
    if tensor.dtype not in READ_AS:
        raise call.error(f"elements of {tensor.dtype} cannot be read as numbers")
    for axis, (index, dim) in enumerate(zip(call.operands[1:], tensor.shape, strict=True)):
        place = constant_of(index)
        if isinstance(place, int) and (place < 0 or (isinstance(dim, int) and place >= dim)):
            raise call.error(f"index {place} is outside axis {axis} of length {dim}")
    return (ScalarType(READ_AS[tensor.dtype]),)


register(OpDef("tensor.create", (Operand("dims", Kind.INDEX, variadic=True),), _create, incore=False, entry=True))
register(OpDef("tensor.dim", (Operand("tensor", Kind.TENSOR),), _dim, (Attr("axis", int),), entry=True))
register(
    OpDef(
        "tensor.view",
        (Operand("tensor", Kind.TENSOR), Operand("numbers", Kind.INDEX, variadic=True)),
        _view,
        (Attr("rank", int), Attr("dropped", tuple, required=False)),
        entry=True,
    )
)
# One element: in an entry on the host while tasks are put together, else on the core.
register(
    OpDef(
        "tensor.read",
        (Operand("tensor", Kind.TENSOR), Operand("indices", Kind.INDEX, variadic=True)),
        _read,
        entry=True,
    )
)
# Another handle of the same elements, which lie side by side in memory: checked when it runs.
register(
    OpDef(
        "tensor.reshape",
        (Operand("tensor", Kind.TENSOR), Operand("sizes", Kind.INDEX, variadic=True)),
        _reshape,
        incore=False,
        entry=True,
    )
)

# Another handle of the same elements; what tasks do through it orders none of them.
register(
    OpDef(
        "tensor.untracked",
        (Operand("tensor", Kind.TENSOR),),
        lambda call: (call.tensor(0),),
        incore=False,
        entry=True,
    )
)

user_name(
    "create_tensor",
    "shape, dtype, layout=None, manual_dep=False, init_value=None",
    ("A workspace in global memory that lives until the run ends; entries only. Its elements have no values yet."),
    (PL,),
    ops=("tensor.create",),
)
user_name(
    "create",
    "shape, dtype, layout=None, manual_dep=False, init_value=None",
    "``pl.create_tensor``.",
    (TENSOR,),
    handler="create_tensor",
    ops=("tensor.create",),
)
user_name(
    "no_dep",
    "tensor",
    "Another handle of the tensor: what tasks read and write through it orders none of them.",
    (TENSOR,),
    ops=("tensor.untracked",),
)
user_name(
    "dump_tag",
    "tensor",
    "The tensor, marked for dumps of runs on devices; on the simulator make it an output instead.",
    (PL, TENSOR),
)
user_name(
    "dim",
    "tensor, axis",
    "Size of a dimension of a tensor.",
    (TENSOR,),
    ops=("tensor.dim",),
)
user_name(
    "expand_clone",
    "src, target",
    "``src`` repeated to the shape of ``target``.",
    (TENSOR,),
    ops=("tile.row_expand", "tile.col_expand", "tensor.assign"),
)
user_name(
    "view",
    "tensor, shape=None, valid_shape=None, *, layout=None",
    "Another handle of the same tensor.",
    (TENSOR,),
    ops=("tensor.view",),
)
user_name(
    "paged_gather",
    (
        "src, indices, block_table, block_size, size, max_indices, *, space=MemorySpace.Mat, "
        "col_off=0, is_trans=False, is_b_matrix=False"
    ),
    "Rows of pages that a table names.",
    (TENSOR,),
    unsupported="read the table with pl.read and bring the rows into a tile with pl.gather_row",
)
user_name(
    "create_l1",
    "shape, dtype, transpose=False",
    "A tile in matrix memory; `transpose` swaps its sizes.",
    (TENSOR,),
    ops=("tile.create",),
)
user_name(
    "gather",
    "input, dim=None, index=None, *, mask_pattern=None, output_dtype=None, kvalue=None, cmp_mode=None, "
    "out_cols=None, offset=0, count_dtype=None",
    "Elements of a tensor that an index, a pattern or a comparison chooses.",
    (TENSOR,),
    ops=("tile.gather_along", "tile.gather_mask", "tile.gather_compare"),
)
user_name(
    "scatter",
    "input, dim=None, index=None, src=None, *, mask_pattern=None, dst=None",
    "Elements written where an index or a pattern says.",
    (TENSOR,),
    ops=("tile.scatter_along", "tile.scatter_mask"),
)
user_name(
    "random",
    "key0, key1, counter0, counter1, counter2, counter3, shape, dtype=UINT32, rounds=10",
    "Random bits from a counter and a key.",
    (TENSOR,),
    ops=("tile.random",),
)
