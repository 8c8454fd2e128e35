"""Numbers as whole numbers: how conversions round."""

from __future__ import annotations

import math
from collections.abc import Callable

from pypto.ir.types import DType

CAST_MODES = ("none", "rint", "round", "floor", "ceil", "trunc")


def _half_away(value: float) -> int:
    whole = math.trunc(value)
    return whole + int(math.copysign(1, value)) if abs(value - whole) >= 0.5 else whole


_ROUNDINGS: dict[str, Callable[[float], int]] = {
    # Python's own takes a half to the even number.
    "none": round,
    "rint": round,
    "round": _half_away,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
}


def limits(dtype: DType) -> tuple[int, int]:
    """The least and greatest number of a type of whole numbers."""
    if dtype.kind == "uint":
        return 0, 2**dtype.bits - 1
    return -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1


def rounded_to(value: float, dtype: DType, mode: str = "round") -> int:
    """A number as the whole number that a conversion makes of it.

    Args:
        dtype: a type of whole numbers; what it cannot hold becomes the nearest number that it can, NaN becomes 0.
        mode: one of `CAST_MODES`.
    """
    low, high = limits(dtype)
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return high if value > 0 else low
    return min(max(_ROUNDINGS[mode](value), low), high)
