# ruff: noqa: E501 - bodies of kernels are easier to read on one line
"""Functions that become part of their callers."""

from __future__ import annotations

import pytest
from kernel_texts import PARAMETERS, in_entry, in_incore, in_scope, lowered, module, unmarked
from meaning import agree

from pypto.language.errors import CompileError
from pypto.language.source import collect

SOFT = """
@inline
def soft(t: pl.Tile, scale: float = 2.0):
    high = pl.row_max(t)
    return pl.exp(pl.row_expand_sub(t, high)) * scale, high


@inline
def halves(rows):
    return rows // 2, rows - rows // 2
"""
OPAQUE = f"""
@inline
def shift(t, by: pl.Scalar[pl.FP32]):
    for i in pl.range(3):
        t = t + by
    return t


@opaque
def steps({PARAMETERS}):
    for i in pl.range(n):
        with pl.at(level=pl.Level.CORE_GROUP):
            out[:] = shift(a, x) + b * 2.0
    return out
"""


@pytest.mark.parametrize("place", [in_incore, in_scope])
def test_inline_function_means_its_body(place) -> None:
    agree(
        SOFT
        + place(
            "weight, high = soft(a)\ntop, low = halves(64)\nout[:] = weight + soft(pl.load(b, [0, 0], [64, top + low]), 3.0)[0]"
        )
    )


def test_opaque_function_holds_loops_and_scopes() -> None:
    agree(OPAQUE + in_entry("done = steps(a, b, h, n, x, out)\nreturn done"))


def test_names_of_a_spliced_function_are_its_own() -> None:
    text = "@inline\ndef inner(t):\n    k = t * 3.0\n    return k\n"
    agree(text + in_scope("k = a + b\nt = inner(k)\nout[:] = t - k"))


def test_spliced_functions_belong_to_the_closure() -> None:
    closure = collect(module(OPAQUE + in_entry("steps(a, b, h, n, x, out)\nreturn out"))["main"])
    assert [f["name"] for f in closure.record()["functions"]] == ["main", "steps", "shift"]


def test_spliced_call_of_a_device_kernel() -> None:
    part = "@incore\ndef part(t: pl.Tensor[[64, 64], pl.FP32], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):\n    o[:] = t * 2\n"
    call = "@inline\ndef twice(t, o):\n    part(t, o)\n    return o\n"
    program = lowered(part + call + in_entry("twice(a, out)\nreturn twice(b, out)"))
    assert list(program.functions) == ["main", "part"]
    agree(part + call + in_entry("twice(a, out)\nreturn twice(b, out)"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@inline\ndef f(t):\n    return ⟦f(t)⟧\n" + in_scope("out[:] = f(a)"), "f calls itself"),
        (
            "@opaque\ndef f(t):\n    return t\n" + in_scope("out[:] = ⟦f(a)⟧"),
            "f may hold scopes of its own; call it from the entry, outside of any scope",
        ),
        (
            "@inline\ndef f(t: pl.Tensor[[32, 64], pl.FP32]):\n    return t\n" + in_scope("out[:] = f(⟦a⟧)"),
            "f: t axis 0 is 64, but is annotated as 32",
        ),
        ("@inline\ndef f(t: pl.Tile):\n    return t\n" + in_scope("out[:] = f(⟦3⟧)"), "f: t must be a tile"),
        ("@inline\ndef f(t):\n    out = t\n" + in_scope("out[:] = ⟦f(a)⟧"), "f returns nothing"),
        (
            "@incore\ndef f(⟦t: pl.Tile⟧):\n    pass\n" + in_entry("f(a)\nreturn out"),
            "only functions under @pl.jit.inline take tiles",
        ),
        (
            "@inline\ndef f(t):\n    if t:\n        return t\n    ⟦k = t⟧\n" + in_entry("f(n > 1)"),
            "the function can end without return",
        ),
    ],
)
def test_mistakes_with_spliced_functions(text: str, message: str) -> None:
    marked = unmarked(text)
    with pytest.raises(CompileError) as caught:
        lowered(marked.text)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (marked.line, marked.column)
