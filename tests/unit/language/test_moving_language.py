"""Moving, gathering and changing elements in the language: what it means, and one error for each mistake."""

# ruff: noqa: E501 - bodies of kernels are easier to read on one line

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_texts import in_entry, in_incore, in_scope, lowered, unmarked

from pypto.ir.reference.interpreter import run
from pypto.language.errors import CompileError


def numbers(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-8, 9, (64, 64)) / 8.0


def result(text: str, n: int = 5) -> tuple[dict[str, Any], np.ndarray]:
    """Arguments and what the entry leaves in ``out``."""
    arguments = {"a": numbers(1), "b": numbers(2), "h": numbers(3), "n": n, "x": 0.25, "out": np.zeros((64, 64))}
    run(lowered(text), arguments)
    return arguments, arguments["out"]


def test_a_changed_tile_is_carried_by_loops_and_merged_by_branches() -> None:
    _, out = result(
        in_scope(
            "t = pl.full([64, 64], pl.FP32, 0.0)\nalias = t\nfor i in pl.range(n):\n    if i > 2:\n        pl.write(t, [i, 0], 1.0)\n"
            "    else:\n        t[0, i] = 2.0\n    for j in pl.range(2):\n        t[10 + i, j] = x\nout[:] = t + alias[1, 0]"
        )
    )
    expected = np.zeros((64, 64))
    expected[3:5, 0], expected[0, :3], expected[10:15, :2] = 1, 2, 0.25
    np.testing.assert_array_equal(out, expected)


def test_changes_reach_all_names_of_a_tile_and_the_callers() -> None:
    text = (
        "@inline\ndef mark(t, n):\n    same = t\n    for i in pl.range(n):\n        if i > 1:\n            pl.write(t, [0, i], same[0, i] + 1.0)\n"
        "        else:\n            same[1, i] = 5.0\n    if n > 3:\n        pl.write(t, [2, 0], 3.0)\n"
    )
    for n in (2, 5):
        _, out = result(
            text
            + in_scope(
                "t = pl.full([64, 64], pl.FP32, 0.0)\nother = t\nmark(t, n)\nmark(other, n)\nout[:] = t + other"
            ),
            n,
        )
        expected = np.zeros((64, 64))
        expected[0, 2:n], expected[1, :2] = 4, 10
        expected[2, 0] = 6 if n > 3 else 0
        np.testing.assert_array_equal(out, expected)


def test_a_tile_that_is_assigned_keeps_what_it_was() -> None:
    arguments, out = result(in_scope("t = a * 1.0\nu = pl.assemble(t, b[0:4, 0:8], [n, 8])\nout[:] = u - t"))
    expected = np.zeros((64, 64))
    expected[5:9, 8:16] = arguments["b"][:4, :8] - arguments["a"][5:9, 8:16]
    np.testing.assert_array_equal(out, expected)


def test_elements_are_read_where_they_are_needed() -> None:
    arguments, out = result(
        in_scope(
            "t = a * 1.0\nfor i in pl.range(n):\n    if b[i, 0] > 0.0:\n        s = pl.read(t, [i, i]) + b[i, i + 1]\n"
            "        out[i, 0:64] = t[i:i + 1, :] * s\n    else:\n        out[i, 0:64] = t[i:i + 1, :]"
        )
    )
    a, b = arguments["a"], arguments["b"]
    for i in range(5):
        np.testing.assert_array_equal(out[i], a[i] * (a[i, i] + b[i, i + 1]) if b[i, 0] > 0 else a[i])


def test_an_output_is_read_back_on_the_core() -> None:
    text = "@incore\ndef step(a: pl.Tensor[[64, 64], pl.FP32], o: pl.InOut[pl.Tensor[[64, 64], pl.FP32]]):\n    o[:] = a\n    pl.write(o, [0, 0], pl.read(o, [3, 4]) + 1.0)\n"
    arguments, out = result(text + in_entry("step(a, out)\nreturn out"))
    assert out[0, 0] == arguments["a"][3, 4] + 1


def test_flat_positions() -> None:
    arguments, out = result(
        in_scope("t = a * 1.0\nout[:] = t\npl.write(out, 64 * n + 3, pl.read(t, n + 128) + pl.read(b, 65))")
    )
    assert out[5, 3] == arguments["a"][2, 5] + arguments["b"][1, 1]


def test_windows_are_clamped_and_filled_up() -> None:
    arguments, out = result(
        in_scope(
            "out[:] = pl.slice(a, [64, 64], [n, 60], pad_value=pl.PadValue.zero, clamp=True) + pl.fillpad(pl.load(b, [0, 0], [64, 64], valid_shape=[n, 3]))"
        )
    )
    expected = np.zeros((64, 64))
    expected[:59, :4] = arguments["a"][5:, 60:]
    expected[:5, :3] += arguments["b"][:5, :3]
    np.testing.assert_array_equal(out, expected)


def test_stores_add_and_store_parts() -> None:
    arguments, out = result(
        in_scope("out[:] = a\npl.store(b[0:8, 0:16], [2, n], out, shapes=[3, 4], atomic=pl.AtomicType.Add)").replace(
            "out: pl.Out", "out: pl.InOut"
        )
    )
    expected = arguments["a"].copy()
    expected[2:5, 5:9] += arguments["b"][:3, :4]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    ("load", "shapes", "rows", "columns"),
    [
        ("pl.load(a, [0, 0], [16, 64], valid_shape=[n, 64])", "[16, 64]", 5, 64),
        ("pl.load(a, [0, 0], [16, 64], valid_shape=[n, 64])", "[3, 32]", 3, 32),
        ("pl.load(a, [0, 0], [16, 64], valid_shape=[n, 48])", "[n + 1, 64]", 5, 48),
        ("pl.load(a, [64 - n, 0], [16, 64], clamp=True)", "[16, 64]", 5, 64),
    ],
)
def test_stores_leave_alone_what_a_tile_does_not_hold(load: str, shapes: str, rows: int, columns: int) -> None:
    for window in (shapes, shapes.replace("[", "[1, ").replace(",", ", 1,").replace("[1, 1,", "[1,")):
        rank = window.count(",") + 1
        text = in_scope(f"pl.store({load} * 2.0, [{', '.join(['0'] * rank)}], out, shapes={window})")
        arguments = {"a": numbers(1), "b": numbers(2), "h": numbers(3), "n": 5, "x": 0.25}
        if rank == 4:
            text = text.replace("out: pl.Out[pl.Tensor[[64, 64]", "out: pl.Out[pl.Tensor[[1, 64, 1, 64]")
        out = np.full((64, 64), 7.0)
        run(lowered(text), {**arguments, "out": out.reshape(1, 64, 1, 64) if rank == 4 else out})
        start = 59 if "clamp" in load else 0
        expected = np.full((64, 64), 7.0)
        expected[:rows, :columns] = arguments["a"][start : start + rows, :columns] * 2
        np.testing.assert_array_equal(out, expected)


def test_a_clamped_length_equals_the_same_length_written_out() -> None:
    arguments, out = result(
        in_scope(
            "left = pl.load(a, [0, 64 - n], [32, 32], valid_shape=[32, pl.min(32, n)])\n"
            "right = pl.load(b, [64 - n, 0], [32, 64], clamp=True)\npl.store(pl.matmul(left, right), [0, 0], out)"
        )
    )
    np.testing.assert_allclose(out[:32], arguments["a"][:32, 59:] @ arguments["b"][59:])


def test_bounds_from_the_end_and_ellipses() -> None:
    text = (
        "N = pl.dynamic('N')\n@entry\ndef main(a: pl.Tensor[[N, 64], pl.FP32], row: pl.Tensor[[64], pl.FP32], out: pl.Out[pl.Tensor[[N, 64], pl.FP32]], o: pl.Out[pl.Tensor[[64], pl.FP32]]):\n"
        "    with pl.at(level=pl.Level.CORE_GROUP):\n"
        "        out[...] = a[...]\n        out[-2:, -8:-4] = a[0:2, ..., 0:4] * 2.0\n        out[-1, ..., 0:8] = a[-3, 0:8]\n"
        "        o[...] = row[...]\n        o[-3:] = row[:3]\n    return out\n"
    )
    a, row, out, o = np.arange(20 * 64.0).reshape(20, 64), np.arange(64.0), np.zeros((20, 64)), np.zeros(64)
    run(lowered(text), {"a": a, "row": row, "out": out, "o": o})
    expected = a.copy()
    expected[-2:, -8:-4], expected[-1, :8] = a[:2, :4] * 2, a[-3, :8]
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(o, [*row[:-3], *row[:3]])


def test_shapes_in_short() -> None:
    arguments, out = result(
        in_scope(
            "out[0:32, 0:8] = pl.reshape(a[0:4, :], [-1, 8])\nout[32:33, :] = pl.full([64], pl.FP32, 3.0)\n"
            "out[33:34, :] = pl.reshape(a[0:8, 0:8], [64])\nlast = pl.tensor.dim(a, -1)\nout[34:35, last - 4:] = a[0:1, :4]\n"
            "t = pl.load(a, [60, 0], [8, 64], clamp=True)\nfor i in pl.range(n):\n    out[40 + i:41 + i, :] = b[i:i + 1, :]\n"
            "out[47:48, :] = pl.slice(a, [1, 64], [0, 0], valid_shape=[1, 2], pad_value=0)\nout[46:47, :] = pl.slice(a, [1, 64], [0, 0], pad_value=0)\n"
            "out[48:56, :] = pl.fillpad(t, pad_value=0)\nout[56:64, :] = pl.fillpad(t, pad_value=-math.inf)"
        )
    )
    expected = np.zeros((64, 64))
    a = arguments["a"]
    expected[:32, :8], expected[32], expected[33] = a[:4].reshape(-1, 8), 3, a[:8, :8].reshape(64)
    expected[34, -4:], expected[40:45], expected[48:52] = a[0, :4], arguments["b"][:5], a[60:]
    expected[47, :2], expected[46] = a[0, :2], a[0]
    expected[56:60], expected[60:] = a[60:], -np.inf
    np.testing.assert_array_equal(out, expected)


def test_shapes_of_tensors_in_short() -> None:
    text = (
        "@entry\ndef main(a: pl.Tensor[[4, 64], pl.FP32], out: pl.Out[pl.Tensor[[2, 2, 64], pl.FP32]]):\n"
        "    flat = pl.reshape(a, [2, -1, 64])\n    with pl.at(level=pl.Level.CORE_GROUP):\n"
        "        out[:] = flat + pl.full([2, 2, 64], pl.FP32, 1.0) + pl.slice(flat, [2, 2, 64], [0, 0, 0], pad_value=0)\n"
        "    return out\n"
    )
    a, out = np.arange(256.0).reshape(4, 64), np.zeros((2, 2, 64))
    run(lowered(text), {"a": a, "out": out})
    np.testing.assert_array_equal(out, a.reshape(2, 2, 64) * 2 + 1)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("out[:] = a", "the slice is [N, 64], but what is assigned is [M, 64]"),
        ("out[1:] = a[1:]", "the slice is [(N - 1), 64], but what is assigned is [(M - 1), 64]"),
        ("pl.store(a * 2.0, [0, 0], out, shapes=[16, 64])", "pl.store: shapes is not [M, 64], as what is stored"),
        ("pl.store(a * 2.0, [0, 0], out, atomic=pl.AtomicType.Add)", "pl.store: atomic takes tiles; load windows"),
        (
            "pl.load(a, [0, 64], [16, 64], clamp=True)",
            "clamp=True leaves nothing: offset 64 is not inside of an axis of",
        ),
        ("out[...] = a[..., ...]", "... can stand once"),
        (
            "pl.matmul(pl.load(a, [0, 0], [8, 64]), pl.load(out, [0, 0], [64, 64], clamp=True))",
            "not known to be equal: 64 and min(N, 64); load both with clamp=True or",
        ),
        (
            "acc = pl.create_tile([8, 64], pl.FP32, pl.MemorySpace.Acc)\n        tail = pl.load(a, [0, 0], [8, 64], clamp=True)\n        pl.matmul_acc(acc, tail, pl.load(out, [0, 0], [64, 64], valid_shape=[64, 64]))",
            "are not known to be equal: [8, 64] and [min(M, 8), 64]; start the accumulator",
        ),
        ("pl.reshape(pl.load(a, [0, 0], [8, 64]), [-1, -1])", "only one size can be -1"),
        ("pl.reshape(pl.load(a, [0, 0], [8, 64]), [-1, 5])", "512 elements do not divide into 5"),
        ("pl.store(pl.load(a, [0, 0], [8, 64]), [0, 0], out, shapes=[9, 64])", "size 9 of axis 0 is outside 1..8"),
    ],
)
def test_mistakes_with_lengths(body: str, message: str) -> None:
    text = (
        "N, M = pl.dynamic('N'), pl.dynamic('M')\n@entry\ndef main(a: pl.Tensor[[M, 64], pl.FP32], out: pl.InOut[pl.Tensor[[N, 64], pl.FP32]]):\n"
        f"    with pl.at(level=pl.Level.CORE_GROUP):\n        {body}\n    return out\n"
    )
    with pytest.raises(CompileError) as caught:
        lowered(text)
    assert message in str(caught.value)


def test_whole_tensors_of_run_time_sizes() -> None:
    text = (
        "N = pl.dynamic('N')\n@entry\ndef main(a: pl.Tensor[[N, 64], pl.FP32], row: pl.Tensor[[1, 64], pl.FP32], out: pl.Out[pl.Tensor[[N, 64], pl.FP32]], wide: pl.Out[pl.Tensor[[N, 128], pl.FP32]], three: pl.Out[pl.Tensor[[3, N, 64], pl.FP32]]):\n"
        "    start = pl.create_tensor([a.shape[0], 64], dtype=pl.FP32, init_value=2.0)\n"
        "    with pl.at(level=pl.Level.CORE_GROUP):\n"
        "        out[:] = pl.slice(a, [pl.tensor.dim(a, 0), 64], [3, 0], pad_value=pl.PadValue.zero, clamp=True) + start\n"
        "        wide[:] = pl.concat(pl.tensor.expand_clone(row, a), a)\n"
        "        three[:] = pl.tensor.expand_clone(pl.reshape(a, [1, a.shape[0], 64]), three)\n    return out\n"
    )
    a, row = np.arange(20 * 64.0).reshape(20, 64), np.arange(64.0)[None]
    out, wide, three = np.zeros((20, 64)), np.zeros((20, 128)), np.zeros((3, 20, 64))
    run(lowered(text), {"a": a, "row": row, "out": out, "wide": wide, "three": three})
    np.testing.assert_array_equal(out, np.pad(a[3:], ((0, 3), (0, 0))) + 2)
    np.testing.assert_array_equal(wide, np.hstack([np.broadcast_to(row, a.shape), a]))
    np.testing.assert_array_equal(three, np.broadcast_to(a, (3, 20, 64)))


def test_other_shapes_of_tensors() -> None:
    arguments, out = result(
        in_entry(
            "v = pl.tensor.view(a, [32, 128])\nwith pl.at(level=pl.Level.CORE_GROUP):\n    out[:] = pl.concat(v[:, 64:128], v[:, 0:64])[0:32, 0:64] + pl.tensor.expand_clone(b[0:1, :], a)[0:32, :]\nreturn out"
        ).replace("out[:] =", "out[0:32, :] =")
    )
    expected = np.zeros((64, 64))
    expected[:32] = arguments["a"].reshape(32, 128)[:, 64:] + arguments["b"][:1]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (in_scope("out[:] = pl.fillpad(a, pad_value=⟦pl.PadValue.null⟧)"), "pad_value must be one of pl.PadValue.zero"),
        (in_scope("out[:] = ⟦pl.fillpad_expand(a, [32, 64])⟧"), "is smaller than that of the tile"),
        (in_scope("t = a * 1.0\nout[:] = ⟦pl.assemble(t, b, [1, 0])⟧"), "axis 0 ends at 65, but the tile has 64 there"),
        (in_scope("out[:] = ⟦pl.concat(a[0:32, :], b)⟧"), "cannot join a tile [32, 64]"),
        (in_scope("out[:] = pl.gather_mask(a, ⟦9⟧)"), "mask_pattern must be one of pl.MaskPattern.P0101"),
        (in_scope("out[:] = ⟦pl.mrgsort(a)⟧"), "needs two to four sources, or one and block_len"),
        (in_scope("out[:] = ⟦pl.mrgsort(a, block_len=3)⟧"), "a multiple of 2; got 3"),
        (
            in_scope("out[:] = ⟦pl.scatter_update(a, 1, pl.full([1, 8], pl.INT32, 0), b)⟧"),
            "dim must be -2, not the number 1",
        ),
        (in_scope("out[:] = ⟦pl.scatter(a, b, h)⟧"), "indexes has element type"),
        (in_scope("out[:] = pl.cast(⟦pl.ci(0, [2, 64])⟧, pl.FP32)"), "counts along one row, got 2 rows"),
        (
            in_scope("out[:] = pl.cast(⟦pl.random(0, 0, 0, 0, 0, 0, [64, 64], rounds=5)⟧, pl.FP32)"),
            "rounds cannot be 5",
        ),
        (in_scope("out[:] = pl.tri(0, [64, 64], dtype=⟦pl.INT8⟧)"), "dtype must be one of"),
        (in_scope("out[:] = ⟦pl.reinterpret_view(a, pl.INT8, shape=[64, 64])⟧"), "has 4096"),
        (in_scope("pl.store(a, [0, 0], out, atomic=⟦'add'⟧)"), "atomic must be pl.AtomicType.Add or None_"),
        (in_scope("out[:] = ⟦pl.matmul_bias(a, b, h)⟧"), "bias"),
        (in_scope("out[:] = pl.gemv(⟦a⟧, b)"), "lhs must be a row [1, K]"),
        (in_scope("out[:] = ⟦pl.tensor.gather(a)⟧"), "needs index, mask_pattern or kvalue"),
        (in_scope("out[:] = pl.tensor.gather(a, dim=⟦2⟧, index=pl.full([64, 64], pl.INT32, 0))"), "dim must be 0 or 1"),
        (
            in_scope("out[:] = pl.mgather(a, pl.full([1, 64], pl.INT32, 0), gather_oob=⟦'skip'⟧)"),
            "gather_oob must be one of 'undefined', 'clamp'",
        ),
        (
            in_scope("out[:] = ⟦pl.extract(a, 0, 0, [64, 64], target_memory=pl.MemorySpace.Acc)⟧"),
            "target_memory must be Vec, Left, Right or Mat",
        ),
        (in_scope("out[:] = pl.matmul(a, b, c_matrix_nz=⟦True⟧)"), "not supported: products are stored row by row"),
        (
            in_scope("t = a * 1.0\nt[0] = ⟦1.0⟧\nout[:] = t")
            .replace("⟦1.0⟧", "1.0")
            .replace("t[0] = 1.0", "⟦t[0] = 1.0⟧"),
            "a part of a tile is assigned tiles",
        ),
        (
            in_scope("out[:] = pl.move(a, pl.Mem.Vec, blayout=⟦pl.TileLayout.col_major⟧)"),
            "not supported: it is row_major in Vec",
        ),
        (in_incore("out[:] = a\nx = ⟦out[0, 0]⟧"), "out is an output"),
        (in_incore("out[:] = ⟦pl.tensor.view(a, [32, 128])⟧"), "reshape the tensor in the entry"),
        (
            in_scope("out[:] = ⟦pl.tensor.paged_gather⟧(a, a, a, 1, 1, 1)"),
            "is not supported: read the table with pl.read",
        ),
        (in_scope("out[:] = ⟦pl.matmul_mx⟧(a, a, b, b)"), "pl.matmul_mx is not supported: ptoas"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    marked = unmarked(text)
    with pytest.raises(CompileError) as caught:
        lowered(marked.text)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (marked.line, marked.column)
