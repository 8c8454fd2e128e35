"""Specialization: what selects an artifact and what does not."""

from __future__ import annotations

import enum

import numpy as np
import pytest

from pypto.build.errors import BuildError, SampleError
from pypto.build.options import CompileOptions, coerce_options
from pypto.build.specialize import (
    TensorMeta,
    dtype_of,
    parse_tensor_text,
    specialize,
    tensor_meta,
)
from pypto.ir.nodes import Direction
from pypto.ir.types import BF16, FP16, FP32, INT32, DynDim
from pypto.language.signature import SignatureParam

S = DynDim("S")
QUERY = SignatureParam("q", "tensor", Direction.In, (16, 128), FP16)
KEYS = SignatureParam("k", "tensor", Direction.In, (S, 128), FP16)
VALUES = SignatureParam("v", "tensor", Direction.In, (S, 128), FP16)
LENGTH = SignatureParam("seq_len", "scalar", Direction.In, None, INT32)
OUT = SignatureParam("out", "tensor", Direction.Out, (16, 128), FP32)
BARE = SignatureParam("x", "tensor", Direction.In, None, None)
DECODE = (QUERY, KEYS, VALUES, LENGTH, OUT)


def test_record_of_a_fully_annotated_entry_needs_no_samples() -> None:
    assert specialize("decode", DECODE, {}, CompileOptions()).record() == {
        "schema": 1,
        "entry": "decode",
        "parameters": [
            {"name": "q", "kind": "tensor", "direction": "in", "dtype": "FP16", "shape": [16, 128]},
            {"name": "k", "kind": "tensor", "direction": "in", "dtype": "FP16", "shape": ["S", 128]},
            {"name": "v", "kind": "tensor", "direction": "in", "dtype": "FP16", "shape": ["S", 128]},
            {"name": "seq_len", "kind": "scalar", "direction": "in", "dtype": "INT32"},
            {"name": "out", "kind": "tensor", "direction": "out", "dtype": "FP32", "shape": [16, 128]},
        ],
        "options": {
            "backend_type": "Ascend910B",
            "execution_mode": "sim",
            "runtime": "host_build_graph",
            "strategy": "Default",
            "memory_planner": "PYPTO",
        },
    }


def test_the_size_of_a_dynamic_dimension_does_not_select() -> None:
    options = CompileOptions()
    small = {"k": TensorMeta(FP16, (64, 128)), "v": TensorMeta(FP16, (64, 128))}
    large = {"k": TensorMeta(FP16, (4096, 128)), "v": TensorMeta(FP16, (4096, 128))}
    assert specialize("decode", DECODE, small, options) == specialize("decode", DECODE, large, options)
    assert specialize("decode", DECODE, small, options).digest() == specialize("decode", DECODE, {}, options).digest()


def test_req_01_shapes_and_dtypes_of_open_parameters_select() -> None:
    digests = {
        specialize("f", [BARE], {"x": meta}, CompileOptions()).digest()
        for meta in (TensorMeta(FP16, (64, 128)), TensorMeta(FP32, (64, 128)), TensorMeta(FP16, (128, 64)))
    }
    assert len(digests) == 3


def test_options_select() -> None:
    choices = {
        "execution_mode": ("sim", "device"),
        "runtime": ("host_build_graph", "tensormap_and_ringbuffer"),
        "memory_planner": ("PYPTO", "DSA_RP", "PTOAS"),
    }
    for name, values in choices.items():
        digests = {specialize("f", [QUERY], {}, coerce_options({name: value})).digest() for value in values}
        assert len(digests) == len(values)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ({"q": TensorMeta(FP32, (16, 128))}, r"argument 'q' of decode is FP16\[16,128\].*got FP32\[16,128\]"),
        ({"q": TensorMeta(FP16, (8, 128))}, r"argument 'q' of decode is FP16\[16,128\].*got FP16\[8,128\]"),
        ({"k": TensorMeta(FP16, (8, 128, 1))}, r"argument 'k' of decode is FP16\[S,128\]"),
        (
            {"k": TensorMeta(FP16, (8, 128)), "v": TensorMeta(FP16, (9, 128))},
            "dimension S of decode is 8 in argument 'k' and 9 in argument 'v'",
        ),
        ({"cache": TensorMeta(FP16, (8,))}, "decode has no tensor parameter 'cache'; its tensors are k, out, q, v"),
    ],
)
def test_samples_that_contradict_the_annotation(samples: dict[str, TensorMeta], message: str) -> None:
    with pytest.raises(SampleError, match=message):
        specialize("decode", DECODE, samples, CompileOptions())


def test_an_open_parameter_needs_a_sample() -> None:
    with pytest.raises(SampleError, match="parameter 'x' of f has no shape in its annotation: pass a sample tensor"):
        specialize("f", [BARE], {}, CompileOptions())


class Backend(enum.Enum):
    Ascend910B = "910B"


class Mode(enum.Enum):
    DEVICE = "device"


def test_options_have_one_record_however_they_are_spelled() -> None:
    spelled = coerce_options({"backend_type": Backend.Ascend910B, "execution_mode": Mode.DEVICE, "strategy": None})
    assert spelled == coerce_options({"backend_type": "Ascend910B", "execution_mode": "device"})
    assert type(spelled.backend_type) is str


def test_wrong_options_name_what_is_possible() -> None:
    with pytest.raises(BuildError, match="compile option execution_mode is sim or device, got 'gpu'"):
        coerce_options({"execution_mode": "gpu"})
    with pytest.raises(BuildError, match="there is no compile option 'unroll'; the options are backend_type"):
        coerce_options({"unroll": "4"})


class Like:
    def __init__(self, shape: object, dtype: object) -> None:
        self.shape = shape
        self.dtype = dtype


def test_metadata_of_anything_with_shape_and_dtype() -> None:
    assert tensor_meta(Like((2, 3), "float16")) == TensorMeta(FP16, (2, 3))
    assert tensor_meta(Like([4], FP32)) == TensorMeta(FP32, (4,))
    assert tensor_meta(Like((1,), "torch.bfloat16")) == TensorMeta(BF16, (1,))
    assert tensor_meta(3) is None
    assert tensor_meta(Like((2,), "complex64")) is None
    assert dtype_of("INT32") is INT32


def test_command_line_form_of_a_tensor() -> None:
    assert parse_tensor_text("x", "FP16[128,64]") == TensorMeta(FP16, (128, 64))
    for text in ("FP16", "FP16[", "FP16[a]", "FP16[1,]", "FP16[-1]"):
        with pytest.raises(BuildError, match="tensor 'x' is written DTYPE"):
            parse_tensor_text("x", text)
    with pytest.raises(BuildError, match=r"tensor 'x' has the dtype 'FP64'; the dtypes are FP32, FP16, .*, BOOL"):
        parse_tensor_text("x", "FP64[1]")


class OnlyDLPack:
    """A tensor of a library that shows nothing but its DLPack export."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **options: object) -> object:
        return self._array.__dlpack__(**options)


def test_a_tensor_known_by_dlpack_only_selects_like_the_array() -> None:
    array = np.zeros((3, 5), np.float16)
    assert tensor_meta(OnlyDLPack(array)) == tensor_meta(array)
