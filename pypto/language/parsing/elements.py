"""Single elements of tensors as numbers, and single indices in subscripts."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pypto.ir.nodes import Direction, FunctionKind, Op, Value
from pypto.ir.types import MemorySpace, TensorType, TileType
from pypto.ir.values import defining_op
from pypto.language.parsing.frame import Frame
from pypto.language.parsing.model import Interval, Model, describe, is_number, is_scalar, is_tensor, is_tile, is_whole

if TYPE_CHECKING:
    from pypto.language.parsing.binding import Bound

_LINE = 32


def single(frame: Frame, model: Model, dim: Model, node: ast.AST) -> Interval:
    """``base[i]`` as ``base[i : i + 1]``; a negative known index counts from the end."""
    if is_whole(model) and model < 0 and is_whole(dim):
        model = dim + model
    if is_whole(model):
        if model < 0 or (is_whole(dim) and model >= dim):
            raise frame.error(f"index {model} is outside of a dimension of {describe(dim)}", node)
        return Interval(model, model + 1)
    start = frame.index(model, node, "an index")
    one = frame.index(1, node, "an index")
    return Interval(start, frame.op("arith.add", [start, one], node).result)


def read(frame: Frame, tensor: Value, indices: Sequence[Value], node: ast.AST) -> Value:
    """One element of an input of the entry, read on the host while tasks are put together."""
    if frame.function.kind is FunctionKind.INCORE:
        raise frame.error(
            "a core reads tensors through tiles only; read the element in the entry and pass it as a scalar", node
        )
    name = frame.root(tensor).name
    if frame.direction(tensor) is not Direction.In:
        raise frame.error(
            f"elements of {name} cannot be read: tasks write it, and they run after the entry has put all of them "
            "together; only inputs can be read",
            node,
        )
    operands = [tensor, *indices]
    if frame.on_core and frame.outer is not None:
        made: dict[int, Value] = {}
        operands = [_hoisted(frame, value, made, node) for value in operands]
        with frame.builder.inside(frame.outer):
            return frame.op("tensor.read", operands, node).result
    return frame.op("tensor.read", operands, node).result


def _hoisted(frame: Frame, value: Value, made: dict[int, Value], node: ast.AST) -> Value:
    """The value in front of the current scope, computed there again where it is scalar arithmetic."""
    if id(value) in made:
        return made[id(value)]
    op = defining_op(value)
    if op is None:
        if id(value) in frame.core_values:
            raise frame.error(
                "an element is read before the scope runs, so that its index cannot depend on a loop inside of the "
                "scope; read it in the entry",
                node,
            )
        return value
    if not op.name.startswith(("arith.", "tensor.")) or op.name == "tensor.create":
        if op.name in ("scf.for", "scf.if") and id(op) in frame.core_values:
            raise frame.error("the index of an element is computed by a loop of the scope; read it in the entry", node)
        return value
    copy = Op(op.name, [_hoisted(frame, v, made, node) for v in op.operands], [], dict(op.attrs), [], op.loc)
    copy.results = [Value(value.name, value.type, copy)]
    if frame.outer is not None:
        frame.outer.ops.append(copy)
    made[id(value)] = copy.result
    return copy.result


def read_call(frame: Frame, bound: Bound) -> Model:
    """``pl.read(src, offset)``."""
    tensor = bound[next(iter(bound.models))]
    if is_tile(tensor):
        raise frame.error(
            f"{bound.label} is not supported on tiles: cores of this target do not hand elements to scalars; store the "
            "tile, or use a reduction",
            bound.node,
        )
    if not is_tensor(tensor):
        raise frame.error(f"{bound.label} takes a tensor, not {describe(tensor)}", bound.node)
    return read(frame, tensor, _indices(frame, bound, tensor), bound.node)


def write_call(frame: Frame, bound: Bound) -> Model:
    """``pl.write(dst, offset, value)``: a store of a tile of which one element is valid."""
    tensor, value = bound[next(iter(bound.models))], bound["value"]
    if not is_tensor(tensor):
        raise frame.error(f"{bound.label} takes a tensor, not {describe(tensor)}", bound.node)
    frame.need_core(bound.label, bound.node)
    frame.check_writes(tensor, bound.node)
    if not (is_number(value) or is_scalar(value)):
        raise frame.error(f"{bound.label}: value must be a number, not {describe(value)}", bound.place("value"))
    write(frame, tensor, _indices(frame, bound, tensor), value, bound.node)
    return tensor


def write(frame: Frame, tensor: Value, indices: Sequence[Value], value: Model, node: ast.AST) -> None:
    """Write one element."""
    type = tensor.type
    if not isinstance(type, TensorType):
        raise TypeError(f"{tensor.name} is no tensor")
    if type.dtype.is_float and is_whole(value):
        value = float(value)
    number = frame.scalar(value, type.dtype, node, "an element")
    wanted = TileType((1, _LINE // type.dtype.nbytes), type.dtype, MemorySpace.Vec, (1, 1))
    tile = frame.op("tile.full", [number], node, (wanted,)).result
    with frame.at(node):
        frame.builder.store(tile, tensor, indices)


def _indices(frame: Frame, bound: Bound, tensor: Value) -> list[Value]:
    name = list(bound.models)[1]
    model = bound[name] if isinstance(bound[name], tuple) else (bound[name],)
    rank = tensor.type.rank if isinstance(tensor.type, TensorType) else 0
    if len(model) != rank:
        raise frame.error(f"{bound.label}: {name} must be a list of {rank} indices", bound.place(name))
    return [frame.index(m, bound.place(name), f"{bound.label}: an index") for m in model]
