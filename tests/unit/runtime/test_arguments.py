"""Binding of call arguments: what passes is laid out exactly, and everything else is one error that names it."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pypto.runtime import abi
from pypto.runtime.arguments import NUMPY_DTYPES, bind
from pypto.runtime.kernel_config import Parameter

PARAMS = (
    Parameter("q", "tensor", "in", "FP16", (16, 128)),
    Parameter("k", "tensor", "in", "FP16", ("S", 128)),
    Parameter("v", "tensor", "in", "FP16", ("S", 128)),
    Parameter("seq_len", "scalar", "in", "INT32"),
    Parameter("scale", "scalar", "in", "FP32"),
    Parameter("causal", "scalar", "in", "BOOL"),
    Parameter("state", "tensor", "inout", "FP32", (4,)),
    Parameter("out", "tensor", "out", "FP32", (16, 128)),
)


def good() -> dict[str, Any]:
    return {
        "q": np.zeros((16, 128), np.float16),
        "k": np.zeros((256, 128), np.float16),
        "v": np.zeros((256, 128), np.float16),
        "seq_len": 100,
        "scale": 0.5,
        "causal": True,
        "state": np.zeros(4, np.float32),
        "out": np.zeros((16, 128), np.float32),
    }


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def misaligned(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    count = int(np.prod(shape))
    size = np.dtype(dtype).itemsize
    memory = np.zeros(count * size + size, np.uint8)
    offset = 1 - memory.__array_interface__["data"][0] % 2
    return memory[offset : offset + count * size].view(dtype).reshape(shape)


class NoTensor:
    pass


class RefusingTensor:
    def __dlpack__(self, **_: Any) -> object:
        raise BufferError("grad is required")


class NoCapsule:
    def __dlpack__(self, **_: Any) -> object:
        return 7


def test_good_arguments_are_laid_out() -> None:
    values = good()
    bound = bind("decode", PARAMS, list(values.values()))
    q, k, _, seq_len, scale, causal, state, _ = bound.c_arguments
    assert (q.kind, q.dtype, q.direction, q.rank, q.name) == (abi.TENSOR, abi.DTYPE_CODES["FP16"], 0, 2, b"q")
    assert q.data == values["q"].ctypes.data
    assert list(q.shape[:2]) == [16, 128] and list(q.strides[:2]) == [128, 1]
    assert list(k.shape[:2]) == [256, 128]
    assert (seq_len.kind, seq_len.scalar) == (abi.SCALAR, 100)
    assert struct.unpack("<d", struct.pack("<Q", scale.scalar)) == (0.5,)
    assert causal.scalar == 1
    assert (state.rank, state.shape[0], state.strides[0], state.direction) == (1, 4, 1, abi.DIRECTIONS["inout"])
    assert bound.values[7] is values["out"]


@pytest.mark.parametrize("dtype", [name for name in NUMPY_DTYPES if name != "INDEX"])
def test_every_dtype_is_taken_and_no_other(dtype: str) -> None:
    param = Parameter("x", "tensor", "in", dtype, (3,))
    assert bind("f", (param,), (np.zeros(3, NUMPY_DTYPES[dtype]),)).c_arguments[0].dtype == abi.DTYPE_CODES[dtype]
    for other, numpy_dtype in NUMPY_DTYPES.items():
        if NUMPY_DTYPES[dtype] != numpy_dtype:
            with pytest.raises(TypeError, match=f"argument 'x' has dtype .*expected a {dtype} tensor"):
                bind("f", (param,), (np.zeros(3, numpy_dtype),))
            assert other != dtype


def test_a_negative_integer_is_sign_extended() -> None:
    param = Parameter("n", "scalar", "in", "INT8")
    assert bind("f", (param,), (-128,)).c_arguments[0].scalar == 2**64 - 128


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        ("FP32", 0.1, float(np.float32(0.1))),
        ("FP32", np.float64(2.5), 2.5),
        ("FP32", 7, 7.0),
        ("FP32", float("-inf"), float("-inf")),
        ("FP16", 0.1, float(np.float16(0.1))),
        ("BF16", 0.1, float(ml_dtypes.bfloat16(0.1))),
        ("BF16", ml_dtypes.bfloat16(3), 3.0),
    ],
)
def test_floats_are_rounded_to_their_type(dtype: str, value: Any, expected: float) -> None:
    bits = bind("f", (Parameter("x", "scalar", "in", dtype),), (value,)).c_arguments[0].scalar
    assert struct.unpack("<d", struct.pack("<Q", bits)) == (expected,)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("INT32", np.int64(5)),
        ("UINT64", 2**64 - 1),
        ("INT64", -(2**63)),
        ("INDEX", 2**31 - 1),
        ("BOOL", np.bool_(False)),
    ],
)
def test_integers_at_their_limits_and_numpy_scalars(dtype: str, value: Any) -> None:
    bits = bind("f", (Parameter("x", "scalar", "in", dtype),), (value,)).c_arguments[0].scalar
    assert bits == int(value) & (2**64 - 1)


def overlapping(arguments: dict[str, Any]) -> np.ndarray:
    """An output that shares its last bytes with q."""
    memory = np.zeros(16 * 128 * 4 + 16 * 128 * 2 - 2, np.uint8)
    arguments["q"] = memory[16 * 128 * 4 - 2 :].view(np.float16).reshape(16, 128)
    return memory[: 16 * 128 * 4].view(np.float32).reshape(16, 128)


BAD: list[tuple[str, Callable[[dict[str, Any]], Any], type[Exception], str]] = [
    # kinds of tensors
    ("q", lambda a: None, TypeError, "is None, expected a FP16 tensor of shape (16, 128)"),
    ("q", lambda a: 1.5, TypeError, "is float 1.5"),
    ("q", lambda a: [[0.0] * 128] * 16, TypeError, "is a list"),
    ("q", lambda a: NoTensor(), TypeError, "NoTensor"),
    ("q", lambda a: np.float16(1), TypeError, "float16"),
    ("q", lambda a: memoryview(bytes(4096)), TypeError, "memoryview"),
    ("q", lambda a: np.ma.masked_array(a["q"]), TypeError, "masked array"),
    ("q", lambda a: RefusingTensor(), TypeError, "grad is required"),
    ("q", lambda a: NoCapsule(), TypeError, "returned no DLPack capsule"),
    # element types
    ("q", lambda a: a["q"].astype(np.float32), TypeError, "has dtype float32, expected a FP16 tensor"),
    ("q", lambda a: a["q"].astype(ml_dtypes.bfloat16), TypeError, "has dtype bfloat16"),
    ("q", lambda a: a["q"].view(np.int16), TypeError, "has dtype int16"),
    ("q", lambda a: a["q"].astype(object), TypeError, "has dtype object"),
    ("q", lambda a: a["q"].astype(">f2"), TypeError, "foreign byte order"),
    ("out", lambda a: a["out"].astype(np.float64), TypeError, "has dtype float64"),
    ("out", lambda a: a["out"].view("V4"), TypeError, "has dtype"),
    # ranks and shapes
    ("q", lambda a: a["q"].reshape(-1), ValueError, "has rank 1"),
    ("q", lambda a: a["q"].reshape(1, 16, 128), ValueError, "has rank 3"),
    ("q", lambda a: np.array(1, np.float16), ValueError, "has rank 0"),
    (
        "q",
        lambda a: np.zeros((15, 128), np.float16),
        ValueError,
        "axis 0 is 15, expected a FP16 tensor of shape (16, 128)",
    ),
    ("q", lambda a: np.zeros((16, 127), np.float16), ValueError, "axis 1 is 127"),
    ("q", lambda a: np.zeros((128, 16), np.float16), ValueError, "axis 0 is 128"),
    ("q", lambda a: np.zeros((0, 128), np.float16), ValueError, "axis 0 is 0"),
    ("k", lambda a: np.zeros((0, 128), np.float16), ValueError, "axis 0 (S) is empty"),
    ("k", lambda a: np.zeros((255, 128), np.float16), ValueError, "but S is 255 in 'k'"),
    ("v", lambda a: np.zeros((255, 128), np.float16), ValueError, "axis 0 (S) is 255, but S is 256 in 'k'"),
    ("k", lambda a: np.zeros((256, 64), np.float16), ValueError, "axis 1 is 64"),
    (
        "k",
        lambda a: np.lib.stride_tricks.as_strided(a["k"], (2**25, 128), (0, 2)),
        ValueError,
        "kernels address at most 2147483647",
    ),
    ("state", lambda a: np.zeros(5, np.float32), ValueError, "axis 0 is 5"),
    # layout
    ("q", lambda a: np.zeros((128, 16), np.float16).T, ValueError, "is not contiguous"),
    ("q", lambda a: np.zeros((32, 128), np.float16)[::2], ValueError, "is not contiguous"),
    ("q", lambda a: np.zeros((16, 256), np.float16)[:, :128], ValueError, "is not contiguous"),
    ("q", lambda a: np.zeros((16, 128), np.float16)[::-1], ValueError, "is not contiguous"),
    ("q", lambda a: np.broadcast_to(np.zeros(128, np.float16), (16, 128)), ValueError, "is not contiguous"),
    ("out", lambda a: np.zeros((128, 16), np.float32).T, ValueError, "is not contiguous"),
    ("q", lambda a: misaligned((16, 128), np.float16), ValueError, "not aligned"),
    # writing
    ("out", lambda a: read_only(a["out"]), ValueError, "is read-only"),
    ("state", lambda a: read_only(a["state"]), ValueError, "direction inout"),
    # overlap
    ("out", overlapping, ValueError, "overlaps the memory"),
    ("v", lambda a: a["out"].view(np.float16).reshape(-1, 128)[:1], ValueError, "but S is 256"),
    ("state", lambda a: a["out"].reshape(-1)[:4], ValueError, "overlaps the memory of 'state', and the kernel writes"),
    # scalars
    ("seq_len", lambda a: 2**31, ValueError, "does not fit INT32 (-2147483648 to 2147483647)"),
    ("seq_len", lambda a: -(2**31) - 1, ValueError, "does not fit INT32"),
    ("seq_len", lambda a: 1.0, TypeError, "is float 1.0, expected an int for INT32"),
    ("seq_len", lambda a: True, TypeError, "is a bool, expected a INT32 number"),
    ("seq_len", lambda a: "1", TypeError, "is str '1'"),
    ("seq_len", lambda a: None, TypeError, "is None"),
    ("seq_len", lambda a: np.array(1), TypeError, "ndarray"),
    ("seq_len", lambda a: np.float32(1), TypeError, "float32"),
    ("scale", lambda a: 1e300, ValueError, "does not fit FP32"),
    ("scale", lambda a: 10**400, ValueError, "does not fit FP32"),
    ("scale", lambda a: "0.5", TypeError, "expected a number for FP32"),
    ("scale", lambda a: 1j, TypeError, "complex"),
    ("scale", lambda a: False, TypeError, "is a bool"),
    ("causal", lambda a: 1, TypeError, "is int 1, expected a bool"),
    ("causal", lambda a: np.int8(0), TypeError, "expected a bool"),
]


@pytest.mark.parametrize(("name", "make", "error", "words"), BAD)
def test_bad_argument(name: str, make: Callable[[dict[str, Any]], Any], error: type[Exception], words: str) -> None:
    arguments = good()
    arguments[name] = make(arguments)
    with pytest.raises(error) as caught:
        bind("decode", PARAMS, list(arguments.values()))
    assert type(caught.value) is error
    assert words in str(caught.value)
    assert str(caught.value).startswith("decode(): argument '")


@pytest.mark.parametrize("count", [0, 7, 9])
def test_wrong_number_of_arguments(count: int) -> None:
    with pytest.raises(TypeError, match=rf"decode\(\) takes 8 arguments \(q, k, .*\), got {count}"):
        bind("decode", PARAMS, ([*good().values(), 1])[:count])


def test_inputs_may_share_memory() -> None:
    arguments = good()
    arguments["v"] = arguments["k"]
    bound = bind("decode", PARAMS, list(arguments.values()))
    assert bound.c_arguments[1].data == bound.c_arguments[2].data


def test_an_output_may_not_hide_behind_a_long_input() -> None:
    """The overlap check looks past the nearest neighbour in memory."""
    params = (
        Parameter("long", "tensor", "in", "UINT8", (100,)),
        Parameter("short", "tensor", "in", "UINT8", (1,)),
        Parameter("out", "tensor", "out", "UINT8", (1,)),
    )
    memory = np.zeros(100, np.uint8)
    with pytest.raises(ValueError, match="'out' overlaps the memory of 'long'"):
        bind("f", params, (memory, memory[10:11], memory[50:51]))
    assert bind("f", params, (memory, memory[10:11], np.zeros(1, np.uint8))).c_arguments[2].direction == 1


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.arange(6, dtype=np.int64).reshape(1, 6, 1)[:, :, :],
        np.array([True, False]),
    ],
)
def test_single_element_axes_may_have_any_stride(array: np.ndarray) -> None:
    names = {dtype: name for name, dtype in NUMPY_DTYPES.items() if name != "INDEX"}
    param = Parameter("x", "tensor", "in", names[array.dtype], array.shape)
    slot = bind("f", (param,), (array,)).c_arguments[0]
    assert list(slot.strides[: array.ndim]) == [s // array.itemsize for s in np.ascontiguousarray(array).strides]


def test_a_read_only_input_is_fine() -> None:
    arguments = good()
    read_only(arguments["q"])
    assert bind("decode", PARAMS, list(arguments.values())).c_arguments[0].data == arguments["q"].ctypes.data


def test_structures_have_no_padding_that_differs_between_compilers() -> None:
    """Sizes on a 64-bit machine; the integration test compares every offset with the compiler's."""
    assert [ctypes.sizeof(structure) for structure in abi.STRUCTURES] == [168, 48, 64, 1048, 48, 40, 32, 8]
