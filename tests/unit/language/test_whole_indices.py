"""Gathers, scatters and patterns of whole tensors of any size and rank: what NumPy gives."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_texts import lowered
from whole_texts import Given, check, different, places, real, refused, text_of, whole

Shape = tuple[int, ...]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("source", "index", "axis"),
    [
        ((300, 500), (300, 90), -1),
        ((40, 70000), (33, 300), 1),
        ((5000, 70), (300, 70), 0),
        ((3, 50, 70), (4, 50, 70), 0),
        ((3, 50, 70), (3, 60, 70), 1),
        ((3, 50, 70), (3, 50, 90), 2),
        ((70000,), (333,), 0),
        ((700,), (33,), -1),
        ((2, 3, 4, 50), (2, 3, 9, 50), -2),
    ],
)
def test_gather_along_an_axis(source: Shape, index: Shape, axis: int, dynamic: bool) -> None:
    given: Given = {"x": real(1, *source), "i": places(2, source[axis], *index)}
    x, i = (array for array, _ in given.values())
    if dynamic and any(a != b for n, (a, b) in enumerate(zip(source, index, strict=True)) if n != axis % len(source)):
        return
    part = x[tuple(slice(None) if n == axis % x.ndim else slice(size) for n, size in enumerate(index))]
    wanted = np.take_along_axis(part, whole(i), axis)
    check(f"out[:] = pl.tensor.gather(x, {axis}, i) * 2.0", given, wanted * 2, dynamic=dynamic)


@pytest.mark.parametrize("form", ["new", "of a result", "number"])
@pytest.mark.parametrize(
    ("target", "count", "axis"), [((3, 50, 700), 20, -1), ((700, 300), 60, 0), ((3, 50, 70), 2, 0), ((9000,), 40, 0)]
)
def test_scatter_along_an_axis(target: Shape, count: int, axis: int, form: str) -> None:
    index, dtype = different(1, axis, count, *target)
    given: Given = {"x": real(2, *target), "i": (index, dtype), "s": real(3, *index.shape)}
    x, s = given["x"][0], given["s"][0]
    wanted = x.copy()
    np.put_along_axis(wanted, whole(index), 3.0 if form == "number" else s, axis)
    call, factor = {
        "new": (f"pl.tensor.scatter(x, {axis}, i, s)", 1),
        "of a result": (f"pl.tensor.scatter(x * 2.0, {axis}, i, s + s) * 1.0", 2),
        "number": (f"pl.tensor.scatter(x, {axis}, i, 3.0)", 1),
    }[form]
    check(f"out[:] = {call}", given, wanted * factor)


def test_scatter_leaves_its_operand_as_it_is() -> None:
    given: Given = {"x": real(1, 300, 200), "i": different(2, 0, 70, 300, 200), "s": real(3, 70, 200)}
    x, i, s = (array for array, _ in given.values())
    wanted = x * 2
    np.put_along_axis(wanted, whole(i), s, 0)
    check("t = x * 2.0\nu = pl.scatter(t, s, i)\nout[:] = u - t", given, wanted - x * 2)


@pytest.mark.parametrize("pattern", ["P0101", "P1010", "P0001", "P0010", "P0100", "P1000", "P1111"])
def test_patterns(pattern: str) -> None:
    given: Given = {"x": real(1, 3, 70, 600)}
    x, digits = given["x"][0], pattern[1:][::-1]
    columns = [c for c in range(600) if digits[c % 4] == "1"]
    check(f"out[:] = pl.tensor.gather(x, mask_pattern=pl.MaskPattern.{pattern}) + 1.0", given, x[..., columns] + 1)
    wide = np.zeros((3, 70, 600 * 600 // len(columns)))
    wide[..., [c for c in range(wide.shape[-1]) if digits[c % 4] == "1"]] = x
    check(f"out[:] = pl.tensor.scatter(x, mask_pattern=pl.MaskPattern.{pattern})", given, wide)


@pytest.mark.parametrize("mode", ["eq", "gt"])
@pytest.mark.parametrize("shape", [(2, 70, 333), (70, 333), (9, 16000)])
def test_positions_of_elements_that_compare(shape: Shape, mode: str) -> None:
    x = np.random.default_rng(1).integers(0, 40, shape).astype(np.float64)
    keys = np.random.default_rng(2).integers(30, 40, (*shape[:-1], 1)).astype(np.float64)
    holds = x > keys if mode == "gt" else x == keys
    width = int(holds.sum(-1).max())
    found, counts = np.zeros((*shape[:-1], width)), holds.sum(-1, keepdims=True)
    for row in np.ndindex(shape[:-1]):
        flat = np.flatnonzero(holds[row]) + np.ravel_multi_index(row, shape[:-1]) * shape[-1] + 5
        found[row][: len(flat)] = flat
    given: Given = {"x": (x, "FP32"), "k": (keys, "FP32")}
    call = f"p, n = pl.tensor.gather(x, kvalue=k, cmp_mode={mode!r}, out_cols={width}, offset=5)"
    check(f"{call}\nout[:] = p", given, found, "INT32")
    check(f"{call}\nout[:] = n", given, counts, "INT32")


@pytest.mark.parametrize(
    ("target", "index", "source"),
    [
        ((900, 300), (1, 400), (400, 300)),
        ((900, 300), (400,), (400, 300)),
        ((900, 300), (400, 1), (400, 300)),
        ((900, 300), (20, 20), (400, 300)),
        ((30, 30, 1, 300), (20, 20), (20, 20, 1, 300)),
    ],
)
def test_rows_are_replaced(target: Shape, index: Shape, source: Shape) -> None:
    rows = np.random.default_rng(1).permutation(900)[:400].reshape(index).astype(np.float64)
    given: Given = {"x": real(2, *target), "i": (rows, "INT32"), "s": real(3, *source)}
    x, s = given["x"][0], given["s"][0]
    wanted = x.reshape(900, 300).copy()
    wanted[whole(rows).ravel()] = s.reshape(400, 300)
    wanted = wanted.reshape(target)
    check("out[:] = pl.scatter_update(x, -2, i, s)", given, wanted)
    check("out[:] = pl.scatter_update(x, i, s) * 2.0", given, wanted * 2)
    check("out[:] = x\nout = pl.scatter_update(out, -2, i, s)", given, wanted)
    check("out[:] = x\npl.scatter_update(out, -2, i, s)", given, wanted)
    check("t = x + 0.0\nu = pl.scatter_update(t, -2, i, s)\nout[:] = u - t", given, wanted - x)


def test_rows_of_run_time_length_and_longer_than_the_chip() -> None:
    rows, dtype = different(1, 0, 70, 200)
    for width, dynamic in ((90, True), (700, True), (70000, False)):
        given: Given = {"c": real(2, 200, width), "x": real(3, 70, width), "i": (rows, dtype)}
        c, x = given["c"][0], given["x"][0]
        wanted = c.copy()
        wanted[whole(rows)] = x
        check("out[:] = pl.scatter_update(c, -2, i, x)", given, wanted, dynamic=dynamic)
        check("out[:] = pl.mgather(c, i)", given, c[whole(rows)], dynamic=dynamic)


def test_rows_replaced_in_place_are_not_copied() -> None:
    given: Given = {"x": real(2, 900, 300), "i": places(1, 900, 1, 400), "s": real(3, 400, 300)}
    program = lowered(text_of("out[:] = x\npl.scatter_update(out, -2, i, s)", given, ((900, 300), "FP32")))
    assert not [op for op in program.entry_function.body.walk() if op.name == "tensor.create"]


def test_rows_from_the_same_tensor_are_those_before() -> None:
    rows = np.arange(1, 301, dtype=np.float64)[None]
    given: Given = {"x": real(1, 900, 300), "i": (rows, "INT32")}
    x = given["x"][0]
    wanted = x.copy()
    wanted[1:301] = x[:300]
    check("out[:] = x\npl.scatter_update(out, -2, i, out[0:300])", given, wanted)


def test_elements_and_rows_at_positions() -> None:
    given: Given = {"x": real(1, 400, 300), "i": places(2, 120000, 100, 400), "r": places(3, 400, 1, 500)}
    x, i, r = (array for array, _ in given.values())
    check("out[:] = pl.gather(x, i, x)", given, x.ravel()[whole(i)])
    check("out[:] = pl.mgather(x, i, coalesce='elem')", given, x.ravel()[whole(i)])
    check("out[:] = pl.mgather(x, r) * 2.0", given, x[whole(r)[0]] * 2)
    shifted: Given = {**given, "r": (r - 10, "INT32")}
    check("out[:] = pl.mgather(x, r, gather_oob='clamp')", shifted, x[np.maximum(whole(r)[0] - 10, 0)])
    order = np.random.default_rng(4).permutation(120000).reshape(300, 400).astype(np.float64)
    given = {"x": real(1, 400, 300), "i": (order, "INT32"), "s": real(5, 300, 400)}
    wanted = x.copy()
    wanted.ravel()[whole(order)] = given["s"][0]
    check("out[:] = x\nout = pl.mscatter(s, i, out)", given, wanted)
    check("out[:] = x\npl.mscatter(s, i, out)", given, wanted)


def test_axes_are_those_of_the_tensor_also_where_its_tile_has_two() -> None:
    given: Given = {"x": real(1, 1, 8, 8), "i": places(2, 8, 1, 8, 8), "v": real(3, 64), "k": places(4, 64, 64)}
    x, i, v, k = (array for array, _ in given.values())
    for axis in (1, 2, -2):
        wanted = np.take_along_axis(x * 2, whole(i), axis)
        check(f"t = x * 2.0\nout[:] = pl.tensor.gather(t, {axis}, i + 0)", given, wanted)
    check("t = x * 2.0\nout[:] = pl.transpose(t + 1.0, 2, 1)", given, np.swapaxes(x * 2 + 1, 1, 2))
    check("t = x * 2.0\nout[:] = pl.transpose(t, 0, 1)", given, np.swapaxes(x * 2, 0, 1))
    for axis in (0, 1, -1):
        check(f"out[:] = pl.tensor.gather(v + v, {axis}, k + 0) * 0.5", given, v[whole(k)])
    check("t = x * 2.0\nout[:] = t[0:1, 2:5]", given, x[:, 2:5] * 2)
    check("t = v * 2.0\nout[:] = t[3:9] + t[0]", given, v[3:9] * 2 + v[0] * 2)
    check("t = x * 2.0\nout[:] = pl.slice(t, [1, 3, 8], [0, 2, 0])", given, x[:, 2:5] * 2)
    for axes in ("0, 1", "-1, -2"):
        check(f"out[:] = pl.transpose(v * 2.0, {axes})", given, v[:, None] * 2)
        check(f"w = pl.exp(x)\nout[:] = pl.transpose(v, {axes})", given, v[:, None])


def test_block_of_a_tensor_at_a_place_of_another_one() -> None:
    given: Given = {"x": real(1, 400, 300), "t": real(2, 3, 500, 200)}
    x, t = (array for array, _ in given.values())
    wanted = x.copy()
    wanted[5:305, 3:103] = t[1, :300, 7:107]
    body = "out[:] = x\npl.gather_row(out, t, [5, 3], [1, 0, 7], [1, 300, 100])"
    check(body, given, wanted)
    wanted = x * 2
    wanted[5:105, :300] = t[2, :300, 7:107].T
    body = "y = x * 2.0\nz = pl.gather_row(y, t, [5, 0], [2, 0, 7], [300, 100], transpose=True)\nout[:] = z - y"
    check(body, given, wanted - x * 2)


@pytest.mark.parametrize(
    ("body", "shape", "message"),
    [
        ("out[:] = ⟦pl.tensor.gather(x, -1, i)⟧", (300, 90), "pl.tensor.gather: the index has 300 rows, the tile 40"),
        ("out[:] = pl.tensor.gather(z, 0, ⟦j3⟧)", (2, 40, 90), "index [2, 41, 90] does not stand beside [2, 40, 7000]"),
        ("out[:] = pl.tensor.gather(x, ⟦2⟧, j)", (40, 90), "dim must be 0 or 1, or -1 or -2, not 2"),
        ("out[:] = pl.tensor.gather(z, ⟦3⟧, j)", (40, 90), "dim is 3, but the tensor has the axes 0 to 2"),
        ("out[:] = ⟦pl.tensor.gather(x, 0, x)⟧", (40, 90), "indices has element type FP32"),
        ("out[:] = pl.tensor.gather(x, 0, j, mask_pattern=⟦1⟧)", (40, 90), "index and mask_pattern exclude each other"),
        ("out[:] = pl.tensor.gather(z, 0, j, kvalue=⟦1.0⟧)", (40, 90), "index and kvalue exclude each other"),
        ("pl.gather_row(out, ⟦j⟧, [0, 0], [0, 0], [9, 9])", (40, 90), "dst is of FP32 and src of INT32; use pl.cast"),
        ("out[:] = ⟦pl.tensor.gather(x)⟧", (40, 90), "needs index, mask_pattern or kvalue"),
        ("out[:] = ⟦pl.tensor.gather(x, kvalue=1.0)⟧", (40, 90), "kvalue needs out_cols, the most positions of a row"),
        ("out[:] = ⟦pl.tensor.gather(y, mask_pattern=1)⟧", (40, 90), "90001 columns are not a multiple of 2"),
        (
            "out[:] = pl.tensor.scatter(z, -1, j3[:, 0:40], ⟦z⟧)",
            (2, 40, 7000),
            "src is [2, 40, 7000] and the index [2, 40, 90]",
        ),
        ("out[:] = ⟦pl.mrgsort(x, block_len=16384)⟧", (40, 70000), "four runs of 16384 elements of FP32 and what "),
        ("out[:] = ⟦pl.mrgsort(x, x)⟧", (40, 140000), "runs of 70000 + 70000 elements of FP32 and their sum take "),
        ("out[:] = ⟦pl.sort32(x, j)⟧", (40, 70000), "src is [40, 70000] and idx is [40, 90]; they need one shape"),
        ("out[:] = ⟦pl.scatter_update(x, j3[0:1], x)⟧", (40, 70000), "index must be one row or column"),
        ("out[:] = ⟦pl.scatter_update(x, 1, j[0:1], x)⟧", (40, 70000), "dim must be -2, not the number 1"),
    ],
)
def test_mistakes_with_indices(body: str, shape: Shape, message: str) -> None:
    given: Given = {"x": real(1, 40, 70000), "y": real(1, 40, 90001), "z": real(1, 2, 40, 7000)}
    indexes: Given = {"i": places(1, 9, 300, 90), "j": places(1, 9, 40, 90), "j3": places(1, 9, 2, 41, 90)}
    assert message in refused(body, {**given, **indexes}, (shape, "FP32"))


def test_index_longer_than_its_tile_is_refused() -> None:
    given: Given = {"x": real(1, 8, 32), "i": places(1, 8, 16, 32)}
    message = refused("out[:] = ⟦pl.tensor.gather(x, -1, i)⟧", given, ((16, 32), "FP32"))
    assert "the index has 16 rows, the tile 8" in message
    message = refused("out[:] = ⟦pl.tensor.scatter(x, 0, i, x)⟧", given, ((8, 32), "FP32"))
    assert "the index has 16 rows, the tile 8" in message


def test_comparing_rows_that_do_not_fit_is_refused() -> None:
    body = "p, n = ⟦pl.tensor.gather(x, kvalue=1.0, out_cols=8)⟧\nout[:] = p"
    message = refused(body, {"x": real(1, 40, 70000)}, ((40, 8), "INT32"))
    assert "pl.gather_compare: a row of 70000 elements of FP32 and 8 positions take " in message
