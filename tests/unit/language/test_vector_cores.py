"""Regions that both vector cores of a block run: halves of tiles, what crosses, what names stand for afterwards."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_texts import in_scope, lowered, unmarked

from pypto.ir.reference.interpreter import run
from pypto.language.errors import CompileError

HALF = "for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n"
SIDE = "for lane in pl.split_aiv(2, mode=pl.SplitMode.LEFT_RIGHT):\n"
NONE = "for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):\n"


def result(body: str, n: int = 4, before: str = "") -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    given = {name: rng.integers(-8, 9, (64, 64)) / 8.0 for name in "abh"}
    out = np.full((64, 64), np.nan)
    run(lowered(before + in_scope(body)), {**given, "n": n, "x": 0.5, "out": out})
    return {**given, "out": out}


def test_each_core_gets_its_half_of_the_rows_or_columns() -> None:
    got = result(
        "t = pl.matmul(h, h)\n"
        + HALF
        + "    u = pl.aiv_shard(t)\n"
        + "    pl.store(u + pl.load(a, [lane * 32, 0], [32, 64]), [lane * 32, 0], out)\n"
    )
    np.testing.assert_array_equal(got["out"], got["h"] @ got["h"] + got["a"])
    got = result(
        "t = pl.matmul(h, h)\n"
        + SIDE
        + "    u = pl.aiv_shard(t)\n"
        + "    pl.store(u * pl.cast(pl.get_subblock_idx() + 1, pl.FP32), [0, lane * 32], out)\n"
    )
    np.testing.assert_array_equal(got["out"], (got["h"] @ got["h"]) * np.where(np.arange(64) >= 32, 2, 1))


@pytest.mark.parametrize("head", [HALF, SIDE])
def test_gathered_halves_are_one_tile_for_the_matrix_core(head: str) -> None:
    got = result(
        f"t = pl.matmul(h, h)\n{head}"
        "    t = pl.aiv_shard(t) * 0.125\n"
        "    g = pl.aic_gather(pl.cast(t, pl.FP16))\n"
        "    t = pl.aic_gather(t)\n"
        "out[:] = pl.matmul(g, h) + t"
    )
    t = got["h"] @ got["h"] * 0.125
    np.testing.assert_allclose(got["out"], t.astype(np.float16) @ got["h"] + t, rtol=1e-6)


def test_what_a_core_made_is_there_in_later_regions_and_turns() -> None:
    got = result(
        f"{NONE}    s = pl.full([32, 1], pl.FP32, 1.0)\n"
        "for i in pl.range(n):\n"
        "    t = pl.matmul(h, h)\n"
        f"    {HALF}        s = s * 0.5 + pl.row_max(pl.aiv_shard(t))\n"
        f"{HALF}    pl.store(pl.row_expand_mul(pl.load(a, [lane * 32, 0], [32, 64]), s), [lane * 32, 0], out)\n"
    )
    expected = np.ones((64, 1))
    for _ in range(4):
        expected = expected * 0.5 + (got["h"] @ got["h"]).max(1, keepdims=True)
    np.testing.assert_allclose(got["out"], got["a"] * expected, rtol=1e-12)


def test_branches_keep_the_values_of_both_cores() -> None:
    body = (
        "t = pl.matmul(h, h)\n"
        f"{HALF}    s = pl.aiv_shard(t)\n"
        "if n > 3:\n"
        f"    {HALF}        s = s + 1.0\n"
        f"{HALF}    pl.store(s, [lane * 32, 0], out)\n"
    )
    for n in (3, 4):
        got = result(body, n)
        np.testing.assert_array_equal(got["out"], got["h"] @ got["h"] + (n > 3))


def test_a_region_that_names_no_half_is_divided_by_the_compiler() -> None:
    got = result(
        f"{HALF}    t = pl.load(a, [0, 0], [64, 64])\n    pl.store(pl.row_expand_mul(t, pl.row_sum(t)), [0, 0], out)\n"
    )
    np.testing.assert_array_equal(got["out"], got["a"] * got["a"].sum(1, keepdims=True))


def test_rows_of_one_are_no_halves() -> None:
    got = result(
        f"{HALF}    t = pl.load(a, [lane * 5, 0], [1, 64])\n    pl.store(t, [lane * 5, 0], out)\n"
        f"    u = pl.full([1, 64], pl.FP32, 3.0)\n    pl.store(u, [lane + 8, 0], out)\n"
    )
    for row in (0, 5):
        np.testing.assert_array_equal(got["out"][row], got["a"][row])
    assert (got["out"][8:10] == 3).all()
    assert np.isnan(got["out"][1:5]).all()


def test_tiles_of_its_own_are_those_of_each_core() -> None:
    got = result(
        f"{NONE}    t = pl.load(a, [lane * 32, 0], [32, 64])\n    k = lane * 32\n"
        "    w = pl.full([1, 64], pl.FP32, 7.0)\n"
        f"{NONE}    pl.store(t * 2.0, [k, 0], out)\n"
        "pl.store(w, [0, 0], out)"
    )
    np.testing.assert_array_equal(got["out"][1:], got["a"][1:] * 2)
    assert (got["out"][0] == 7).all()


def test_functions_that_are_spliced_take_part() -> None:
    helper = "@inline\ndef half(t):\n    return pl.aiv_shard(t) + 1.0\n"
    got = result(
        f"t = pl.matmul(h, h)\n{HALF}    pl.store(half(t), [pl.get_subblock_idx() * 32, 0], out)\n", before=helper
    )
    np.testing.assert_array_equal(got["out"], got["h"] @ got["h"] + 1)


def test_lengths_that_are_known_at_run_time_are_divided_too() -> None:
    body = (
        "t = pl.set_validshape(pl.load(a, [0, 0], [64, 64]), n, 64)\n"
        f"{HALF}    pl.store(pl.aiv_shard(t), [lane * 32, 0], out)\n"
    )
    for n in (7, 32, 40, 64):
        got = result(body, n)
        np.testing.assert_array_equal(got["out"][:n], got["a"][:n])
        assert np.isnan(got["out"][n:]).all()


def test_values_that_only_branches_make_are_merged_for_each_core() -> None:
    body = (
        "t = pl.matmul(h, h)\n"
        f"if n > 3:\n    {HALF}        s = pl.aiv_shard(t)\nelse:\n    {HALF}        s = pl.aiv_shard(t) * 2.0\n"
        f"{HALF}    pl.store(s, [lane * 32, 0], out)\n"
    )
    for n in (3, 4):
        got = result(body, n)
        np.testing.assert_array_equal(got["out"], got["h"] @ got["h"] * (2 if n == 3 else 1))


def test_tiles_that_are_changed_in_place() -> None:
    rows, columns = np.indices((64, 64))
    load = "t = pl.load(a, [0, 0], [32, 64])\nu = t\n"
    got = result(f"{load}{NONE}    pl.write(t, [0, 0], 5.0)\npl.store(u, [0, 0], out)\npl.store(t, [32, 0], out)")
    twice = np.vstack([got["a"][:32]] * 2)
    np.testing.assert_array_equal(got["out"], np.where((rows % 32 == 0) & (columns == 0), 5, twice))
    got = result(f"{load}{NONE}    pl.write(t, [lane, 0], 5.0)\n{NONE}    pl.store(u, [lane * 32, 0], out)\n")
    np.testing.assert_array_equal(got["out"], np.where(((rows == 0) | (rows == 33)) & (columns == 0), 5, twice))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (f"{HALF}    m = ⟦pl.col_max(a)⟧", "col_max goes over the rows, of which each vector core has one half"),
        (f"{SIDE}    m = ⟦pl.row_sum(a)⟧", "row_sum goes over the columns, of which each vector core has one half"),
        (f"{SIDE}    m = ⟦pl.transpose(a, 0, 1)⟧", "a transpose swaps halves of columns"),
        (f"t = pl.matmul(h, h)\n{HALF}    u = pl.aiv_shard(t)\n    m = ⟦pl.matmul(h, h)⟧",
         "products run on the matrix core"),
        (f"{HALF}    m = ⟦pl.load(a, [0, 0], [33, 64])⟧", "33 rows are not divided between two vector cores"),
        (f"{HALF}    m = ⟦pl.load(a, [lane * 32, 0], [32, 64])⟧", "divides tiles by itself"),
        (f"t = pl.load(a, [0, 0], [33, 64])\n{HALF}    u = pl.aiv_shard(⟦t⟧)", "has 33 rows, which are not divided"),
        (f"t = pl.load(a, [0, 0], [64, 64], valid_shape=[9, 64])\n{HALF}    u = pl.aiv_shard(⟦t⟧)",
         "all of them on the first vector core"),
        (f"{HALF}    u = pl.aiv_shard(a)\nout[:] = ⟦u⟧", "u has a value of its own on each vector core"),
        (f"{NONE}    u = pl.load(a, [lane, 0], [1, 64])\npl.store(⟦u⟧, [0, 0], out)", "u has a value of its own"),
        (f"t = pl.load(a, [0, 0], [32, 64])\nu = t\n{NONE}    pl.write(t, [lane, 0], 5.0)\npl.store(⟦u⟧, [0, 0], out)",
         "u has a value of its own"),
        (f"{NONE}    u = 1\nk = ⟦lane⟧", "known in its region of pl.split_aiv only"),
        (f"{NONE}    for i in ⟦pl.split_aiv(2, mode=pl.SplitMode.NONE)⟧:\n        pass", "inside another pl.split_aiv"),
        (f"{HALF}    u = pl.aiv_shard(a)\n    for i in pl.range(n):\n        g = ⟦pl.aic_gather(u)⟧",
         "not in a loop or branch"),
        (f"{HALF}    u = pl.aiv_shard(a)\n    g = pl.aic_gather(u)\n    g = ⟦g⟧ + 1.0", "use it behind the region"),
        (f"{HALF}    u = pl.set_validshape(pl.aiv_shard(a), n, 64)\n    g = pl.aic_gather(⟦u⟧)",
         "use pl.fillpad first"),
        (f"{NONE}    if lane == 0:\n        u = 1.0\nout[:] = a + ⟦u⟧", "u has a value of its own"),
        ("for lane in pl.split_aiv(2, mode=⟦2⟧):\n    pass", "mode must be one of pl.SplitMode, not the number 2"),
    ],
)  # fmt: skip
def test_mistakes_with_vector_cores(body: str, message: str) -> None:
    marked = unmarked(in_scope(body))
    with pytest.raises(CompileError) as caught:
        lowered(marked.text)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (marked.line, marked.column)
