"""What the operations on tiles and tensors compute, in NumPy float64, by name; only the elements that are valid."""

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
TILES |= {f"{name}s": TILES[name] for name in ("add", "sub", "mul", "div", "maximum", "minimum")}
TILES["rdivs"] = lambda a, s: s / a
for _axis in ("row", "col"):
    for _name in ("add", "sub", "mul", "div"):
        TILES[f"{_axis}_expand_{_name}"] = TILES[_name]
    TILES[f"{_axis}_expand"] = lambda a, b: np.broadcast_to(b, a.shape)
TILES["row_expand_max"], TILES["row_expand_min"] = np.maximum, np.minimum


def converted(values: Any, dtype: DType) -> Any:
    """What a conversion to ``dtype`` does to values, in float64."""
    if dtype in (FP16, FP32):
        return np.asarray(values).astype(np.float16 if dtype == FP16 else np.float32).astype(np.float64)
    if dtype == BF16:
        import ml_dtypes

        return np.asarray(values).astype(ml_dtypes.bfloat16).astype(np.float64)
    return np.rint(values) if dtype.is_integer else values
