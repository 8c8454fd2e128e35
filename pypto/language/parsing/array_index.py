"""Calls that gather, scatter and sort elements of whole tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pypto.ir.nodes import Direction, Value
from pypto.ir.ops.tile_index import COMPARED, OUTSIDE, chosen
from pypto.ir.types import INT32, DType, MemorySpace, TensorType
from pypto.ir.values import defining_op, same_value, simplified
from pypto.language.parsing.arguments import (
    axis_argument,
    choice_argument,
    dtype_argument,
    flag_argument,
    memory_argument,
    offsets_argument,
    one_of,
    pattern_argument,
)
from pypto.language.parsing.arrays import (
    apply,
    as_rows,
    assign,
    result_dtype,
    same_lengths,
    scalar_operand,
    shape_of,
    shape_text,
    shaped,
    tensor_operand,
)
from pypto.language.parsing.elementwise import apply_binary
from pypto.language.parsing.frame import Frame
from pypto.language.parsing.model import Model, describe, is_number, is_scalar

if TYPE_CHECKING:
    from pypto.language.parsing.binding import Bound


def _dtype(tensor: Value) -> DType:
    if not isinstance(tensor.type, TensorType):
        raise TypeError(f"{tensor.name} is no tensor")
    return tensor.type.dtype


def _first(bound: Bound) -> str:
    return next(iter(bound.models))


# Along an axis


def _tensor_gather(frame: Frame, bound: Bound) -> Model:
    """``pl.tensor.gather``: along an axis, by a mask, or by comparing."""
    one_of(frame, bound, ("index", "mask_pattern", "kvalue"))
    if bound["mask_pattern"] is not None:
        return _gather_mask(frame, bound)
    if bound["kvalue"] is not None:
        return _gather_compare(frame, bound)
    if bound["index"] is None:
        raise frame.error(f"{bound.label}: needs index, mask_pattern or kvalue", bound.node)
    source, index = tensor_operand(frame, bound, "input"), tensor_operand(frame, bound, "index")
    axis = _axis(frame, bound, source, index)
    dtype = result_dtype(frame, "gather_along", [source, index], bound.node, axis=0)
    return apply(
        frame, "gather_along", [source, index], shape_of(frame, index, bound.node), dtype, bound.node, axis=axis
    )


def _axis(frame: Frame, bound: Bound, memory: Value, index: Value) -> int:
    """The axis of ``dim``; along all others the index is at most as long as the tensor."""
    have, wanted = shape_of(frame, memory, bound.node), shape_of(frame, index, bound.node)
    if bound["dim"] is None or (len(have) == 1 and bound["dim"] == 1):
        bound.models["dim"] = -1
    axis = axis_argument(frame, bound, "dim", len(have))
    for other, (length, count) in enumerate(zip(have, wanted, strict=False)):
        fits = count <= length if isinstance(count, int) and isinstance(length, int) else same_value(count, length)
        if len(have) != len(wanted) or (other != axis and not fits):
            raise frame.error(
                f"{bound.label}: index {shape_text(wanted)} does not stand beside {shape_text(have)}: both have the "
                f"same number of dimensions, and except along {axis} the index is not longer",
                bound.place("index"),
            )
    return axis


def _tensor_scatter(frame: Frame, bound: Bound) -> Model:
    """``pl.tensor.scatter``: along an axis, or by a mask."""
    one_of(frame, bound, ("index", "mask_pattern"))
    if bound["mask_pattern"] is not None:
        return _spread(frame, bound, tensor_operand(frame, bound, "input"), "dst")
    if bound["index"] is None or bound["src"] is None:
        raise frame.error(f"{bound.label}: needs index and src, or mask_pattern", bound.node)
    target, index = tensor_operand(frame, bound, "input"), tensor_operand(frame, bound, "index")
    return _scattered(frame, bound, target, "src", index, _axis(frame, bound, target, index))


def _scatter(frame: Frame, bound: Bound) -> Model:
    """``pl.scatter``: along the rows."""
    target, index = tensor_operand(frame, bound, "dst"), tensor_operand(frame, bound, "indexes")
    bound.models["dim"], bound.models["index"] = -2, index
    return _scattered(frame, bound, target, "src", index, _axis(frame, bound, target, index))


def _scattered(frame: Frame, bound: Bound, target: Value, name: str, index: Value, axis: int) -> Model:
    if is_number(bound[name]) or is_scalar(bound[name]):
        number = scalar_operand(frame, bound[name], target, bound.place(name))
        source = apply(frame, "full", [number], shape_of(frame, index, bound.node), _dtype(target), bound.place(name))
    else:
        source = tensor_operand(frame, bound, name)
    shapes = [shape_of(frame, v, bound.node) for v in (source, index)]
    if not same_lengths(*shapes):
        raise frame.error(
            f"{bound.label}: {name} is {shape_text(shapes[0])} and the index {shape_text(shapes[1])}; they need one "
            "shape",
            bound.place(name),
        )
    operands = [target, source, index]
    dtype = result_dtype(frame, "scatter_along", operands, bound.node, axis=0)
    return apply(frame, "scatter_along", operands, shape_of(frame, target, bound.node), dtype, bound.node, axis=axis)


# By a pattern or a comparison


def _gather_mask(frame: Frame, bound: Bound) -> Model:
    source = tensor_operand(frame, bound, _first(bound))
    pattern = pattern_argument(frame, bound, "mask_pattern")
    shape, share = shape_of(frame, source, bound.node), chosen(pattern)
    last = frame.known(shape[-1], bound.node, f"{bound.label}: the number of columns")
    if last % share:
        raise frame.error(
            f"{bound.label}: {last} columns are not a multiple of {share}, as the pattern needs", bound.node
        )
    dtype = _dtype(source) if bound["output_dtype"] is None else dtype_argument(frame, bound, "output_dtype")
    if dtype.nbytes != _dtype(source).nbytes:
        raise frame.error(
            f"{bound.label}: output_dtype {dtype} and {_dtype(source)} have different sizes",
            bound.place("output_dtype"),
        )
    return apply(frame, "gather_mask", [source], (*shape[:-1], last // share), dtype, bound.node, pattern=pattern)


def _scatter_mask(frame: Frame, bound: Bound) -> Model:
    return _spread(frame, bound, tensor_operand(frame, bound, "src"), "dst")


def _spread(frame: Frame, bound: Bound, source: Value, name: str) -> Model:
    """The elements in the columns that a pattern chooses; ``dst``, where it is given, says the shape."""
    pattern = pattern_argument(frame, bound, "mask_pattern")
    shape = shape_of(frame, source, bound.node)
    last = frame.known(shape[-1], bound.node, f"{bound.label}: the number of columns")
    made = (*shape[:-1], last * chosen(pattern))
    if bound[name] is not None:
        given = tensor_operand(frame, bound, name)
        if not same_lengths(shape_of(frame, given, bound.node), made) or _dtype(given) != _dtype(source):
            raise frame.error(
                f"{bound.label}: {name} must be a tensor {shape_text(made)} of {_dtype(source)} for this pattern, "
                f"not {describe(given)}",
                bound.place(name),
            )
    return apply(frame, "scatter_mask", [source], made, _dtype(source), bound.node, pattern=pattern)


def _gather_compare(frame: Frame, bound: Bound) -> Model:
    source, place = tensor_operand(frame, bound, _first(bound)), bound.place("kvalue")
    shape = shape_of(frame, source, bound.node)
    if len(shape) == 1:
        shape = (1, *shape)
        source = shaped(frame, source, shape, bound.node)
    key = bound["kvalue"]
    if is_number(key) or is_scalar(key):
        number = scalar_operand(frame, key, source, place)
        key = apply(frame, "full", [number], (*shape[:-1], 1), _dtype(source), place)
    else:
        key = tensor_operand(frame, bound, "kvalue")
        given = shape_of(frame, key, bound.node)
        row = len(shape) == 2 and same_lengths(as_rows(given), (1, shape[0]))
        if not row and not same_lengths(given, (*shape[:-1], 1)):
            raise frame.error(
                f"{bound.label}: kvalue needs one element for each row, {shape_text((*shape[:-1], 1))}, is "
                f"{shape_text(given)}",
                place,
            )
    if bound["out_cols"] is None:
        raise frame.error(f"{bound.label}: kvalue needs out_cols, the most positions of a row", bound.node)
    columns = frame.known(bound["out_cols"], bound.place("out_cols"), f"{bound.label}: out_cols")
    if columns < 1:
        raise frame.error(f"{bound.label}: out_cols must be positive, is {columns}", bound.place("out_cols"))
    mode = 0 if bound["cmp_mode"] is None else choice_argument(frame, bound, "cmp_mode", COMPARED)
    offset = frame.index(bound["offset"], bound.place("offset"), f"{bound.label}: offset")
    count = INT32 if bound["count_dtype"] is None else dtype_argument(frame, bound, "count_dtype")
    types = [
        TensorType(tuple(simplified(frame.index(d, bound.node, "a size")) for d in (*shape[:-1], width)), dtype)
        for width, dtype in ((columns, INT32), (1, count))
    ]
    made = frame.op("tensor.apply", [source, key, offset], bound.node, types, tile="gather_compare", compared=mode)
    return tuple(made.results)


# Rows and elements at flat positions


def _gather(frame: Frame, bound: Bound) -> Model:
    memory, index = _memory(frame, bound, "src"), tensor_operand(frame, bound, "indices")
    dtype = result_dtype(frame, "gather", [memory, index], bound.node)
    return apply(frame, "gather", [memory, index], shape_of(frame, index, bound.node), dtype, bound.node)


def _memory(frame: Frame, bound: Bound, name: str) -> Value:
    """A tensor whose elements have flat positions."""
    memory = tensor_operand(frame, bound, name)
    type = memory.type
    if isinstance(type, TensorType) and type.is_view and type.rank > 2:
        raise frame.error(
            f"{bound.label}: {name} is a slice of {type.rank} dimensions, whose elements do not lie side by side; "
            "slice with single indices, or copy it into a tensor",
            bound.place(name),
        )
    return memory


def _mgather(frame: Frame, bound: Bound) -> Model:
    memory, index = _memory(frame, bound, "mem"), tensor_operand(frame, bound, "idx")
    if memory_argument(frame, bound, "target_memory") is not MemorySpace.Vec:
        raise frame.error(f"{bound.label}: target_memory must be Vec", bound.place("target_memory"))
    if bound["valid_shape"] is not None:
        raise frame.error(f"{bound.label}: valid_shape is about tiles; slice idx instead", bound.place("valid_shape"))
    rows = choice_argument(frame, bound, "coalesce", ("elem", "row")) == 1
    outside = choice_argument(frame, bound, "gather_oob", OUTSIDE)
    result_dtype(frame, "gather", [memory, index], bound.node)
    shape = shape_of(frame, index, bound.node)
    if rows:
        index, count = _one_line(frame, bound, "idx", index)
        memory = _as_matrix(frame, bound, "mem", memory)
        shape = (count, shape_of(frame, memory, bound.node)[-1])
    return apply(frame, "mgather", [memory, index], shape, _dtype(memory), bound.node, rows=rows, outside=outside)


def _one_line(frame: Frame, bound: Bound, name: str, index: Value) -> tuple[Value, Model]:
    """An index in one row or column, and how many elements it has."""
    shape = shape_of(frame, index, bound.node)
    if len(shape) == 1:
        return index, shape[0]
    if len(shape) == 2 and (same_value(shape[0], 1) or same_value(shape[1], 1)):
        return index, shape[1] if same_value(shape[0], 1) else shape[0]
    known = [d for d in shape if isinstance(d, int)]
    if len(known) != len(shape) or (isinstance(index.type, TensorType) and index.type.is_view):
        raise frame.error(
            f"{bound.label}: {name} must be one row or column, or a whole tensor of known sizes; is "
            f"{shape_text(shape)}",
            bound.node,
        )
    count = math.prod(known)
    return shaped(frame, index, (1, count), bound.node), count


def _scatter_update(frame: Frame, bound: Bound) -> Model:
    """Rows replaced where an index says; in PyPTO's two orders of arguments."""
    axis, index, source = bound["dim"], bound["index"], bound["src"]
    if isinstance(axis, Value):  # (input, index, src)
        axis, index, source = (-2 if source is None else source), axis, index
    if axis not in (-2, 0):
        raise frame.error(f"{bound.label}: dim must be -2, not {describe(axis)}", bound.node)
    bound.models.update(index=index, src=source)
    target = tensor_operand(frame, bound, "input", reads=False)
    rows = _as_matrix(frame, bound, "src", tensor_operand(frame, bound, "src"))
    line, count = _one_line(frame, bound, "index", tensor_operand(frame, bound, "index"))
    matrix = _as_matrix(frame, bound, "input", target)
    have, wanted = (shape_of(frame, v, bound.node) for v in (rows, matrix))
    if not same_value(have[1], wanted[1]):
        raise frame.error(
            f"{bound.label}: src has {shape_text(have[1:])} columns, input {shape_text(wanted[1:])}", bound.node
        )
    longer = isinstance(count, int) and isinstance(have[0], int) and count > have[0]
    if not same_value(count, have[0]) and not longer:
        raise frame.error(
            f"{bound.label}: src has {shape_text(have[:1])} rows, the index {shape_text([count])} elements", bound.node
        )
    dtype = result_dtype(frame, "scatter_along", [matrix, rows, line], bound.node, axis=0)
    return _updated(frame, bound, target, matrix, "scatter_update", [matrix, line, rows], dtype)


def _as_matrix(frame: Frame, bound: Bound, name: str, tensor: Value) -> Value:
    """A tensor of more dimensions as rows of its last one."""
    shape = shape_of(frame, tensor, bound.node)
    if len(shape) == 2:
        return tensor
    if len(shape) < 2 or (isinstance(tensor.type, TensorType) and tensor.type.is_view):
        raise frame.error(
            f"{bound.label}: {name} must have rows and columns, or be a whole tensor of more dimensions; is "
            f"{describe(tensor)}",
            bound.node,
        )
    rows: Model = 1
    for length in shape[:-1]:
        rows = apply_binary(frame, "mul", rows, length, bound.node)
    return shaped(frame, tensor, (rows, shape[-1]), bound.node)


def _updated(
    frame: Frame,
    bound: Bound,
    target: Value,
    handle: Value,
    name: str,
    operands: Sequence[Value],
    dtype: DType,
    **attrs: Any,
) -> Value:
    """Elements of a tensor that may be written are changed in place, those of another one in a new tensor."""
    made = apply(frame, name, operands, shape_of(frame, handle, bound.node), dtype, bound.node, **attrs)
    if not _in_place(frame, target):
        if handle is target:
            return made
        return shaped(frame, made, shape_of(frame, target, bound.node), bound.node)
    frame.op("tensor.assign", [made, handle], bound.node)
    return target


def _in_place(frame: Frame, tensor: Value) -> bool:
    """Whether a tensor is an output or a workspace of the user, and no result of an operation."""
    root = frame.root(tensor)
    op = defining_op(root)
    if op is not None and op.name == "tensor.create":
        return True
    return any(p.value is root for p in frame.function.params) and frame.direction(tensor) is not Direction.In


def _mscatter(frame: Frame, bound: Bound) -> Model:
    source, index = tensor_operand(frame, bound, "src"), tensor_operand(frame, bound, "idx")
    target = tensor_operand(frame, bound, "output_tensor", reads=False)
    frame.check_writes(target, bound.place("output_tensor"))
    _memory(frame, bound, "output_tensor")
    shapes = [shape_of(frame, v, bound.node) for v in (source, index)]
    if not same_lengths(*shapes):
        raise frame.error(
            f"{bound.label}: src is {shape_text(shapes[0])} and idx {shape_text(shapes[1])}; they need one shape",
            bound.node,
        )
    dtype = result_dtype(frame, "scatter_along", [target, source, index], bound.node, axis=0)
    return _updated(frame, bound, target, target, "mscatter", [target, source, index], dtype)


def _gather_row(frame: Frame, bound: Bound) -> Model:
    """A block of one tensor copied to a place of another one."""
    name = _first(bound)
    target = tensor_operand(frame, bound, name, reads=False)
    source = tensor_operand(frame, bound, "src")
    if _dtype(target) != _dtype(source):
        raise frame.error(
            f"{bound.label}: {name} is of {_dtype(target)} and src of {_dtype(source)}; use pl.cast", bound.place("src")
        )
    rank, place = len(shape_of(frame, source, bound.node)), bound.place("shapes")
    start = offsets_argument(frame, bound, "src_offset", rank, source.name)
    where = offsets_argument(frame, bound, "dst_offset", len(shape_of(frame, target, bound.node)), target.name)
    sizes = bound["shapes"] if bound["valid_shape"] is None else bound["valid_shape"]
    if not isinstance(sizes, tuple) or not 2 <= len(sizes) <= rank:
        raise frame.error(f"{bound.label}: shapes must be a list of 2 to {rank} sizes, not {describe(sizes)}", place)
    lengths = [frame.index(m, place, f"{bound.label}: a size") for m in sizes]
    full = [*(frame.index(1, place, "a size") for _ in range(rank - len(lengths))), *lengths]
    if any(simplified(size) != 1 for size in full[:-2]):
        raise frame.error(f"{bound.label}: all sizes but the last two must be 1", place)
    with frame.at(bound.node):
        part = frame.builder.view(source, start, full, source.name, tuple(range(rank - 2)))
    rows, cols = shape_of(frame, part, bound.node)
    if flag_argument(frame, bound, "transpose"):
        part = apply(frame, "transpose", [part], (cols, rows), _dtype(source), bound.node, axes=(0, 1))
        rows, cols = cols, rows
    made = target
    if not _in_place(frame, target):
        dims = shape_of(frame, target, bound.node)
        with frame.at(bound.node):
            made = frame.builder.create_tensor(list(dims), _dtype(target), target.name)
            frame.builder.op("tensor.assign", [target, made])
    assign(frame, made, where, (rows, cols), part, bound.node)
    return made


# Sorting


def _sort32(frame: Frame, bound: Bound) -> Model:
    source, index = tensor_operand(frame, bound, "src"), tensor_operand(frame, bound, "idx")
    shapes = [shape_of(frame, v, bound.node) for v in (source, index)]
    if not same_lengths(*shapes):
        raise frame.error(
            f"{bound.label}: src is {shape_text(shapes[0])} and idx {shape_text(shapes[1])}; they need one shape",
            bound.place("idx"),
        )
    dtype = result_dtype(frame, "sort32", [source, index], bound.node)
    width = frame.known(shapes[0][-1], bound.place("src"), f"{bound.label}: the number of columns")
    made = (*shapes[0][:-1], width * (8 // dtype.nbytes))
    return apply(frame, "sort32", [source, index], made, dtype, bound.node)


def _mrgsort(frame: Frame, bound: Bound) -> Model:
    names = [name for name in ("src0", "src1", "src2", "src3") if bound[name] is not None]
    sources = [tensor_operand(frame, bound, name) for name in names]
    shapes = [shape_of(frame, source, bound.node) for source in sources]
    if bound["block_len"] is not None:
        if len(sources) != 1:
            raise frame.error(f"{bound.label}: block_len goes with one source", bound.place("block_len"))
        length = frame.known(bound["block_len"], bound.place("block_len"), f"{bound.label}: block_len")
        dtype = result_dtype(frame, "mrgsort_blocks", sources, bound.node, block_len=length)
        return apply(frame, "mrgsort_blocks", sources, shapes[0], dtype, bound.node, block_len=length)
    if len(sources) < 2:
        raise frame.error(f"{bound.label}: needs two to four sources, or one and block_len", bound.node)
    exhausted = flag_argument(frame, bound, "exhausted")
    dtype = result_dtype(frame, "mrgsort", sources, bound.node, exhausted=exhausted)
    for name, shape in zip(names, shapes, strict=True):
        if not same_lengths(shape[:-1], shapes[0][:-1]):
            raise frame.error(
                f"{bound.label}: {name} is {shape_text(shape)} and src0 {shape_text(shapes[0])}; they need equal rows",
                bound.place(name),
            )
    widths = [frame.known(s[-1], bound.node, f"{bound.label}: the number of columns") for s in shapes]
    return apply(frame, "mrgsort", sources, (*shapes[0][:-1], sum(widths)), dtype, bound.node, exhausted=exhausted)


HANDLERS: dict[str, Callable[[Frame, Bound], Model]] = {
    "tensor.gather": _tensor_gather,
    "gather": _gather,
    "gather_mask": _gather_mask,
    "gather_compare": _gather_compare,
    "mgather": _mgather,
    "tensor.scatter": _tensor_scatter,
    "scatter": _scatter,
    "scatter_mask": _scatter_mask,
    "scatter_update": _scatter_update,
    "mscatter": _mscatter,
    "gather_row": _gather_row,
    "sort32": _sort32,
    "mrgsort": _mrgsort,
}
