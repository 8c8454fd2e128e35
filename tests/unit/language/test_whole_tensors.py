"""Work on whole tensors, larger than the chip's memories or of run-time sizes: divided, and still what Python does."""

# ruff: noqa: E501 - bodies of kernels are easier to read on one line

from __future__ import annotations

import textwrap

import numpy as np
import pytest
import python_meaning
from kernel_texts import lowered, module, unmarked

from pypto.ir.nodes import Program
from pypto.ir.reference.interpreter import run
from pypto.language.errors import CompileError
from pypto.language.lower import lower
from pypto.language.signature import ArgSpec
from pypto.language.source import collect

Shapes = dict[str, tuple[int, ...]]
LARGE: Shapes = {"a": (300, 512), "b": (512, 200), "c": (300, 200), "row": (1, 200), "column": (300, 1)}
DYNAMIC = (
    "M = pl.dynamic('M')\nK = pl.dynamic('K')\nN = pl.dynamic('N')\n",
    {"a": "[M, K]", "b": "[K, N]", "c": "[M, N]", "row": "[1, N]", "column": "[M, 1]", "out": "[M, N]"},
)
SCOPE = "with pl.at(level=pl.Level.CORE_GROUP):\n"

BODIES = {
    "product and sum": "out[:] = pl.add(pl.matmul(a, b), c)",
    "chain": "t = pl.exp(c) * 0.5 - 1.0\nu = pl.maximum(t, c) / (c * c + 2.0)\nout[:] = 3.0 - u",
    "softmax": "high = pl.row_max(c)\np = pl.exp(pl.row_expand_sub(c, high))\nout[:] = pl.row_expand_div(p, pl.row_sum(p))",
    "columns": "low = pl.col_min(c)\nout[:] = pl.col_expand_sub(c, low)\nout[:] = pl.col_expand_mul(out, pl.col_sum(c))",
    "row and column": "out[:] = pl.row_expand_mul(pl.col_expand_add(c, row), column)",
    "read and written": "out[:] = c * 2.0\nout[:] = out + c\nt = out * 1.0\nout[:] = t - c * 0.5",
    "parts": "out[:] = c\nout[0:100, :] = c[100:200, :] * 2.0\nt = out[50:150, 0:64] + 1.0\nout[150:250, 64:128] = t",
    "shifted": "out[:] = c\nout[1:65, :] = out[0:64, :] * 2.0",
    "assembled": "out[:] = pl.full([300, 200], pl.FP32, 0.25)\nout = pl.assemble(out, c[0:32, 0:40], [7, 3])",
    "turned": "t = pl.transpose(c, 0, 1)\nout[:] = pl.matmul(a, t, a_trans=False, b_trans=False) if False else pl.transpose(t * 2.0, 0, 1)",
    "turned product": "t = pl.matmul(b, a, a_trans=True, b_trans=True)\nout[:] = pl.transpose(t, 0, 1)",
    "loop": "t = c * 1.0\nfor i in pl.range(n):\n    t = t * 0.5 + c\nout[:] = t",
    "branch": "if n > 2:\n    t = c + 1.0\nelse:\n    t = c * 3.0\nout[:] = t * t",
    "in place": "t = c * 2.0\nfor i in pl.range(n):\n    t += c\n    t *= 0.5\nout[:] = t",
    "numbers": "k = 1.0\nfor i in pl.unroll(3):\n    k = k * x\nout[:] = c * k + 0.5",
    "two results": "s = c + 1.0\nt = s * s\nu = pl.row_sum(t)\nout[:] = pl.row_expand_add(s, u)\nout[0:1, :] = pl.col_max(t)",
    "reshaped": "t = pl.reshape(c, [600, 100]) * 2.0\nu = pl.reshape(t, [300, 200])\nout[:] = u + c",
    "workspace": "w = pl.create_tensor([300, 200], dtype=pl.FP32)\nw[:] = c * 2.0\nout[:] = w + c",
}


def text_of(body: str, shapes: Shapes, dynamic: bool) -> str:
    head, dims = DYNAMIC if dynamic else ("", {n: str(list(s)) for n, s in {**shapes, "out": shapes["c"]}.items()})
    params = ", ".join(
        f"{name}: {'pl.Out[' if name == 'out' else ''}pl.Tensor[{dim}, pl.FP32]{']' if name == 'out' else ''}"
        for name, dim in dims.items()
    )
    return f"{head}@entry\ndef main({params}, n: int, x: float):\n" + textwrap.indent(
        f"{SCOPE}{textwrap.indent(body, '    ')}\nreturn out\n", "    "
    )


def compare(body: str, shapes: Shapes, dynamic: bool = False, n: int = 3) -> Program:
    names = module(text_of(body, shapes, dynamic))
    program = lower(collect(names["main"]), {})
    random = np.random.default_rng(5)
    given = {name: random.standard_normal(shape) for name, shape in shapes.items()}
    expected, got = ({**given, "n": n, "x": 0.5, "out": np.zeros(shapes["c"])} for _ in range(2))
    python_meaning.run(names, names["main"], expected)
    run(program, got)
    np.testing.assert_allclose(got["out"], expected["out"], rtol=1e-9, atol=1e-9)
    return program


@pytest.mark.parametrize("name", BODIES)
def test_large_tensors(name: str) -> None:
    compare(BODIES[name], LARGE)


FREE = [name for name in BODIES if name not in ("parts", "shifted", "assembled", "workspace", "reshaped")]


@pytest.mark.parametrize("name", FREE)
@pytest.mark.parametrize("size", [(1, 1, 1), (33, 130, 300), (130, 64, 17)])
def test_run_time_sizes(name: str, size: tuple[int, int, int]) -> None:
    m, k, n = size
    shapes = {"a": (m, k), "b": (k, n), "c": (m, n), "row": (1, n), "column": (m, 1)}
    compare(BODIES[name], shapes, dynamic=True)


def test_small_tensors_stay_tiles() -> None:
    shapes = {"a": (16, 64), "b": (64, 32), "c": (16, 32), "row": (1, 32), "column": (16, 1)}
    program = compare(BODIES["softmax"], shapes)
    assert not [op for op in program.entry_function.body.walk() if op.name in ("tensor.create", "scf.for")]


UNPACKED = """@entry
def main(x: pl.Tensor[[ROWS, 256], pl.UINT8], low: pl.Out[pl.Tensor[[ROWS, 256], pl.FP16]], high: pl.Out[pl.Tensor[[ROWS, 256], pl.FP16]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = LOADED
        whole = pl.cast(pl.cast(t, pl.FP16), pl.INT32)
        low[:] = pl.cast(pl.cast(whole & 15, pl.FP32), pl.FP16)
        high[:] = pl.cast(pl.cast(whole >> 4, pl.FP32), pl.FP16)
    return low, high
"""


@pytest.mark.parametrize(
    ("rows", "loaded", "divided"), [(48, "x", False), (60, "x", True), (60, "pl.load(x, [0, 0], [60, 256])", False)]
)
def test_tensors_that_fit_only_if_placed_well_are_divided(rows: int, loaded: str, divided: bool) -> None:
    """Three tiles of 60 KiB fit, but not behind smaller ones that are gone. Code for tiles cannot be divided."""
    program = lowered(UNPACKED.replace("ROWS", str(rows)).replace("LOADED", loaded))
    assert any(op.name == "scf.for" for op in program.entry_function.body.walk()) is divided
    x = np.random.default_rng(1).integers(0, 256, (rows, 256))
    values = {"x": x, "low": np.zeros(x.shape), "high": np.zeros(x.shape)}
    run(program, values)
    np.testing.assert_array_equal(values["low"], x % 16)
    np.testing.assert_array_equal(values["high"], x // 16)


def test_rows_are_fused() -> None:
    program = compare(BODIES["softmax"], LARGE)
    assert len(program.incore_functions()) == 1
    assert not [op for op in program.entry_function.body.walk() if op.name == "tensor.create"]


def test_leading_dimensions() -> None:
    text = (
        "@entry\ndef main(a: pl.Tensor[[2, 3, 70, 96], pl.FP32], b: pl.Tensor[[2, 3, 96, 80], pl.FP32], "
        "out: pl.Out[pl.Tensor[[2, 3, 70, 80], pl.FP32]]):\n"
        f"    {SCOPE}        t = pl.batch_matmul(a, b)\n        out[:] = pl.row_expand_sub(t, pl.row_max(t))\n    return out\n"
    )
    random = np.random.default_rng(3)
    values = {"a": random.standard_normal((2, 3, 70, 96)), "b": random.standard_normal((2, 3, 96, 80))}
    values["out"] = np.zeros((2, 3, 70, 80))
    run(lowered(text), values)
    product = values["a"] @ values["b"]
    np.testing.assert_allclose(values["out"], product - product.max(-1, keepdims=True), rtol=1e-9, atol=1e-9)


def test_one_dimension() -> None:
    text = (
        "@entry\ndef main(a: pl.Tensor, out: pl.Out[pl.Tensor]):\n    "
        + SCOPE
        + "        out[:] = a * 2.0 + a\n    return out\n"
    )
    program = lower(collect(module(text)["main"]), {name: ArgSpec(pl_fp32(), (100_000,)) for name in ("a", "out")})
    values = {"a": np.arange(100_000.0), "out": np.zeros(100_000)}
    run(program, values)
    np.testing.assert_array_equal(values["out"], values["a"] * 3)


# Bodies, and what they put into `p`; beside each a tensor is divided.
SMALL = {
    "one element of a row": ("p[0:1] = v[5:6] * 3.0 + 1.0", lambda x, v: [v[5] * 3 + 1, 0, 0, 0]),
    "a number": ("p[1] = 5.0", lambda x, v: [0, 5, 0, 0]),
    "a number by call": ("pl.write(p, [2], 7.0)", lambda x, v: [0, 0, 7, 0]),
    "elements": (
        "p[0] = x[0, 0, 0]\nfor i in pl.range(1, n):\n    p[i] = out[0, i, i] * 2.0",
        lambda x, v: [x[0, 0, 0], *((x[0, i, i] + 1) * 2 for i in (1, 2)), 0],
    ),
    "sum of a row": ("p[0:1] = pl.row_sum(v)", lambda x, v: [v.sum(), 0, 0, 0]),
    "row beside its sum": ("p[:] = (v / pl.row_sum(v))[0:4]", lambda x, v: (v / v.sum())[:4]),
    "column sum of a row": ("p[:] = pl.col_sum(v)[0:1, 0:4]", lambda x, v: v[:4]),
    "one element with rows and columns": ("p[1:2] = pl.full([1, 1], pl.FP32, 2.0)", lambda x, v: [0, 2, 0, 0]),
}


@pytest.mark.parametrize("name", SMALL)
def test_small_work_beside_divided_work(name: str) -> None:
    body, wanted = SMALL[name]
    text = (
        "@entry\ndef main(x: pl.Tensor[[3, 40, 64], pl.FP32], v: pl.Tensor[[64], pl.FP32], n: int, "
        "out: pl.Out[pl.Tensor[[3, 40, 64], pl.FP32]], p: pl.Out[pl.Tensor[[4], pl.FP32]]):\n"
        f"    {SCOPE}        out[:] = x + 1.0\n{textwrap.indent(textwrap.dedent(body), '        ')}\n    return out\n"
    )
    random = np.random.default_rng(5)
    x, v = random.standard_normal((3, 40, 64)), random.uniform(1, 2, 64)
    values = {"x": x, "v": v, "n": 3, "out": np.zeros((3, 40, 64)), "p": np.zeros(4)}
    run(lowered(text), values)
    np.testing.assert_array_equal(values["out"], x + 1)
    np.testing.assert_allclose(values["p"], wanted(x, v), rtol=1e-12)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("out[:] = c + 1.0\nt = ⟦pl.load(c, [0, 0], [1, 64])⟧\nout = pl.store(t, [0, 0], out)", "a scope of its own"),
        (
            "t = pl.load(c, [0, 0], [1, 64])\nout = pl.store(t, [0, 0], out)\nout[:] = ⟦c + 1.0⟧",
            "a scope of its own, apart from the code for tiles in line ",
        ),
    ],
)
def test_code_for_tiles_beside_divided_work(body: str, message: str) -> None:
    marked = unmarked(text_of(body, LARGE, dynamic=True))
    with pytest.raises(CompileError) as caught:
        lowered(marked.text)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (marked.line, marked.column)


def pl_fp32():  # type: ignore[no-untyped-def]
    import pypto.language as pl

    return pl.FP32


def test_incore_function_with_large_tensors() -> None:
    params = "a: pl.Tensor[[300, 512], pl.FP32], out: pl.Out[pl.Tensor[[300, 512], pl.FP32]]"
    text = f"@incore\ndef part({params}):\n    out[:] = pl.exp(a) + 1.0\n@entry\ndef main({params}):\n    part(a, out)\n    return out\n"
    values = {"a": np.random.default_rng(1).standard_normal((300, 512)), "out": np.zeros((300, 512))}
    run(lowered(text), values)
    np.testing.assert_allclose(values["out"], np.exp(values["a"]) + 1)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("out[:] = ⟦pl.add(c, a)⟧", "pl.add: needs tensors of one shape, got [M, N] and [M, K]"),
        ("out[:] = ⟦a + c⟧", "+: needs tensors of one shape, got [M, K] and [M, N]"),
        ("out[:] = ⟦pl.matmul(a, c)⟧", "[K] columns meet [M] rows"),
        ("⟦out[:] = a⟧", "but what is assigned is [M, K]"),
        ("⟦c[:]⟧ = a + a", "c is an input; to write it"),
        ("out[:] = ⟦pl.cast(c, pl.INDEX)⟧", "cannot turn FP32 into INDEX"),
    ],
)
def test_mistakes_with_whole_tensors(body: str, message: str) -> None:
    marked = unmarked(text_of(body, LARGE, dynamic=True))
    with pytest.raises(CompileError) as caught:
        lowered(marked.text)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (marked.line, marked.column)
