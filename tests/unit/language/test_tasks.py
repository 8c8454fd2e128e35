"""Launches, submissions and groups of tasks: what they mean, what they wait for, and mistakes with them."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import numpy as np
import pytest
from kernel_texts import in_entry, lowered, module, unmarked

from pypto.codegen.generate import generate
from pypto.ir.nodes import Program
from pypto.ir.reference.interpreter import run
from pypto.language.errors import CompileError
from pypto.language.lower import lower
from pypto.language.source import collect

KERNELS = """
@incore
def scaled(a: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    i = pl.get_block_idx()
    t = pl.load(a, [i * 16, 0], [16, 64])
    out = pl.store(pl.mul(t, pl.cast(pl.get_block_num(), pl.FP32)), [i * 16, 0], out)
    return out

@incore
def count(i: int, out: pl.Out[pl.Tensor[[4], pl.INT32]]):
    pl.write(out, [i], pl.cast(i, pl.INT32) - 1)

@incore
def twice(
    a: pl.Tensor[[64, 64], pl.FP32],
    out: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
    other: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
):
    out[:] = a * 2.0
    other[:] = a
    return out, other

"""
MAIN = """@entry
def main(
    a: pl.Tensor[[64, 64], pl.FP32], c: pl.Tensor[[4], pl.INT32], n: int, out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]
):
"""


def program(body: str) -> Program:
    lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
    return lower(collect(module(KERNELS + MAIN + lines + "    return out\n")["main"]), {})


def result(body: str, n: int = 4) -> tuple[np.ndarray, np.ndarray]:
    a = np.random.default_rng(1).integers(-8, 9, (64, 64)) / 8.0
    out = np.zeros((64, 64))
    run(program(body), {"a": a, "c": np.array([0.0, 1, 2, -1]), "n": n, "out": out})
    return a, out


def orchestration(body: str) -> list[str]:
    """The lines of the entry that are about groups and tasks, without what only names things."""
    text = generate(program(body), "Ascend910B", "sim")["orchestration/main.cpp"].decode()
    lines = [line.strip().replace("[[maybe_unused]] const pypto::Tasks ", "") for line in text.splitlines()]
    return [line for line in lines if line.startswith(("o.", "for ", "k")) or "Tasks " in line]


@pytest.mark.parametrize(
    ("body", "factor"),
    [
        ("for i in pl.spmd(4):\n    out = pl.store(pl.load(a, [i * 16, 0], [16, 64]), [i * 16, 0], out)", 1),
        ("for i in pl.spmd(n):\n    out[i * 16:i * 16 + 16, :] = a[i * 16:i * 16 + 16, :] * 2.0", 2),
        ("with pl.spmd(4):\n    i = pl.get_block_idx() * 16\n"
         "    pl.store(pl.load(a, [i, 0], [16, 64]), [i, 0], out)", 1),
        ("with pl.spmd(4):\n    out = scaled(a, out)", 4),
        ("with pl.spmd(n) as tasks:\n    scaled(a, out)", 4),
        ("out, tasks = pl.spmd_submit(scaled, a, out, core_num=4)", 4),
        ("with pl.cluster() as tasks:\n    for i in pl.spmd(4):\n        scaled(a, out)", 4),
        ("t = pl.create_tensor([64, 64], dtype=pl.FP32)\nt, k = pl.spmd_submit(scaled, a, t, core_num=4)\n"
         "out, _ = pl.spmd_submit(scaled, t, out, core_num=4, deps=[k])", 16),
    ],
)  # fmt: skip
def test_blocks_of_a_launch(body: str, factor: int) -> None:
    a, out = result(body)
    np.testing.assert_array_equal(out, a * factor)


def test_a_kernel_outside_of_a_launch_is_block_0_of_1() -> None:
    a, out = result("scaled(a, out)")
    np.testing.assert_array_equal(out[:16], a[:16])
    assert not out[16:].any()


def test_both_vector_cores_run_a_region_with_tiles_of_their_own() -> None:
    a, out = result(
        """
with pl.at(level=pl.Level.CORE_GROUP):
    t = pl.load(a, [0, 0], [16, 64])
    for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):
        t = pl.aiv_shard(t) + 1.0
        pl.store(pl.aic_gather(t), [lane * 16 + pl.get_subblock_idx() * 16, 0], out)
"""
    )
    np.testing.assert_array_equal(out[:16], a[:16] + 1)
    np.testing.assert_array_equal(out[32:48], a[:16] + 1)
    assert not out[16:32].any()


def test_a_predicate_reads_what_a_task_wrote() -> None:
    body = """
counts = pl.create_tensor([4], dtype=pl.INT32)
for e in pl.range(4):
    count(e, counts)
for e in pl.range(4):
    with pl.spmd(1, predicate=(counts[e] > 0)):
        pl.store(pl.load(a, [e * 16 + pl.get_block_idx(), 0], [16, 64]), [e * 16, 0], out)
    _, tasks = pl.submit(scaled, a, out, predicate=counts[e] >= 7)
"""
    a, out = result(body)
    np.testing.assert_array_equal(out[32:], a[32:])
    assert not out[:32].any()


def test_named_scopes_and_what_waits_for_them() -> None:
    assert orchestration(
        """
with pl.at(level=pl.Level.CORE_GROUP, name_hint="one") as first:
    out[:] = a + 1.0
with pl.at(level=pl.Level.CORE_GROUP, name_hint="two", deps=[first], allow_early_resolve=True,
           optimizations=[pl.split(pl.SplitMode.UP_DOWN), pl.cross_core_slot(slot_num=4)]):
    out[:] = a + 2.0
"""
    ) == [
        "o.enter({});", "o.submit(0).in(p0).out(p3).at(5);", "k1 = o.leave();",
        "o.enter({k1});", "o.submit(1).in(p0).out(p3).at(7);", "k2 = o.leave();",
    ]  # fmt: skip


def test_tasks_are_carried_through_loops_and_branches() -> None:
    lines = orchestration(
        """
last = None
for i in pl.range(n):
    if i == n - 1:
        last = None
    elif i > 2:
        out, last = pl.submit(scaled, a, out, deps=[last])
    else:
        with pl.at(level=pl.Level.CORE_GROUP, deps=[last]) as last:
            out[:] = a + 1.0
with pl.at(level=pl.Level.CORE_GROUP, deps=[last]):
    out[:] = a + 2.0
"""
    )
    carried = next(line for line in lines if line.startswith("pypto::Tasks n")).split("{")[0].split()[1]
    assert lines.count(f"o.enter({{{carried}}});") == 3


def test_tensors_that_order_no_tasks() -> None:
    lines = orchestration(
        """
t = pl.create_tensor([64, 64], dtype=pl.FP32, manual_dep=True)
scaled(pl.tensor.no_dep(a), t)
with pl.at(level=pl.Level.CORE_GROUP, no_dep_args=[a]):
    pl.store(pl.load(a, [0, 0], [64, 64]) + pl.load(t, [0, 0], [64, 64]), [0, 0], out)
with pl.at(level=pl.Level.CORE_GROUP):
    pl.store(pl.load(a, [0, 0], [64, 64]), [0, 0], out)
"""
    )
    text = "\n".join(lines)
    assert ".in(p0)" in lines[-2], "only the scope that says so"
    assert text.count(".in(p0)") == 1
    # Tasks that one call or scope becomes keep their order.
    assert text.count("o.enter({}, pypto::Orchestrator::Order::serial);") == 3


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("with ⟪, deps=⟦[a]⟧):\n    pass", "deps must be a list of tasks"),
        ("with ⟪, no_dep_args=⟦[n]⟧):\n    pass", "no_dep_args must be a list of tensors"),
        ("with ⟪, role=⟦'aic'⟧):\n    pass", "role is not supported"),
        ("with ⟪, windowize=⟦True⟧):\n    pass", "windowize is not supported"),
        ("with ⟪, dumps=⟦[n]⟧):\n    pass", "dumps must be a list of tensors"),
        ("with ⟪, optimizations=⟦[1]⟧):\n    pass", "optimizations must be a list of pl.split"),
        ("with ⟪, allow_early_resolve=⟦1⟧):\n    pass", "must be True or False"),
        ("with ⟪) as s:\n    out[:] = a + b\nx = ⟦s + 1⟧\nreturn out", "tasks"),
        ("with pl.spmd(⟦0⟧):\n    pass", "core_num must be 1 to 65536, got 0"),
        ("with ⟦pl.spmd(n)⟧:\n    out[:] = a + 1.0", "every block does the same work to the same memory"),
        ("with pl.spmd(2, predicate=(⟦n > 0⟧)):\n    pass", "predicate must be `tensor[i, j] > 0`"),
        ("with pl.spmd(2, predicate=⟦a[0, 0] > 0⟧):\n    pass", "predicate must be `tensor[i, j] > 0`"),
        ("for i in pl.spmd(2):\n    t = pl.load(a, [i, 0], [32, 64])\nout[:] = ⟦t⟧", "is a tile of each block"),
        ("pl.submit(⟦n⟧, a)", "takes a function under @pl.jit.incore first"),
        ("x = ⟦pl.spmd(2)⟧", "pl.spmd can only stand in `for i in pl.spmd(...):`"),
        ("x = ⟦pl.cluster()⟧", "pl.cluster can only stand in `with pl.cluster(...):`"),
        ("for i in ⟦pl.split_aiv(2, mode=pl.SplitMode.NONE)⟧:\n    pass", "stands outside a scope"),
        ("with ⟪):\n    for i in pl.split_aiv(⟦3⟧, mode=pl.SplitMode.NONE):\n        pass",
         "a block has two vector cores"),
        ("with ⟪):\n    t = ⟦pl.aiv_shard(a)⟧", "stands in `for lane in pl.split_aiv"),
        ("with ⟪):\n    with ⟦pl.spmd(2)⟧:\n        pass", "inside another scope"),
    ],
)  # fmt: skip
def test_mistakes(body: str, message: str) -> None:
    body = body.replace("⟪", "pl.at(level=pl.Level.CORE_GROUP")
    marked = unmarked(in_entry(body if "return out" in body else body + "\nreturn out"))
    with pytest.raises(CompileError) as caught:
        lowered(marked.text)
    error = caught.value
    assert message in error.message
    assert (error.line, error.column) == (marked.line, marked.column)


def test_the_examples_of_the_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (Path(__file__).parents[3] / "docs/guide/tasks.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", guide, re.S)
    kernels = [re.split(r"\n(?=\w[^\n]* = np\.)", block)[0] for block in blocks]
    (tmp_path / "guide_of_tasks.py").write_text("\n".join(kernels))
    monkeypatch.syspath_prepend(tmp_path)
    names = importlib.import_module("guide_of_tasks")
    out = np.zeros((64, 64))
    run(lower(collect(names.steps), {}), {"x": np.ones((64, 64)), "out": out})
    assert (out[:16] == 4).all() and (out[16:] == 3).all()
    a = np.full((64, 64), 0.125)
    run(lower(collect(names.soft_mix), {}), {"a": a, "w": a, "out": out})
    np.testing.assert_allclose(out, 0.125, rtol=1e-3)


def test_hand_written_code_has_to_be_passed_its_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "add.cpp").write_text('#include "pypto/kernel.h"\n')
    tensor = "pl.Tensor[[64, 64], pl.FP32]"
    (tmp_path / "hand_written.py").write_text(
        "import pypto.language as pl\n"
        f"@pl.jit.extern(core_type='aiv', source='add.cpp')\ndef add(x: {tensor}, i: int, y: pl.Out[{tensor}]): ...\n"
        f"@pl.jit\ndef told(x: {tensor}, out: pl.Out[{tensor}]):\n"
        "    for i in pl.spmd(4):\n        add(x, i, out)\n    return out\n"
        f"@pl.jit\ndef untold(x: {tensor}, out: pl.Out[{tensor}]):\n"
        "    pl.spmd_submit(add, x, 3, out, core_num=4)\n    return out\n"
    )
    names = importlib.import_module("hand_written")
    lower(collect(names.told), {})
    with pytest.raises(CompileError, match="hand-written code is not told its block; pass add the number"):
        lower(collect(names.untold), {})


def test_results_of_a_launch_stand_together() -> None:
    body = "c2 = pl.create_tensor([64, 64], dtype=pl.FP32)\n(out, c2), t = pl.submit(twice, a, out, c2)\n"
    body += "with pl.at(level=pl.Level.CORE_GROUP, deps=[t]):\n    out[:] = c2 + 1.0"
    assert orchestration(body) == orchestration(body.replace("(out, c2), t", "out, c2, t"))
    with pytest.raises(CompileError, match="3 names for 2 values"):
        program(body.replace("(out, c2), t", "(out, c2, x), t"))


def test_blocks_of_a_launch_are_counted_at_run_time() -> None:
    body = "for i in pl.spmd(n):\n    out[i:i + 1, :] = a[i:i + 1, :]"
    check = [line for line in orchestration(body) if "core_num" in line]
    assert len(check) == 1
    assert re.fullmatch(r'o.require\((\w+) >= 1 && \1 <= 65536, "core_num must be 1 to 65536"\);', check[0])
    assert not [line for line in orchestration(body.replace("(n)", "(4)")) if "core_num" in line]
