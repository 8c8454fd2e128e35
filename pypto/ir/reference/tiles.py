"""What the operations on tiles and tensors compute, in NumPy float64, by name; arrays hold the valid elements only."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from pypto.ir.types import BF16, FP16, FP32, DType

TILES: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "recip": lambda a: 1 / a,
    "neg": operator.neg,
    "abs": abs,
    "relu": lambda a: np.maximum(a, 0),
    "row_sum": lambda a: a.sum(axis=-1, keepdims=True),
    "row_max": lambda a: a.max(axis=-1, keepdims=True),
    "row_min": lambda a: a.min(axis=-1, keepdims=True),
    "col_sum": lambda a: a.sum(axis=-2, keepdims=True),
    "col_max": lambda a: a.max(axis=-2, keepdims=True),
    "col_min": lambda a: a.min(axis=-2, keepdims=True),
    "transpose": lambda a: np.swapaxes(a, -1, -2),
    "move": lambda a: a,
    "matmul": operator.matmul,
}
TILES |= {
    "sin": np.sin,
    "cos": np.cos,
    "fmod": np.fmod,
    "rem": np.mod,
    "floordiv": np.floor_divide,
    "and_": lambda a, b: _bits(np.bitwise_and, a, b),
    "or_": lambda a, b: _bits(np.bitwise_or, a, b),
    "xor": lambda a, b: _bits(np.bitwise_xor, a, b),
    "shl": lambda a, b: _bits(np.left_shift, a, b),
    "shr": lambda a, b: _bits(np.right_shift, a, b),
    "not_": lambda a: _bits(np.invert, a),
    "addc": lambda a, b, c: a + b + c,
    "subc": lambda a, b, c: a - b + c,
    "addsc": lambda a, s, b: a + s + b,
    "subsc": lambda a, s, b: a - s + b,
    "lrelu": lambda a, s: np.where(a > 0, a, a * s),
    "prelu": lambda a, b: np.where(a > 0, a, a * b),
    "part_add": lambda a, b: _part(np.add, a, b),
    "part_mul": lambda a, b: _part(np.multiply, a, b),
    "part_max": lambda a, b: _part(np.maximum, a, b),
    "part_min": lambda a, b: _part(np.minimum, a, b),
    "row_prod": lambda a: a.prod(axis=-1, keepdims=True),
    "col_prod": lambda a: a.prod(axis=-2, keepdims=True),
    "row_argmax": lambda a: a.argmax(axis=-1, keepdims=True).astype(np.float64),
    "row_argmin": lambda a: a.argmin(axis=-1, keepdims=True).astype(np.float64),
    "col_argmax": lambda a: a.argmax(axis=-2, keepdims=True).astype(np.float64),
    "col_argmin": lambda a: a.argmin(axis=-2, keepdims=True).astype(np.float64),
}
_WITH_SCALAR = ("add", "sub", "mul", "div", "maximum", "minimum", "fmod", "rem", "floordiv", "xor", "shl", "shr")
TILES |= {f"{name}s": TILES[name] for name in _WITH_SCALAR}
TILES |= {"ands": TILES["and_"], "ors": TILES["or_"], "rdivs": lambda a, s: s / a}
for _axis in ("row", "col"):
    for _name in ("add", "sub", "mul", "div"):
        TILES[f"{_axis}_expand_{_name}"] = TILES[_name]
    TILES[f"{_axis}_expand"] = lambda a, b: np.broadcast_to(b, a.shape)
    TILES[f"{_axis}_expand_max"], TILES[f"{_axis}_expand_min"] = np.maximum, np.minimum
    TILES[f"{_axis}_expand_expdif"] = lambda a, b: np.exp(a - b)

# `round` takes a half away from zero, all modes that are not here take it to the even number.
_ROUNDINGS: dict[str, Callable[[Any], Any]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": lambda a: np.trunc(a + np.copysign(0.5, a)),
}


def compared(pred: str, a: Any, b: Any) -> Any:
    """1 where ``a <pred> b``, else 0."""
    return np.asarray(getattr(operator, pred)(a, b)).astype(np.float64)


def chosen(mask_kind: str, mask: Any, a: Any, b: Any) -> Any:
    """``a`` where the mask is set, else ``b``; the mask has a number, or (``bits``) one bit, for each element."""
    if mask_kind == "bits":
        packed = np.asarray(mask).astype(np.int64).astype(np.uint8)
        mask = np.unpackbits(packed, axis=-1, bitorder="little")[..., : np.shape(a)[-1]]
    return np.where(np.asarray(mask) != 0, a, b)


def converted(values: Any, dtype: DType, mode: str = "round") -> Any:
    """What a conversion to ``dtype`` does to values, in float64."""
    if dtype in (FP16, FP32):
        return np.asarray(values).astype(np.float16 if dtype == FP16 else np.float32).astype(np.float64)
    if dtype == BF16:
        import ml_dtypes

        return np.asarray(values).astype(ml_dtypes.bfloat16).astype(np.float64)
    return _ROUNDINGS.get(mode, np.rint)(values) if dtype.is_integer else values


def wrapped(values: Any, dtype: DType) -> Any:
    """Whole numbers as an element of ``dtype`` holds them, which drops the bits that it has no room for."""
    if not dtype.is_integer or dtype.bits > 32:
        return values
    low = -(2 ** (dtype.bits - 1)) if dtype.kind == "int" else 0
    return values - np.floor((values - low) / 2.0**dtype.bits) * 2.0**dtype.bits


def _bits(work: Callable[..., Any], *operands: Any) -> Any:
    """Work on bits; what nothing has written yet has none that anybody may look at."""
    return work(*(np.nan_to_num(np.asarray(each)).astype(np.int64) for each in operands)).astype(np.float64)


def _part(work: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """``work`` where both are valid, elsewhere the one that is."""
    result = np.full(np.maximum(a.shape, b.shape), np.nan)
    for each in (a, b):
        result[tuple(map(slice, each.shape))] = each
    both = tuple(map(slice, np.minimum(a.shape, b.shape)))
    result[both] = work(a[both], b[both])
    return result
