"""Arithmetic: operators and element-wise operations on numbers, scalars, tiles and tensors."""

from __future__ import annotations

import ast
from typing import Any

from pypto.ir.nodes import Value
from pypto.ir.types import BOOL, FP32, DynDim, MemorySpace, TileType
from pypto.ir.values import defining_op
from pypto.language.parsing import arrays
from pypto.language.parsing.arguments import element
from pypto.language.parsing.frame import Frame, tile_type
from pypto.language.parsing.model import Model, describe, is_number, is_scalar, is_tensor, is_tile
from pypto.language.parsing.operators import (
    COMMUTATIVE,
    EXCHANGED,
    EXPANDED,
    NUMBER_FUNCTIONS,
    ON_TILES,
    PYTHON,
    SYMBOLS,
    WITH_SCALAR,
)


def apply_binary(frame: Frame, sign: str, left: Model, right: Model, node: ast.AST) -> Model:
    """``left sign right`` for numbers, scalars, tiles and tensors."""
    left, right = (frame.dimension(m, node) if isinstance(m, DynDim) else m for m in (left, right))
    if is_number(left) and is_number(right):
        return fold(frame, sign, left, right, node)
    if is_tile(left) or is_tile(right) or is_tensor(left) or is_tensor(right):
        return binary_tiles(frame, sign, left, right, node)
    if (is_scalar(left) or is_number(left)) and (is_scalar(right) or is_number(right)):
        return _scalars(frame, sign, left, right, node)
    symbol = SYMBOLS.get(sign, sign)
    raise frame.error(f"{symbol} does not take {describe(left)} and {describe(right)}", node)


# Whole numbers of Python have no limit; nothing here needs more.
_MOST_BITS = 1024


def fold(frame: Frame, sign: str, left: Any, right: Any, node: ast.AST) -> Model:
    """Arithmetic on known numbers, as Python does it."""
    if sign in ("pow", "shl") and isinstance(left, int) and isinstance(right, int) and right > _MOST_BITS:
        raise frame.error("cannot compute this: the result is too large", node)
    try:
        return PYTHON[sign](left, right)
    except ZeroDivisionError:
        raise frame.error("cannot compute this: division by zero", node) from None
    except OverflowError:
        raise frame.error("cannot compute this: the result is too large", node) from None
    except (TypeError, ValueError) as error:
        raise frame.error(f"cannot compute this: {error}", node) from None


# What operators on bits are called for scalars.
_BITS = {"and_": "bitand", "or_": "bitor", "xor": "bitxor", "shl": "shl", "shr": "shr"}


def _scalars(frame: Frame, sign: str, left: Model, right: Model, node: ast.AST) -> Model:
    dtype = frame.mixed_dtype(left, right)
    symbol = SYMBOLS.get(sign, f"pl.{sign}")
    if any(is_scalar(m) and m.type.dtype == BOOL for m in (left, right)):
        raise frame.error(f"{symbol} does not take conditions; use and, or, not, or `1 if condition else 0`", node)
    if dtype is None:
        names = " and ".join(m.type.dtype.name if is_scalar(m) else str(m) for m in (left, right))
        raise frame.error(f"{symbol} does not mix {names}; convert one of them with pl.cast", node)
    if sign == "div" and dtype.is_integer:
        raise frame.error("/ of whole numbers is not supported at run time; use //", node)
    if sign == "pow":
        return _scalar_power(frame, frame.operand(left, dtype, node) if is_scalar(left) else left, right, node)
    if sign in ("floordiv", "mod", *_BITS):
        if not dtype.is_integer:
            raise frame.error(f"{symbol} takes whole numbers, not {dtype}", node)
        if sign in ("floordiv", "mod") and is_number(right) and right == 0:
            raise frame.error("cannot compute this: division by zero", node)
    sign = _BITS.get(sign, sign)
    operands = [frame.operand(m, dtype, node) for m in (left, right)]
    return frame.op(f"arith.{sign}", operands, node).result


def _scalar_power(frame: Frame, base: Model, exponent: Model, node: ast.AST) -> Model:
    """A power of a run-time number, as products."""
    if is_number(exponent) and exponent in _POWERS:
        for name in _POWERS[exponent]:
            base = function_of(frame, name, base, "**", node)
        return base
    if not is_number(exponent) or exponent != int(exponent) or not 1 <= exponent <= _LARGEST_POWER:
        raise frame.error(f"** of a run-time number takes the exponents 0.5, -0.5, -1 and 1 to {_LARGEST_POWER}", node)
    result = base
    for _ in range(int(exponent) - 1):
        result = _scalars(frame, "mul", result, base, node)
    return result


def scalar_operand(frame: Frame, model: Model, tile: Value, node: ast.AST) -> Value:
    """A scalar beside a tile: numbers take the tile's dtype."""
    return element(frame, model, tile_type(tile).dtype, node, "a scalar beside a tile")


def binary_tiles(frame: Frame, sign: str, left: Model, right: Model, node: ast.AST, **attrs: Any) -> Value:
    """An element-wise operation in which at least one side is a tile or tensor; columns and rows are repeated."""
    label = SYMBOLS.get(sign) or f"pl.{sign}"
    if sign == "pow":
        return _power(frame, left, right, node)
    sign = ON_TILES.get(sign, sign)
    if sign in ON_MASKS and is_mask(left) and is_mask(right):
        sign, attrs = ON_MASKS[sign]
    if sign not in WITH_SCALAR:
        raise frame.error(f"{label} does not take {describe(left)} and {describe(right)}", node)
    if frame.whole:
        return arrays.binary(frame, sign, left, right, label, node, **attrs)
    frame.need_core(f"{label} on {describe(left if not (is_number(left) or is_scalar(left)) else right)}", node)
    left_scalar, right_scalar = (is_number(m) or is_scalar(m) for m in (left, right))
    if not left_scalar and not right_scalar:
        a, b = (
            frame.tile(left, node, f"the left side of {label}"),
            frame.tile(right, node, f"the right side of {label}"),
        )
        if tile_type(a).shape != tile_type(b).shape:
            expanded = _expanded(frame, sign, a, b, node)
            if isinstance(expanded, Value):
                return expanded
            a, b = expanded
        return frame.op(f"tile.{sign}", [a, b], node, **attrs).result
    tile = frame.tile(right if left_scalar else left, node, f"an operand of {label}")
    scalar = scalar_operand(frame, left if left_scalar else right, tile, node)
    if left_scalar and sign == "sub":
        return frame.op("tile.adds", [frame.op("tile.neg", [tile], node).result, scalar], node).result
    if left_scalar and sign == "div":
        return frame.op("tile.rdivs", [tile, scalar], node).result
    if left_scalar and sign == "cmp":
        attrs = {"pred": EXCHANGED[attrs["pred"]]}
    elif left_scalar and sign not in COMMUTATIVE:
        return frame.op(f"tile.{sign}", [filled(frame, scalar, tile, node), tile], node, **attrs).result
    return frame.op(f"tile.{WITH_SCALAR[sign]}", [tile, scalar], node, **attrs).result


def filled(frame: Frame, scalar: Value, like: Value, node: ast.AST) -> Value:
    """A tile of the shape and dtype of another one, filled with a scalar."""
    type = tile_type(like)
    wanted = TileType(type.shape, type.dtype, MemorySpace.Vec, type.valid)
    return frame.op("tile.full", [scalar], node, (wanted,)).result


def _expanded(frame: Frame, sign: str, a: Value, b: Value, node: ast.AST) -> Value | tuple[Value, Value]:
    """The operation with a column or row beside a tile, or both sides with the column or row repeated."""
    shape = _joined(tile_type(a).shape, tile_type(b).shape)
    if shape is None:
        return a, b
    if shape not in (tile_type(a).shape, tile_type(b).shape):
        # A column beside a row: neither has the shape of the result.
        if tile_type(a).shape[1] == 1:
            a = _repeated(frame, a, shape, tile_type(b), node)
        else:
            b = _repeated(frame, b, shape, tile_type(a), node)
    for large, small in ((a, b), (b, a)):
        rows, cols = tile_type(large).shape
        if tile_type(small).shape == (1, 1):
            small = _repeated(frame, small, (1, cols), tile_type(large), node)
        if tile_type(small).shape not in ((rows, 1), (1, cols)) or (rows, cols) != shape:
            continue
        axis = "row" if tile_type(small).shape == (rows, 1) else "col"
        if sign in EXPANDED and (large is a or sign in COMMUTATIVE):
            return frame.op(f"tile.{axis}_expand_{EXPANDED[sign]}", [large, small], node).result
        repeated = frame.op(f"tile.{axis}_expand", [large, small], node).result
        return (large, repeated) if large is a else (repeated, large)
    return a, b


def _joined(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int] | None:
    """The shape of two tiles beside each other, where sizes of 1 are repeated."""
    if any(x != y and 1 not in (x, y) for x, y in zip(a, b, strict=True)):
        return None
    return max(a[0], b[0]), max(a[1], b[1])


def _repeated(frame: Frame, column: Value, shape: tuple[int, int], beside: TileType, node: ast.AST) -> Value:
    """A column in each column of a tile of a shape that no operand has."""
    type = tile_type(column)
    wanted = TileType(shape, type.dtype, MemorySpace.Vec, (type.valid[0], beside.valid[1]))
    target = frame.op("tile.full", [frame.zero(type.dtype, node)], node, (wanted,)).result
    return frame.op("tile.row_expand", [target, column], node).result


# What x ** p is for these p.
_POWERS: dict[float, tuple[str, ...]] = {1: (), 0.5: ("sqrt",), -0.5: ("rsqrt",), -1: ("recip",)}
_LARGEST_POWER = 16


def _power(frame: Frame, base: Model, exponent: Model, node: ast.AST) -> Value:
    """A known power of a tile or tensor: a root, a reciprocal, or products."""
    if not is_number(exponent) or (is_tile(exponent) or is_tensor(exponent)):
        raise frame.error(f"** takes an exponent that is known while compiling, not {describe(exponent)}", node)
    if exponent in _POWERS:
        made: Value = base
        for name in _POWERS[exponent]:
            made = unary(frame, name, base, "**", node)
        return made
    if exponent != int(exponent) or not 2 <= exponent <= _LARGEST_POWER:
        raise frame.error(
            f"** takes the exponents 0.5, -0.5, -1 and 1 to {_LARGEST_POWER}, not {exponent}; use pl.exp and pl.log",
            node,
        )
    result: Model = None
    square, rest = base, int(exponent)
    while rest:
        if rest % 2:
            result = square if result is None else binary_tiles(frame, "mul", result, square, node)
        rest //= 2
        if rest:
            square = binary_tiles(frame, "mul", square, square, node)
    power: Value = result
    return power


def unary(frame: Frame, name: str, model: Model, label: str, node: ast.AST) -> Value:
    """``tile.<name>`` of one tile or tensor."""
    if frame.whole and is_tensor(model):
        frame.check_reads(model, node)
        return arrays.elementwise(frame, name, [model], label, node)
    frame.need_core(f"{label} on a tile", node)
    return frame.op(f"tile.{name}", [frame.tile(model, node, f"the operand of {label}")], node).result


def negate(frame: Frame, model: Model, node: ast.AST) -> Model:
    """``-model``."""
    if isinstance(model, DynDim):
        model = frame.dimension(model, node)
    if is_number(model):
        return -model
    if is_scalar(model):
        return frame.op("arith.neg", [model], node).result
    if is_tile(model) or is_tensor(model):
        return unary(frame, "neg", model, "-", node)
    raise frame.error(f"- does not take {describe(model)}", node)


def magnitude(frame: Frame, model: Model, node: ast.AST) -> Model:
    """The absolute value of a known or run-time number."""
    if isinstance(model, DynDim):
        model = frame.dimension(model, node)
    return abs(model) if is_number(model) else apply_binary(frame, "max", model, negate(frame, model, node), node)


def function_of(frame: Frame, name: str, model: Model, label: str, node: ast.AST) -> Model:
    """A function of :data:`~pypto.language.parsing.operators.NUMBER_FUNCTIONS` of a known or run-time number."""
    if isinstance(model, DynDim):
        model = frame.dimension(model, node)
    if is_number(model):
        try:
            return NUMBER_FUNCTIONS[name](model)
        except (ArithmeticError, ValueError) as error:
            raise frame.error(f"{label} of {model} cannot be computed: {error}", node) from None
    if model.type.dtype == BOOL:
        raise frame.error(f"{label} does not take conditions", node)
    dtype = model.type.dtype if model.type.dtype.is_float else FP32
    made = frame.operand(model, dtype, node)
    if name in ("rsqrt", "recip"):
        if name == "rsqrt":
            made = frame.op("arith.sqrt", [made], node).result
        return frame.op("arith.div", [frame.operand(1.0, dtype, node), made], node).result
    return frame.op(f"arith.{name}", [made], node).result


def inverted(frame: Frame, model: Model, node: ast.AST) -> Model:
    """``~model``."""
    if is_number(model) and not isinstance(model, float):
        return ~model
    if is_mask(model):
        return binary_tiles(frame, "cmp", model, 0, node, pred="eq")
    if is_tile(model) or is_tensor(model):
        return unary(frame, "not_", model, "~", node)
    raise frame.error(f"~ does not take {describe(model)}", node)


# Operators on what comparisons of floating-point numbers give, which is 1 and 0.
ON_MASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "and_": ("minimum", {}),
    "or_": ("maximum", {}),
    "xor": ("cmp", {"pred": "ne"}),
}


def is_mask(model: Model) -> bool:
    """Whether a tile or tensor comes from comparisons of floating-point numbers."""
    if not (is_tile(model) or is_tensor(model)) or not model.type.dtype.is_float:
        return False
    op = defining_op(model)
    if op is None:
        return False
    name = op.attrs["tile"] if op.name == "tensor.apply" else op.name.removeprefix("tile.")
    return name in ("cmp", "cmps") or (name in ("minimum", "maximum") and all(map(is_mask, op.operands)))


def compared(frame: Frame, pred: str, left: Model, right: Model, node: ast.AST) -> Value:
    """A comparison with at least one tile or tensor: 1 and 0 for each element."""
    return binary_tiles(frame, "cmp", left, right, node, pred=pred)
