"""``return``, ``break``, ``continue`` and ``while`` wherever Python has them, against Python."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
from kernel_texts import in_entry, in_incore, in_scope, lowered
from meaning import agree, arguments, compare
from random_kernels import body_with_ends

from pypto.codegen.generate import generate
from pypto.ir.reference.interpreter import run

LOOPS = [
    "t = a * 1\nfor i in pl.range(10):\n    if i == n:\n        break\n    t = t + 1\nout[:] = t",
    "t = a * 1\nfor i in pl.range(10):\n    if i % 3 == n % 3:\n        continue\n    t = t + 1\nout[:] = t",
    "t = a * 1\nfor i in pl.range(9, 0, -2):\n    t = t + 1\n    if i < n:\n        break\nout[:] = t",
    "t = a * 1\nfor i in pl.range(4):\n    for j in pl.range(4):\n        if j > i:\n            break\n"
    "        if j == n:\n            continue\n        t = t + 1\n    if i == n:\n        break\nout[:] = t",
    "t = a * 1\ni = 0\nwhile i < n:\n    t = t + 1\n    i += 1\nout[:] = t + pl.cast(i, pl.FP32)",
    "t = a * 1\ni = 0\nwhile True:\n    i += 2\n    if i > n:\n        break\n    if i == 2:\n        continue\n"
    "    t = t * 2\nout[:] = t",
    "t = a * 1\nfor i in pl.unroll(6):\n    if i == 3:\n        break\n    t = t + 1\nout[:] = t",
    "t = a * 1\nfor i in pl.range(3):\n    k = i\n    while k > 0:\n        t = t + 1\n        k -= 1\nout[:] = t",
]  # fmt: skip
RETURNS = [
    "if n > 2:\n    {0}out[:] = a * 2\n    return out\n{0}out[:] = a * 3\nreturn out",
    "if n < 2:\n    {0}out[:] = a * 2\n    return out\nelif n < 4:\n    return out\n"
    "else:\n    {0}out[:] = a\n    return out",
    "if n > 0:\n    if n > 4:\n        {0}out[:] = a * 2\n        return out\n"
    "    {0}out[:] = a * 4\n{0}out[:] = a * 3\nreturn out",
]  # fmt: skip


@pytest.mark.parametrize("n", [0, 1, 2, 5])
@pytest.mark.parametrize("text", LOOPS)
def test_loops_that_end_early(text: str, n: int) -> None:
    agree(in_scope(text), n)
    agree(in_incore(text), n)


@pytest.mark.parametrize("n", [0, 2])
@pytest.mark.parametrize(
    "text",
    [
        "for i in pl.range(10):\n    if i == n:\n        break\n    t = pl.relu(pl.matmul(t, b)) * 0.125",
        "i = 0\nwhile i < n:\n    t = pl.relu(pl.matmul(t, b)) * 0.125\n    i += 1",
    ],
)
def test_loops_of_matrix_and_vector_work_end_early(text: str, n: int) -> None:
    agree(in_scope(f"t = a * 1\n{text}\nout[:] = t"), n)


@pytest.mark.parametrize("n", [0, 1, 3, 5])
@pytest.mark.parametrize("text", RETURNS)
def test_returns_on_several_paths(text: str, n: int) -> None:
    agree(in_entry(text.format("with pl.at(level=pl.Level.CORE_GROUP): ")), n)


@pytest.mark.parametrize("n", [0, 3])
def test_a_spliced_function_returns_early(n: int) -> None:
    scaled = (
        "@inline\ndef scaled(t, k):\n    if k == 0:\n        return t\n    u = t * 2\n"
        "    if k > 1:\n        return u * k\n    return u\n"
    )
    agree(scaled + in_scope("t = a * 1\nout[:] = scaled(t, 0) + scaled(t, 1) + scaled(t, 3)"), n)
    chosen = "@inline\ndef chosen(t, k):\n    if k > 1:\n        return t * 2, k\n    return t, 1\n"
    agree(chosen + in_scope("t, k = chosen(a * 1, n)\nout[:] = t * pl.cast(k, pl.FP32)"), n)


def test_loops_of_an_entry_end_early() -> None:
    scope = "with pl.at(level=pl.Level.CORE_GROUP): "
    for n in (0, 2, 5):
        body = f"for i in pl.range(4):\n    if i == n:\n        break\n    {scope}out[:] = a * pl.cast(i, pl.FP32)"
        agree(in_entry(body + "\nreturn out"), n)


def test_a_loop_that_breaks_ends_at_once() -> None:
    """No further turn is looked at: on a core by a break in the loop, in an entry by its condition."""
    text = "t = a * 1\nfor i in pl.range(10):\n    if i == n:\n        break\n    t = t + 1\nout[:] = t"
    (kernel,) = lowered(in_incore(text)).incore_functions()
    (loop,) = (op for op in kernel.body.walk() if op.name == "scf.for")
    assert loop.attrs["kind"] == "while"
    scope = "with pl.at(level=pl.Level.CORE_GROUP): "
    entry = in_entry(
        f"for i in pl.range(4):\n    {scope}out[:] = a * pl.cast(i, pl.FP32)\n    if i == n:\n        break\nreturn out"
    )
    made = generate(lowered(entry), "Ascend910B", "sim")["orchestration/main.cpp"].decode()
    (head,) = (line for line in made.splitlines() if "for (" in line)
    assert "&& i" in head


def test_random_kernels_with_early_ends_mean_what_python_does() -> None:
    compiled = 0
    for seed in range(150):
        text = (in_incore if seed % 2 else in_scope)(body_with_ends(seed))
        try:
            compiled += compare(text, n=(5, 0, 2)[seed % 3])
        except AssertionError as error:
            pytest.fail(f"seed {seed}: {error}\n{text}")
    assert compiled > 75


@pytest.mark.parametrize(
    "text",
    [
        "t = a * 1\nfor k in (1, 2.5, 4):\n    if k == 4:\n        break\n    t = t + k\nout[:] = t",
        "t = a * 1\nfor k, s in ((1, 2.0), (3, 4.0)):\n    t = t * k + s\nout[:] = t",
        "m = min(n, 3) + max(n, 2, 1) + min(4, 7) + abs(-2) + len(a.shape) + int(2.5)\n"
        "out[:] = a * pl.cast(m, pl.FP32) + float(3) * round(1.4)",
        "out[:] = a * 1\nout[0:16, :] = out[0:16, :] * 2\nout[16:32, :] = a[16:32, :]",
    ],
)
def test_what_is_known_while_compiling(text: str) -> None:
    for n in (1, 5):
        agree(in_entry(f"with pl.at(level=pl.Level.CORE_GROUP):\n{indented(text)}\nreturn out"), n)


def test_parts_of_tensors_are_changed_in_place() -> None:
    text = "out[:] = a * 1\nout[0:16, :] += 1\nout[16:32, 0:8] *= x\nout[0:16, :] -= b[0:16, :]"
    agree(in_entry(f"with pl.at(level=pl.Level.CORE_GROUP):\n{indented(text)}\nreturn out"))


def indented(text: str) -> str:
    return textwrap.indent(text, "    ")


def test_an_entry_goes_on_until_tasks_have_written_something() -> None:
    scope = "with pl.at(level=pl.Level.CORE_GROUP): "
    halved = f"{scope}out[:] = a * 0 + 8\nk = out[3, 5]\nwhile k > 1:\n    {scope}out[:] = out * 0.5\n    k = out[0, 0]"
    agree(in_entry(halved + "\nreturn out"))
    # Matrix and vector work in one scope: the element is read between them.
    mixed = "t = pl.matmul(a, b)\nout[:] = pl.abs(t)\nk = out[0, 0]\nu = pl.matmul(a, a)\nout[:] = u * k"
    text = in_scope(mixed)
    n = lowered(text)
    values = arguments(5)
    run(n, values)
    first = np.abs(values["a"] @ values["b"])[0, 0]
    np.testing.assert_allclose(values["out"], values["a"] @ values["a"] * first)
