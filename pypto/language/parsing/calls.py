"""Calls of the language's operations: what each operation makes."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pypto.ir.nodes import Block, Value
from pypto.ir.ops.registry import all_definitions
from pypto.ir.ops.tile_compute import CAST_MODES
from pypto.ir.types import BOOL, INDEX, DType, DynDim, MemorySpace, ScalarType, TensorType, TileType, Valid
from pypto.ir.values import simplified
from pypto.language.parsing import arrays, compile_time, elements
from pypto.language.parsing.binding import Bound, bind
from pypto.language.parsing.elementwise import apply_binary, binary_tiles, fold, negate, scalar_operand
from pypto.language.parsing.frame import Frame, tile_type
from pypto.language.parsing.model import (
    Model,
    describe,
    is_number,
    is_scalar,
    is_tensor,
    is_tile,
)
from pypto.language.stubs import Operation


def call_operation(
    frame: Frame, operation: Operation, args: list[Model], kwargs: dict[str, Model], node: ast.Call
) -> Model:
    """Append what a call of an operation means and return what it gives."""
    if operation.name in compile_time.VARIADIC and not kwargs:
        return compile_time.VARIADIC[operation.name](args)
    bound = bind(frame, operation, args, kwargs, node)
    for name, neutral in _NOT_YET.items():
        if name in bound.given and bound[name] != neutral and (operation.name, name) not in _HAVE:
            raise frame.error(f"{bound.label}: {name}={_written(bound[name])} is not supported yet", bound.place(name))
    tensors = any(is_tensor(model) for model in bound.models.values())
    if frame.whole and (operation.name == "full" or (tensors and operation.name not in arrays.SHARED)):
        return arrays.call(frame, operation.name, bound)
    handler = _HANDLERS.get(operation.name)
    if handler is not None:
        return handler(frame, bound)
    # Everything else is an operation on tiles of the same name.
    frame.need_core(bound.label, node)
    if f"tile.{operation.name}" not in all_definitions():
        if tensors:
            raise frame.divisible(f"{bound.label} takes tensors of an entry, in a scope without tiles", node)
        raise frame.error(f"{bound.label} is not supported on tiles yet", node)
    return _tile_operation(frame, operation.name, bound)


def _written(model: Model) -> str:
    return str(model) if is_number(model) or isinstance(model, str) else describe(model)


# Parameters that exist in PyPTO and mean something only with another value than this.
_NOT_YET: dict[str, Any] = {
    "high_precision": False,
    "c_matrix_nz": False,
    "out_dtype": None,
    "drop_dims": None,
    "pad_value": None,
    "clamp": False,
    "shapes": None,
    "atomic": None,
    "blayout": None,
    "slayout": None,
    "transpose": None,
    "flat_layout": None,
    "layout": None,
    "manual_dep": False,
    "init_value": None,
}
_HAVE = {("load", "shapes"), ("matmul", "out_dtype"), ("slice", "drop_dims"), ("load", "clamp")}
_SCRATCH = frozenset({"tmp", "tmp_tile"})


def _tile_operation(frame: Frame, name: str, bound: Bound) -> Value:
    """Tiles first, then at most one scalar; scratch tiles are not needed here."""
    operands: list[Value] = []
    for parameter, model in bound.models.items():
        if parameter in _SCRATCH or parameter in _NOT_YET:
            continue
        place = bound.place(parameter)
        if operands and (is_number(model) or is_scalar(model)):
            if not name.endswith("s") or name == "abs":
                raise frame.error(f"{bound.label}: {parameter} must be a tile, not {describe(model)}", place)
            operands.append(scalar_operand(frame, model, operands[0], place))
        else:
            operands.append(frame.tile(model, place, f"{bound.label}: {parameter}"))
    return frame.op(f"tile.{name}", operands, bound.node).result


def _binary(sign: str) -> Handler:
    def handler(frame: Frame, bound: Bound) -> Model:
        left, right = bound["lhs"], bound["rhs"]
        if sign in ("maximum", "minimum"):
            if not any(is_tile(m) or is_tensor(m) for m in (left, right)):
                raise frame.error(f"{bound.label} takes tiles; for scalars use pl.{sign[:3]}", bound.node)
            return binary_tiles(frame, sign, left, right, bound.node)
        return apply_binary(frame, sign, left, right, bound.node)

    return handler


def _extreme(sign: str) -> Handler:
    def handler(frame: Frame, bound: Bound) -> Model:
        left, right = (
            frame.dimension(m, bound.node) if isinstance(m, DynDim) else m for m in (bound["lhs"], bound["rhs"])
        )
        if is_number(left) and is_number(right):
            return fold(frame, sign, left, right, bound.node)
        if any(is_tile(m) or is_tensor(m) for m in (left, right)):
            raise frame.error(
                f"{bound.label} takes scalars; for tiles use pl.{sign}imum, pl.row_{sign} or pl.col_{sign}", bound.node
            )
        return apply_binary(frame, sign, left, right, bound.node)

    return handler


def _neg(frame: Frame, bound: Bound) -> Model:
    return negate(frame, bound["input"], bound.node)


def _expands(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    target = tile_type(frame.tile(bound["target"], bound.place("target"), f"{bound.label}: target"))
    value = frame.scalar(bound["scalar"], target.dtype, bound.place("scalar"), f"{bound.label}: scalar")
    wanted = TileType(target.shape, target.dtype, MemorySpace.Vec, target.valid)
    return frame.op("tile.full", [value], bound.node, (wanted,)).result


def _shape_argument(frame: Frame, bound: Bound, name: str) -> tuple[int, int]:
    model = bound[name]
    if not isinstance(model, tuple) or len(model) != 2:
        raise frame.error(f"{bound.label}: {name} must be [rows, cols], not {describe(model)}", bound.place(name))
    rows, cols = (frame.known(m, bound.place(name), f"{bound.label}: a size in {name}") for m in model)
    if rows <= 0 or cols <= 0:
        raise frame.error(f"{bound.label}: {name} must be positive, got [{rows}, {cols}]", bound.place(name))
    return rows, cols


def _dtype_argument(frame: Frame, bound: Bound, name: str) -> DType:
    model = bound[name]
    if not isinstance(model, DType):
        raise frame.error(
            f"{bound.label}: {name} must be a dtype such as pl.FP32, not {describe(model)}", bound.place(name)
        )
    return model


def _memory_argument(frame: Frame, bound: Bound, name: str) -> MemorySpace:
    model = bound[name]
    if not isinstance(model, MemorySpace):
        raise frame.error(
            f"{bound.label}: {name} must be a memory such as pl.MemorySpace.Vec, not {describe(model)}",
            bound.place(name),
        )
    return model


def _offsets_argument(frame: Frame, bound: Bound, name: str, rank: int, what: str) -> list[Value]:
    model = bound[name]
    if not isinstance(model, tuple) or len(model) != rank:
        raise frame.error(
            f"{bound.label}: {name} must be a list of {rank} offsets, one per dimension of {what}, "
            f"not {describe(model)}",
            bound.place(name),
        )
    return [frame.index(m, bound.place(name), f"{bound.label}: an offset") for m in model]


def _tensor_argument(frame: Frame, bound: Bound, name: str) -> Value:
    model = bound[name]
    if not is_tensor(model):
        hint = "; its order is (tile, offsets, tensor)" if bound.label == "pl.store" else ""
        raise frame.error(f"{bound.label}: {name} must be a tensor, not {describe(model)}{hint}", bound.place(name))
    value: Value = model
    return value


def _load(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    tensor = _tensor_argument(frame, bound, "tensor")
    frame.check_reads(tensor, bound.node)
    rank = tensor.type.rank if isinstance(tensor.type, TensorType) else 0
    offsets = _offsets_argument(frame, bound, "offsets", rank, tensor.name)
    memory = _memory_argument(frame, bound, "target_memory") if "target_memory" in bound.given else None
    return load_window(frame, bound, tensor, offsets, "shapes", memory)


def load_window(
    frame: Frame, bound: Bound, tensor: Value, offsets: list[Value], shape_name: str, memory: MemorySpace | None
) -> Value:
    """A load of a window whose shape and valid_shape are arguments of the call."""
    rank, shape, place = len(offsets), bound[shape_name], bound.place(shape_name)
    if not isinstance(shape, tuple) or len(shape) not in (rank, 2):
        raise frame.error(f"{bound.label}: {shape_name} must be a list of {rank} sizes, not {describe(shape)}", place)
    sizes = [frame.known(m, place, f"{bound.label}: a size in {shape_name}") for m in shape]
    if any(size != 1 for size in sizes[:-2]):
        raise frame.error(f"{bound.label}: a tile has two dimensions; the leading sizes must be 1, got {sizes}", place)
    rows, cols = (1, *sizes)[-2:]
    valid = frame.valid_shape(bound["valid_shape"], (rows, cols), rank, bound.place("valid_shape"))
    if bound.models.get("clamp"):
        valid = _clamped(frame, tensor, offsets, valid, bound.node)
    with frame.at(bound.node):
        return frame.builder.load(tensor, offsets, (rows, cols), valid, memory)


def _clamped(
    frame: Frame, tensor: Value, offsets: list[Value], valid: tuple[Valid, Valid], node: ast.AST
) -> tuple[Valid, Valid]:
    """Valid lengths that end where the tensor ends."""
    dims = frame.dims(tensor, node)
    lengths: list[Valid] = []
    for length, offset, dim in zip(valid, [0, *offsets][-2:], [1, *dims][-2:], strict=True):
        rest = apply_binary(frame, "sub", dim, simplified(offset) if isinstance(offset, Value) else offset, node)
        shorter = apply_binary(frame, "min", rest, length, node)
        lengths.append(simplified(shorter) if isinstance(shorter, Value) else shorter)
    return lengths[0], lengths[1]


def _store(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    tensor = _tensor_argument(frame, bound, "output_tensor")
    if is_tensor(bound["tile"]):
        bound.models["tile"] = frame.tile(bound["tile"], bound.place("tile"), f"{bound.label}: tile")
    if not is_tile(bound["tile"]):
        raise frame.error(f"{bound.label}: tile must be a tile, not {describe(bound['tile'])}", bound.place("tile"))
    rank = tensor.type.rank if isinstance(tensor.type, TensorType) else 0
    offsets = _offsets_argument(frame, bound, "offsets", rank, tensor.name)
    frame.check_writes(tensor, bound.place("output_tensor"))
    with frame.at(bound.node):
        frame.builder.store(bound["tile"], tensor, offsets)
    return tensor


def _assemble(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    tensor = _tensor_argument(frame, bound, "target")
    rank = tensor.type.rank if isinstance(tensor.type, TensorType) else 0
    offsets = _offsets_argument(frame, bound, "offset", rank, tensor.name)
    frame.check_writes(tensor, bound.place("target"))
    tile = frame.tile(bound["source"], bound.place("source"), f"{bound.label}: source")
    with frame.at(bound.node):
        frame.builder.store(tile, tensor, offsets)
    return tensor


def _create_tile(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    shape, dtype = _shape_argument(frame, bound, "shape"), _dtype_argument(frame, bound, "dtype")
    memory = _memory_argument(frame, bound, "target_memory")
    if memory is MemorySpace.DDR:
        raise frame.error(f"{bound.label}: a tile cannot be in DDR; use pl.create_tensor", bound.place("target_memory"))
    return frame.op("tile.create", [], bound.node, (TileType(shape, dtype, memory, shape),)).result


def _full(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    # Whole tensors can be larger than tiles.
    frame.program.loads_of_tensors += 1
    shape, dtype = _shape_argument(frame, bound, "shape"), _dtype_argument(frame, bound, "dtype")
    value = frame.scalar(bound["value"], dtype, bound.place("value"), f"{bound.label}: value")
    return frame.op("tile.full", [value], bound.node, (TileType(shape, dtype, MemorySpace.Vec, shape),)).result


def _create_tensor(frame: Frame, bound: Bound) -> Model:
    known = isinstance(bound["shape"], tuple) and all(is_number(size) for size in bound["shape"])
    if frame.on_core and not (frame.in_scope and known and frame.outer is not None):
        where = "a scope" if frame.in_scope else "a function under @pl.jit.incore"
        raise frame.syntax_error(
            f"{bound.label} stands in {where}; create workspaces in the entry and pass them as arguments", bound.node
        )
    shape, dtype = bound["shape"], _dtype_argument(frame, bound, "dtype")
    if dtype == INDEX:
        raise frame.error(f"{bound.label}: tensors of INDEX do not exist; use pl.INT64", bound.place("dtype"))
    if not isinstance(shape, tuple) or not shape:
        raise frame.error(f"{bound.label}: shape must be a list of sizes, not {describe(shape)}", bound.place("shape"))
    sizes = [frame.index(m, bound.place("shape"), f"{bound.label}: a size") for m in shape]
    block = frame.outer if frame.on_core and frame.outer is not None else frame.builder.block
    with frame.at(bound.node), frame.builder.inside(block):
        return frame.builder.create_tensor(list(map(simplified, sizes)), dtype)


def _move(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    tile = frame.tile(bound["tile"], bound.place("tile"), f"{bound.label}: tile")
    with frame.at(bound.node):
        return frame.builder.move(tile, _memory_argument(frame, bound, "target_memory"))


def _cast(frame: Frame, bound: Bound) -> Model:
    model, dtype = bound["input"], _dtype_argument(frame, bound, "target_type")
    mode = bound["mode"]
    if mode not in CAST_MODES:
        raise frame.error(
            f"{bound.label}: mode must be one of {', '.join(CAST_MODES)}, not {mode!r}", bound.place("mode")
        )
    if is_number(model):
        raise frame.error(f"{bound.label} takes tiles and scalars; for a constant use pl.const", bound.place("input"))
    if isinstance(model, DynDim):
        model = frame.dimension(model, bound.node)
    if is_scalar(model):
        if BOOL in (dtype, model.type.dtype):
            raise frame.error(f"{bound.label}: scalars of BOOL are not converted; write a comparison", bound.node)
        return frame.op("arith.cast", [model], bound.node, (ScalarType(dtype),)).result
    frame.need_core(bound.label, bound.node)
    tile = frame.tile(model, bound.place("input"), f"{bound.label}: input")
    type = tile_type(tile)
    wanted = TileType(type.shape, dtype, MemorySpace.Vec, type.valid)
    return frame.op("tile.cast", [tile], bound.node, (wanted,), mode=mode).result


def _flag(frame: Frame, bound: Bound, name: str) -> bool:
    if not isinstance(bound[name], bool):
        raise frame.error(
            f"{bound.label}: {name} must be True or False, not {describe(bound[name])}", bound.place(name)
        )
    flag: bool = bound[name]
    return flag


def _matmul(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    tiles = [frame.tile(bound[name], bound.place(name), f"{bound.label}: {name}") for name in ("lhs", "rhs")]
    flags = {name: _flag(frame, bound, name) for name in ("a_trans", "b_trans")}
    made = frame.op("tile.matmul", tiles, bound.node, (), **flags).result
    if bound["out_dtype"] in (None, tile_type(made).dtype):
        return made
    # Vector work: the compiler hands the product on.
    wanted = replace(tile_type(made), dtype=_dtype_argument(frame, bound, "out_dtype"), memory=MemorySpace.Vec)
    return frame.op("tile.cast", [made], bound.node, (wanted,), mode="round").result


def _matmul_acc(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    if not is_tile(bound["acc"]):
        raise frame.error(f"{bound.label}: acc must be a tile, not {describe(bound['acc'])}", bound.place("acc"))
    acc: Value = bound["acc"]
    tiles = [frame.tile(bound[name], bound.place(name), f"{bound.label}: {name}") for name in ("lhs", "rhs")]
    flags = {name: _flag(frame, bound, name) for name in ("a_trans", "b_trans")}
    start = bound["init_cond"]
    if start is None or start is False:
        return frame.op("tile.matmul_acc", [acc, *tiles], bound.node, (), **flags).result
    if start is True:
        return frame.op("tile.matmul", tiles, bound.node, (), **flags).result
    if not is_scalar(start) or start.type.dtype != BOOL:
        raise frame.error(
            f"{bound.label}: init_cond must be a condition, not {describe(start)}", bound.place("init_cond")
        )
    first, later = Block(), Block()
    for block, name, operands in ((first, "tile.matmul", tiles), (later, "tile.matmul_acc", [acc, *tiles])):
        with frame.builder.inside(block):
            value = frame.op(name, operands, bound.node, (), **flags).result
            frame.op("scf.yield", [value], bound.node)
    with frame.at(bound.node):
        return frame.builder.op("scf.if", [start], types=(value.type,), regions=(first, later), hint="acc").result


def _slice(frame: Frame, bound: Bound) -> Model:
    base = bound["input"]
    if is_tile(base):
        shape = _shape_argument(frame, bound, "shape")
        row, col = _offsets_argument(frame, bound, "offset", 2, "the tile")
        valid = frame.valid_shape(bound["valid_shape"], shape, 2, bound.place("valid_shape"))
        return slice_tile(
            frame, base, shape, (row, col), valid if bound["valid_shape"] is not None else None, bound.node
        )
    tensor = _tensor_argument(frame, bound, "input")
    rank = tensor.type.rank if isinstance(tensor.type, TensorType) else 0
    offsets = _offsets_argument(frame, bound, "offset", rank, tensor.name)
    if bound["valid_shape"] is not None and frame.on_core:
        frame.check_reads(tensor, bound.node)
        return load_window(frame, bound, tensor, offsets, "shape", None)
    sizes = bound["shape"] if bound["valid_shape"] is None else bound["valid_shape"]
    if not isinstance(sizes, tuple) or len(sizes) != rank:
        raise frame.error(f"{bound.label}: shape must be a list of {rank} sizes, not {describe(sizes)}", bound.node)
    values = [frame.index(m, bound.node, f"{bound.label}: a size") for m in sizes]
    with frame.at(bound.node):
        return frame.builder.view(tensor, offsets, values, tensor.name, _dropped(frame, bound, values))


def _dropped(frame: Frame, bound: Bound, sizes: list[Value]) -> tuple[int, ...]:
    """The axes that a slice leaves out."""
    model = bound["drop_dims"]
    if model is None:
        return ()
    axes = model if isinstance(model, tuple) else (model,)
    place, found = bound.place("drop_dims"), []
    for axis in axes:
        number = frame.known(axis, place, f"{bound.label}: an axis")
        number += len(sizes) if number < 0 else 0
        if not 0 <= number < len(sizes) or simplified(sizes[number]) != 1:
            raise frame.error(f"{bound.label}: only axes of size 1 can be dropped, not axis {number}", place)
        found.append(number)
    return tuple(sorted(found))


def slice_tile(
    frame: Frame,
    tile: Value,
    shape: tuple[int, int],
    offsets: tuple[Value, Value],
    valid: tuple[Valid, Valid] | None,
    node: ast.AST,
) -> Value:
    """A part of a tile; without valid lengths the tile itself must be valid throughout."""
    type = tile_type(tile)
    if valid is None:
        if type.valid != type.shape:
            raise frame.error("the tile is only partly valid; use pl.slice with valid_shape", node)
        valid = shape
    wanted = TileType(shape, type.dtype, MemorySpace.Vec, valid)
    return frame.op("tile.slice", [tile, *offsets], node, (wanted,)).result


def _reshape(frame: Frame, bound: Bound) -> Model:
    if is_tensor(bound["input"]) and not frame.on_core:
        return arrays.reshape(frame, bound)
    frame.need_core(bound.label, bound.node)
    tile = frame.tile(bound["input"], bound.place("input"), f"{bound.label}: input")
    shape = _shape_argument(frame, bound, "shape")
    wanted = TileType(shape, tile_type(tile).dtype, MemorySpace.Vec, shape)
    return frame.op("tile.reshape", [tile], bound.node, (wanted,)).result


def _transpose(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    tile = frame.tile(bound["input"], bound.place("input"), f"{bound.label}: input")
    axes = [frame.known(bound[name], bound.place(name), f"{bound.label}: {name}") for name in ("axis1", "axis2")]
    if sorted(axis + 2 if axis < 0 else axis for axis in axes) != [0, 1]:
        raise frame.error(f"{bound.label}: a tile has the axes 0 and 1, got {axes[0]} and {axes[1]}", bound.node)
    return frame.op("tile.transpose", [tile], bound.node).result


def _set_validshape(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    tile = frame.tile(bound["input"], bound.place("input"), f"{bound.label}: input")
    sizes = [
        frame.index(bound[name], bound.place(name), f"{bound.label}: {name}") for name in ("valid_rows", "valid_cols")
    ]
    return frame.op("tile.set_validshape", [tile, *sizes], bound.node).result


def _const(frame: Frame, bound: Bound) -> Model:
    if not is_number(bound["value"]):
        raise frame.error(f"{bound.label}: value must be a known number, not {describe(bound['value'])}", bound.node)
    dtype = _dtype_argument(frame, bound, "dtype")
    value = bound["value"]
    if dtype.is_float and not isinstance(value, bool):
        value = float(value)
    return frame.scalar(value, dtype, bound.place("value"), f"{bound.label}: value")


def _dim(frame: Frame, bound: Bound) -> Model:
    tensor = _tensor_argument(frame, bound, "tensor")
    axis = frame.known(bound["axis"], bound.place("axis"), f"{bound.label}: axis")
    dims = tensor.type.shape if isinstance(tensor.type, TensorType) else ()
    if not 0 <= axis < len(dims):
        raise frame.error(f"{bound.label}: axis {axis} is outside a tensor of {len(dims)} dimensions", bound.node)
    dim = dims[axis]
    if isinstance(dim, DynDim):
        return frame.op("tensor.dim", [tensor], bound.node, axis=axis).result
    return dim


def _cond(frame: Frame, bound: Bound) -> Model:
    raise frame.syntax_error("pl.cond can only stand first in the body of a pl.while_ loop", bound.node)


Handler = Callable[[Frame, Bound], Model]

_HANDLERS: dict[str, Handler] = {
    **{sign: _binary(sign) for sign in ("add", "sub", "mul", "div", "maximum", "minimum")},
    "min": _extreme("min"),
    "max": _extreme("max"),
    "neg": _neg,
    "expands": _expands,
    "load": _load,
    "store": _store,
    "create": _create_tile,
    "create_tile": _create_tile,
    "full": _full,
    "create_tensor": _create_tensor,
    "move": _move,
    "cast": _cast,
    "matmul": _matmul,
    "matmul_acc": _matmul_acc,
    "slice": _slice,
    "reshape": _reshape,
    "transpose": _transpose,
    "set_validshape": _set_validshape,
    "const": _const,
    "assemble": _assemble,
    "read": elements.read_call,
    "write": elements.write_call,
    "tensor.dim": _dim,
    "static_assert": compile_time.static_assert,
    "cond": _cond,
}
