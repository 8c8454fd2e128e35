"""What an argument will be like, for compiling without having it."""

from __future__ import annotations

import numbers
import operator
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class TensorSpec:
    """A tensor by its metadata: a sample for ``f.compile`` and the like.

    Attributes:
        name: its parameter's name, for people; samples are matched by position or keyword.
        shape: lengths of its axes.
        dtype: element type, such as ``pl.FP32``, ``"FP32"`` or ``np.float32``.
    """

    name: str
    shape: Sequence[int]
    dtype: object

    def __post_init__(self) -> None:
        _check_name("TensorSpec", self.name)
        lengths = whole_lengths(self.shape)
        if lengths is None:
            raise TypeError(f"TensorSpec {self.name!r}: shape is a sequence of lengths, got {self.shape!r}")
        if any(length < 1 for length in lengths):
            raise ValueError(f"TensorSpec {self.name!r}: lengths are positive, got {lengths}")
        object.__setattr__(self, "shape", lengths)


@dataclass(frozen=True)
class ScalarSpec:
    """A scalar argument. Scalars never select what is compiled.

    Attributes:
        name: its parameter's name, for people.
        value: the number.
    """

    name: str
    value: bool | int | float

    def __post_init__(self) -> None:
        _check_name("ScalarSpec", self.name)
        # NumPy's numbers count as well, and this module does not load NumPy.
        if not isinstance(self.value, numbers.Number) and type(self.value).__name__ not in ("bool", "bool_"):
            raise TypeError(f"ScalarSpec {self.name!r}: value is a number, got {self.value!r}")


def whole_lengths(shape: Sequence[int]) -> tuple[int, ...] | None:
    """The lengths of a shape; ``None`` for anything but a sequence of whole numbers."""
    try:
        given = tuple(shape)
        lengths = tuple(operator.index(length) for length in given)
    except TypeError:
        return None
    return None if any(isinstance(length, bool) for length in given) else lengths


def _check_name(what: str, name: object) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{what}: name is a str, got {name!r}")
