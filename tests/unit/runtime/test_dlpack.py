"""Tensors of other libraries: a stand-in producer over NumPy's own DLPack export, and over hand-made capsules."""

from __future__ import annotations

import ctypes
import gc
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pypto.runtime import dlpack
from pypto.runtime.arguments import bind
from pypto.runtime.kernel_config import Parameter

X = Parameter("x", "tensor", "inout", "FP32", (2, 3))


class Producer:
    """A tensor that is known by its DLPack export only."""

    def __init__(self, array: np.ndarray, *, versioned: bool = True) -> None:
        self._array = array
        self._versioned = versioned

    def __dlpack__(self, **options: Any) -> object:
        if options and not self._versioned:
            raise TypeError("unexpected keyword max_version")
        return self._array.__dlpack__(**options)


class HandMade:
    """A capsule whose fields the test chooses."""

    def __init__(
        self, array: np.ndarray, *, code: int, bits: int, lanes: int = 1, device: int = 1, **fields: Any
    ) -> None:
        self._array = array
        self._shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
        self._managed = dlpack._VersionedTensor(major=fields.get("major", 1), minor=0, flags=fields.get("flags", 0))
        tensor = self._managed.tensor
        tensor.data = fields.get("data", array.ctypes.data)
        tensor.byte_offset = fields.get("byte_offset", 0)
        tensor.device_type = device
        tensor.ndim = array.ndim
        tensor.shape = self._shape
        tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes = code, bits, lanes
        strides = fields.get("strides")
        if strides is not None:
            self._strides = (ctypes.c_int64 * len(strides))(*strides)
            tensor.strides = self._strides

    def __dlpack__(self, *, max_version: Any = None) -> object:
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self._managed), b"dltensor_versioned", None)


@pytest.mark.parametrize("versioned", [True, False])
def test_a_producer_is_used_in_place(versioned: bool) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    producer = Producer(array, versioned=versioned)
    bound = bind("f", (X,), (producer,))
    assert bound.c_arguments[0].data == array.ctypes.data
    assert bound.values[0] is producer
    assert bound.arrays[0] is not None
    bound.arrays[0][1, 2] = 42
    assert array[1, 2] == 42


def test_memory_lives_as_long_as_the_binding() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    alive = weakref.ref(array)
    bound = bind("f", (X,), (Producer(array),))
    values = bound.arrays[0]
    object.__setattr__(bound, "values", ())
    del array
    gc.collect()
    assert alive() is not None
    assert values is not None and values[1, 2] == 5
    del bound, values
    gc.collect()
    assert alive() is None


def test_strided_memory_is_seen_as_such() -> None:
    with pytest.raises(ValueError, match="argument 'x' is not contiguous"):
        bind("f", (X,), (Producer(np.zeros((3, 2), np.float32).T),))


def test_bfloat16_has_a_type() -> None:
    array = np.array([1.5, -2.0], ml_dtypes.bfloat16)
    imported = dlpack.import_tensor(HandMade(array, code=4, bits=16))
    assert imported.array.dtype == ml_dtypes.bfloat16
    assert imported.array.tolist() == [1.5, -2.0]
    param = Parameter("x", "tensor", "in", "BF16", (2,))
    assert bind("f", (param,), (HandMade(array, code=4, bits=16),)).c_arguments[0].data == array.ctypes.data


def test_byte_offset_and_strides_are_heeded() -> None:
    array = np.arange(6, dtype=np.int32)
    half = HandMade(array[:3], code=0, bits=32, data=array.ctypes.data, byte_offset=4, strides=[2])
    assert dlpack.import_tensor(half).array.tolist() == [1, 3, 5]


def test_read_only_memory_is_not_written() -> None:
    array = np.zeros((2, 3), np.float32)
    with pytest.raises(ValueError, match="argument 'x' is read-only"):
        bind("f", (X,), (HandMade(array, code=2, bits=32, flags=1),))
    inputs = (Parameter("x", "tensor", "in", "FP32", (2, 3)),)
    assert bind("f", inputs, (HandMade(array, code=2, bits=32, flags=1),)).c_arguments[0].data == array.ctypes.data


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"code": 2, "bits": 32, "device": 2}, "on a device (DLPack type 2); move it to the CPU"),
        ({"code": 2, "bits": 32, "lanes": 4}, "4 lanes"),
        ({"code": 5, "bits": 64}, "DLPack code 5"),
        ({"code": 2, "bits": 24}, "float24"),
        ({"code": 2, "bits": 32, "major": 2}, "it speaks DLPack 2"),
        ({"code": 2, "bits": 32, "data": 0}, "it has no memory"),
    ],
)
def test_tensors_that_cannot_be_used(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError) as caught:
        bind("f", (X,), (HandMade(np.zeros((2, 3), np.float32), **fields),))
    assert "argument 'x'" in str(caught.value)
    assert words in str(caught.value)


def test_an_empty_tensor_is_an_empty_tensor() -> None:
    with pytest.raises(ValueError, match="axis 0 is 0"):
        bind("f", (X,), (HandMade(np.zeros((0, 3), np.float32), code=2, bits=32, data=0),))
