"""Scopes that mix matrix and vector work: split into tasks, and still what Python does."""

# ruff: noqa: E501 - bodies of kernels are easier to read on one line

from __future__ import annotations

import pytest
from kernel_texts import in_incore, in_scope, lowered
from meaning import agree

from pypto.ir.nodes import CoreType
from pypto.ir.passes.core import mixes

BODIES = {
    "product and sum": "out[:] = pl.matmul(a, b) + a",
    "vector work in front": "t = pl.exp(a) * 0.01\nout[:] = pl.matmul(t, b)",
    "there and back": "t = pl.matmul(a, b)\nu = pl.exp(t * 0.01)\nv = pl.matmul(u, b, b_trans=True)\nout[:] = v + t",
    "transposed vector result": "u = a + b\nout[:] = pl.matmul(u, a, a_trans=True) * x",
    "sum of products": "acc = pl.matmul(a, b)\nu = acc * x\nacc = pl.matmul_acc(acc, u, b)\nout[:] = acc",
    "accumulator from a constant": "acc = pl.full([64, 64], pl.FP32, 1.0)\nfor i in pl.range(n):\n    acc = pl.matmul_acc(acc, a, b)\nout[:] = acc",
    "loop that mixes": "t = pl.load(a, [0, 0], [64, 64])\nfor i in pl.range(n):\n    p = pl.matmul(t, b)\n    t = p * 0.01 + a\nout[:] = t",
    "loop with numbers": "k = 1.0\nt = a * 1.0\nfor i in pl.range(n):\n    k = k * 0.5\n    t = pl.matmul(t, b) * k\nout[:] = t * k",
    "loops inside": "t = a * 1.0\nfor i in pl.range(n):\n    for j in pl.range(2):\n        t = t + b\n    s = pl.matmul(t, b)\n    for j in pl.range(i):\n        s = pl.matmul(t * 0.1, a) + s\n    t = s * 0.001\nout[:] = t",
    "tiles that change places": "t = a * 1.0\nu = pl.matmul(a, b) * 0.1\nfor i in pl.range(n):\n    v = pl.matmul(t, b) * 0.01\n    t, u = u, t\nout[:] = t - u + v * 0.0"
    if False
    else "t = a * 1.0\nu = b * 2.0\nv = a * 0.0\nfor i in pl.range(n):\n    v = pl.matmul(t, b) * 0.01\n    t, u = u, t\nout[:] = t - u + v",
    "branch that mixes": "t = a * 1.0\nif n > 3:\n    t = pl.matmul(t, b) + a\nelse:\n    t = t - b\nout[:] = t",
    "branch of numbers": "k = 1.0\nif n > 3:\n    k = x\nout[:] = pl.matmul(a, b) * k",
    "result that is read again": "out[:] = pl.matmul(a, b)\nu = out[:, :] * 1.0\nout[:] = pl.matmul(u, b) + a",
    "input that is overwritten": "t = out[:, :]\nout[:] = a + b\nu = pl.matmul(t, b)\nout[:] = u + t",
    "parts of the result": "t = pl.matmul(a, b)\nfor i in pl.range(0, 64, 16):\n    s = pl.load(a, [i, 0], [16, 64]) + 1.0\n    pl.store(pl.matmul(s, b), [i, 0], out)",
    "products one after the other": "out[:] = pl.matmul(pl.matmul(a, b), b)",
    "move to the other core": "t = pl.move(pl.matmul(a, b), target_memory=pl.MemorySpace.Vec)\nu = pl.move(pl.exp(t * 0.01), target_memory=pl.MemorySpace.Mat)\nout[:] = pl.matmul(u, b)",
    "first product of a loop": "acc = pl.full([64, 64], pl.FP32, 0.0)\nfor i in pl.range(n):\n    s = a * 0.5\n    acc = pl.matmul_acc(acc, s, b, init_cond=i == 0)\nout[:] = acc",
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("n", [5, 1])
def test_mixed_scope_means_what_python_does(name: str, n: int) -> None:
    body = BODIES[name]
    agree(in_scope(body), n)


@pytest.mark.parametrize("name", ["there and back", "loop that mixes"])
def test_mixed_incore_function_is_split_at_its_calls(name: str) -> None:
    agree(in_incore(BODIES[name]))


@pytest.mark.parametrize("name", BODIES)
def test_parts_do_not_mix(name: str) -> None:
    program = lowered(in_scope(BODIES[name]))
    for function in program.incore_functions():
        assert not mixes(function.body)


def test_work_of_one_kind_is_in_as_few_parts_as_possible() -> None:
    body = "t = pl.matmul(a, b)\nu = a * x\nv = pl.matmul(b, a)\nout[:] = t + u + v"
    program = lowered(in_scope(body))
    assert [f.core for f in program.incore_functions()] == [CoreType.AIC, CoreType.AIV]
