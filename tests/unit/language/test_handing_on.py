"""What a scope makes and a later one uses: the same values as in Python, through workspaces of the entry."""

from __future__ import annotations

import numpy as np
import pytest
import python_meaning
from kernel_texts import in_entry, lowered, module
from meaning import agree

from pypto.ir.nodes import Block, Program
from pypto.ir.reference.interpreter import run
from pypto.language.errors import CompileError
from pypto.language.lower import lower
from pypto.language.source import collect

AT = "with pl.at(level=pl.Level.CORE_GROUP):"


def created(program: Program) -> list[tuple[object, ...]]:
    """Shapes of the workspaces of the entry."""
    body: Block = program.entry_function.body
    return [op.result.type.shape for op in body.walk() if op.name == "tensor.create"]  # type: ignore[union-attr]


BODIES = {
    "a sum": "AT\n    q = a + b\nAT\n    out[:] = q * a\nreturn out",
    "a product": "AT\n    q = pl.matmul(h, h)\nAT\n    out[:] = q + a\nreturn out",
    "a loaded tile": (
        "AT\n    t = pl.load(a, [0, 0], [32, 64])\nAT\n    out[:] = b\nAT\n    pl.store(t, [n, 0], out)\nreturn out"
    ),
    "two results, both used twice": (
        "AT\n    q = a + b\n    r = a - b\nAT\n    out[0:32, :] = q[0:32, :] * r[0:32, :]\n"
        "AT\n    out[32:64, :] = q[32:64, :] - r[32:64, :]\nreturn out"
    ),
    "results in a tuple": "AT\n    p = (a + b, a - b)\nAT\n    q, r = p\n    out[:] = q * r\nreturn out",
    "two names of one tile": "AT\n    q = a + b\n    r = q\nAT\n    q[0, 0] = 9.0\nAT\n    out[:] = r\nreturn out",
    "a column and a row": (
        "AT\n    s = pl.row_max(a)\n    c = pl.col_sum(b)\n"
        "AT\n    out[:] = pl.col_expand_mul(pl.row_expand_sub(a, s), c)\nreturn out"
    ),
    "a part that is valid": (
        "for i in pl.range(0, 64, 24):\n    AT\n        c = pl.min(64 - i, 24)\n"
        "        t = pl.load(a, [i, 0], [24, 64], valid_shape=[c, 64]) * 2.0\n"
        "    AT\n        pl.store(t, [i, 0], out)\nreturn out"
    ),
    "equal parts that are valid": (
        "AT\n    q = pl.load(a, [0, 0], [64, 64], valid_shape=[n, 64]) * 1.0\nfor i in pl.range(n):\n    AT\n"
        "        c = n - 0\n        q = q + pl.load(b, [0, 0], [64, 64], valid_shape=[n, 64])\n"
        "    AT\n        q = q * pl.load(a, [0, 0], [64, 64], valid_shape=[c, 64])\n"
        "AT\n    pl.store(q, [0, 0], out)\nreturn out"
    ),
    "within a loop": (
        "for i in pl.range(0, 64, 16):\n    AT\n        y = a[i : i + 16, :] * 2.0\n"
        "    AT\n        out[i : i + 16, :] = y + b[i : i + 16, :]\nreturn out"
    ),
    "carried by a loop": (
        "AT\n    s = a + b\nfor i in pl.range(n):\n    AT\n        s = s * 0.5 + b\nAT\n    out[:] = s\nreturn out"
    ),
    "a loop without turns": (
        "AT\n    s = a + b\nfor i in pl.range(n - 5):\n    AT\n        s = s * 0.5\nAT\n    out[:] = s\nreturn out"
    ),
    "a parameter that a loop replaces": (
        "s = a\nfor i in pl.range(n):\n    AT\n        s = s * 0.5 + b\nAT\n    out[:] = s\nreturn out"
    ),
    "a workspace that a loop replaces": (
        "s = pl.create_tensor([64, 64], dtype=pl.FP32)\nAT\n    s[:] = a\nfor i in pl.range(n):\n    AT\n"
        "        s = s + b\nAT\n    out[:] = s\nreturn out"
    ),
    "two that change places": (
        "AT\n    s = a + b\n    t = a - b\nfor i in pl.range(n):\n    AT\n        s, t = t + a, s\n"
        "AT\n    out[:] = s - t\nreturn out"
    ),
    "a product that a loop adds to": (
        "AT\n    s = pl.matmul(h, h)\nfor i in pl.range(n):\n    AT\n        s = pl.matmul_acc(s, h, h)\n"
        "AT\n    out[:] = s + a\nreturn out"
    ),
    "changed in place by a loop": (
        "AT\n    t = a + b\nfor i in pl.range(n):\n    AT\n        t[i, 1] = 3.0\nAT\n    out[:] = t\nreturn out"
    ),
    "one of two branches": (
        "if n > 3:\n    AT\n        t = a + b\nelse:\n    AT\n        t = a - b\nAT\n    out[:] = t\nreturn out"
    ),
    "a branch that replaces": (
        "AT\n    t = a + b\nif n > 3:\n    AT\n        t = t * 2.0\nAT\n    out[:] = t\nreturn out"
    ),
    "a branch with a parameter": "t = a\nif n > 3:\n    AT\n        t = t * 2.0 + b\nAT\n    out[:] = t\nreturn out",
    "a part of a tensor": (
        "AT\n    v = a[n : n + 32, :]\n    out[0:32, :] = v\nAT\n    out[32:64, :] = v + v\nreturn out"
    ),
    "numbers of the entry": (
        "k = 0\nfor i in pl.range(n):\n    AT\n        k = k + 2\n        out[:] = a * k\nm = k * 2\n"
        "AT\n    out[:] = a * m\nreturn out"
    ),
    "an element": "AT\n    t = a + b\n    s = t[3, 5]\nAT\n    out[:] = a * s\nreturn out",
    "an element as a condition": (
        "AT\n    t = a + b\n    s = t[0, 0]\nif s > 0.0:\n    AT\n        out[:] = a * s\nelse:\n"
        "    AT\n        out[:] = b * s\nreturn out"
    ),
    "a comparison": (
        "AT\n    t = a + b\n    s = t[0, 0] > 0.0\nif s:\n    AT\n        out[:] = a\nelse:\n"
        "    AT\n        out[:] = b\nreturn out"
    ),
    "a count": (
        "k = 0\nfor i in pl.range(8 * n):\n"
        "    AT\n        if pl.read(a, [i, 0]) > pl.read(b, [i, 0]) + 0.5:\n            k = k + 1\n"
        "AT\n    out[:] = a * k\nreturn out"
    ),
    "an element that a loop replaces": (
        "s = 0.0\nfor i in pl.range(n):\n"
        "    AT\n        t = pl.load(a, [i, 0], [1, 64]) * 1.0\n        s = s * 0.5 + t[0, i]\n"
        "AT\n    out[:] = a * s\nreturn out"
    ),
    "an element as an index": (
        "AT\n    t = a * 0.0 + 5.0\n    s = pl.cast(t[0, 0], pl.INDEX)\nAT\n    out[:] = a\n"
        "AT\n    pl.store(pl.load(b, [s, 0], [8, 64]), [s, 0], out)\nreturn out"
    ),
    "a condition of a loop": (
        "AT\n    t = a * 0.0 + 1.0\n    s = t[0, 0]\nwhile s < 20.0:\n    AT\n        t = t * 2.0\n"
        "        s = t[0, 0]\nAT\n    out[:] = t\nreturn out"
    ),
    "an end of a loop": (
        "AT\n    t = a * 0.0 + 1.0\nfor i in pl.range(20):\n    AT\n        t = t * 2.0\n        s = t[0, 0]\n"
        "    if s > 9.0:\n        break\nAT\n    out[:] = t\nreturn out"
    ),
    "a sum that begins with a whole number": (
        "s = 0\nfor i in pl.range(n):\n    AT\n        t = a[i : i + 1, :] * 1.0\n        s = s + t[0, 1]\n"
        "AT\n    out[:] = a * s\nreturn out"
    ),
    "a whole number in one branch": "s = 0.5\nif n > 3:\n    s = n\nAT\n    out[:] = a * s\nreturn out",
    "a workspace of a scope": (
        "AT\n    w = pl.create_tensor(a.shape, dtype=pl.FP32)\n    w[:] = a * 2.0\nAT\n    out[:] = w\nreturn out"
    ),
    "windows of run-time lengths": (
        "for i in pl.range(0, 64, 24):\n    AT\n        c = pl.min(64 - i, 24)\n        v = a[i : i + c, :]\n"
        "        q = v * 2.0\n"
        "    if n > 3:\n        AT\n            q = q + v\n    AT\n        out[i : i + c, :] = q - v\nreturn out"
    ),
    "in blocks of a launch": (
        "AT\n    q = a + b\nfor i in pl.spmd(2):\n    AT\n        y = q[32 * i : 32 * i + 32, :] * 2.0\n"
        "    AT\n        out[32 * i : 32 * i + 32, :] = y + 1.0\nreturn out"
    ),
    "to a launch": (
        "AT\n    q = a + b\n"
        "for i in pl.spmd(2):\n    out[32 * i : 32 * i + 32, :] = q[32 * i : 32 * i + 32, :] * 2.0\n"
        "return out"
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_values_are_those_of_python(name: str) -> None:
    agree(in_entry(BODIES[name].replace("AT", AT)))


FUNCTIONS = """\
@incore
def double(t: pl.Tensor[[64, 64], pl.FP32], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    o[:] = t * 2.0
    return o

@inline
def blend(x, y):
    return x * 0.25 + y

@opaque
def halves(t, u, o):
    AT
        s = t * 0.5
    AT
        o[:] = blend(s, u)
    return o

"""


@pytest.mark.parametrize(
    "body",
    [
        "AT\n    q = a + b\nout = double(q, out)\nreturn out",
        "AT\n    q = a + b\nout = halves(q, a, out)\nreturn out",
        "AT\n    q = blend(a, b)\nAT\n    out[:] = blend(q, q)\nreturn out",
    ],
)
def test_functions_are_handed_them(body: str) -> None:
    agree((FUNCTIONS + in_entry(body)).replace("AT", AT))


KERNELS = """\
@incore
def product(u: pl.Tensor, v: pl.Tensor):
    return pl.matmul(u, v)

@incore
def rows(u: pl.Tensor[[64, 64], pl.FP32], k: pl.Scalar[pl.INDEX], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    t = pl.load(u, [k, 0], [16, 64])
    if k > 3:
        t = t * 2.0
    pl.store(t, [k, 0], o)
    return t + 1.0, o, pl.row_max(t)

"""


@pytest.mark.parametrize(
    "body",
    [
        "q = product(h, h)\nfor i in pl.range(n):\n    r = product(h, h)\n    AT\n        q = q * 0.5 + r\n"
        "AT\n    out[:] = q\nreturn out",
        "for i in pl.range(0, 64, 16):\n    t, out, m = rows(a, i, out)\n"
        "    AT\n        pl.store(pl.row_expand_sub(t, m), [i, 0], out)\nreturn out",
    ],
)
def test_tiles_that_device_kernels_return(body: str) -> None:
    agree((KERNELS + in_entry(body)).replace("AT", AT))


FLAT = """\
@incore
def twice(u: pl.Tensor[[128], pl.FP32], o: pl.Out[pl.Tensor[[128], pl.FP32]]):
    o[:] = u * 2.0
    return o

@incore
def half(u: pl.Tensor[[128], pl.FP32]):
    return u * 0.5

@entry
def main(v: pl.Tensor[[128], pl.FP32], o: pl.Out[pl.Tensor[[128], pl.FP32]], p: pl.Out[pl.Tensor[[128], pl.FP32]]):
    q = v
    for i in pl.range(3):
        AT
            q = q + v
        q = half(q)
    p = twice(q, p)
    AT
        o[0:64] = q[0:64] - v[0:64]
        o[64:128] = v[64:128]
        pl.write(o, [64], pl.read(q, [5]))
    return o, p
"""


def test_tensors_of_one_dimension() -> None:
    program = lowered(FLAT.replace("AT", AT))
    v = np.random.default_rng(5).standard_normal(128)
    o, p = np.zeros(128), np.zeros(128)
    run(program, {"v": v, "o": o, "p": p})
    q = v * 1.0
    for _ in range(3):
        q = (q + v) * 0.5
    np.testing.assert_allclose(p, q * 2.0)
    np.testing.assert_allclose(o, np.concatenate([q[:64] - v[:64], q[5:6], v[65:]]))


def test_one_workspace_for_each_value_that_is_used_later() -> None:
    body = "AT\n    q = a + b\n    r = q\n    s = q * 2.0\n    out[:] = s\nAT\n    out[:] = q + r\nreturn out"
    assert created(lowered(in_entry(body.replace("AT", AT)))) == [(64, 64)]


def test_a_number_is_read_where_it_is_used() -> None:
    body = "AT\n    t = a + b\n    s = t[0, 0]\nAT\n    out[:] = a * s\nreturn out"
    program = lowered(in_entry(body.replace("AT", AT)))
    assert created(program) == [(1,)]
    assert not [op for op in program.entry_function.body.walk() if op.name == "tensor.read"]


LARGE = [
    "a sum",
    "two results, both used twice",
    "a column and a row",
    "carried by a loop",
    "a parameter that a loop replaces",
    "a workspace that a loop replaces",
    "two that change places",
    "one of two branches",
    "a branch with a parameter",
    "a product that a loop adds to",
    "an element that a loop replaces",
    "a workspace of a scope",
    "windows of run-time lengths",
    "in blocks of a launch",
]


@pytest.mark.parametrize("size", ["320", "N"])
@pytest.mark.parametrize("name", LARGE)
def test_tensors_larger_than_a_core_holds(name: str, size: str) -> None:
    """``N``: the lengths are known when it runs."""
    text = in_entry(BODIES[name].replace("AT", AT))
    lengths = "320, 320" if size == "320" else "a.shape[0], a.shape[1]"
    text = text.replace("([64, 64]", f"([{lengths}]").replace("[64, 64]", f"[{size}, {size}]")
    names = module('N = pl.dynamic("N")\n' + text)
    program = lower(collect(names["main"]), {})
    random = np.random.default_rng(3)
    values = {name: random.integers(-8, 9, (320, 320)) / 8.0 for name in ("a", "b", "h")}
    expected, got = ({**values, "n": 5, "x": 0.25, "out": np.zeros((320, 320))} for _ in range(2))
    python_meaning.run(names, names["main"], expected)
    run(program, got)
    np.testing.assert_allclose(got["out"], expected["out"], rtol=1e-12)


def test_lengths_that_branches_compute_are_computed_before() -> None:
    branch = "    t = pl.create_tensor([n * n, 64], dtype=pl.FP32)\n    AT\n        t[:] = a[0 : n * n, :]\n"
    body = f"if n > 1:\n{branch}else:\n{branch}AT\n    out[0 : n * n, :] = t\nreturn out"
    with pytest.raises(CompileError, match="axis 0 of t has a length that is computed in the branches"):
        lowered(in_entry(body.replace("AT", AT)))


def test_a_result_of_a_scope_is_no_output() -> None:
    with pytest.raises(
        CompileError, match=r"returns its output parameters, not a tensor .64, 64. of FP32; store it into a pl.Out"
    ):
        lowered(in_entry("AT\n    q = a + b\nreturn q".replace("AT", AT)))
