"""Tensors that stay in the memory of a device, or of the simulator in its place."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


class DeviceTensor:
    """A tensor in a worker's memory: an argument of calls, and of the worker's copies to and from the host.

    Made by `pypto.runtime.ChipWorker.alloc_tensor`. The host does not see its elements: ``copy_from`` brings them.

    Attributes:
        shape: lengths of the axes; row-major without gaps.
        dtype: the language's name of the element type, such as ``FP32``.
        owner: what allocated it.
    """

    def __init__(self, array: np.ndarray[Any, Any], dtype: str, owner: object) -> None:
        self.shape: tuple[int, ...] = array.shape
        self.dtype = dtype
        self.owner = owner
        self._array: np.ndarray[Any, Any] | None = array
        self._itemsize = array.itemsize

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return math.prod(self.shape) * self._itemsize

    @property
    def freed(self) -> bool:
        """Whether its memory was given back."""
        return self._array is None

    def memory(self, what: str) -> np.ndarray[Any, Any]:
        """Its memory, for the runtime; ``what`` names the tensor in the error.

        Raises:
            RuntimeError: it was freed, or its worker was closed.
        """
        array = self._array
        if array is None:
            raise RuntimeError(
                f"{what}: {self!r} has no memory any more: free_tensor or the end of its worker gave it back"
            )
        return array

    def release(self) -> None:
        """Give the memory back, once the calls in progress that use it have ended."""
        self._array = None

    def __repr__(self) -> str:
        state = ", freed" if self.freed else ""
        return f"<DeviceTensor {self.dtype}[{','.join(map(str, self.shape))}]{state}>"
