"""What an argument will be like, for compiling without having it."""

from __future__ import annotations

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
        try:
            lengths = tuple(int(length) for length in self.shape)
        except (TypeError, ValueError):
            raise TypeError(f"TensorSpec {self.name!r}: shape is a sequence of lengths, got {self.shape!r}") from None
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
