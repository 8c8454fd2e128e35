"""Single elements and single indices."""

# ruff: noqa: E501 - bodies of kernels are easier to read on one line

from __future__ import annotations

import numpy as np
import pytest
from kernel_texts import in_entry, in_incore, in_scope, lowered, unmarked
from meaning import agree

from pypto.ir.reference.interpreter import run
from pypto.language.errors import CompileError

STEP = "@incore\ndef step(t: pl.Tensor[[64, 64], pl.FP32], by: float, o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):\n    o[:] = t + by\n"


@pytest.mark.parametrize(
    "text",
    [
        STEP
        + in_entry("k = a[3, n] * 2.0\nif pl.read(b, [0, 1]) > 0.0:\n    k = k + a[0, 0]\nstep(a, k, out)\nreturn out"),
        in_scope("out[:] = a * pl.read(b, [n, 2]) + a[1, -1]"),
        in_entry(
            "for i in pl.range(3):\n    with pl.at(level=pl.Level.CORE_GROUP):\n        s = b[i, i + 1]\n        t = a[:, :] * s\n        for j in pl.range(2):\n            t = t + b[i * 2, n]\n        out[:] = t\nreturn out"
        ),
        in_scope("out[:] = a\npl.write(out, [3, 5], x)\npl.write(out, [n, 6], 2)\nout[9, n] = 4.0"),
        in_incore("out[:] = a * 2.0\nfor i in pl.range(n):\n    out[i] = a[i + 1] * 3.0"),
        in_scope("out[:] = a\nfor i in pl.range(n):\n    out[i, 0:32] = b[i, 0:32] + a[i + 1, 8:40]"),
        in_scope("r = a[5]\nout[:] = b\nout[2, :] = r * 2.0\nout[3] = pl.load(b, [4, 0], [1, 64])"),
    ],
)
def test_elements_and_rows(text: str) -> None:
    agree(text)


def test_indices_drop_leading_dimensions() -> None:
    text = (
        "@incore\ndef part(a: pl.Tensor[[3, 4, 32, 64], pl.FP32], k: int, out: pl.Out[pl.Tensor[[4, 32, 64], pl.FP32]]):\n"
        "    for i in pl.range(4):\n        x = a[k]\n        y = x[i]\n"
        "        pl.store(pl.load(a[k, i], [0, 0], [32, 64]) + y[:, :], [i, 0, 0], out)\n"
        "@entry\ndef main(a: pl.Tensor[[3, 4, 32, 64], pl.FP32], k: int, out: pl.Out[pl.Tensor[[4, 32, 64], pl.FP32]]):\n"
        "    part(a, k, out)\n    with pl.at(level=pl.Level.CORE_GROUP):\n"
        "        z = pl.slice(a, [1, 1, 32, 64], [k, 2, 0, 0], drop_dims=[0, 1])\n        out[3] = z + a[k, 1, 0:32, :]\n    return out\n"
    )
    a = np.random.default_rng(0).integers(-8, 9, (3, 4, 32, 64)) / 8.0
    out = np.zeros((4, 32, 64))
    run(lowered(text), {"a": a, "k": 1, "out": out})
    expected = a[1] * 2
    expected[3] = a[1, 2] + a[1, 1]
    np.testing.assert_array_equal(out, expected)


def test_load_may_end_with_the_tensor() -> None:
    text = (
        "N = pl.dynamic('N')\n@entry\ndef main(a: pl.Tensor[[N, 64], pl.FP32], out: pl.Out[pl.Tensor[[N, 64], pl.FP32]]):\n"
        "    for i in pl.range(0, a.shape[0], 16):\n        with pl.at(level=pl.Level.CORE_GROUP):\n"
        "            pl.store(pl.load(a, [i, 0], [16, 64], clamp=True) * 2.0, [i, 0], out)\n    return out\n"
    )
    a, out = np.arange(23 * 64.0).reshape(23, 64), np.zeros((23, 64))
    run(lowered(text), {"a": a, "out": out})
    np.testing.assert_array_equal(out, a * 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (in_scope("t = a + b\nout[:] = a * ⟦pl.read(t, [64, 0])⟧"), "index 64 is outside axis 0"),
        (in_scope("t = a + b\n⟦pl.write(t, [0, 0], True)⟧"), "must be FP32"),
        (in_scope("⟦out[0, 0]⟧ = a"), "one element is written with pl.write"),
        (in_scope("out[:] = a * b[⟦64⟧, 0]"), "index 64 is outside of a dimension of the number 64"),
        (in_entry("⟦pl.write(out, [0, 0], 1.0)⟧\nreturn out"), "stands outside a scope"),
        (
            in_scope("pl.write(⟦a⟧, [0, 0], 1.0)").replace("pl.write(⟦a⟧, [0, 0], 1.0)", "⟦pl.write(a, [0, 0], 1.0)⟧"),
            "a is an input",
        ),
    ],
)
def test_mistakes_with_elements(text: str, message: str) -> None:
    marked = unmarked(text)
    with pytest.raises(CompileError) as caught:
        lowered(marked.text)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (marked.line, marked.column)
