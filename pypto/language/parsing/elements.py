"""Single elements of tensors as numbers, and single indices in subscripts."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pypto.ir.nodes import Block, Direction, FunctionKind, Op, Value
from pypto.ir.types import BF16, FP16, FP32, DType, MemorySpace, ScalarType, TensorType, TileType
from pypto.ir.values import defining_op
from pypto.language.parsing.elementwise import apply_binary
from pypto.language.parsing.frame import Frame, tile_type
from pypto.language.parsing.model import Interval, Model, describe, is_number, is_scalar, is_tensor, is_tile, is_whole

if TYPE_CHECKING:
    from pypto.language.parsing.binding import Bound

_LINE = 32


def single(frame: Frame, model: Model, dim: Model, node: ast.AST) -> Interval:
    """``base[i]`` as ``base[i : i + 1]``; a known index below 0 counts from the end."""
    if is_whole(model) and model < 0:
        index, model = model, apply_binary(frame, "add", dim, model, node)
        if is_whole(model) and model < 0:
            raise frame.error(f"index {index} is outside of a dimension of {describe(dim)}", node)
    if is_whole(model):
        if model < 0 or (is_whole(dim) and model >= dim):
            raise frame.error(f"index {model} is outside of a dimension of {describe(dim)}", node)
        return Interval(model, model + 1)
    start = frame.index(model, node, "an index")
    one = frame.index(1, node, "an index")
    return Interval(start, frame.op("arith.add", [start, one], node).result)


def read(frame: Frame, tensor: Value, indices: Sequence[Value], node: ast.AST) -> Value:
    """One element of a tensor: on the core, or, in an entry, on the host while tasks are put together.

    What tasks write is read when they are over.
    """
    operands = [tensor, *indices]
    if frame.function.kind is FunctionKind.INCORE:
        frame.check_reads(tensor, node)
        return frame.op("tensor.read", operands, node).result
    if frame.on_core and (frame.direction(tensor) is not Direction.In or not _can_hoist(frame, operands)):
        return frame.op("tensor.read", operands, node).result
    if frame.on_core and frame.outer is not None:
        made: dict[int, Value] = {}
        operands = [_hoisted(frame, value, made) for value in operands]
        with frame.builder.inside(frame.outer):
            return frame.op("tensor.read", operands, node).result
    return frame.op("tensor.read", operands, node).result


def _hoisted(frame: Frame, value: Value, made: dict[int, Value]) -> Value:
    """The value in front of the current scope, computed there again where it is scalar arithmetic."""
    if id(value) in made:
        return made[id(value)]
    op = defining_op(value)
    if op is None or not op.name.startswith(("arith.", "tensor.")) or op.name == "tensor.create":
        return value
    copy = Op(op.name, [_hoisted(frame, v, made) for v in op.operands], [], dict(op.attrs), [], op.loc)
    copy.results = [Value(value.name, value.type, copy)]
    if frame.outer is not None:
        frame.outer.ops.append(copy)
    made[id(value)] = copy.result
    return copy.result


def _can_hoist(frame: Frame, values: Sequence[Value]) -> bool:
    """Whether a read may happen in front of the current scope: it always happens there, and its index is known."""
    return frame.builder.block is frame.scope and not any(_made_on_core(frame, value) for value in values)


def _made_on_core(frame: Frame, value: Value) -> bool:
    op = defining_op(value)
    if op is None:
        return id(value) in frame.core_values
    if id(op) in frame.core_values or (op.name in ("tile.read", "tensor.read") and _inside(frame, op)):
        return True
    return op.name.startswith(("arith.", "tensor.")) and any(_made_on_core(frame, v) for v in op.operands)


def _inside(frame: Frame, op: Op) -> bool:
    """Whether a read happens on the core, in the scope that is being parsed."""
    return frame.outer is None or op not in frame.outer.ops


def read_call(frame: Frame, bound: Bound) -> Model:
    """``pl.read(src, offset)``."""
    tensor = bound[next(iter(bound.models))]
    if is_tile(tensor):
        return read_tile(frame, tensor, _indices(frame, bound, tensor), bound.node)
    if not is_tensor(tensor):
        raise frame.error(f"{bound.label} takes a tile or tensor, not {describe(tensor)}", bound.node)
    return read(frame, tensor, _indices(frame, bound, tensor), bound.node)


def write_call(frame: Frame, bound: Bound) -> Model:
    """``pl.write(dst, offset, value)``: into a tensor a store of a tile of which one element is valid."""
    tensor, value = bound[next(iter(bound.models))], bound["value"]
    if is_tile(tensor):
        made = write_tile(frame, tensor, _indices(frame, bound, tensor), value, bound.node)
        frame.rebind(tensor, made)
        return made
    if not is_tensor(tensor):
        raise frame.error(f"{bound.label} takes a tile or tensor, not {describe(tensor)}", bound.node)
    if not frame.whole:
        frame.need_core(bound.label, bound.node)
    frame.check_writes(tensor, bound.node)
    if not (is_number(value) or is_scalar(value)):
        raise frame.error(f"{bound.label}: value must be a number, not {describe(value)}", bound.place("value"))
    write(frame, tensor, _indices(frame, bound, tensor), value, bound.node)
    return tensor


def read_tile(frame: Frame, tile: Value, indices: Sequence[Value], node: ast.AST) -> Value:
    """One element of a tile as a number."""
    frame.need_core("an element of a tile", node)
    number = frame.op("tile.read", [tile, *indices], node).result
    frame.core_values.add(id(number.owner))
    return number


def write_tile(frame: Frame, tile: Value, indices: Sequence[Value], value: Model, node: ast.AST) -> Value:
    """The tile with another number in one place."""
    number = _element(frame, value, tile_type(tile).dtype, node)
    return frame.op("tile.write", [tile, *indices, number], node).result


def _element(frame: Frame, value: Model, dtype: DType, node: ast.AST) -> Value:
    """A number as an element of a dtype; floating-point numbers are FP32 until they are stored."""
    if dtype.is_float and is_whole(value):
        frame.check_range(value, dtype, node)
        value = float(value)
    if is_scalar(value) and dtype.is_float and value.type.dtype.is_float:
        wide = FP32 if dtype in (FP16, BF16) else dtype
        if value.type.dtype in (wide, dtype):
            number: Value = value
            return number
        return frame.op("arith.cast", [value], node, (ScalarType(wide),)).result
    return frame.scalar(value, dtype, node, "an element")


def write(frame: Frame, tensor: Value, indices: Sequence[Value], value: Model, node: ast.AST) -> None:
    """Write one element; beside work on whole tensors that is a scope of its own."""
    if not frame.whole:
        _store(frame, tensor, indices, value, node)
        return
    body = Block()
    with frame.builder.inside(body):
        _store(frame, tensor, indices, value, node)
    with frame.at(node):
        frame.builder.op("func.scope", attrs={"name": ""}, regions=[body])


def _store(frame: Frame, tensor: Value, indices: Sequence[Value], value: Model, node: ast.AST) -> None:
    type = tensor.type
    if not isinstance(type, TensorType):
        raise TypeError(f"{tensor.name} is no tensor")
    number = _element(frame, value, type.dtype, node)
    wanted = TileType((1, _LINE // type.dtype.nbytes), type.dtype, MemorySpace.Vec, (1, 1))
    tile = frame.op("tile.full", [number], node, (wanted,)).result
    with frame.at(node):
        frame.builder.store(tile, tensor, indices)


def _unravelled(frame: Frame, base: Value, position: Model, node: ast.AST) -> tuple[Model, ...]:
    """The indices of the element at a flat position."""
    dims: tuple[Model, ...] = tile_type(base).shape if is_tile(base) else frame.dims(base, node)
    indices: list[Model] = []
    for dim in dims[:0:-1]:
        indices.append(apply_binary(frame, "mod", position, dim, node))
        position = apply_binary(frame, "floordiv", position, dim, node)
    return (position, *reversed(indices))


def _indices(frame: Frame, bound: Bound, tensor: Value) -> list[Value]:
    name = list(bound.models)[1]
    model = bound[name] if isinstance(bound[name], tuple) else _unravelled(frame, tensor, bound[name], bound.node)
    rank = tensor.type.rank if isinstance(tensor.type, TensorType) else 2
    if len(model) != rank:
        raise frame.error(
            f"{bound.label}: {name} must be a list of {rank} indices, or a flat position", bound.place(name)
        )
    return [frame.index(m, bound.place(name), f"{bound.label}: an index") for m in model]
