"""Annotations of kernel parameters and the names that stand beside them.

Nothing is checked when an annotation is made: a mistake is reported by :mod:`pypto.language.signature`, with the place
of the parameter.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from pypto.ir.nodes import Direction
from pypto.ir.types import DynDim


@dataclass(frozen=True)
class TensorAnnotation:
    """``pl.Tensor[...]``: what stood in the brackets."""

    item: Any


@dataclass(frozen=True)
class WindowAnnotation(TensorAnnotation):
    """``pld.DistributedTensor[...]``: what stood in the brackets."""


@dataclass(frozen=True)
class ScalarAnnotation:
    """``pl.Scalar[...]``: what stood in the brackets."""

    item: Any


@dataclass(frozen=True)
class DirectedAnnotation:
    """``pl.Out[...]`` or ``pl.InOut[...]`` around another annotation."""

    direction: Direction
    inner: Any


class Tensor:
    """A tensor parameter: ``pl.Tensor``, or ``pl.Tensor[[128, 64], pl.FP32]`` with fixed shape and dtype.

    Without brackets both come from the argument. Dimensions are positive ints or ``pl.dynamic`` names; 1 to 5 of them.
    """

    shape: Any
    dtype: Any

    def __init__(self, *_: Any) -> None:
        raise TypeError("a tensor parameter is annotated with brackets: pl.Tensor[[rows, cols], dtype]")

    def __class_getitem__(cls, item: Any) -> Any:
        return TensorAnnotation(item)

    # Bodies are parsed, never run; these let type checkers see what a body may write.
    def __getitem__(self, item: Any) -> Any: ...
    def __setitem__(self, item: Any, value: Any) -> None: ...
    def __add__(self, other: Any) -> Any: ...
    def __radd__(self, other: Any) -> Any: ...
    def __sub__(self, other: Any) -> Any: ...
    def __rsub__(self, other: Any) -> Any: ...
    def __mul__(self, other: Any) -> Any: ...
    def __rmul__(self, other: Any) -> Any: ...
    def __truediv__(self, other: Any) -> Any: ...
    def __rtruediv__(self, other: Any) -> Any: ...


class DistributedTensor(Tensor):
    """A parameter that is a window: written like ``pl.Tensor``. Its name stands for the part of the rank that runs."""

    def __class_getitem__(cls, item: Any) -> Any:
        return WindowAnnotation(item)


@dataclass(frozen=True)
class TileAnnotation:
    """``pl.Tile[...]``: what stood in the brackets."""

    item: Any


class Tile:
    """A tile parameter of a function under ``@pl.jit.inline``; what stands in brackets says more to readers only."""

    def __class_getitem__(cls, item: Any) -> Any:
        return TileAnnotation(item)


class Scalar:
    """A run-time number: ``pl.Scalar[pl.INT32]``. Plain ``int`` is INT64, ``float`` FP32, ``bool`` BOOL."""

    def __class_getitem__(cls, item: Any) -> Any:
        return ScalarAnnotation(item)


class Out:
    """A tensor that the function writes: ``pl.Out[pl.Tensor]``."""

    def __class_getitem__(cls, item: Any) -> Any:
        return DirectedAnnotation(Direction.Out, item)


class InOut:
    """A tensor that the function reads and writes: ``pl.InOut[pl.Tensor]``."""

    def __class_getitem__(cls, item: Any) -> Any:
        return DirectedAnnotation(Direction.InOut, item)


def dynamic(name: str) -> Any:
    """A dimension that stays dynamic: read from the argument at every call, never part of the specialization."""
    return DynDim(name)


class Level(enum.Enum):
    """Where a scope runs."""

    CORE_GROUP = "core_group"
    HOST = "host"


class SplitMode(enum.Enum):
    """How two vector cores share a region."""

    NONE = "none"
    UP_DOWN = "up_down"
    LEFT_RIGHT = "left_right"


class FunctionType(enum.Enum):
    """What a function is for."""

    Orchestration = "orchestration"
    InCore = "incore"
    AIC = "aic"
    AIV = "aiv"
    Opaque = "opaque"
    Inline = "inline"
    Host = "host"
