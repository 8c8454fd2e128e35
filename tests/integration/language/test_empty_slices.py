"""Slices that turn out to be empty in a run: nothing is done, where nothing has to be."""

from __future__ import annotations

import numpy as np
import pytest

import pypto.language as pl
from pypto.runtime.config import RunConfig
from pypto.runtime.errors import KernelRunError


@pl.jit
def between(
    x: pl.Tensor[[64, 48], pl.FP32],
    first: int,
    last: int,
    total: bool,
    out: pl.InOut[pl.Tensor[[64, 48], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        part = x[first:last] * 2.0
        out[first:last] = part + pl.row_max(part)
    if total:
        with pl.at(level=pl.Level.CORE_GROUP):
            out[0:1] = pl.col_sum(x[first:last])
    return out


@pytest.mark.parametrize("runtime", ["host_build_graph", "tensormap_and_ringbuffer"])
def test_nothing_is_done_with_an_empty_slice(runtime: str) -> None:
    x = np.random.default_rng(0).standard_normal((64, 48)).astype(np.float32)
    config = RunConfig(runtime=runtime, sim_checks=True)
    for first, last in ((3, 40), (5, 5), (64, 64), (0, 0)):
        out = np.full_like(x, 7)
        between(x, first, last, False, out, config=config)
        wanted = np.full(x.shape, 7.0)
        part = x[first:last].astype(np.float64) * 2
        if first < last:
            wanted[first:last] = part + part.max(axis=1, keepdims=True)
        np.testing.assert_allclose(out, wanted, rtol=1e-6)


def test_what_needs_an_element_says_so(checked: RunConfig) -> None:
    x = np.ones((64, 48), np.float32)
    between(x, 2, 5, True, out := np.zeros_like(x), config=checked)
    np.testing.assert_array_equal(out[0], 3)
    with pytest.raises(KernelRunError, match=r"an empty tensor: axis 0 of what task '.*' is given has no elements"):
        between(x, 5, 5, True, out, config=checked)
    with pytest.raises(KernelRunError, match="ends before it begins: of axis 0, elements 5 up to 3 were asked for"):
        between(x, 5, 3, False, out, config=checked)
