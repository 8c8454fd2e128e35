"""``@pl.jit`` and its variants, and how arguments reach parameters."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import pytest

import pypto
import pypto.language as pl
from pypto.build.errors import SampleError
from pypto.build.specialize import TensorMeta
from pypto.ir.types import FP32
from pypto.jit.binding import bind_call, sample_tensors
from pypto.jit.function import JITFunction
from pypto.runtime.config import RunConfig


class Meta:
    def __init__(self, *shape: int, dtype: str = "float32") -> None:
        self.shape = shape
        self.dtype = dtype


def test_jit_is_one_object_by_every_name() -> None:
    assert pl.jit is pypto.jit.jit


def test_bare_and_called_decorators_make_the_same() -> None:
    def kernel(x: pl.Tensor[[4], pl.FP32]) -> None:
        """What it does."""

    for made in (pl.jit(kernel), pl.jit()(kernel)):
        assert isinstance(made, JITFunction)
        assert (made.__name__, made.__doc__, made.__module__) == ("kernel", "What it does.", __name__)
        assert list(inspect.signature(made).parameters) == ["x"]
    assert pl.jit.incore()(kernel).kind is pl.jit.incore(kernel).kind


def test_a_device_kernel_is_not_called_from_python(kernels: ModuleType) -> None:
    with pytest.raises(pl.OutsideKernelError, match=r"call it inside a @pl\.jit function"):
        kernels.scale(1, 2)


def test_compile_options_do_not_belong_to_the_decorator() -> None:
    with pytest.raises(TypeError, match=r"@pl\.jit takes no option 'strategy'; compile options travel in RunConfig"):
        pl.jit(strategy="Default")
    with pytest.raises(TypeError, match="only plain Python functions can be compiled, not builtin_function"):
        pl.jit(len)


def test_device_kernels_may_name_their_level() -> None:
    def kernel() -> None: ...

    assert pl.jit.incore(level=pl.Level.CORE_GROUP)(kernel).kind is pl.jit.incore(kernel).kind
    with pytest.raises(ValueError, match=r"@pl\.jit\.incore: level must be pl\.Level\.CORE_GROUP"):
        pl.jit.incore(level=pl.Level.HOST)


def test_arguments_by_position_and_by_name(kernels: ModuleType) -> None:
    signature = kernels.annotated.signature
    assert bind_call(signature, (1, 2), {"out": 3}) == [1, 2, 3]
    for arguments, named, message in (
        ((1, 2), {}, "annotated() lacks out; it takes x, count, out"),
        ((1, 2, 3, 4), {}, "annotated() takes 3 arguments (x, count, out), 4 were given"),
        ((1,), {"x": 2}, "annotated() got argument 'x' twice, by position and by name"),
        ((), {"y": 2}, "annotated() has no parameter 'y'; it takes x, count, out"),
    ):
        with pytest.raises(TypeError) as caught:
            bind_call(signature, arguments, named)
        assert str(caught.value) == message


def test_samples_may_be_left_out(kernels: ModuleType) -> None:
    signature = kernels.annotated.signature
    assert sample_tensors(signature, (), {}) == {}
    assert sample_tensors(signature, (None, 3), {"out": Meta(16, 64)}) == {"out": TensorMeta(FP32, (16, 64))}
    assert sample_tensors(signature, (), {"count": Meta()}) == {}


@pytest.mark.parametrize(
    ("named", "message"),
    [
        (
            {"x": 5},
            "argument 'x' of annotated() is a tensor: an array or a TensorSpec with a dtype of the language, got 5; "
            "its annotation says FP32",
        ),
        ({"x": Meta(2, dtype="complex64")}, "got Meta of dtype complex64"),
        ({"count": Meta(2, 3)}, "argument 'count' of annotated() is a number, got a tensor FP32[2,3]"),
    ],
)
def test_samples_of_the_wrong_kind(kernels: ModuleType, named: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        sample_tensors(kernels.annotated.signature, (), named)
    assert message in str(caught.value)


def test_jit_13_14_22_specialize_and_lower_make_ir_anew_and_count_nothing(kernels: ModuleType) -> None:
    before = pypto.cache_stats()
    first, second = kernels.annotated.specialize(), kernels.annotated.specialize()
    lowered = kernels.annotated.lower()
    assert first is not second
    assert [f.core for f in first.incore_functions()] == [None]
    assert [f.core is not None for f in lowered.incore_functions()] == [True]
    assert pypto.cache_stats() == before


def test_wrong_samples_reach_the_caller_through_every_method(kernels: ModuleType) -> None:
    for method in ("specialize", "lower", "compile", "warmup"):
        with pytest.raises(
            SampleError, match=r"argument 'x' of annotated is FP32\[N,64\] by its annotation, got FP32\[3\]"
        ):
            getattr(kernels.annotated, method)(Meta(3))
        with pytest.raises(TypeError, match=r"config is a pypto\.runtime\.RunConfig, got 'sim'"):
            getattr(kernels.annotated, method)(config="sim")


def test_cfg_45_the_cache_policy_is_no_compile_option(kernels: ModuleType) -> None:
    from pypto.jit.request import compile_options

    policy = pypto.CacheConfig(enabled=True)
    assert compile_options(RunConfig(cache_config=policy)) == compile_options(RunConfig())
