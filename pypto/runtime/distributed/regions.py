"""Tensors in the memory that the ranks of one run share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pypto.runtime.arguments import NUMPY_DTYPES


@dataclass(frozen=True)
class Region:
    """A tensor in the shared memory.

    Attributes:
        base: number of the allocation that it is part of.
        offset: its first byte.
        shape, strides: lengths and strides of its axes, in elements.
    """

    base: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str

    @property
    def contiguous(self) -> bool:
        """Whether its elements lie side by side in row-major order."""
        expected = 1
        for length, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if length != 1 and stride != expected:
                return False
            expected *= length
        return True

    @property
    def span(self) -> tuple[int, int]:
        """First byte, and the byte after the last one."""
        last = sum((length - 1) * stride for length, stride in zip(self.shape, self.strides, strict=True))
        return self.offset, self.offset + (last + 1) * self.itemsize

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return NUMPY_DTYPES[self.dtype].itemsize

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def overlaps(self, other: Region) -> bool:
        """Whether both have an element in common; blocks of one tensor are told apart, anything else by its bounds."""
        low, high = self.span
        other_low, other_high = other.span
        if self.base != other.base or low >= other_high or other_low >= high:
            return False
        distance = other.offset - self.offset
        if self.strides != other.strides or distance % self.itemsize or self.itemsize != other.itemsize:
            return True
        axes = sorted(zip(self.strides, self.shape, other.shape, strict=True), reverse=True)
        reach = 0
        for stride, mine, theirs in reversed(axes):
            if reach >= stride:
                # Rows reach into each other, so that an element has several indices.
                return True
            reach += (max(mine, theirs) - 1) * stride
        return _meet(axes, distance // self.itemsize)

    def row(self, index: int) -> Region:
        """The part at an index of axis 0, without that axis."""
        return Region(
            self.base,
            self.offset + index * self.strides[0] * self.itemsize,
            self.shape[1:],
            self.strides[1:],
            self.dtype,
        )

    def record(self) -> dict[str, Any]:
        """Plain data for the ranks."""
        return {
            "offset": self.offset,
            "shape": list(self.shape),
            "strides": list(self.strides),
            "dtype": self.dtype,
        }


@dataclass(frozen=True)
class Window:
    """A view of every rank's own part of a window buffer.

    Attributes:
        regions: one for each rank.
        name: of the buffer.
        nbytes: size of the buffer on one rank.
    """

    regions: tuple[Region, ...]
    name: str
    nbytes: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of its axes."""
        return self.regions[0].shape


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides, in elements, of a tensor whose elements lie side by side."""
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


def _meet(axes: list[tuple[int, int, int]], distance: int) -> bool:
    """Whether two blocks meet: strides, largest first, with both lengths, and the distance of their beginnings."""
    if not axes:
        return distance == 0
    (stride, mine, theirs), *inner = axes
    return any(
        -theirs < step < mine and _meet(inner, distance - step * stride)
        for step in (distance // stride, distance // stride + 1)
    )
