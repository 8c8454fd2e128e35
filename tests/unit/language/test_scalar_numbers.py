"""Run-time numbers in kernels: conversions, and whole numbers beside floating-point ones."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_texts import in_incore, in_scope, lowered
from meaning import agree, arguments

from pypto.codegen.generate import generate
from pypto.ir.errors import IRError
from pypto.ir.reference.interpreter import run
from pypto.ir.reference.tiles import converted
from pypto.ir.rounding import CAST_MODES, rounded_to
from pypto.ir.types import INT8, INT32, UINT8
from pypto.runtime.distributed.scalars import compute

VALUES = (2.7, 2.5, 3.5, 0.5, -0.5, -2.5, -2.7, 7.0)


@pytest.mark.parametrize("mode", CAST_MODES)
def test_scalars_round_as_tiles_do(mode: str) -> None:
    wanted = converted(np.array(VALUES), INT32, mode)
    assert [rounded_to(value, INT32, mode) for value in VALUES] == list(wanted)
    attrs = {"dtype": "INT32", "mode": mode}
    assert [compute("cast", [value], attrs) for value in VALUES] == list(wanted)


@pytest.mark.parametrize(
    ("value", "dtype", "wanted"),
    [
        (1e10, INT32, 2**31 - 1),
        (-1e10, INT32, -(2**31)),
        (300.0, INT8, 127),
        (-3.0, UINT8, 0),
        (float("inf"), INT8, 127),
        (float("nan"), INT8, 0),
    ],
)
def test_numbers_that_a_type_cannot_hold_become_the_nearest_one(value: float, dtype: object, wanted: int) -> None:
    assert rounded_to(value, dtype) == wanted  # type: ignore[arg-type]
    assert compute("cast", [value], {"dtype": str(dtype), "mode": "round"}) == wanted


@pytest.mark.parametrize("where", [in_incore, in_scope])
@pytest.mark.parametrize("mode", CAST_MODES)
def test_kernel_rounds_by_the_mode(where: object, mode: str) -> None:
    # x is 0.25.
    body = (
        f"i = pl.cast(x * 10.0, pl.INT32, mode={mode!r}) + pl.cast(x * 11.0, pl.INT32) * 10\n"
        f"j = pl.cast(-2.5, pl.INT32, mode={mode!r}) + pl.cast(2.7, pl.INT32) * 10\n"
        "out[:] = pl.full([64, 64], pl.FP32, pl.cast(i + j * 1000, pl.FP32))"
    )
    agree(where(body))  # type: ignore[operator]


def test_conversions_to_fewer_bits_keep_the_low_ones_of_scalars_and_tiles() -> None:
    text = (
        "t = pl.cast(pl.cast(a * 8.0, pl.INT32) * 100, pl.INT8)\n"
        "i = pl.cast(n * 60, pl.INT8)\n"
        "out[:] = pl.cast(t, pl.FP32) * pl.cast(i, pl.FP32)"
    )
    given, out = arguments(5), np.zeros((64, 64))
    run(lowered(in_incore(text)), {**given, "out": out})
    wide = np.asarray(given["a"]) * 800
    # 300 has the low bits of 44.
    np.testing.assert_array_equal(out, wide.astype(np.int32).astype(np.int8) * 44.0)


@pytest.mark.parametrize(
    "expression",
    [
        "n * 1.5 + x",
        "x - n",
        "n / 2.0",
        "n ** 2.0 * x",
        "pl.max(n, x) + min(x, n, 0.125)",
        "1.0 if n > 4.5 else x",
        "n if x > 0.1 else 0.5",
        "2.0 if n == x * 20 else n * a.shape[0]",
        "pl.abs(x - 1) + abs(-n) * 2",
        "math.sqrt(x) + n ** -1 - x ** 0.5 * x ** -0.5",
        "math.sqrt(n * n) + math.log(x / x) + math.cos(x - 0.25)",
    ],
)
def test_whole_number_beside_a_floating_point_one_becomes_one(expression: str) -> None:
    agree(in_incore(f"r = {expression}\nout[:] = pl.full([64, 64], pl.FP32, r)"))


@pytest.mark.parametrize("name", ["sqrt", "exp", "log", "sin", "cos", "rsqrt", "recip"])
def test_functions_of_numbers(name: str) -> None:
    values = {**arguments(5), "x": 0.7}
    run(
        lowered(in_incore(f"out[:] = pl.full([64, 64], pl.FP32, pl.{name}(x) * pl.{name}(n) + pl.{name}(2.0))")), values
    )
    function = {"rsqrt": lambda v: v**-0.5, "recip": lambda v: 1 / v}.get(name) or getattr(np, name)
    np.testing.assert_allclose(values["out"], function(0.7) * function(5.0) + function(2.0), rtol=1e-12)


def test_host_entry_computes_functions_of_numbers() -> None:
    assert compute("sqrt", [2.0], {"dtype": "FP32"}) == float(np.sqrt(np.float32(2)))
    assert np.isnan(compute("log", [-1.0], {"dtype": "FP32"}))


def test_device_has_no_functions_of_numbers_on_its_cores() -> None:
    body = "{}    with pl.at(level=pl.Level.CORE_GROUP):\n        out[:] = pl.mul(a, {})\n    return out\n"
    head = "@entry\ndef main(a: pl.Tensor[[64, 64], pl.FP32], x: float, out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):\n"
    in_front = lowered(head + body.format("    y = pl.exp(x)\n", "y"))
    orchestration = generate(in_front, "Ascend910B", "device")["orchestration/main.cpp"]
    assert b'#include "pypto/functions.h"' in orchestration and b"pypto::functions::exp(p1)" in orchestration
    on_core = lowered(head + body.format("", "pl.exp(x)"))
    with pytest.raises(IRError, match=r"pl\.exp of a number on a core.*in front of the scope") as caught:
        generate(on_core, "Ascend910B", "device")
    assert caught.value.loc is not None and caught.value.loc.line == 4
    assert (
        b"functions.h"
        not in generate(lowered(head + body.format("", "x")), "Ascend910B", "sim")["orchestration/main.cpp"]
    )
