"""Calls of operations with whole tensors, of any size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pypto.ir.nodes import Value
from pypto.ir.ops.registry import all_definitions, definition
from pypto.ir.passes.shapes import COLUMN_REDUCTIONS, PLACES, ROW_LOCAL_REDUCTIONS, is_elementwise
from pypto.ir.types import INDEX, INT64, AtomicType, DType, TensorType, TileType
from pypto.ir.values import simplified
from pypto.language.parsing import array_index, array_matrix
from pypto.language.parsing.arguments import dtype_argument, element, flag_argument, predicate
from pypto.language.parsing.arrays import (
    apply,
    as_rows,
    assign,
    binary,
    elementwise,
    filled,
    joint_lead,
    reshape,
    result_dtype,
    same_lengths,
    scalar_operand,
    shape_of,
    shape_text,
    shaped,
    tensor_operand,
    tile_code,
)
from pypto.language.parsing.elementwise import apply_binary
from pypto.language.parsing.filling_calls import COUNTED, TRIANGLES, made_dtype
from pypto.language.parsing.frame import Frame
from pypto.language.parsing.model import Model, describe, is_number, is_scalar, is_tensor
from pypto.language.parsing.operators import WITH_SCALAR

if TYPE_CHECKING:
    from pypto.language.parsing.binding import Bound


def call(frame: Frame, name: str, bound: Bound) -> Model:
    """A call of an operation with tensors.

    Raises:
        TileCodeError: the operation works on tiles only.
    """
    handler = _HANDLERS.get(name)
    if handler is not None:
        return handler(frame, bound)
    if f"tile.{name}" in all_definitions():
        if is_elementwise(name):
            return _elementwise_call(frame, name, bound)
        if name in PLACES or name in ROW_LOCAL_REDUCTIONS or name in COLUMN_REDUCTIONS:
            return _reduction(frame, name, bound)
        if name.startswith(("row_expand", "col_expand")):
            return _expansion(frame, name, bound)
    raise tile_code(frame, bound.label, bound.node)


_SCRATCH = ("tmp", "tmp_tile", "high_precision")


def _elementwise_call(frame: Frame, name: str, bound: Bound, **attrs: Any) -> Value:
    operands: list[Value] = []
    tensor: Value | None = None
    for parameter, model in bound.models.items():
        if parameter in _SCRATCH:
            continue
        if tensor is not None and (is_number(model) or is_scalar(model)):
            operands.append(scalar_operand(frame, model, tensor, bound.place(parameter)))
        else:
            tensor = tensor_operand(frame, bound, parameter)
            operands.append(tensor)
    return elementwise(frame, name, operands, bound.label, bound.node, **attrs)


def _reduction(frame: Frame, name: str, bound: Bound) -> Value:
    source = tensor_operand(frame, bound, next(iter(bound.models)))
    shape = shape_of(frame, source, bound.node)
    if len(shape) == 1:
        shape = as_rows(shape)
        source = shaped(frame, source, shape, bound.node)
    reduced = (*shape[:-1], 1) if name.startswith("row") else (*shape[:-2], 1, shape[-1])
    dtype = result_dtype(frame, name, [source], bound.node)
    return apply(frame, name, [source], reduced, dtype, bound.node)


def _expansion(frame: Frame, name: str, bound: Bound) -> Value:
    first, second = (tensor_operand(frame, bound, parameter) for parameter in list(bound.models)[:2])
    shape, other = (shape_of(frame, v, bound.node) for v in (first, second))
    if name.startswith("row"):
        wanted, what = (*shape[:-1], 1), "column"
    else:
        wanted, what = (*shape[:-2], 1, shape[-1]), "row"
        other = as_rows(other)
    lead = joint_lead([shape[:-2], other[:-2]])
    if lead is None or not same_lengths(other[-2:], wanted[-2:]):
        raise frame.error(
            f"{bound.label}: needs a {what} {shape_text(wanted)} beside {shape_text(shape)}, got {shape_text(other)}",
            bound.node,
        )
    dtype = result_dtype(frame, name, [first, second], bound.node)
    return apply(frame, name, [first, second], (*lead, *shape[-2:]), dtype, bound.node)


def _binary_call(sign: str) -> Callable[[Frame, Bound], Model]:
    return lambda frame, bound: binary(frame, sign, bound["lhs"], bound["rhs"], bound.label, bound.node)


def _comparison(frame: Frame, bound: Bound) -> Model:
    pred = predicate(frame, bound)
    return binary(frame, "cmp", bound["lhs"], bound["rhs"], bound.label, bound.node, pred=pred)


def _selection(frame: Frame, bound: Bound) -> Model:
    names = ("src", "scalar") if "scalar" in bound.models else ("lhs", "rhs")
    mask, first, other = tensor_operand(frame, bound, "mask"), bound[names[0]], bound[names[1]]
    if not is_tensor(first) and is_tensor(other):
        first = filled(frame, scalar_operand(frame, first, other, bound.place(names[0])), other, bound.node)
    else:
        first = tensor_operand(frame, bound, names[0])
    if is_tensor(other):
        operands, name = [mask, first, tensor_operand(frame, bound, names[1])], "sel"
    else:
        operands, name = [mask, first, scalar_operand(frame, other, first, bound.place(names[1]))], "sels"
    return elementwise(frame, name, operands, bound.label, bound.node, mask="elements")


def _cast(frame: Frame, bound: Bound) -> Model:
    source, dtype = tensor_operand(frame, bound, "input"), bound["target_type"]
    if not isinstance(dtype, DType):
        raise frame.error(f"{bound.label}: target_type must be a dtype, not {describe(dtype)}", bound.node)
    given = source.type.dtype if isinstance(source.type, TensorType) else dtype
    sample = Value(source.name, TileType((64, 64), given, None, (64, 64)))
    wanted = TileType((64, 64), dtype, None, (64, 64))
    with frame.at(bound.node):
        definition("tile.cast").check_call([sample], {"mode": bound["mode"]}, [wanted])
    shape = shape_of(frame, source, bound.node)
    return apply(frame, "cast", [source], shape, dtype, bound.node, mode=bound["mode"])


def _full(frame: Frame, bound: Bound) -> Model:
    shape, dtype = _shape(frame, bound), dtype_argument(frame, bound, "dtype")
    value = element(frame, bound["value"], dtype, bound.place("value"), f"{bound.label}: value")
    return apply(frame, "full", [value], shape, dtype, bound.node)


def _shape(frame: Frame, bound: Bound) -> tuple[Model, ...]:
    """The sizes of a tensor that a call makes; they may be known at run time only."""
    shape = bound["shape"]
    if not isinstance(shape, tuple) or not shape:
        raise frame.error(f"{bound.label}: shape must be a list of sizes, not {describe(shape)}", bound.place("shape"))
    if bound.models.get("valid_shape") is not None:
        raise frame.error(f"{bound.label}: valid_shape is for tiles; give the shape that is wanted", bound.node)
    return shape


def _counted(frame: Frame, bound: Bound) -> Model:
    shape, dtype = _shape(frame, bound), made_dtype(frame, bound, COUNTED)
    start = frame.scalar(bound["start"], INT64, bound.place("start"), f"{bound.label}: start")
    if len(shape) > 2 or (len(shape) == 2 and shape[0] != 1):
        raise frame.error(f"{bound.label}: counts along one row, got the shape {shape_text(shape)}", bound.node)
    descending = flag_argument(frame, bound, "descending")
    return apply(frame, "ci", [start], shape, dtype, bound.node, descending=descending)


def _triangle(frame: Frame, bound: Bound) -> Model:
    shape, dtype = _shape(frame, bound), made_dtype(frame, bound, TRIANGLES)
    if len(shape) != 2:
        raise frame.error(f"{bound.label}: needs two sizes, got {shape_text(shape)}", bound.place("shape"))
    diagonal = frame.scalar(bound["diagonal"], INDEX, bound.place("diagonal"), f"{bound.label}: diagonal")
    upper = flag_argument(frame, bound, "upper")
    return apply(frame, "tri", [diagonal], shape, dtype, bound.node, upper=upper)


def _expands(frame: Frame, bound: Bound) -> Model:
    target = tensor_operand(frame, bound, "target")
    value = scalar_operand(frame, bound["scalar"], target, bound.place("scalar"))
    return filled(frame, value, target, bound.node)


def _store(frame: Frame, bound: Bound) -> Model:
    return _placed(frame, bound, "output_tensor", "tile", "offsets")


def _assemble(frame: Frame, bound: Bound) -> Model:
    return _placed(frame, bound, "target", "source", "offset")


def _placed(frame: Frame, bound: Bound, target: str, source: str, offset: str) -> Model:
    tensor, value = bound[target], tensor_operand(frame, bound, source)
    if not is_tensor(tensor):
        raise frame.error(f"{bound.label}: {target} must be a tensor, not {describe(tensor)}", bound.place(target))
    frame.check_writes(tensor, bound.place(target))
    if bound.models.get("atomic") not in (None, AtomicType.None_):
        raise frame.error(
            f"{bound.label}: atomic takes tiles; load windows of known sizes and store each", bound.place("atomic")
        )
    sizes = shape_of(frame, value, bound.node)
    shapes = bound.models.get("shapes")
    if shapes is not None and not (isinstance(shapes, tuple) and same_lengths(_indices(frame, bound, shapes), sizes)):
        raise frame.error(
            f"{bound.label}: shapes is not {shape_text(sizes)}, as what is stored; slice that instead",
            bound.place("shapes"),
        )
    offsets = bound[offset]
    if not isinstance(offsets, tuple) or len(offsets) != len(sizes):
        raise frame.error(f"{bound.label}: {offset} must be a list of {len(sizes)} offsets", bound.place(offset))
    values = [frame.index(m, bound.place(offset), f"{bound.label}: an offset") for m in offsets]
    assign(frame, tensor, values, sizes, value, bound.node)
    return tensor


def _indices(frame: Frame, bound: Bound, sizes: Sequence[Model]) -> list[Model]:
    return [simplified(frame.index(m, bound.place("shapes"), f"{bound.label}: a size")) for m in sizes]


def _concat(frame: Frame, bound: Bound) -> Model:
    parts = [tensor_operand(frame, bound, name) for name in ("src0", "src1")]
    shapes = [shape_of(frame, part, bound.node) for part in parts]
    dtypes = {part.type.dtype for part in parts if isinstance(part.type, TensorType)}
    if len(dtypes) != 1 or not same_lengths(shapes[0][:-1], shapes[1][:-1]):
        raise frame.error(f"{bound.label}: cannot join {shape_text(shapes[0])} and {shape_text(shapes[1])}", bound.node)
    width = apply_binary(frame, "add", shapes[0][-1], shapes[1][-1], bound.node)
    sizes = [frame.index(d, bound.node, "a size") for d in (*shapes[0][:-1], width)]
    with frame.at(bound.node):
        made = frame.builder.create_tensor(sizes, dtypes.pop(), "joined")
    zeros = [frame.index(0, bound.node, "an offset") for _ in sizes]
    assign(frame, made, zeros, shapes[0], parts[0], bound.node)
    start = frame.index(shapes[0][-1], bound.node, "an offset")
    assign(frame, made, [*zeros[:-1], start], shapes[1], parts[1], bound.node)
    return made


_HANDLERS: dict[str, Callable[[Frame, Bound], Model]] = {
    **array_matrix.HANDLERS,
    **array_index.HANDLERS,
    **{sign: _binary_call(sign) for sign in WITH_SCALAR if sign != "cmp"},
    "cmp": _comparison,
    "cmps": _comparison,
    "sel": _selection,
    "sels": _selection,
    "max": _binary_call("maximum"),
    "min": _binary_call("minimum"),
    "cast": _cast,
    "full": _full,
    "ci": _counted,
    "tri": _triangle,
    "expands": _expands,
    "store": _store,
    "assemble": _assemble,
    "concat": _concat,
    "reshape": reshape,
}
# Operations that make a tensor from numbers.
MAKERS = frozenset({"full", "ci", "tri"})
# Operations that mean the same everywhere, so that they are not looked up here.
SHARED = frozenset(
    {
        *("slice", "tensor.dim", "const", "static_assert", "cond", "create_tensor", "neg", "read", "write"),
        *("tensor.view", "tensor.expand_clone"),
    }
)
