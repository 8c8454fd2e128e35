"""Operations on whole tensors, of any size: the compiler makes tiles and loops of them later.

A scope is parsed this way when its tensors do not fit on chip as tiles, or their sizes are known at run time only.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pypto.ir.errors import IRError
from pypto.ir.nodes import Value
from pypto.ir.ops.registry import all_definitions, definition
from pypto.ir.ops.tile_matrix import PRODUCTS
from pypto.ir.passes.shapes import COLUMN_REDUCTIONS, PLACES, ROW_LOCAL_REDUCTIONS, is_elementwise
from pypto.ir.types import FP32, AtomicType, DType, TensorType, TileType
from pypto.ir.values import length_text, same_value, simplified
from pypto.language.errors import CompileError, TileCodeError
from pypto.language.parsing.arguments import element, predicate, reshaped
from pypto.language.parsing.frame import Frame
from pypto.language.parsing.model import Model, describe, is_number, is_scalar, is_tensor
from pypto.language.parsing.operators import COMMUTATIVE, EXCHANGED, EXPANDED, WITH_SCALAR

if TYPE_CHECKING:
    from pypto.language.parsing.binding import Bound

Dims = tuple[Any, ...]


def shape_of(frame: Frame, tensor: Value, node: ast.AST) -> Dims:
    """The lengths of a tensor: numbers, or index values."""
    return frame.dims(tensor, node)


def _same(a: Sequence[Model], b: Sequence[Model]) -> bool:
    return len(a) == len(b) and all(same_value(x, y) for x, y in zip(a, b, strict=True))


def _text(shape: Sequence[Model]) -> str:
    return "[" + ", ".join(map(length_text, shape)) + "]"


def _rows(shape: Dims) -> Dims:
    """A tensor of one dimension counts as a row."""
    return (1, *shape) if len(shape) == 1 else shape


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
    """Element by element; columns and rows are repeated, scalars stand beside each element."""
    tensors = [v for v in operands if is_tensor(v)]
    shapes = [shape_of(frame, v, node) for v in tensors]
    if len(tensors) == len(operands) == 2 and not _same(shapes[0], shapes[1]):
        expanded = _expanded(frame, name, operands[0], operands[1], node)
        if isinstance(expanded, Value):
            return expanded
        operands = expanded
        shapes = [shape_of(frame, v, node) for v in operands]
    for shape in shapes[1:]:
        if not _same(shape, shapes[0]):
            raise frame.error(f"{label}: needs tensors of one shape, got {_text(shapes[0])} and {_text(shape)}", node)
    dtype = result_dtype(frame, name, operands, node, **attrs)
    return apply(frame, name, operands, shapes[0], dtype, node, **attrs)


def _expanded(frame: Frame, name: str, a: Value, b: Value, node: ast.AST) -> Value | tuple[Value, Value]:
    """The operation with a column or row beside a tensor, or both sides with the column or row repeated."""
    shapes = [_rows(shape_of(frame, v, node)) for v in (a, b)]
    for index, (tall, wide) in enumerate((tuple(shapes), tuple(shapes[::-1]))):
        # A column beside a row: neither has the shape of the result.
        if _same((tall[-1], *wide[:-1]), (1,) * len(wide)) and tall[-2] != 1 and wide[-1] != 1:
            repeated = _repeated(frame, (a, b)[index], (*tall[:-1], wide[-1]), node)
            a, b = (repeated, b) if index == 0 else (a, repeated)
    for large, small in ((a, b), (b, a)):
        shape, other = shape_of(frame, large, node), shape_of(frame, small, node)
        if _same(_rows(other), (1, 1)) and not _same(_rows(shape), (1, 1)):
            small = _repeated(frame, small, (1, shape[-1]), node)
            other = (1, shape[-1])
        if _same(other, (*shape[:-1], 1)) and len(shape) > 1:
            axis = "row"
        elif _same(_rows(other), (1, shape[-1])) or (len(other) > 2 and _same(other, (*shape[:-2], 1, shape[-1]))):
            axis = "col"
        else:
            continue
        if name in EXPANDED and (large is a or name in COMMUTATIVE):
            expansion = f"{axis}_expand_{EXPANDED[name]}"
            dtype = result_dtype(frame, expansion, [large, small], node)
            return apply(frame, expansion, [large, small], shape, dtype, node)
        dtype = result_dtype(frame, f"{axis}_expand", [large, small], node)
        repeated = apply(frame, f"{axis}_expand", [large, small], shape, dtype, node)
        return (large, repeated) if large is a else (repeated, large)
    return a, b


def _repeated(frame: Frame, column: Value, shape: Dims, node: ast.AST) -> Value:
    """A column in each column of a tensor of a shape that no operand has."""
    dtype = column.type.dtype if isinstance(column.type, TensorType) else FP32
    target = apply(frame, "full", [frame.zero(dtype, node)], shape, dtype, node)
    return apply(frame, "row_expand", [target, column], shape, dtype, node)


def _scalar(frame: Frame, model: Model, tensor: Value, node: ast.AST) -> Value:
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
    scalar = _scalar(frame, other, tensor, node)
    if tensor is right and sign == "sub":
        negated = elementwise(frame, "neg", [tensor], label, node)
        return elementwise(frame, "adds", [negated, scalar], label, node)
    if tensor is right and sign == "cmp":
        attrs = {"pred": EXCHANGED[attrs["pred"]]}
    elif tensor is right and sign != "div" and sign not in COMMUTATIVE:
        return elementwise(frame, sign, [_filled(frame, scalar, tensor, node), tensor], label, node, **attrs)
    name = "rdivs" if tensor is right and sign == "div" else WITH_SCALAR[sign]
    return elementwise(frame, name, [tensor, scalar], label, node, **attrs)


def _filled(frame: Frame, scalar: Value, like: Value, node: ast.AST) -> Value:
    dtype = like.type.dtype if isinstance(like.type, TensorType) else FP32
    return apply(frame, "full", [scalar], shape_of(frame, like, node), dtype, node)


def assign(
    frame: Frame, tensor: Value, offsets: Sequence[Value], sizes: Sequence[Model], model: Model, node: ast.AST
) -> None:
    """``tensor[window] = model``."""
    if not is_tensor(model):
        raise frame.error(f"a tensor is assigned tensors, not {describe(model)}; make one with pl.full", node)
    given = shape_of(frame, model, node)
    if len(given) != len(sizes) and _same(_rows(given), _rows(tuple(sizes))):
        model, given = _shaped(frame, model, sizes, node), tuple(sizes)
    if not _same(given, sizes):
        raise frame.error(f"the slice is {_text(sizes)}, but what is assigned is {_text(given)}", node)
    whole = _same(shape_of(frame, tensor, node), sizes)
    target = tensor
    if not whole:
        with frame.at(node):
            target = frame.builder.view(tensor, offsets, [frame.index(s, node, "a size") for s in sizes], tensor.name)
    frame.op("tensor.assign", [model, target], node)


# Calls


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


def tile_code(frame: Frame, label: str, node: ast.AST) -> CompileError:
    """The error about an operation that only exists for tiles."""
    return frame.error(f"{label} is not supported on tensors that do not fit on chip as a whole", node, TileCodeError)


def _tensor(frame: Frame, bound: Bound, name: str) -> Value:
    model = bound[name]
    if not is_tensor(model):
        raise frame.error(f"{bound.label}: {name} must be a tensor, not {describe(model)}", bound.place(name))
    frame.check_reads(model, bound.place(name))
    value: Value = model
    return value


_SCRATCH = ("tmp", "tmp_tile", "high_precision")


def _elementwise_call(frame: Frame, name: str, bound: Bound, **attrs: Any) -> Value:
    operands: list[Value] = []
    tensor: Value | None = None
    for parameter, model in bound.models.items():
        if parameter in _SCRATCH:
            continue
        if tensor is not None and (is_number(model) or is_scalar(model)):
            operands.append(_scalar(frame, model, tensor, bound.place(parameter)))
        else:
            tensor = _tensor(frame, bound, parameter)
            operands.append(tensor)
    return elementwise(frame, name, operands, bound.label, bound.node, **attrs)


def _reduction(frame: Frame, name: str, bound: Bound) -> Value:
    source = _tensor(frame, bound, next(iter(bound.models)))
    shape = shape_of(frame, source, bound.node)
    if len(shape) == 1:
        shape = _rows(shape)
        source = _shaped(frame, source, shape, bound.node)
    reduced = (*shape[:-1], 1) if name.startswith("row") else (*shape[:-2], 1, shape[-1])
    dtype = result_dtype(frame, name, [source], bound.node)
    return apply(frame, name, [source], reduced, dtype, bound.node)


def _expansion(frame: Frame, name: str, bound: Bound) -> Value:
    first, second = (_tensor(frame, bound, parameter) for parameter in list(bound.models)[:2])
    shape, other = (shape_of(frame, v, bound.node) for v in (first, second))
    if name.startswith("row"):
        wanted, what = (*shape[:-1], 1), "column"
    else:
        wanted, what = (1, shape[-1]), "row"
        other = _rows(other)
        if len(other) > 2:
            wanted = (*shape[:-2], 1, shape[-1])
    if not _same(other, wanted):
        raise frame.error(
            f"{bound.label}: needs a {what} {_text(wanted)} beside {_text(shape)}, got {_text(other)}", bound.node
        )
    dtype = result_dtype(frame, name, [first, second], bound.node)
    return apply(frame, name, [first, second], shape, dtype, bound.node)


def _binary_call(sign: str) -> Callable[[Frame, Bound], Model]:
    return lambda frame, bound: binary(frame, sign, bound["lhs"], bound["rhs"], bound.label, bound.node)


def _comparison(frame: Frame, bound: Bound) -> Model:
    pred = predicate(frame, bound)
    return binary(frame, "cmp", bound["lhs"], bound["rhs"], bound.label, bound.node, pred=pred)


def _selection(frame: Frame, bound: Bound) -> Model:
    names = ("src", "scalar") if "scalar" in bound.models else ("lhs", "rhs")
    mask, first, other = _tensor(frame, bound, "mask"), bound[names[0]], bound[names[1]]
    if not is_tensor(first) and is_tensor(other):
        first = _filled(frame, _scalar(frame, first, other, bound.place(names[0])), other, bound.node)
    else:
        first = _tensor(frame, bound, names[0])
    if is_tensor(other):
        operands, name = [mask, first, _tensor(frame, bound, names[1])], "sel"
    else:
        operands, name = [mask, first, _scalar(frame, other, first, bound.place(names[1]))], "sels"
    return elementwise(frame, name, operands, bound.label, bound.node, mask="elements")


def _cast(frame: Frame, bound: Bound) -> Model:
    source, dtype = _tensor(frame, bound, "input"), bound["target_type"]
    if not isinstance(dtype, DType):
        raise frame.error(f"{bound.label}: target_type must be a dtype, not {describe(dtype)}", bound.node)
    given = source.type.dtype if isinstance(source.type, TensorType) else dtype
    sample = Value(source.name, TileType((64, 64), given, None, (64, 64)))
    wanted = TileType((64, 64), dtype, None, (64, 64))
    with frame.at(bound.node):
        definition("tile.cast").check_call([sample], {"mode": bound["mode"]}, [wanted])
    shape = shape_of(frame, source, bound.node)
    return apply(frame, "cast", [source], shape, dtype, bound.node, mode=bound["mode"])


def _matmul(frame: Frame, bound: Bound) -> Model:
    left, right = _tensor(frame, bound, "lhs"), _tensor(frame, bound, "rhs")
    flags = {name: bool(bound.models.get(name)) for name in ("a_trans", "b_trans")}
    shapes = [shape_of(frame, v, bound.node) for v in (left, right)]
    lead = shapes[0][:-2]
    if any(len(s) < 2 for s in shapes) or not _same(lead, shapes[1][:-2]):
        raise frame.error(f"{bound.label}: cannot multiply {_text(shapes[0])} by {_text(shapes[1])}", bound.node)
    (rows, inner), (inner_right, cols) = (
        reversed(s[-2:]) if turned else s[-2:] for s, turned in zip(shapes, flags.values(), strict=True)
    )
    dtypes = [v.type.dtype for v in (left, right) if isinstance(v.type, TensorType)]
    if dtypes[0] != dtypes[1] or dtypes[0] not in PRODUCTS:
        raise frame.error(f"{bound.label}: cannot multiply {dtypes[0]} by {dtypes[1]}; use pl.cast", bound.node)
    if not same_value(inner, inner_right):
        raise frame.error(
            f"{bound.label}: cannot multiply {_text(shapes[0])} by {_text(shapes[1])}: {_text([inner])} columns meet "
            f"{_text([inner_right])} rows; a_trans and b_trans swap an operand's axes",
            bound.node,
        )
    made = apply(frame, "matmul", [left, right], (*lead, rows, cols), PRODUCTS[dtypes[0]], bound.node, **flags)
    wanted = bound["out_dtype"] if "out_dtype" in bound.models else None
    if wanted is None or wanted == PRODUCTS[dtypes[0]]:
        return made
    return apply(frame, "cast", [made], (*lead, rows, cols), wanted, bound.node, mode="round")


def _matmul_acc(frame: Frame, bound: Bound) -> Model:
    start = bound.models.get("init_cond")
    if start not in (None, False, True):
        raise tile_code(frame, f"{bound.label} with a run-time init_cond", bound.node)
    product: Value = _matmul(frame, bound)
    if start:
        return product
    return binary(frame, "add", _tensor(frame, bound, "acc"), product, bound.label, bound.node)


def _transpose(frame: Frame, bound: Bound) -> Model:
    source = _tensor(frame, bound, "input")
    shape = shape_of(frame, source, bound.node)
    axes = sorted(
        axis + len(shape) if axis < 0 else axis
        for axis in (frame.known(bound[n], bound.place(n), f"{bound.label}: {n}") for n in ("axis1", "axis2"))
    )
    if axes != [len(shape) - 2, len(shape) - 1]:
        raise frame.error(
            f"{bound.label}: only the last two axes can be swapped, not {axes[0]} and {axes[1]}", bound.node
        )
    dtype = result_dtype(frame, "transpose", [source], bound.node)
    return apply(frame, "transpose", [source], (*shape[:-2], shape[-1], shape[-2]), dtype, bound.node)


def _full(frame: Frame, bound: Bound) -> Model:
    shape, dtype = bound["shape"], bound["dtype"]
    if not isinstance(shape, tuple) or not shape or not isinstance(dtype, DType):
        raise frame.error(f"{bound.label} takes a list of sizes, a dtype and a number", bound.node)
    value = element(frame, bound["value"], dtype, bound.place("value"), f"{bound.label}: value")
    return apply(frame, "full", [value], shape, dtype, bound.node)


def _expands(frame: Frame, bound: Bound) -> Model:
    target = _tensor(frame, bound, "target")
    value = _scalar(frame, bound["scalar"], target, bound.place("scalar"))
    return _filled(frame, value, target, bound.node)


def _store(frame: Frame, bound: Bound) -> Model:
    return _placed(frame, bound, "output_tensor", "tile", "offsets")


def _assemble(frame: Frame, bound: Bound) -> Model:
    return _placed(frame, bound, "target", "source", "offset")


def _placed(frame: Frame, bound: Bound, target: str, source: str, offset: str) -> Model:
    tensor, value = bound[target], _tensor(frame, bound, source)
    if not is_tensor(tensor):
        raise frame.error(f"{bound.label}: {target} must be a tensor, not {describe(tensor)}", bound.place(target))
    frame.check_writes(tensor, bound.place(target))
    if bound.models.get("atomic") not in (None, AtomicType.None_):
        raise frame.error(
            f"{bound.label}: atomic takes tiles; load windows of known sizes and store each", bound.place("atomic")
        )
    sizes = shape_of(frame, value, bound.node)
    shapes = bound.models.get("shapes")
    if shapes is not None and not (isinstance(shapes, tuple) and _same(_indices(frame, bound, shapes), sizes)):
        raise frame.error(
            f"{bound.label}: shapes is not {_text(sizes)}, as what is stored; slice that instead", bound.place("shapes")
        )
    offsets = bound[offset]
    if not isinstance(offsets, tuple) or len(offsets) != len(sizes):
        raise frame.error(f"{bound.label}: {offset} must be a list of {len(sizes)} offsets", bound.place(offset))
    values = [frame.index(m, bound.place(offset), f"{bound.label}: an offset") for m in offsets]
    assign(frame, tensor, values, sizes, value, bound.node)
    return tensor


def _indices(frame: Frame, bound: Bound, sizes: Sequence[Model]) -> list[Model]:
    return [simplified(frame.index(m, bound.place("shapes"), f"{bound.label}: a size")) for m in sizes]


def reshape(frame: Frame, bound: Bound) -> Model:
    """The same elements in another shape; another handle of the same memory."""
    source = _tensor(frame, bound, "input")
    reshaped(frame, bound, "shape", shape_of(frame, source, bound.node))
    shape = bound["shape"]
    if not isinstance(shape, tuple) or not shape:
        raise frame.error(f"{bound.label}: shape must be a list of sizes, not {describe(shape)}", bound.place("shape"))
    sizes = [frame.index(m, bound.place("shape"), f"{bound.label}: a size") for m in shape]
    return _shaped(frame, source, sizes, bound.node)


def _shaped(frame: Frame, source: Value, shape: Sequence[Model], node: ast.AST) -> Value:
    """A handle of the same elements in another shape."""
    made = frame.op("tensor.reshape", [source, *(frame.index(d, node, "a size") for d in shape)], node).result
    made.name = source.name
    return made


def _concat(frame: Frame, bound: Bound) -> Model:
    parts = [_tensor(frame, bound, name) for name in ("src0", "src1")]
    shapes = [shape_of(frame, part, bound.node) for part in parts]
    dtypes = {part.type.dtype for part in parts if isinstance(part.type, TensorType)}
    if len(dtypes) != 1 or not _same(shapes[0][:-1], shapes[1][:-1]):
        raise frame.error(f"{bound.label}: cannot join {_text(shapes[0])} and {_text(shapes[1])}", bound.node)
    from pypto.language.parsing.elementwise import apply_binary

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
    **{sign: _binary_call(sign) for sign in WITH_SCALAR if sign != "cmp"},
    "cmp": _comparison,
    "cmps": _comparison,
    "sel": _selection,
    "sels": _selection,
    "max": _binary_call("maximum"),
    "min": _binary_call("minimum"),
    "cast": _cast,
    "matmul": _matmul,
    "batch_matmul": _matmul,
    "matmul_acc": _matmul_acc,
    "batch_matmul_acc": _matmul_acc,
    "transpose": _transpose,
    "full": _full,
    "expands": _expands,
    "store": _store,
    "assemble": _assemble,
    "concat": _concat,
    "reshape": reshape,
}
# Operations that mean the same everywhere, so that they are not looked up here.
SHARED = frozenset(
    {
        *("slice", "tensor.dim", "const", "static_assert", "cond", "create_tensor", "neg", "read", "write"),
        *("tensor.view", "tensor.expand_clone"),
    }
)
