"""Calls of the language's operations: what each operation makes."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from pypto.ir.nodes import Value
from pypto.ir.ops.registry import Kind, all_definitions, definition
from pypto.ir.rounding import CAST_MODES, rounded_to
from pypto.ir.types import BOOL, INT8, UINT8, DynDim, MemorySpace, ScalarType, TileType
from pypto.language.parsing import (
    array_calls,
    block_calls,
    compile_time,
    elements,
    filling_calls,
    host_calls,
    index_calls,
    matrix_calls,
    memory_calls,
    tensor_calls,
    window_calls,
)
from pypto.language.parsing.arguments import dtype_argument, predicate
from pypto.language.parsing.binding import Bound, bind
from pypto.language.parsing.elementwise import (
    apply_binary,
    binary_tiles,
    compared,
    filled,
    fold,
    function_of,
    magnitude,
    negate,
    scalar_operand,
)
from pypto.language.parsing.frame import Frame, tile_type
from pypto.language.parsing.model import (
    Model,
    describe,
    is_number,
    is_scalar,
    is_tensor,
    is_tile,
)
from pypto.language.parsing.operators import NUMBER_FUNCTIONS, SYMBOLS, WITH_SCALAR
from pypto.language.stubs import Operation


def call_operation(
    frame: Frame, operation: Operation, args: list[Model], kwargs: dict[str, Model], node: ast.Call
) -> Model:
    """Append what a call of an operation means and return what it gives."""
    if operation.name in compile_time.VARIADIC and not kwargs:
        return compile_time.VARIADIC[operation.name](args)
    bound = bind(frame, operation, args, kwargs, node)
    for name, neutral in _NOT_YET.items():
        if name in bound.given and bound[name] not in (neutral, None, False) and (operation.name, name) not in _HAVE:
            reason = _REASONS.get(name, "it means nothing here")
            given = _written(bound[name])
            raise frame.error(f"{bound.label}: {name}={given} is not supported: {reason}", bound.place(name))
    tensors = any(is_tensor(model) for model in bound.models.values())
    makes = operation.name in array_calls.MAKERS
    if frame.whole and (makes or (tensors and operation.name not in array_calls.SHARED)):
        return array_calls.call(frame, operation.name, bound)
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
_LAYOUT = "the layout of a tile follows from its memory"
_REASONS = {
    "c_matrix_nz": "products are stored row by row",
    "transpose": _LAYOUT,
    "flat_layout": _LAYOUT,
}
# What is simulated computes as precisely as the result can hold.
_PRECISE = frozenset((name, "high_precision") for name in ("div", "log", "rsqrt", "recip"))
_HAVE = _PRECISE | memory_calls.OPTIONS | matrix_calls.OPTIONS | filling_calls.OPTIONS | index_calls.OPTIONS
_HAVE |= tensor_calls.OPTIONS
_HAVE |= window_calls.OPTIONS
_SCRATCH = frozenset({"tmp", "tmp_tile"})


def _tile_operation(frame: Frame, name: str, bound: Bound, **attrs: Any) -> Value:
    """The operation's operands in order; scratch tiles are not needed here."""
    models = [(p, m) for p, m in bound.models.items() if p not in _SCRATCH and p not in _NOT_YET]
    operands: list[Value] = []
    tile: Value | None = None
    for operand, (parameter, model) in zip(definition(f"tile.{name}").operands, models, strict=False):
        place = bound.place(parameter)
        number = is_number(model) or is_scalar(model)
        if operand.kind is not Kind.SCALAR:
            if number:
                raise frame.error(f"{bound.label}: {parameter} must be a tile, not {describe(model)}", place)
            tile = frame.tile(model, place, f"{bound.label}: {parameter}")
            operands.append(tile)
        elif not number or tile is None:
            raise frame.error(f"{bound.label}: {parameter} must be a scalar, not {describe(model)}", place)
        else:
            operands.append(scalar_operand(frame, model, tile, place))
    return frame.op(f"tile.{name}", operands, bound.node, **attrs).result


def _binary(sign: str) -> Handler:
    def handler(frame: Frame, bound: Bound) -> Model:
        left, right = bound["lhs"], bound["rhs"]
        if sign not in SYMBOLS:
            if not any(is_tile(m) or is_tensor(m) for m in (left, right)):
                advice = f"; for scalars use pl.{sign[:3]}" if sign in ("maximum", "minimum") else ""
                raise frame.error(f"{bound.label} takes tiles{advice}", bound.node)
            return binary_tiles(frame, sign, left, right, bound.node)
        return apply_binary(frame, sign, left, right, bound.node)

    return handler


def _compare(frame: Frame, bound: Bound) -> Model:
    if not any(is_tile(m) or is_tensor(m) for m in (bound["lhs"], bound["rhs"])):
        raise frame.error(f"{bound.label} takes tiles; scalars are compared with operators", bound.node)
    return compared(frame, predicate(frame, bound), bound["lhs"], bound["rhs"], bound.node)


def _select(frame: Frame, bound: Bound) -> Model:
    """A choice by a mask with numbers or, in whole numbers of 8 bits that are fewer, bits."""
    frame.need_core(bound.label, bound.node)
    names = ("src", "scalar") if "scalar" in bound.models else ("lhs", "rhs")
    first, other = bound[names[0]], bound[names[1]]
    mask = frame.tile(bound["mask"], bound.place("mask"), f"{bound.label}: mask")
    if (is_number(first) or is_scalar(first)) and (is_tile(other) or is_tensor(other)):
        other = frame.tile(other, bound.place(names[1]), f"{bound.label}: {names[1]}")
        first = filled(frame, scalar_operand(frame, first, other, bound.place(names[0])), other, bound.node)
    else:
        first = frame.tile(first, bound.place(names[0]), f"{bound.label}: {names[0]}")
    packed = tile_type(mask).dtype in (INT8, UINT8) and tile_type(mask).shape != tile_type(first).shape
    attrs: dict[str, Any] = {"mask": "bits" if packed else "elements"}
    place = bound.place(names[1])
    if is_number(other) or is_scalar(other):
        operands, name = [mask, first, scalar_operand(frame, other, first, place)], "tile.sels"
    else:
        operands, name = [mask, first, frame.tile(other, place, f"{bound.label}: {names[1]}")], "tile.sel"
    return frame.op(name, operands, bound.node, **attrs).result


def _extreme(sign: str) -> Handler:
    def handler(frame: Frame, bound: Bound) -> Model:
        left, right = (
            frame.dimension(m, bound.node) if isinstance(m, DynDim) else m for m in (bound["lhs"], bound["rhs"])
        )
        if is_number(left) and is_number(right):
            return fold(frame, sign, left, right, bound.node)
        if any(is_tile(m) or is_tensor(m) for m in (left, right)):
            return binary_tiles(frame, f"{sign}imum", left, right, bound.node)
        return apply_binary(frame, sign, left, right, bound.node)

    return handler


def _neg(frame: Frame, bound: Bound) -> Model:
    return negate(frame, bound["input"], bound.node)


def _abs(frame: Frame, bound: Bound) -> Model:
    model = bound["input"]
    if is_number(model) or is_scalar(model) or isinstance(model, DynDim):
        return magnitude(frame, model, bound.node)
    frame.need_core(bound.label, bound.node)
    return _tile_operation(frame, "abs", bound)


def _cast(frame: Frame, bound: Bound) -> Model:
    model, dtype = bound["input"], dtype_argument(frame, bound, "target_type")
    mode = bound["mode"]
    if mode not in CAST_MODES:
        raise frame.error(
            f"{bound.label}: mode must be one of {', '.join(CAST_MODES)}, not {mode!r}", bound.place("mode")
        )
    if is_number(model):
        if dtype == BOOL or isinstance(model, bool):
            raise frame.error(f"{bound.label}: scalars of BOOL are not converted; write a comparison", bound.node)
        if dtype.is_float:
            model = float(model)
        elif isinstance(model, float):
            model = rounded_to(model, dtype, mode)
        return frame.scalar(model, dtype, bound.place("input"), f"{bound.label}: input")
    if isinstance(model, DynDim):
        model = frame.dimension(model, bound.node)
    if is_scalar(model):
        if BOOL in (dtype, model.type.dtype):
            raise frame.error(f"{bound.label}: scalars of BOOL are not converted; write a comparison", bound.node)
        attrs = {"mode": mode} if model.type.dtype.is_float and dtype.is_integer else {}
        return frame.op("arith.cast", [model], bound.node, (ScalarType(dtype),), **attrs).result
    frame.need_core(bound.label, bound.node)
    tile = frame.tile(model, bound.place("input"), f"{bound.label}: input")
    type = tile_type(tile)
    wanted = TileType(type.shape, dtype, MemorySpace.Vec, type.valid)
    return frame.op("tile.cast", [tile], bound.node, (wanted,), mode=mode).result


def _const(frame: Frame, bound: Bound) -> Model:
    if not is_number(bound["value"]):
        raise frame.error(f"{bound.label}: value must be a known number, not {describe(bound['value'])}", bound.node)
    dtype = dtype_argument(frame, bound, "dtype")
    value = bound["value"]
    if dtype.is_float and not isinstance(value, bool):
        value = float(value)
    return frame.scalar(value, dtype, bound.place("value"), f"{bound.label}: value")


def _cond(frame: Frame, bound: Bound) -> Model:
    raise frame.syntax_error("pl.cond can only stand first in the body of a pl.while_ loop", bound.node)


def _function(name: str) -> Handler:
    """A function of a number, or of each element."""

    def handler(frame: Frame, bound: Bound) -> Model:
        model = bound[next(iter(bound.models))]
        if is_number(model) or is_scalar(model) or isinstance(model, DynDim):
            return function_of(frame, name, model, bound.label, bound.node)
        frame.need_core(bound.label, bound.node)
        return _tile_operation(frame, name, bound)

    return handler


Handler = Callable[[Frame, Bound], Model]

_HANDLERS: dict[str, Handler] = {
    **memory_calls.HANDLERS,
    **filling_calls.HANDLERS,
    **index_calls.HANDLERS,
    **tensor_calls.HANDLERS,
    **matrix_calls.HANDLERS,
    **host_calls.HANDLERS,
    **window_calls.HANDLERS,
    **block_calls.HANDLERS,
    **{sign: _binary(sign) for sign in WITH_SCALAR if sign != "cmp"},
    "cmp": _compare,
    "cmps": _compare,
    "sel": _select,
    "sels": _select,
    "min": _extreme("min"),
    "max": _extreme("max"),
    "neg": _neg,
    "abs": _abs,
    **{name: _function(name) for name in NUMBER_FUNCTIONS},
    "cast": _cast,
    "const": _const,
    "read": elements.read_call,
    "write": elements.write_call,
    "static_assert": compile_time.static_assert,
    "cond": _cond,
}
