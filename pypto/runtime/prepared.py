"""Calls like earlier ones: what was checked and laid out once is only compared and filled in again.

A prepared call answers only arguments that it can check completely and cheaply: NumPy arrays and plain numbers. It
declines all others, and everything that is wrong; `pypto.runtime.arguments.bind` then serves the call, or says what is
wrong with it.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pypto.runtime import abi
from pypto.runtime.arguments import BoundArguments, scalar_bits
from pypto.runtime.kernel_config import KernelConfig, Parameter

if TYPE_CHECKING:
    from pypto.runtime.program import CompiledProgram

_C_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400
# The offset of the data's address in the structure that ``__array_struct__`` holds (NumPy's array interface protocol).
_DATA = 40

_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_get_pointer.restype = ctypes.c_void_p
_read_pointer = ctypes.c_void_p.from_address
_ndarray = np.ndarray


def facts(values: Sequence[object]) -> Hashable:
    """What of a call's arguments decides how they are laid out: dtype and shape of arrays, types of all else."""
    found: list[Any] = []
    for value in values:
        kind = type(value)
        if kind is _ndarray:
            found.append(value.dtype)  # type: ignore[attr-defined]
            found.append(value.shape)  # type: ignore[attr-defined]
        else:
            found.append(kind)
    return tuple(found)


class Frame:
    """The memory of one call through the C interface, for one call after another.

    Attributes:
        request, result: references to the structures that ``pypto_run`` takes.
        memory: the arguments' structures.
        outcome: what ``result`` refers to.
        tensors: for each tensor its position, the flags that its array must have, and where its address goes.
        scalars: for each scalar its position, what makes the number that is stored, and where it goes.
    """

    def __init__(self, prepared: PreparedCall, orchestration: abi.Orchestration) -> None:
        layout = prepared.layout
        memory = (abi.Argument * len(layout)).from_buffer_copy(layout)
        self.memory = memory
        # Owns the names that the copied structures point to.
        self._layout = layout
        self.outcome = abi.RunResult(struct_size=ctypes.sizeof(abi.RunResult))
        self.request = ctypes.byref(orchestration.request(memory, threads=prepared.threads, ring=prepared.ring))
        self.result = ctypes.byref(self.outcome)
        self.tensors: list[tuple[int, int, ctypes.c_void_p]] = []
        self.scalars: list[tuple[int, Callable[[Any], Any], Any]] = []
        for index, param in enumerate(prepared.params):
            start = index * ctypes.sizeof(abi.Argument)
            if param.kind == "tensor":
                flags = _C_CONTIGUOUS | _ALIGNED | (0 if param.direction == "in" else _WRITEABLE)
                place = ctypes.c_void_p.from_buffer(memory, start + abi.Argument.data.offset)
                self.tensors.append((index, flags, place))
            else:
                convert, stored = _conversion(prepared.entry, param)
                number = stored.from_buffer(memory, start + abi.Argument.scalar.offset)
                self.scalars.append((index, convert, number))


class PreparedCall:
    """Runs a program with arguments of the same facts. Safe to use from several threads; keeps no code loaded.

    Attributes:
        entry, params: what is called.
        layout: structures for the C interface, complete but for addresses and numbers.
        threads, ring: as `pypto.runtime.abi.Orchestration.run` takes them.
    """

    def __init__(self, config: KernelConfig, bound: BoundArguments, threads: int, ring: abi.Ring | None) -> None:
        self.entry, self.params = config.entry, config.params
        self.layout = bound.c_arguments
        self.threads = threads
        self.ring = ring
        self._frames: list[Frame] = []
        sizes = [array.nbytes for array in bound.arrays if array is not None]
        written = [param.direction != "in" for param in config.params if param.kind == "tensor"]
        # Every two tensors of which one is written, by their place among the tensors, with their sizes.
        self._apart = tuple(
            (one, sizes[one], other, sizes[other])
            for other in range(len(sizes))
            for one in range(other)
            if written[one] or written[other]
        )

    def fill(self, program: CompiledProgram, values: Sequence[Any]) -> Frame | None:
        """A frame with these arguments, whose facts are the prepared ones; ``None`` if they need a closer look.

        Args:
            program: the one that the call was prepared for.

        Raises:
            RuntimeError: the program was released.
        """
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = Frame(self, program.loaded())
        if self._fits(frame, values):
            return frame
        self._frames.append(frame)
        return None

    def run(self, program: CompiledProgram, frame: Frame, values: Sequence[object]) -> object:
        """Run with the arguments that the frame was filled with; result and errors as those of the program's call."""
        # Held while it runs, since another thread may release it.
        orchestration = program.loaded()
        if orchestration.call(frame.request, frame.result) != abi.OK:
            program.raise_for(frame.outcome)
        self._frames.append(frame)
        return program.returned(values)

    def _fits(self, frame: Frame, values: Sequence[Any]) -> bool:
        addresses = []
        for index, flags, place in frame.tensors:
            array = values[index]
            if array.flags.num & flags != flags:
                return False
            # What it holds lives as long as the capsule.
            capsule = array.__array_struct__
            place.value = address = _read_pointer(_get_pointer(capsule, None) + _DATA).value or 0
            addresses.append(address)
        for one, size, other, other_size in self._apart:
            first, second = addresses[one], addresses[other]
            if first < second + other_size and second < first + size:
                return False
        try:
            for index, convert, number in frame.scalars:
                number.value = convert(values[index])
        except (_Declined, TypeError, ValueError, OverflowError):
            return False
        return True


class _Declined(Exception):
    """A number that needs a closer look."""


def can_prepare(params: Sequence[Parameter], values: Sequence[object]) -> bool:
    """Whether calls with arguments like these can be prepared: arrays where tensors are wanted."""
    return all(type(v) is _ndarray for v, p in zip(values, params, strict=False) if p.kind == "tensor")


def _conversion(entry: str, param: Parameter) -> tuple[Callable[[Any], Any], Any]:
    """What makes the stored number of a scalar's value, and the C type that it is stored as."""
    if param.dtype == "FP32":
        return _single, ctypes.c_double
    return functools.partial(scalar_bits, entry, param), ctypes.c_uint64


def _single(value: Any) -> float:
    number: float = ctypes.c_float(value).value
    if number - number != 0.0:
        raise _Declined  # out of range, unless the caller meant an infinity or no number
    return number
