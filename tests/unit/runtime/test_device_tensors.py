"""Tensors of a worker: made, filled, copied, freed; specs of arguments. No program is needed."""

from __future__ import annotations

import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pypto.language as pl
from pypto.runtime import ChipWorker, DeviceTensor, DeviceUnavailable, RunConfig, ScalarSpec, TensorSpec


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (pl.FP32, "FP32"), ("FP16", "FP16"), (np.float32, "FP32"), (np.dtype("int8"), "INT8"),
        (ml_dtypes.bfloat16, "BF16"), ("uint16", "UINT16"), (bool, "BOOL"), (pl.INT32, "INT32"),
    ],
)  # fmt: skip
def test_a_tensor_has_the_shape_and_dtype_that_was_asked_for(dtype: object, name: str) -> None:
    with ChipWorker() as worker:
        tensor = worker.alloc_tensor((2, 3), dtype, 1)
        assert isinstance(tensor, DeviceTensor)
        assert (tensor.shape, tensor.dtype, tensor.freed) == ((2, 3), name, False)
        host = worker.copy_from(tensor)
        assert host.shape == (2, 3)
        assert (host.astype(np.float64) == 1).all()
        assert tensor.nbytes == host.nbytes


def test_copies_go_both_ways_and_are_copies() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    with ChipWorker() as worker:
        tensor = worker.alloc_tensor([2, 3], "FP32", x)
        x[0, 0] = 100
        first = worker.copy_from(tensor)
        assert first[0, 0] == 0
        first[0, 1] = 50
        worker.copy_to(tensor, x.T.copy().T)
        target = np.zeros_like(x)
        assert worker.copy_from(tensor, target) is target
        np.testing.assert_array_equal(target, x)


def test_what_nobody_wrote_is_no_number() -> None:
    with ChipWorker() as worker:
        for dtype in ("FP32", "FP16", "BF16"):
            assert np.isnan(worker.copy_from(worker.alloc_tensor([4], dtype)).astype(np.float32)).all()
        assert not worker.copy_from(worker.alloc_tensor([4], "BOOL")).any()


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        (((0, 2), "FP32"), ValueError, "shape has positive lengths, one at least, got (0, 2)"),
        (((), "FP32"), ValueError, "one at least"),
        ((3, "FP32"), TypeError, "shape is a sequence of lengths, got 3"),
        (((2,), "FP8"), TypeError, "dtype is one of FP32, FP16"),
        (((2,), complex), TypeError, "dtype is one of"),
        (((2,), "FP32", np.zeros(3, np.float32)), ValueError, "init has shape (3,) and dtype float32, expected (2,)"),
        (((2,), "FP32", np.zeros(2)), ValueError, "dtype float64, expected (2,) and float32"),
        (((2,), "FP32", "x"), TypeError, "init is an array, got str"),
        (([2.5], "FP32"), TypeError, "shape is a sequence of lengths, got [2.5]"),
        ((["2"], "FP32"), TypeError, "shape is a sequence of lengths, got ['2']"),
        (([True], "FP32"), TypeError, "shape is a sequence of lengths, got [True]"),
        (([2**20, 2**20], "INT8"), ValueError, "has 1099511627776 elements; kernels address at most 2147483647"),
        (([2], "INT8", 300), ValueError, "argument 'init' is 300, which does not fit INT8 (-128 to 127)"),
        (([2], "INT32", 1.5), TypeError, "argument 'init' is float 1.5, expected an int for INT32"),
        (([2], "FP16", 1e6), ValueError, "argument 'init' is 1000000.0, which does not fit FP16"),
        (([2], "BOOL", 2), TypeError, "argument 'init' is int 2, expected a bool"),
    ],
)
def test_tensors_that_cannot_be_made(arguments: tuple[Any, ...], error: type[Exception], said: str) -> None:
    with ChipWorker() as worker, pytest.raises(error) as caught:
        worker.alloc_tensor(*arguments)
    assert said in str(caught.value)


def test_freed_tensors_foreign_tensors_and_closed_workers() -> None:
    with ChipWorker() as worker, ChipWorker() as other:
        tensor = worker.alloc_tensor([2], "FP32", 1)
        foreign = other.alloc_tensor([2], "FP32", 1)
        for act in (other.copy_from, other.free_tensor, lambda t: other.copy_to(t, np.zeros(2, np.float32))):
            with pytest.raises(ValueError, match=r"belongs to <ChipWorker a2a3sim>"):
                act(tensor)
        worker.free_tensor(tensor)
        for act in (worker.copy_from, worker.free_tensor, lambda t: worker.copy_to(t, np.zeros(2, np.float32))):
            with pytest.raises(RuntimeError, match=r"<DeviceTensor FP32\[2\], freed> has no memory any more"):
                act(tensor)
        with pytest.raises(TypeError, match="copy_from takes a DeviceTensor of this worker, got ndarray"):
            worker.copy_from(np.zeros(2))  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="the target of copy_from is a NumPy array, got list"):
            other.copy_from(foreign, [0, 0])  # type: ignore[arg-type]
    assert foreign.freed
    for act in (
        lambda: other.alloc_tensor([2], "FP32"),
        lambda: other.free_tensor(foreign),
        lambda: other.copy_from(foreign),
        other.__enter__,
    ):
        with pytest.raises(RuntimeError, match="this ChipWorker is closed"):
            act()
    assert other.closed


def test_a_worker_for_a_device_needs_one() -> None:
    with pytest.raises(DeviceUnavailable, match="a worker for a2a3 needs an NPU"):
        ChipWorker(RunConfig(execution_mode="device"))
    with pytest.raises(TypeError, match=r"config is a pypto\.runtime\.RunConfig, got 3"):
        ChipWorker(3)  # type: ignore[arg-type]


def test_many_threads_make_and_free_tensors() -> None:
    failures: list[BaseException] = []
    with ChipWorker() as worker:

        def work(number: int) -> None:
            try:
                for turn in range(50):
                    tensor = worker.alloc_tensor([8], "FP32", number)
                    assert (worker.copy_from(tensor) == number).all()
                    if turn % 2:
                        worker.free_tensor(tensor)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert len(worker._tensors) == 6 * 25
    assert not worker._tensors


def test_specs_stand_for_arguments() -> None:
    from pypto.build.specialize import TensorMeta, tensor_meta

    spec = TensorSpec("x", [4, np.int64(8)], pl.FP16)  # type: ignore[list-item]
    assert spec.shape == (4, 8)
    assert tensor_meta(spec) == TensorMeta(pl.FP16, (4, 8))  # type: ignore[arg-type]
    assert tensor_meta(TensorSpec("x", (2,), "float32")) == TensorMeta(pl.FP32, (2,))  # type: ignore[arg-type]
    assert ScalarSpec("n", 3).value == 3
    with pytest.raises(ValueError, match="TensorSpec 'x': lengths are positive"):
        TensorSpec("x", [0], pl.FP16)
    assert tensor_meta(TensorSpec("x", (2,), np.float16)) == TensorMeta(pl.FP16, (2,))
    for shape in (4, [2.5], ["2"], [True]):
        with pytest.raises(TypeError, match="TensorSpec 'x': shape is a sequence of lengths"):
            TensorSpec("x", shape, pl.FP16)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="TensorSpec: name is a str, got 3"):
        TensorSpec(3, [2], pl.FP16)  # type: ignore[arg-type]
    assert ScalarSpec("n", np.float32(0.5)).value == 0.5  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="ScalarSpec 'n': value is a number, got '3'"):
        ScalarSpec("n", "3")  # type: ignore[arg-type]


def test_a_device_tensor_is_a_sample() -> None:
    from pypto.build.specialize import TensorMeta, tensor_meta

    with ChipWorker() as worker:
        assert tensor_meta(worker.alloc_tensor([2, 2], "BF16")) == TensorMeta(pl.BF16, (2, 2))  # type: ignore[arg-type]
