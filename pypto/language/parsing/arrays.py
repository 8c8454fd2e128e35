"""Operations on whole tensors, of any size: the compiler makes tiles and loops of them later.

A scope is parsed this way when its tensors do not fit on chip as tiles, or their sizes are known at run time only.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pypto.ir.errors import IRError
from pypto.ir.nodes import Value
from pypto.ir.ops.registry import definition
from pypto.ir.types import FP32, DType, TensorType, TileType
from pypto.ir.values import length_text, same_value, simplified
from pypto.language.errors import CompileError, TileCodeError
from pypto.language.parsing.arguments import element, reshaped
from pypto.language.parsing.frame import Frame
from pypto.language.parsing.model import Model, describe, is_number, is_scalar, is_tensor
from pypto.language.parsing.operators import COMMUTATIVE, EXCHANGED, EXPANDED, WITH_SCALAR

if TYPE_CHECKING:
    from pypto.language.parsing.binding import Bound

Dims = tuple[Any, ...]


def shape_of(frame: Frame, tensor: Value, node: ast.AST) -> Dims:
    """The lengths of a tensor: numbers, or index values."""
    return frame.dims(tensor, node)


def same_lengths(a: Sequence[Model], b: Sequence[Model]) -> bool:
    return len(a) == len(b) and all(same_value(x, y) for x, y in zip(a, b, strict=True))


def shape_text(shape: Sequence[Model]) -> str:
    return "[" + ", ".join(map(length_text, shape)) + "]"


def as_rows(shape: Dims) -> Dims:
    """A tensor of one dimension counts as a row."""
    return (1, *shape) if len(shape) == 1 else shape


def joint_lead(leads: Sequence[Dims]) -> Dims | None:
    """Leading dimensions that are repeated as NumPy does: from the right, equal ones, or 1 beside any."""
    longest = max(leads, key=len)
    joint: list[Model] = []
    for position in range(-len(longest), 0):
        lengths = [lead[position] for lead in leads if len(lead) >= -position]
        others = [length for length in lengths if not same_value(length, 1)]
        if any(not same_value(length, others[0]) for length in others):
            return None
        joint.append(others[0] if others else lengths[0])
    return tuple(joint)


def apply(
    frame: Frame,
    name: str,
    operands: Sequence[Value],
    shape: Sequence[Model],
    dtype: DType,
    node: ast.AST,
    **attrs: Any,
) -> Value:
    """Append an operation that makes a new tensor."""
    dims = tuple(simplified(frame.index(d, node, "a size")) for d in shape)
    return frame.op("tensor.apply", operands, node, (TensorType(dims, dtype),), tile=name, **attrs).result


def result_dtype(frame: Frame, name: str, operands: Sequence[Value], node: ast.AST, **attrs: Any) -> DType:
    """The element type that an operation on tiles would give for these element types.

    Raises:
        CompileError: the operation does not take them.
    """
    known = definition(f"tile.{name}")
    samples: list[Value] = []
    for index, value in enumerate(operands):
        shape = (64, 64)
        if name.startswith("row_expand") and index:
            shape = (64, 1)
        elif name.startswith("col_expand") and index:
            shape = (1, 64)
        type = value.type
        samples.append(
            Value(value.name, TileType(shape, type.dtype, None, shape)) if isinstance(type, TensorType) else value
        )
    with frame.at(node):
        (found,) = known.check_call(samples, attrs)
    if not isinstance(found, TileType):
        raise IRError(f"{name} gives no tile")
    return found.dtype


def elementwise(frame: Frame, name: str, operands: Sequence[Value], label: str, node: ast.AST, **attrs: Any) -> Value:
    """Element by element; columns, rows and leading dimensions are repeated, scalars stand beside each element."""
    tensors = [v for v in operands if is_tensor(v)]
    shapes = [shape_of(frame, v, node) for v in tensors]
    if len(tensors) == len(operands) == 2 and not same_lengths(shapes[0], shapes[1]):
        expanded = _expanded(frame, name, operands[0], operands[1], node)
        if isinstance(expanded, Value):
            return expanded
        operands = expanded
        shapes = [shape_of(frame, v, node) for v in operands]
    joint = _joint(shapes)
    if joint is None:
        other = next(s for s in shapes if not same_lengths(s, shapes[0]))
        raise frame.error(
            f"{label}: needs tensors of one shape, got {shape_text(shapes[0])} and {shape_text(other)}", node
        )
    dtype = result_dtype(frame, name, operands, node, **attrs)
    return apply(frame, name, operands, joint, dtype, node, **attrs)


def _joint(shapes: Sequence[Dims]) -> Dims | None:
    """The shape of tensors beside each other whose last two dimensions are equal."""
    if all(same_lengths(shape, shapes[0]) for shape in shapes):
        return shapes[0]
    if any(len(s) < 2 or not same_lengths(s[-2:], shapes[0][-2:]) for s in shapes):
        return None
    lead = joint_lead([s[:-2] for s in shapes])
    return None if lead is None else (*lead, *shapes[0][-2:])


def _expanded(frame: Frame, name: str, a: Value, b: Value, node: ast.AST) -> Value | tuple[Value, Value]:
    """The operation with a column or row beside a tensor, or both sides with the column or row repeated."""
    shapes = [as_rows(shape_of(frame, v, node)) for v in (a, b)]
    lead = joint_lead([s[:-2] for s in shapes])
    if lead is None:
        return a, b
    if lead:
        a, b = (
            v if len(shape_of(frame, v, node)) > 1 else shaped(frame, v, shape, node)
            for v, shape in zip((a, b), shapes, strict=True)
        )
        if same_lengths(shapes[0][-2:], shapes[1][-2:]):
            return a, b
    for index, (tall, wide) in enumerate((tuple(shapes), tuple(shapes[::-1]))):
        # A column beside a row: neither has the shape of the result.
        if same_lengths((tall[-1], wide[-2]), (1, 1)) and tall[-2] != 1 and wide[-1] != 1:
            repeated = _repeated(frame, (a, b)[index], (*tall[:-1], wide[-1]), node)
            a, b = (repeated, b) if index == 0 else (a, repeated)
    for large, small in ((a, b), (b, a)):
        shape, other = shape_of(frame, large, node), as_rows(shape_of(frame, small, node))
        if same_lengths(other[-2:], (1, 1)) and not same_lengths(as_rows(shape)[-2:], (1, 1)):
            other = (*other[:-1], shape[-1])
            small = _repeated(frame, small, other, node)
        if len(shape) > 1 and same_lengths(other[-2:], (shape[-2], 1)):
            axis = "row"
        elif same_lengths(other[-2:], (1, shape[-1])):
            axis = "col"
        else:
            continue
        joint = (*lead, *shape[-2:]) if len(shape) > 1 else shape
        if name in EXPANDED and (large is a or name in COMMUTATIVE):
            expansion = f"{axis}_expand_{EXPANDED[name]}"
            dtype = result_dtype(frame, expansion, [large, small], node)
            return apply(frame, expansion, [large, small], joint, dtype, node)
        dtype = result_dtype(frame, f"{axis}_expand", [large, small], node)
        repeated = apply(frame, f"{axis}_expand", [large, small], joint, dtype, node)
        return (large, repeated) if large is a else (repeated, large)
    return a, b


def _repeated(frame: Frame, column: Value, shape: Dims, node: ast.AST) -> Value:
    """A column in each column of a tensor of a shape that no operand has."""
    dtype = column.type.dtype if isinstance(column.type, TensorType) else FP32
    target = apply(frame, "full", [frame.zero(dtype, node)], shape, dtype, node)
    return apply(frame, "row_expand", [target, column], shape, dtype, node)


def scalar_operand(frame: Frame, model: Model, tensor: Value, node: ast.AST) -> Value:
    dtype = tensor.type.dtype if isinstance(tensor.type, TensorType) else FP32
    return element(frame, model, dtype, node, "a scalar beside a tensor")


def binary(frame: Frame, sign: str, left: Model, right: Model, label: str, node: ast.AST, **attrs: Any) -> Value:
    """An element-wise operation with at least one tensor."""
    for model in (left, right):
        if is_tensor(model):
            frame.check_reads(model, node)
        elif not (is_number(model) or is_scalar(model)):
            raise frame.error(f"{label} does not take {describe(left)} and {describe(right)}", node)
    if is_tensor(left) and is_tensor(right):
        return elementwise(frame, sign, [left, right], label, node, **attrs)
    if sign not in WITH_SCALAR:
        raise frame.error(f"{label} does not take {describe(left)} and {describe(right)}", node)
    tensor, other = (left, right) if is_tensor(left) else (right, left)
    scalar = scalar_operand(frame, other, tensor, node)
    if tensor is right and sign == "sub":
        negated = elementwise(frame, "neg", [tensor], label, node)
        return elementwise(frame, "adds", [negated, scalar], label, node)
    if tensor is right and sign == "cmp":
        attrs = {"pred": EXCHANGED[attrs["pred"]]}
    elif tensor is right and sign != "div" and sign not in COMMUTATIVE:
        return elementwise(frame, sign, [filled(frame, scalar, tensor, node), tensor], label, node, **attrs)
    name = "rdivs" if tensor is right and sign == "div" else WITH_SCALAR[sign]
    return elementwise(frame, name, [tensor, scalar], label, node, **attrs)


def filled(frame: Frame, scalar: Value, like: Value, node: ast.AST) -> Value:
    dtype = like.type.dtype if isinstance(like.type, TensorType) else FP32
    return apply(frame, "full", [scalar], shape_of(frame, like, node), dtype, node)


def assign(
    frame: Frame, tensor: Value, offsets: Sequence[Value], sizes: Sequence[Model], model: Model, node: ast.AST
) -> None:
    """``tensor[window] = model``."""
    if not is_tensor(model):
        raise frame.error(f"a tensor is assigned tensors, not {describe(model)}; make one with pl.full", node)
    given = shape_of(frame, model, node)
    if len(given) != len(sizes) and same_lengths(as_rows(given), as_rows(tuple(sizes))):
        model, given = shaped(frame, model, sizes, node), tuple(sizes)
    if not same_lengths(given, sizes):
        raise frame.error(f"the slice is {shape_text(sizes)}, but what is assigned is {shape_text(given)}", node)
    whole = same_lengths(shape_of(frame, tensor, node), sizes)
    target = tensor
    if not whole:
        with frame.at(node):
            target = frame.builder.view(tensor, offsets, [frame.index(s, node, "a size") for s in sizes], tensor.name)
    frame.op("tensor.assign", [model, target], node)


def tile_code(frame: Frame, label: str, node: ast.AST) -> CompileError:
    """The error about an operation that only exists for tiles."""
    return frame.error(f"{label} is not supported on tensors that do not fit on chip as a whole", node, TileCodeError)


def tensor_operand(frame: Frame, bound: Bound, name: str, reads: bool = True) -> Value:
    """An argument that is a tensor, which the operation reads unless it says otherwise."""
    model = bound[name]
    if not is_tensor(model):
        raise frame.error(f"{bound.label}: {name} must be a tensor, not {describe(model)}", bound.place(name))
    if reads:
        frame.check_reads(model, bound.place(name))
    value: Value = model
    return value


def reshape(frame: Frame, bound: Bound) -> Model:
    """The same elements in another shape; another handle of the same memory."""
    source = tensor_operand(frame, bound, "input")
    reshaped(frame, bound, "shape", shape_of(frame, source, bound.node))
    shape = bound["shape"]
    if not isinstance(shape, tuple) or not shape:
        raise frame.error(f"{bound.label}: shape must be a list of sizes, not {describe(shape)}", bound.place("shape"))
    sizes = [frame.index(m, bound.place("shape"), f"{bound.label}: a size") for m in shape]
    return shaped(frame, source, sizes, bound.node)


def shaped(frame: Frame, source: Value, shape: Sequence[Model], node: ast.AST) -> Value:
    """A handle of the same elements in another shape."""
    made = frame.op("tensor.reshape", [source, *(frame.index(d, node, "a size") for d in shape)], node).result
    made.name = source.name
    return made
