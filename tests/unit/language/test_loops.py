# ruff: noqa: E501 - bodies of kernels are easier to read on one line
"""Loops of every form, and what they carry."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kernel_texts import in_entry, in_incore, in_scope, lowered, module, unmarked
from meaning import agree, arguments

from pypto.ir.reference.interpreter import run
from pypto.language.errors import CompileError
from pypto.language.lower import lower
from pypto.language.source import collect

STEP = """
@incore
def step(t: pl.Tensor[[64, 64], pl.FP32], by: float, o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    o[:] = t + by


"""
T = "t = pl.load(a, [0, 0], [64, 64])\n"


@pytest.mark.parametrize("place", [in_incore, in_scope])
@pytest.mark.parametrize(
    "body",
    [
        T + "for i in pl.parallel(1, n, 2):\n    t = t + i * 0.5\nout[:] = t".replace("i * 0.5", "pl.cast(i, pl.FP32)"),
        T + "for i in pl.range(n, 0, -2):\n    for j in pl.range(0, i, n):\n        t = t * 0.5 + b\nout[:] = t",
        T + "for i in pl.pipeline(n, stage=2):\n    t = t * 0.5\nout[:] = t",
        T
        + "k = 1\nfor i in pl.unroll(3):\n    k = k * 2 + i\n    pl.static_assert(k < 20, 'small')\n    t = t + k * 1.0\nout[:] = t",
        T
        + "s = 0.5\nfor i, (u, v) in pl.range(n, init_values=(t, 1.0)):\n    w = u * v\n    s = s + 1.0\n    p, q = pl.yield_(w, v + s)\nout[:] = p * q",
        "for i, (t,) in pl.range(n, init_values=(a,)):\n    t2 = pl.yield_(t + b)\nout[:] = t2",
        "t = a\nfor i in pl.range(n):\n    t = t + b\nif n > 2:\n    u = t\nelse:\n    u = b\nout[:] = u",
        "if n > 2:\n    u = pl.yield_(a * 2.0)\nelse:\n    u = pl.yield_(b)\nout[:] = u",
        "for i in pl.unroll(4, 0, -1):\n    for j in pl.range(i):\n        out[:] = a * float_of(i + j)\n".replace(
            "float_of(i + j)", "pl.cast(i + j, pl.FP32)"
        ),
    ],
)
def test_loops_on_a_core(place, body: str) -> None:
    agree(place(body))


@pytest.mark.parametrize("place", [in_incore, in_scope])
def test_tensor_that_a_loop_replaces(place: Callable[[str], str]) -> None:
    agree(place("w = a\nfor i in pl.range(n):\n    w = b\nout[:] = w"))
    agree(place("if n > 3:\n    w = a\nelse:\n    w = b\nout[:] = w"))


def test_output_that_is_read_and_replaced_in_a_loop() -> None:
    agree(in_scope("out[:] = a\nw = out\nfor i in pl.range(n):\n    w = w + b\n    out[:] = w"))


@pytest.mark.parametrize(
    "body",
    [
        # Two workspaces change places in every turn.
        "p = pl.create_tensor([64, 64], dtype=pl.FP32)\nq = pl.create_tensor([64, 64], dtype=pl.FP32)\nstep(a, x, p)\n"
        "for i in pl.range(n):\n    step(p, 1.0, q)\n    p, q = q, p\nstep(p, x, out)\nreturn out",
        "t = a\nif n > 3:\n    t = b\nstep(t, x, out)\nreturn out",
        "t = a\nwhile n > 1:\n    q = pl.create_tensor([64, 64], dtype=pl.FP32)\n    step(t, x, q)\n    t = q\n    n = n // 2\n"
        "step(t, 0.0, out)\nreturn out",
        "k = 0\nwhile k * k < n and k < 10:\n    k += 1\n    while k % 3 != 0:\n        k += 1\nstep(a, pl.cast(k, pl.FP32), out)\nreturn out",
        "p = a\nfor i in pl.range(n):\n    q = pl.create_tensor([64, 64], dtype=pl.FP32)\n    if i % 2 == 0:\n        step(p, 1.0, q)\n"
        "        p = q\n    else:\n        p = b\nstep(p, x, out)\nreturn out",
    ],
)
def test_loops_of_an_entry(body: str) -> None:
    agree(STEP + in_entry(body))


def test_while_form_with_first_values() -> None:
    text = STEP + in_entry(
        "for (k, s) in pl.while_(init_values=(0, 1.0)):\n    pl.cond(k < n)\n    s2 = s * 2.0\n    k, total = pl.yield_(k + 1, s2)\n"
        "step(a, total, out)\nreturn out"
    )
    values = arguments(5)
    run(lower(collect(module(text)["main"]), {}), values)
    assert (values["out"] == values["a"] + 32).all()


def test_static_print_says_what_expressions_are(capsys: pytest.CaptureFixture[str]) -> None:
    lowered(in_scope("t = a + b\npl.static_print('t is', t, 3 * 4)\nout[:] = t"))
    assert capsys.readouterr().err == "t is a tile [64, 64] of FP32 12\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (in_scope("for i in ⟦pl.pipeline(n)⟧:\n    out[:] = a"), "pl.pipeline misses the argument stage"),
        (in_scope("for i in ⟦pl.unroll(n)⟧:\n    out[:] = a"), "pl.unroll: a bound must be a whole number known"),
        (in_scope("for i in ⟦pl.unroll(5000)⟧:\n    out[:] = a"), "5000 turns are too many"),
        (in_scope("⟦pl.static_assert(64 < 3, 'too few')⟧\nout[:] = a"), "pl.static_assert: too few"),
        (in_scope("pl.static_assert(⟦n > 1⟧)\nout[:] = a"), "must be known while compiling"),
        (in_scope("⟦pl.cond(n > 1)⟧\nout[:] = a"), "pl.cond can only stand first"),
        (in_entry("for (k,) in pl.while_(init_values=(0,)):\n    ⟦k = k + 1⟧\nreturn out"), "begins with pl.cond"),
        (
            in_entry("for (k,) in pl.while_(init_values=(0,)):\n    pl.cond(k < n)\n    ⟦k = k + 1⟧\nreturn out"),
            "ends with pl.yield_ of 1 values",
        ),
        (in_entry("while ⟦2 > 1⟧:\n    n = n + 1\nreturn out"), "the condition of the loop is always True"),
        (
            STEP + in_entry("t = out\nfor i in pl.range(n):\n    step(a, x, ⟦t⟧)\n    t = b\nreturn out"),
            "t is an input",
        ),
    ],
)
def test_mistakes_with_loops(text: str, message: str) -> None:
    marked = unmarked(text)
    with pytest.raises(CompileError) as caught:
        lowered(marked.text)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (marked.line, marked.column)
