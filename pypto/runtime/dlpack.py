"""Tensors of other libraries through DLPack, without copying and for every element type, bfloat16 included."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

_CPU_DEVICES = (1, 3)  # kDLCPU, kDLCUDAHost: memory that the CPU addresses
_READ_ONLY = 1
_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}


class UnsupportedTensor(Exception):
    """The tensor cannot be used by a kernel; the message says why."""


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _VersionedTensor(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


@dataclass(frozen=True)
class ImportedTensor:
    """Memory of another library's tensor.

    Attributes:
        array: a view of the memory; valid as long as this object lives.
        writable: whether the owner allows writing.
        capsule: keeps the memory alive; it was not consumed, so that its own destructor gives the memory back.
    """

    array: np.ndarray
    writable: bool
    capsule: object


def import_tensor(value: Any) -> ImportedTensor:
    """View the memory of an object with ``__dlpack__``.

    Raises:
        UnsupportedTensor: it is not in CPU memory, has an element type NumPy cannot name, or its owner refuses.
    """
    try:
        try:
            capsule = value.__dlpack__(max_version=(1, 0))
        except TypeError:
            capsule = value.__dlpack__()
    except Exception as error:
        raise UnsupportedTensor(f"its __dlpack__ says: {error}") from None
    versioned = _pointer(capsule, b"dltensor_versioned")
    if versioned is not None:
        managed = ctypes.cast(versioned, ctypes.POINTER(_VersionedTensor)).contents
        if managed.major != 1:
            raise UnsupportedTensor(f"it speaks DLPack {managed.major}, this PyPTO speaks 1")
        tensor, writable = managed.tensor, not managed.flags & _READ_ONLY
    else:
        plain = _pointer(capsule, b"dltensor")
        if plain is None:
            raise UnsupportedTensor("its __dlpack__ returned no DLPack capsule")
        tensor, writable = ctypes.cast(plain, ctypes.POINTER(_Tensor)).contents, True
    return ImportedTensor(_view(tensor), writable, capsule)


def _view(tensor: _Tensor) -> np.ndarray:
    if tensor.device_type not in _CPU_DEVICES:
        raise UnsupportedTensor(f"it is on a device (DLPack type {tensor.device_type}); move it to the CPU")
    dtype = _dtype(tensor.dtype)
    if not 0 <= tensor.ndim <= 32:
        raise UnsupportedTensor(f"it has rank {tensor.ndim}")
    shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
    address = (tensor.data or 0) + tensor.byte_offset
    if min(shape, default=1) < 1:
        return np.empty(shape, dtype)  # its address means nothing
    if not address:
        raise UnsupportedTensor("it has no memory")
    if tensor.strides:
        strides = tuple(tensor.strides[axis] * dtype.itemsize for axis in range(tensor.ndim))
    else:
        strides = _dense_strides(shape, dtype.itemsize)
    return _strided(address, shape, strides, dtype)


def _dtype(declared: _DataType) -> np.dtype[Any]:
    kind = _KINDS.get(declared.code)
    if kind is None or declared.lanes != 1:
        raise UnsupportedTensor(
            f"its element type (DLPack code {declared.code}, {declared.lanes} lanes) is not supported"
        )
    if kind == "bfloat" and declared.bits == 16:
        bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return bfloat16
    if kind == "bool" and declared.bits == 8:
        return np.dtype(np.bool_)
    try:
        return np.dtype(f"{kind}{declared.bits}")
    except TypeError:
        raise UnsupportedTensor(f"its element type ({kind}{declared.bits}) is not supported") from None


def _dense_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    strides = []
    for length in reversed(shape):
        strides.append(itemsize)
        itemsize *= length
    return tuple(reversed(strides))


def _strided(address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    steps = [(length - 1) * stride for length, stride in zip(shape, strides, strict=True)]
    first = sum(step for step in steps if step < 0)
    last = sum(step for step in steps if step > 0)
    memory = (ctypes.c_char * (last - first + dtype.itemsize)).from_address(address + first)
    return np.ndarray(shape, dtype, buffer=memoryview(memory), offset=-first, strides=strides)


def _pointer(capsule: object, name: bytes) -> int | None:
    if not _is_valid(capsule, name):
        return None
    address: int | None = _get_pointer(capsule, name)
    return address


_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]
_is_valid.restype = ctypes.c_int
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_get_pointer.restype = ctypes.c_void_p
