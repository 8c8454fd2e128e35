"""Arguments of a call: checked one by one against the entry's parameters, then laid out for the C interface.

Nothing is copied: kernels work on the caller's memory. What passes here cannot make a kernel leave a buffer by its
shape, layout or type.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from pypto.runtime import abi, dlpack
from pypto.runtime.device_tensor import DeviceTensor
from pypto.runtime.kernel_config import Parameter

MAX_ELEMENTS = 2**31 - 1
"""Kernels compute element offsets in 32 bits."""

NUMPY_DTYPES: dict[str, np.dtype[Any]] = {
    "FP32": np.dtype(np.float32),
    "FP16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "INT8": np.dtype(np.int8),
    "INT16": np.dtype(np.int16),
    "INT32": np.dtype(np.int32),
    "INT64": np.dtype(np.int64),
    "UINT8": np.dtype(np.uint8),
    "UINT16": np.dtype(np.uint16),
    "UINT32": np.dtype(np.uint32),
    "UINT64": np.dtype(np.uint64),
    "BOOL": np.dtype(np.bool_),
    "INDEX": np.dtype(np.int64),
}

# INDEX is for offsets and lengths, which kernels compute in 32 bits.
_INTEGER_BITS = {"INT8": 8, "INT16": 16, "INT32": 32, "INT64": 64, "INDEX": 32}
_UNSIGNED_BITS = {"UINT8": 8, "UINT16": 16, "UINT32": 32, "UINT64": 64}


@dataclass(frozen=True)
class BoundArguments:
    """Checked arguments.

    Attributes:
        values: what the caller passed, by parameter.
        c_arguments: the same for the C interface; valid as long as this object lives.
        arrays: a view of each tensor's memory, by parameter; ``None`` for scalars.
    """

    values: tuple[object, ...]
    c_arguments: ctypes.Array[abi.Argument]
    arrays: tuple[np.ndarray | None, ...]
    owners: tuple[object, ...]


def bind(entry: str, params: Sequence[Parameter], args: Sequence[object]) -> BoundArguments:
    """Check the arguments of one call.

    Tensors are NumPy arrays, or objects with ``__dlpack__`` whose memory is the CPU's: row-major without gaps, native
    byte order, of exactly the declared element type and shape. A dynamic dimension has one length in all tensors. What
    the kernel writes must be writable and overlap no other argument.

    Raises:
        TypeError: a wrong number of arguments, or one of the wrong kind or element type.
        ValueError: an argument with a wrong shape, layout or value. Either names the parameter, what was given and what
            was expected.
    """
    if len(args) != len(params):
        names = ", ".join(param.name for param in params)
        raise TypeError(f"{entry}() takes {len(params)} arguments ({names}), got {len(args)}")
    binder = _Binder(entry)
    arrays: list[np.ndarray | None] = []
    owners: list[object] = []
    c_arguments = (abi.Argument * len(params))()
    for param, value, slot in zip(params, args, c_arguments, strict=True):
        slot.kind = abi.TENSOR if param.kind == "tensor" else abi.SCALAR
        slot.dtype = abi.DTYPE_CODES[param.dtype]
        slot.direction = abi.DIRECTIONS[param.direction]
        slot.name = param.name.encode()
        if param.kind == "scalar":
            slot.scalar = binder.scalar(param, value)
            arrays.append(None)
            continue
        array, owner = binder.tensor(param, value)
        slot.rank = array.ndim
        slot.data = array.__array_interface__["data"][0]
        stride = 1
        for axis in range(array.ndim - 1, -1, -1):
            slot.shape[axis], slot.strides[axis] = array.shape[axis], stride
            stride *= array.shape[axis]
        arrays.append(array)
        owners.append(owner)
    binder.refuse_overlaps(params, arrays)
    return BoundArguments(tuple(args), c_arguments, tuple(arrays), tuple(owners))


def scalar_bits(entry: str, param: Parameter, value: object) -> int:
    """The bits of a number for the C interface; raises as `bind` does."""
    return _Binder(entry).scalar(param, value)


class _Binder:
    def __init__(self, entry: str) -> None:
        self._entry = entry
        self._dimensions: dict[str, tuple[int, str]] = {}  # dynamic dimension: length, the parameter that fixed it

    def _at(self, param: Parameter) -> str:
        return f"{self._entry}(): argument '{param.name}'"

    def tensor(self, param: Parameter, value: object) -> tuple[np.ndarray, object]:
        """The argument as an array, and what keeps its memory alive."""
        at = self._at(param)
        expected = f"a {param.dtype} tensor of shape ({', '.join(map(str, param.shape))})"
        array, owner, writable = _as_array(at, value, expected)
        if array.dtype != NUMPY_DTYPES[param.dtype]:
            if array.dtype.newbyteorder("=") == NUMPY_DTYPES[param.dtype]:
                raise TypeError(f"{at} has elements in foreign byte order ({array.dtype}), expected native order")
            raise TypeError(f"{at} has dtype {array.dtype}, expected {expected}")
        self._check_shape(at, param, array, expected)
        if array.size > MAX_ELEMENTS:
            raise ValueError(f"{at} has {array.size} elements; kernels address at most {MAX_ELEMENTS}")
        if not array.flags.c_contiguous:
            raise ValueError(
                f"{at} is not contiguous (shape {array.shape}, strides {array.strides} bytes), expected row-major "
                "without gaps; pass a contiguous copy"
            )
        if not array.flags.aligned:
            raise ValueError(f"{at} is not aligned to its element size of {array.itemsize} bytes; pass a copy")
        if param.direction != "in" and not writable:
            raise ValueError(f"{at} is read-only, but the kernel writes it (direction {param.direction})")
        return array, owner

    def _check_shape(self, at: str, param: Parameter, array: np.ndarray, expected: str) -> None:
        if array.ndim != len(param.shape):
            raise ValueError(f"{at} has rank {array.ndim} (shape {array.shape}), expected {expected}")
        for axis, (length, wanted) in enumerate(zip(array.shape, param.shape, strict=True)):
            if isinstance(wanted, int):
                if length != wanted:
                    raise ValueError(f"{at} has shape {array.shape}: axis {axis} is {length}, expected {expected}")
                continue
            if length < 1:
                raise ValueError(f"{at} has shape {array.shape}: axis {axis} ({wanted}) is empty, expected {expected}")
            fixed, by = self._dimensions.setdefault(wanted, (length, param.name))
            if fixed != length:
                raise ValueError(
                    f"{at} has shape {array.shape}: axis {axis} ({wanted}) is {length}, "
                    f"but {wanted} is {fixed} in '{by}'"
                )

    def scalar(self, param: Parameter, value: object) -> int:
        """The bits of a number."""
        at = self._at(param)
        if param.dtype == "BOOL":
            if not isinstance(value, (bool, np.bool_)):
                raise TypeError(f"{at} is {_described(value)}, expected a bool")
            return int(value)
        if isinstance(value, (bool, np.bool_)):
            raise TypeError(f"{at} is a bool, expected a {param.dtype} number")
        if param.dtype in _INTEGER_BITS or param.dtype in _UNSIGNED_BITS:
            if not isinstance(value, (int, np.integer)):
                raise TypeError(f"{at} is {_described(value)}, expected an int for {param.dtype}")
            return _integer_bits(at, param.dtype, int(value))
        if not isinstance(value, (int, float, np.integer, np.floating)) and type(value) is not ml_dtypes.bfloat16:
            raise TypeError(f"{at} is {_described(value)}, expected a number for {param.dtype}")
        return _float_bits(at, param.dtype, value)

    def refuse_overlaps(self, params: Sequence[Parameter], arrays: Sequence[np.ndarray | None]) -> None:
        """Contiguous memory that is written must be that argument's alone."""
        spans = sorted(
            (array.__array_interface__["data"][0], array.nbytes, index)
            for index, array in enumerate(arrays)
            if array is not None
        )
        # A long span may reach beyond its neighbour: remember the farthest ends so far, of written ones and of all.
        reach: dict[bool, tuple[int, int]] = {}
        for start, nbytes, index in spans:
            writes = params[index].direction != "in"
            for other_writes, (end, other) in reach.items():
                if start < end and (writes or other_writes):
                    first, second = sorted((index, other))
                    raise ValueError(
                        f"{self._at(params[second])} overlaps the memory of '{params[first].name}', and the kernel "
                        f"writes '{params[index if writes else other].name}'; pass separate memory"
                    )
            if writes not in reach or reach[writes][0] < start + nbytes:
                reach[writes] = (start + nbytes, index)


def _as_array(at: str, value: object, expected: str) -> tuple[np.ndarray, object, bool]:
    """The argument's memory as an array, what keeps it alive, and whether it may be written."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{at} is a masked array, whose mask a kernel would not see; expected {expected}")
    if isinstance(value, np.ndarray):
        array = value.view(np.ndarray)
        return array, array, bool(array.flags.writeable)
    if isinstance(value, DeviceTensor):
        array = value.memory(at)
        return array, array, True
    if not hasattr(value, "__dlpack__"):
        raise TypeError(f"{at} is {_described(value)}, expected {expected} (a NumPy array or a tensor with __dlpack__)")
    try:
        tensor = dlpack.import_tensor(value)
    except dlpack.UnsupportedTensor as error:
        raise TypeError(f"{at} is {_described(value)} that cannot be used: {error}; expected {expected}") from None
    return tensor.array, tensor, tensor.writable


def _integer_bits(at: str, dtype: str, value: int) -> int:
    if dtype in _UNSIGNED_BITS:
        low, high = 0, 2 ** _UNSIGNED_BITS[dtype] - 1
    else:
        low, high = -(2 ** (_INTEGER_BITS[dtype] - 1)), 2 ** (_INTEGER_BITS[dtype] - 1) - 1
    if not low <= value <= high:
        raise ValueError(f"{at} is {value}, which does not fit {dtype} ({low} to {high})")
    return value & (2**64 - 1)


_ROUNDINGS: dict[str, Callable[[float], float]] = {
    "FP32": lambda number: float(np.float32(number)),
    "FP16": lambda number: float(np.float16(number)),
    "BF16": lambda number: float(ml_dtypes.bfloat16(number)),
}


def _float_bits(at: str, dtype: str, value: Any) -> int:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
        exact = False
    else:
        exact = math.isfinite(number)
    with np.errstate(over="ignore"):
        rounded = _ROUNDINGS[dtype](number)
    if math.isinf(rounded) and (exact or not isinstance(value, (float, np.floating, ml_dtypes.bfloat16))):
        raise ValueError(f"{at} is {value}, which does not fit {dtype}")
    return int.from_bytes(struct.pack("<d", rounded), "little")


def _described(value: object) -> str:
    if value is None:
        return "None"
    if isinstance(value, (bool, int, float, str)):
        text = repr(value)
        return f"{type(value).__name__} {text if len(text) <= 40 else text[:37] + '...'}"
    return f"a {type(value).__module__}.{type(value).__qualname__}".replace("builtins.", "")
