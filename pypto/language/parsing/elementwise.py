"""Arithmetic: operators and element-wise operations on numbers, scalars, tiles and tensors."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from pypto.ir.nodes import Value
from pypto.ir.types import BOOL, FP16, FP32, DynDim
from pypto.language.parsing import arrays
from pypto.language.parsing.frame import Frame, tile_type
from pypto.language.parsing.model import Model, describe, is_number, is_scalar, is_tensor, is_tile

_PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "min": min,
    "max": max,
}
_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%"}
# With a scalar on the right; add, mul, maximum and minimum do not mind the side.
_WITH_SCALAR = {
    "add": "tile.adds",
    "sub": "tile.subs",
    "mul": "tile.muls",
    "div": "tile.divs",
    "maximum": "tile.maximums",
    "minimum": "tile.minimums",
}


def apply_binary(frame: Frame, sign: str, left: Model, right: Model, node: ast.AST) -> Model:
    """``left sign right`` for numbers, scalars, tiles and tensors."""
    left, right = (frame.dimension(m, node) if isinstance(m, DynDim) else m for m in (left, right))
    if is_number(left) and is_number(right):
        return fold(frame, sign, left, right, node)
    if is_tile(left) or is_tile(right) or is_tensor(left) or is_tensor(right):
        return binary_tiles(frame, sign, left, right, node)
    if (is_scalar(left) or is_number(left)) and (is_scalar(right) or is_number(right)):
        return _scalars(frame, sign, left, right, node)
    symbol = _SYMBOLS.get(sign, sign)
    raise frame.error(f"{symbol} does not take {describe(left)} and {describe(right)}", node)


def fold(frame: Frame, sign: str, left: Any, right: Any, node: ast.AST) -> Model:
    """Arithmetic on known numbers, as Python does it."""
    try:
        return _PYTHON[sign](left, right)
    except ZeroDivisionError:
        raise frame.error("cannot compute this: division by zero", node) from None
    except OverflowError:
        raise frame.error("cannot compute this: the result is too large", node) from None


def _scalars(frame: Frame, sign: str, left: Model, right: Model, node: ast.AST) -> Model:
    if is_scalar(left) and is_scalar(right):
        dtype = frame.common_dtype(left.type.dtype, right.type.dtype)
    else:
        dtype = (left if is_scalar(left) else right).type.dtype
    symbol = _SYMBOLS.get(sign, f"pl.{sign}")
    if dtype is None or any(isinstance(m, float) and not dtype.is_float for m in (left, right)):
        names = " and ".join(m.type.dtype.name if is_scalar(m) else str(m) for m in (left, right))
        raise frame.error(f"{symbol} does not mix {names}; convert one of them with pl.cast", node)
    if dtype == BOOL:
        raise frame.error(f"{symbol} does not take conditions; use and, or, not", node)
    if sign == "div" and dtype.is_integer:
        raise frame.error("/ of whole numbers is not supported at run time; use //", node)
    if sign in ("floordiv", "mod"):
        if not dtype.is_integer:
            raise frame.error(f"{symbol} takes whole numbers, not {dtype}", node)
        if is_number(right) and right == 0:
            raise frame.error("cannot compute this: division by zero", node)
    operands = [frame.scalar(m, dtype, node, "an operand") for m in (left, right)]
    return frame.op(f"arith.{sign}", operands, node).result


def scalar_operand(frame: Frame, model: Model, tile: Value, node: ast.AST) -> Value:
    """A scalar beside a tile: numbers take the tile's dtype."""
    dtype = tile_type(tile).dtype
    if is_scalar(model) and (model.type.dtype == dtype or (dtype == FP16 and model.type.dtype == FP32)):
        value: Value = model
        return value
    if isinstance(model, bool):
        raise frame.error(f"a scalar beside a tile must be a number, not {model}", node)
    return frame.scalar(model, dtype, node, "a scalar beside a tile")


def binary_tiles(frame: Frame, sign: str, left: Model, right: Model, node: ast.AST) -> Value:
    """An element-wise operation in which at least one side is a tile or tensor."""
    symbol = _SYMBOLS.get(sign)
    label = symbol or f"pl.{sign}"
    if sign not in _WITH_SCALAR:
        raise frame.error(f"{label} does not take {describe(left)} and {describe(right)}", node)
    if frame.whole:
        return arrays.binary(frame, sign, left, right, label, node)
    frame.need_core(f"{label} on {describe(left if not (is_number(left) or is_scalar(left)) else right)}", node)
    left_scalar, right_scalar = (is_number(m) or is_scalar(m) for m in (left, right))
    if not left_scalar and not right_scalar:
        a, b = (
            frame.tile(left, node, f"the left side of {label}"),
            frame.tile(right, node, f"the right side of {label}"),
        )
        return frame.op(f"tile.{sign}", [a, b], node).result
    tile = frame.tile(right if left_scalar else left, node, f"an operand of {label}")
    scalar = scalar_operand(frame, left if left_scalar else right, tile, node)
    if left_scalar and sign == "sub":
        return frame.op("tile.adds", [frame.op("tile.neg", [tile], node).result, scalar], node).result
    if left_scalar and sign == "div":
        return frame.op("tile.rdivs", [tile, scalar], node).result
    return frame.op(_WITH_SCALAR[sign], [tile, scalar], node).result


def negate(frame: Frame, model: Model, node: ast.AST) -> Model:
    """``-model``."""
    if isinstance(model, DynDim):
        model = frame.dimension(model, node)
    if is_number(model):
        return -model
    if is_scalar(model):
        return frame.op("arith.neg", [model], node).result
    if is_tile(model) or is_tensor(model):
        if frame.whole and is_tensor(model):
            return arrays.negated(frame, model, node)
        frame.need_core("- on a tile", node)
        return frame.op("tile.neg", [frame.tile(model, node, "the operand of -")], node).result
    raise frame.error(f"- does not take {describe(model)}", node)
