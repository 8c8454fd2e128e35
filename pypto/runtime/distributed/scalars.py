"""Scalar arithmetic of a HOST entry, as C++ would compute it for a chip."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

Number = int | float | bool

_FLOATS: dict[str, Callable[[Any], Any]] = {"FP32": np.float32, "FP16": np.float16, "BF16": ml_dtypes.bfloat16}
_BITS = {"INDEX": 64} | {f"{kind}{bits}": bits for kind in ("INT", "UINT") for bits in (8, 16, 32, 64)}
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "min": min,
    "max": max,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "bitand": operator.and_,
    "bitor": operator.or_,
    "bitxor": operator.xor,
    # As in pypto/scalar.h.
    "shl": lambda a, b: a << min(b, 64) if b > 0 else a,
    "shr": lambda a, b: a >> b if b > 0 else a,
}
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
}
_ROUNDINGS: dict[str, Callable[[float], int]] = {
    # Python's own takes a half to the even number.
    "none": round,
    "rint": round,
    "round": lambda a: math.trunc(a + math.copysign(0.5, a)),
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
}


class HostArithmeticError(Exception):
    """A number of a HOST entry cannot be computed."""


def compute(name: str, operands: list[Number], attrs: dict[str, Any]) -> Number:
    """The value of an ``arith`` operation; ``attrs['dtype']`` is the type of its result.

    Raises:
        HostArithmeticError: a division by zero, or a name that is not known.
    """
    if name == "constant":
        return float.fromhex(attrs["hex"]) if "hex" in attrs else attrs["value"]
    dtype = attrs.get("dtype", "INDEX")
    if name == "cmp":
        return _COMPARISONS[attrs["pred"]](*operands)
    if name == "select":
        return operands[1] if operands[0] else operands[2]
    if name == "not":
        return not operands[0]
    if name in _FUNCTIONS:
        with np.errstate(all="ignore"):
            return rounded(float(_FUNCTIONS[name](operands[0])), dtype)
    if name == "neg":
        return rounded(-operands[0], dtype)
    if name == "cast":
        if isinstance(operands[0], float) and dtype in _BITS:
            return _whole(operands[0], dtype, attrs.get("mode", "trunc"))
        return rounded(operands[0], dtype)
    if name in ("div", "floordiv", "mod"):
        return rounded(_divide(name, *operands), dtype)
    if name in _BINARY:
        return rounded(_BINARY[name](*operands), dtype)
    raise HostArithmeticError(f"a HOST entry cannot compute arith.{name}")


def rounded(value: Number, dtype: str) -> Number:
    """A number as the type holds it: floats are rounded, integers wrap around."""
    if dtype == "BOOL":
        return bool(value)
    if dtype in _FLOATS:
        with np.errstate(over="ignore"):
            return float(_FLOATS[dtype](value))
    if isinstance(value, float) and not math.isfinite(value):
        raise HostArithmeticError(f"{value} is not a number of {dtype}")
    number, bits = int(value), _BITS[dtype]
    number &= (1 << bits) - 1
    return number - (1 << bits) if not dtype.startswith("U") and number >> (bits - 1) else number


def _whole(value: float, dtype: str, mode: str) -> int:
    """A number as a conversion rounds it: as `pypto::saturated` in pypto/scalar.h."""
    bits, signed = _BITS[dtype], not dtype.startswith("U")
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    if not math.isfinite(value):
        return 0 if math.isnan(value) else high if value > 0 else low
    return min(max(_ROUNDINGS[mode](value), low), high)


def _divide(name: str, a: Number, b: Number) -> Number:
    if name == "div":
        if b == 0:
            return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1.0, b)
        return a / b
    if b == 0:
        raise HostArithmeticError("division by zero")
    return a // b if name == "floordiv" else a % b
