"""Filling, gathering, scattering, sorting and elements as numbers on the simulator, against NumPy."""

from __future__ import annotations

import ml_dtypes
import moving_kernels as kernels
import numpy as np
import pytest

from pypto.runtime.config import RunConfig
from pypto.runtime.errors import KernelRunError, SimulatorCheckError

F, H, Z, W, B = np.float32, np.float16, np.int32, np.int16, np.int8


def numbers(seed: int, *shape: int, dtype: type = F) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if np.issubdtype(dtype, np.integer):
        return rng.integers(-100, 100, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def indices(seed: int, limit: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, limit, shape).astype(Z)


def blank(*shape: int, dtype: type = F) -> np.ndarray:
    """What no operation gives, so that elements that are not written show."""
    return np.full(shape, 77, dtype)


@pytest.mark.parametrize(("rows", "cols"), [(5, 17), (1, 1)])
def test_filling(checked: RunConfig, rows: int, cols: int) -> None:
    a, h = numbers(1, 8, 32), numbers(2, 8, 32, dtype=H)
    i, b = numbers(3, 8, 32, dtype=Z), numbers(4, 8, 32, dtype=B)
    shapes = [((8, 32), F), ((8, 32), H), ((8, 32), Z), ((8, 32), B), ((16, 64), F), ((8, 64), F)]
    out = [blank(*s, dtype=d) for s, d in [*shapes, *[((8, 32), F)] * 3]]
    total = h.copy()
    kernels.filling(a, h, i, b, rows, cols, *out, total, config=checked)
    largest, smallest, whole, bytes_, expanded, joined, placed, clamped, corner = out

    def filled(
        source: np.ndarray, value: float, valid: tuple[int, int], shape: tuple[int, int] = (8, 32)
    ) -> np.ndarray:
        expected = np.full(shape, value, source.dtype)
        expected[: valid[0], : valid[1]] = source[: valid[0], : valid[1]]
        return expected

    np.testing.assert_array_equal(largest, filled(a, np.inf, (rows, cols)))
    np.testing.assert_array_equal(smallest, filled(h, -np.inf, (rows, cols)))
    np.testing.assert_array_equal(whole, filled(i, np.iinfo(Z).max, (rows, cols)))
    np.testing.assert_array_equal(bytes_, filled(b, -128, (3, cols)))
    np.testing.assert_array_equal(expanded, filled(a, -np.inf, (rows, cols), (16, 64)))
    np.testing.assert_array_equal(joined[:rows, : cols + 8], np.hstack([a[:rows, :cols], a[:rows, :8]]))
    assert (joined[rows:] == 77).all() and (joined[:, cols + 8 :] == 77).all()
    expected = a.copy()
    expected[rows // 2 : rows // 2 + 4, 16:24] = a[2:6, 8:16]
    expected[0:4, 0:8] = a[2:6, 8:16] * 2
    np.testing.assert_array_equal(placed, expected)
    np.testing.assert_array_equal(clamped, filled(a[5:, 30:], 0, (3, 2)))
    assert (corner[:4, :cols] == expected[:4, :cols]).all() and (corner[4:] == 77).all()
    sums = h + h
    sums[4:, 16:] += h[:4, :16]
    np.testing.assert_array_equal(total, sums)


def philox(key: list[int], counter: list[int], rounds: int) -> list[int]:
    """One block of Philox4x32."""
    c, k = list(counter), list(key)
    for _ in range(rounds):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def random_bits(key: list[int], counter: list[int], rows: int, cols: int, rounds: int) -> np.ndarray:
    """64 blocks at a time give 256 columns; the counter goes on by a quarter of the columns for each 256."""
    made = np.zeros((rows, -(-cols // 256) * 256), np.uint32)
    start = sum(word << (32 * i) for i, word in enumerate(counter))
    for row in range(rows):
        for block in range(made.shape[1] // 256):
            for lane in range(64):
                words = [(start + lane) >> (32 * i) & 0xFFFFFFFF for i in range(4)]
                made[row, block * 256 + lane : (block + 1) * 256 : 64] = philox(key, words, rounds)
            start += cols // 4
    return made[:, :cols].view(Z)


def test_making(checked: RunConfig) -> None:
    a, i, start = numbers(1, 6, 32), numbers(2, 8, 40, dtype=Z), 3
    shapes = [((1, 32), Z), ((1, 48), W), ((8, 32), Z), ((5, 24), F), ((4, 320), Z), ((1, 64), Z), ((6, 32), Z)]
    shapes += [((12, 32), H), ((6, 32), F), ((24, 8), F), ((40, 8), Z)]
    out = [blank(*s, dtype=d) for s, d in shapes]
    kernels.making(a, i, start, *out, config=checked)
    up, down, lower, upper, bits, few, words, halves, again, shaped, turned = out
    np.testing.assert_array_equal(up, start + np.arange(32)[None])
    np.testing.assert_array_equal(down, start + 1 - np.arange(48)[None])
    np.testing.assert_array_equal(lower, np.tri(8, 32, start, dtype=Z))
    np.testing.assert_array_equal(upper, np.triu(np.ones((5, 24), F), -2))
    np.testing.assert_array_equal(bits, random_bits([1, 2], [start, 4, 5, 6], 4, 320, 10))
    np.testing.assert_array_equal(few, random_bits([7, 8], [9, 10, 11, 12], 1, 64, 7))
    np.testing.assert_array_equal(words, a.view(Z))
    np.testing.assert_array_equal(halves.view(np.uint16), a.view(np.uint16).reshape(12, 32))
    np.testing.assert_array_equal(again, a)
    np.testing.assert_array_equal(shaped, a.reshape(24, 8))
    np.testing.assert_array_equal(turned, i.T)


def test_gathering(checked: RunConfig) -> None:
    a, h, table = numbers(1, 8, 32), numbers(2, 8, 32, dtype=H), numbers(3, 20, 16)
    a[:, ::5] = 0.5
    flat, along, down = indices(4, 256, 4, 16), indices(5, 32, 8, 16), indices(6, 8, 4, 32)
    blocks, keys = indices(7, 32, 4, 8) * 32, numbers(8, 8, 1)
    rows = np.array([[0, 19, 5, 20, -1, 7, 7, 1]], Z)
    places = np.random.default_rng(9).integers(-40, 400, (4, 16)).astype(Z)
    shapes = [((4, 16), F), ((4, 16), H), ((8, 16), F), ((4, 32), F), ((4, 64), F), ((8, 16), F), ((8, 8), Z)]
    shapes += [((8, 16), H), ((8, 32), Z), ((8, 1), Z), ((8, 32), Z), ((8, 16), F), ((4, 16), F), ((4, 16), F)]
    out = [blank(*s, dtype=d) for s, d in [*shapes, ((8, 16), F)]]
    kernels.gathering(a, h, flat, along, down, blocks, keys, table, rows, places, *out, config=checked)
    picked, picked_half, columns, lines, strips, even, third, last, above, counts, equal = out[:11]
    np.testing.assert_array_equal(picked, a.ravel()[flat])
    np.testing.assert_array_equal(picked_half, h.ravel()[flat])
    np.testing.assert_array_equal(columns, np.take_along_axis(a, along, 1))
    np.testing.assert_array_equal(lines, np.take_along_axis(a, down, 0))
    np.testing.assert_array_equal(strips, a.reshape(32, 8)[blocks // 32].reshape(4, 64))
    np.testing.assert_array_equal(even, a[:, ::2])
    np.testing.assert_array_equal(third, np.ascontiguousarray(a[:, 2::4]).view(Z))
    np.testing.assert_array_equal(last, h[:, 1::2])
    for row in range(8):
        found = np.flatnonzero(a[row] > keys[row])
        assert counts[row, 0] == len(found)
        np.testing.assert_array_equal(above[row], np.pad(100 + row * 32 + found, (0, 32 - len(found))))
        same = np.flatnonzero(a[row] == 0.5)
        np.testing.assert_array_equal(equal[row], np.pad(row * 32 + same, (0, 32 - len(same))))
    from_rows, from_places, wrapped, zeroed = out[11:]
    np.testing.assert_array_equal(from_rows, table[np.clip(rows[0], 0, 19)])
    inside = (rows[0] >= 0) & (rows[0] < 20)
    np.testing.assert_array_equal(zeroed, np.where(inside[:, None], table[rows[0] % 20], 0))
    window = table[4:].ravel()
    inside = (places >= 0) & (places < window.size)
    np.testing.assert_array_equal(from_places, np.where(inside, window[places % window.size], 0))
    np.testing.assert_array_equal(wrapped, table.ravel()[places % table.size])


def test_scattering(checked: RunConfig) -> None:
    a, table = numbers(1, 8, 16), numbers(2, 20, 16)
    rows = np.array([np.random.default_rng(3 + c).permutation(8)[:4] for c in range(16)], Z).T
    along = np.array([np.random.default_rng(30 + r).permutation(16)[:8] for r in range(8)], Z)
    index, places = np.random.default_rng(4).permutation(8)[None].astype(Z), np.random.default_rng(5).permutation(320)
    where = places[:128].reshape(8, 16).astype(Z)
    shapes = [(8, 16), (8, 16), (8, 32), (8, 64), (8, 16), (8, 16), (16, 8)]
    out, memory = [blank(*s) for s in shapes], numbers(6, 20, 16)
    expected = memory.copy()
    kernels.scattering(a, np.ascontiguousarray(rows), along, index, table, where, *out, memory, config=checked)
    by_row, by_column, spread, spread_wide, updated, collected, turned = out
    wanted = np.zeros((8, 16), F)
    np.put_along_axis(wanted, rows.astype(np.int64), a[4:], 0)
    np.testing.assert_array_equal(by_row, wanted)
    wanted = a.copy()
    np.put_along_axis(wanted, along.astype(np.int64), F(7), 1)
    np.testing.assert_array_equal(by_column, wanted)
    wanted = np.zeros((8, 32), F)
    wanted[:, 1::2] = a
    np.testing.assert_array_equal(spread, wanted)
    wanted = np.zeros((8, 64), F)
    wanted[:, ::4] = a
    np.testing.assert_array_equal(spread_wide, wanted)
    wanted = a.copy()
    wanted[index[0, :3]] = table[:3]
    np.testing.assert_array_equal(updated, wanted)
    np.testing.assert_array_equal(collected, table[index[0]])
    np.testing.assert_array_equal(turned, table[:16:2].T)
    expected.ravel()[where] = a
    np.testing.assert_array_equal(memory, expected)


def pairs_of(sorted_pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values and positions of rows of pairs."""
    words = sorted_pairs.view(np.uint32)
    if sorted_pairs.dtype == H:
        return sorted_pairs[:, ::4], words[:, 1::2]
    return sorted_pairs[:, ::2], words[:, 1::2]


def test_sorting(checked: RunConfig) -> None:
    a, h = numbers(1, 2, 256), np.random.default_rng(2).permutation(64)[None].astype(H)
    a[0, 3], a[0, 9] = 0.25, 0.25
    positions = np.arange(512, dtype=Z).reshape(2, 256)
    out = [blank(2, 512), blank(2, 512), blank(1, 256, dtype=H), blank(1, 256), blank(1, 192)]
    kernels.sorting(a, h, positions, *out, config=checked)

    def ordered(row: np.ndarray, first: int, length: int) -> np.ndarray:
        return first + np.argsort(-row[first : first + length], kind="stable")

    for made, length in ((out[0], 32), (out[1], 128)):
        values, places = pairs_of(made)
        for row in range(2):
            order = np.concatenate([ordered(a[row], first, length) for first in range(0, 256, length)])
            np.testing.assert_array_equal(values[row], a[row, order])
            np.testing.assert_array_equal(places[row], 256 * row + order)
    values, places = pairs_of(out[2])
    order = np.concatenate([ordered(h[0], first, 32) for first in (0, 32)])
    np.testing.assert_array_equal(values[0], h[0, order])
    np.testing.assert_array_equal(places[0], order)
    for made, length in ((out[3], 128), (out[4], 96)):
        values, places = pairs_of(made)
        order = ordered(a[0], 0, length)
        np.testing.assert_array_equal(values[0], a[0, order])
        np.testing.assert_array_equal(places[0], order)


def test_numbers_from_memory(checked: RunConfig) -> None:
    a, flags = numbers(1, 16, 32), (np.arange(16) % 3 == 0).astype(B)
    table = np.array(
        [[0, 3, 5, 0, 32, 0, 0, 0], [3, 1, 7, 0, 0, 0, 0, 0], [9, 0, 1, 1, 1, 1, 1, 1], [10, 6, *[8] * 6]], Z
    )
    out, sums = blank(16, 32), blank(8, 8, dtype=Z)
    kernels.following(a, table, flags, out, sums, config=checked)
    expected, totals = blank(16, 32), blank(8, 8, dtype=Z)
    for i, (first, count, *widths) in enumerate(table):
        for j in range(count):
            if widths[j] > 0:
                row = a[first + j, : widths[j]] * (2 if flags[first + j] else 1)
                expected[first + j, : widths[j]] = row
                totals[i, j] = widths[j] if row[-1] > 1 else -widths[j]
    totals[6, 7] = sum(x * y for x in range(6) for y in range(x))
    totals[7] = [10, 0, 3, 4, 4, 0, 0, 0]
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(sums, totals)


@pytest.mark.parametrize(
    ("which", "message"),
    [
        (0, "the index 256 is outside of the source of pl.gather, which has 256"),
        (1, "is outside of the rows of pl.scatter's dst, which has 8"),
        (2, "the index 256 is outside of pl.mgather's tensor, which has 256"),
        (3, "the index 256 is outside of pl.mscatter's tensor, which has 256"),
        (4, "pl.read reads outside of a"),
        (5, "pl.read reads rows 256 to 256 and columns 0 to 0 of a tile of 8 x 32"),
        (6, "pl.write writes rows 0 to 0 and columns 256 to 256 of a tile of 8 x 32"),
        (7, "pl.assemble writes rows 5 to 8"),
        (8, "operation arith.floordiv"),
        (9, "operation arith.mod"),
        (10, "a range has the step 0"),
    ],
)
def test_an_index_outside_is_an_error_of_the_run(which: int, message: str) -> None:
    """Without the checked mode, which each run pays for with a process of its own."""
    plain = RunConfig(backend_type="Ascend910B", execution_mode="sim", sim_checks=False)
    index = np.zeros((8, 32), Z)
    index[0, :2] = 256, 5
    with pytest.raises((KernelRunError, SimulatorCheckError)) as caught:
        kernels.outside(numbers(1, 8, 32), index, which, blank(8, 32), config=plain)
    assert message in str(caught.value)
    assert "moving_kernels.py" in str(caught.value)
    assert ("division by zero" in str(caught.value)) == (which in (8, 9))


def test_types(checked: RunConfig) -> None:
    index = indices(1, 256, 8, 32)
    dtypes = (ml_dtypes.bfloat16, W, np.uint8, np.uint16, np.uint32, np.int64, H)
    inputs = [np.random.default_rng(k).integers(0, 100, (8, 32)).astype(d) for k, d in enumerate(dtypes)]
    out = [blank(8, 144, dtype=d) for d in dtypes]
    bits, pairs = blank(2, 64, dtype=np.uint32), blank(1, 64)
    kernels.types(index, *inputs, *out, bits, pairs, config=checked)
    for a, made in zip(inputs, out, strict=True):
        largest = np.inf if a.dtype in (H, ml_dtypes.bfloat16) else np.iinfo(a.dtype).max
        filled = np.full((8, 32), largest, a.dtype)
        filled[:5, :20] = a[:5, :20]
        back, mixed = a.copy(), a.copy()
        back[3, 7] = a[1, 0]
        for row in range(8):
            for column in range(32):
                mixed[int(column <= row), column] = back[row, column]
        expected = np.hstack([filled, a.ravel()[index], back[:, 16:], back[:, :16], a[:, 1::2], mixed])
        expected[7, :2] = a[1, 1], a[2, 2]
        np.testing.assert_array_equal(made, expected)
    np.testing.assert_array_equal(bits.view(Z), random_bits([1, 2], [3, 4, 5, 6], 2, 64, 10))
    values, places = pairs_of(pairs)
    order = np.argsort(-index[0], kind="stable")
    np.testing.assert_array_equal(values[0], index[0, order])
    np.testing.assert_array_equal(places[0], inputs[4][0, order])


def test_full_memory(checked: RunConfig) -> None:
    a, b, flat = numbers(1, 64, 128), numbers(2, 64, 128), indices(3, 64 * 128, 64, 128)
    rows = np.array([np.random.default_rng(4 + c).permutation(64) for c in range(128)], Z).T
    out, t = blank(64, 128), a.astype(np.float64)
    kernels.full_memory(a, b, flat, np.ascontiguousarray(rows), out, config=checked)
    for _ in range(2):
        g = t.ravel()[flat]
        w, x = g + b, np.zeros((64, 128))
        np.put_along_axis(w, rows.astype(np.int64), g * 2, 0)
        w[32:] = g[:32]
        x[:60, :100] = w[:60, :100] * 0.5
        y = x.ravel()[flat]
        y[3, 4] = x[1, 2]
        t = y + x
    np.testing.assert_allclose(out, t, rtol=0, atol=16 * 2.0**-24 * float(np.abs(t).max()))
