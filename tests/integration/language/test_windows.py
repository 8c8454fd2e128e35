"""Windows that reach behind a tensor: the mistake, the advice, and what follows it."""

import inspect

import numpy as np
import pytest

import pypto.language as pl
from pypto.runtime.errors import KernelRunError

N = pl.dynamic("N")


@pl.jit
def whole_windows(x: pl.Tensor[[N, 64], pl.FP32], out: pl.Out[pl.Tensor[[N, 64], pl.FP32]]):
    for row in pl.range(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [row, 0], [16, 64]), [row, 0], out)
    return out


@pl.jit
def clamped_windows(x: pl.Tensor[[N, 64], pl.FP32], out: pl.Out[pl.Tensor[[N, 64], pl.FP32]]):
    for row in pl.range(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            # As far as the tile holds data, and that is what the tensor has there.
            pl.store(pl.load(x, [row, 0], [16, 64], clamp=True), [row, 0], out, shapes=[16, 64])
    return out


def test_a_window_behind_the_tensor() -> None:
    x = np.arange(40 * 64, dtype=np.float32).reshape(40, 64)
    with pytest.raises(
        KernelRunError, match=r"pl\.load reads outside of x; valid_shape says .*, clamp=True "
    ) as caught:
        whole_windows(x, np.zeros_like(x))
    # The access, not only its task.
    lines, _ = inspect.getsourcelines(whole_windows.function)
    assert caught.value.op == "tile.load"
    assert caught.value.line == next(i for i, line in enumerate(lines, 1) if "pl.load" in line)
    out = np.zeros_like(x)
    clamped_windows(x, out)
    np.testing.assert_array_equal(out, x)
