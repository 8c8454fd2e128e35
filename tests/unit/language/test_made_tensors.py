"""Tensors that are made from numbers in divided scopes: filled, counting, triangles."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_texts import lowered
from whole_texts import check, real, refused, text_of

from pypto.language.errors import CompileError


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(("rows", "cols"), [(300, 500), (70, 1), (1, 1000), (65, 257)])
def test_triangles_and_counts(rows: int, cols: int, dynamic: bool) -> None:
    x = real(1, rows, cols)
    size = "[x.shape[0], x.shape[1]]"
    below, above = np.tril(np.ones((rows, cols)), -7), np.triu(np.ones((rows, cols)), 3)
    body = f"out[:] = x * pl.tri(-7, {size}, dtype=pl.FP32) + pl.tri(3, {size}, dtype=pl.FP32, upper=True)"
    check(body, {"x": x}, x[0] * below + above, dynamic=dynamic)
    body = (
        "t = pl.cast(pl.tensor.ci(3, [1, x.shape[1]]), pl.FP32)\nout[:] = pl.full(" + size + ", pl.FP32, 2.0) * t + x"
    )
    check(body, {"x": x}, 2 * (3 + np.arange(cols)) + x[0], dynamic=dynamic)


def test_counts_of_one_dimension_that_fall() -> None:
    x = real(1, 700)
    body = "t = pl.tensor.ci(5, [700], descending=True)\nout[:] = pl.cast(t, pl.FP32) + x"
    check(body, {"x": x}, 5 - np.arange(700) + x[0])
    body = body.replace("[700]", "[x.shape[0]]").replace("5", "x.shape[0] - 1")
    check(body, {"x": x}, 699 - np.arange(700) + x[0], dynamic=True)
    big = real(1, 70000)
    check(body, {"x": big}, 69999 - np.arange(70000) + big[0])


def test_what_fits_stays_a_tile() -> None:
    x = real(1, 16, 64)
    check("out[:] = x * pl.tri(0, [16, 64], dtype=pl.FP32)", {"x": x}, np.tril(x[0]))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("out[:] = x * ⟦pl.tensor.ci(0, [300, 500])⟧", "counts along one row, got "),
        (
            "out[:] = x * pl.tensor.ci(0, [1, 500], dtype=⟦pl.FP32⟧)",
            "dtype must be one of INT32, INT16, UINT32, UINT16",
        ),
        (
            "out[:] = x * pl.tri(0, ⟦[500]⟧, dtype=pl.FP32) + pl.full([300, 500], pl.FP32, 0.0)",
            "needs two sizes, got [500]",
        ),
    ],
)
def test_mistakes(body: str, message: str) -> None:
    assert message in refused(body, {"x": real(1, 300, 500)}, ((300, 500), "FP32"))


def test_run_time_sizes_beside_code_for_tiles() -> None:
    body = "t = pl.load(x, [0, 0], [16, 64])\nf = pl.full([x.shape[0], 64], pl.FP32, 0.0)\npl.store(t + f, [0, 0], out)"
    text = text_of(body, {"x": real(1, 16, 64)}, ((16, 64), "FP32"), dynamic=True)
    with pytest.raises(CompileError, match=r"pl\.full: a tile has sizes that are known while"):
        lowered(text)
