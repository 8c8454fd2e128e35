"""Arguments to try a kernel with: made from its specialization, the same ones for the same seed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pypto.build.specialize import ParameterSpec
from pypto.ir.nodes import Direction
from pypto.ir.types import DynDim
from pypto.runtime.arguments import NUMPY_DTYPES


class MissingSize(ValueError):
    """A dynamic dimension has no size; the message says how to give one."""


def sample_arguments(
    parameters: Sequence[ParameterSpec],
    *,
    sizes: Mapping[str, int] | None = None,
    scalars: Mapping[str, float] | None = None,
    seed: int = 0,
) -> list[Any]:
    """One argument for each parameter: arrays of small numbers, zeros for what is only written, 1 for scalars.

    Args:
        sizes: of dynamic dimensions, by name.
        scalars: values of scalar parameters, by name.

    Raises:
        MissingSize: a dynamic dimension has no size.
        ValueError: the value of a scalar is not one of its type.
    """
    random = np.random.default_rng(seed)
    return [_argument(parameter, sizes or {}, scalars or {}, random) for parameter in parameters]


def _argument(
    parameter: ParameterSpec, sizes: Mapping[str, int], scalars: Mapping[str, float], random: np.random.Generator
) -> Any:
    dtype = NUMPY_DTYPES[parameter.dtype.name]
    if parameter.shape is None:
        value = scalars.get(parameter.name, 1)
        if parameter.dtype.is_float:
            return float(value)
        whole = int(value) if math.isfinite(value) else None
        if parameter.dtype.kind == "bool":
            whole = bool(value)
        if whole != value:
            raise ValueError(f"{parameter.name!r} is a {parameter.dtype}, which cannot be {value}")
        return whole
    shape = tuple(_length(parameter, dim, sizes) for dim in parameter.shape)
    if parameter.direction is Direction.Out:
        return np.zeros(shape, dtype)
    if parameter.dtype.is_float:
        return random.standard_normal(shape).astype(dtype)
    least, most = (0, 2) if parameter.dtype.kind == "bool" else (0 if parameter.dtype.kind == "uint" else -8, 9)
    return random.integers(least, most, shape).astype(dtype)


def _length(parameter: ParameterSpec, dim: int | DynDim, sizes: Mapping[str, int]) -> int:
    if isinstance(dim, int):
        return dim
    if dim.name not in sizes:
        raise MissingSize(
            f"dimension {dim.name} of {parameter.name!r} is dynamic: give it a size, as --size {dim.name}=64"
        )
    return sizes[dim.name]
