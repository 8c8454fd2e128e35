"""Products, transpositions, gathers, scatters and sorting of tensors that the compiler divides, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import whole_kernels as kernels

from pypto.runtime.config import RunConfig
from pypto.runtime.errors import SimulatorCheckError

F, H, Z = np.float32, np.float16, np.int32


def plain() -> RunConfig:
    return RunConfig(backend_type="Ascend910B", execution_mode="sim", sim_checks=False)


@pytest.fixture(params=["checked", "plain"])
def mode(request: pytest.FixtureRequest, checked: RunConfig) -> RunConfig:
    """Both ways to run what is compiled once."""
    return checked if request.param == "checked" else plain()


def numbers(seed: int, *shape: int, dtype: type = F) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def indices(seed: int, limit: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, limit, shape).astype(Z)


def different(seed: int, axis: int, count: int, *shape: int) -> np.ndarray:
    """The first ``count`` of a permutation along an axis."""
    order = np.argsort(np.random.default_rng(seed).random(shape), axis)
    return np.ascontiguousarray(np.take(order, range(count), axis)).astype(Z)


def blank(*shape: int, dtype: type = F) -> np.ndarray:
    """What no operation gives, so that elements that are not written show."""
    return np.full(shape, 77, dtype)


def exact(*arrays: np.ndarray) -> list[np.ndarray]:
    return [a.astype(np.float64) for a in arrays]


def test_products(mode: RunConfig) -> None:
    a, b, rows = numbers(1, 2, 1, 40, 300, dtype=H), numbers(2, 3, 70, 300, dtype=H), numbers(3, 6, 5, 300, dtype=H)
    w, many = numbers(4, 300, 170, dtype=H), numbers(5, 2, 150, 40, dtype=H)
    out, folded, turned = blank(2, 3, 40, 70), blank(6, 5, 170, dtype=H), blank(2, 40, 170)
    kernels.products(a, b, rows, w, many, out, folded, turned, config=mode)
    a64, b64, rows64, w64, many64 = exact(a, b, rows, w, many)
    np.testing.assert_allclose(out, a64 @ b64.swapaxes(-1, -2) * 0.5 + 1, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(folded, rows64 @ w64, rtol=2e-3, atol=2e-2)
    np.testing.assert_allclose(turned, many64.swapaxes(-1, -2) @ w64[:150], rtol=1e-5, atol=1e-4)


def test_transpositions(mode: RunConfig) -> None:
    x = np.arange(5 * 70 * 3 * 90).reshape(5, 70, 3, 90).astype(np.int16)
    out = [np.zeros_like(x.swapaxes(*axes), order="C") for axes in ((1, 2), (0, 2), (0, 3))]
    kernels.transposed(x, *out, config=mode)
    for made, axes in zip(out, ((1, 2), (0, 2), (0, 3)), strict=True):
        np.testing.assert_array_equal(made, x.swapaxes(*axes))


@pytest.mark.parametrize("rows", [1, 77])
def test_leading_dimensions_are_repeated(checked: RunConfig, rows: int) -> None:
    x, bias, scale, out = numbers(1, 3, rows, 200), numbers(2, rows, 200), numbers(3, 3, 1, 200), blank(3, rows, 200)
    kernels.repeated(x, bias, scale, out, config=checked)
    x64, bias64, scale64 = exact(x, bias, scale)
    np.testing.assert_allclose(out, (x64 + bias64) * scale64 - bias64.sum(-1, keepdims=True), rtol=1e-5, atol=1e-4)


def test_elements_chosen_along_an_axis(mode: RunConfig) -> None:
    x, h, v = numbers(1, 40, 70000), numbers(2, 3, 50, 60, dtype=H), numbers(3, 700)
    columns, planes, lines = indices(4, 70000, 33, 300), indices(5, 3, 2, 50, 60), indices(6, 50, 3, 90, 60)
    places = indices(7, 700, 700)
    out = [blank(33, 300), blank(2, 50, 60, dtype=H), blank(3, 90, 60, dtype=H), blank(700), blank(40, 17500)]
    kernels.chosen(x, h, columns, planes, lines, v, places, *out, config=mode)
    np.testing.assert_array_equal(out[0], np.take_along_axis(x[:33], columns, 1))
    np.testing.assert_array_equal(out[1], np.take_along_axis(h, planes, 0))
    np.testing.assert_array_equal(out[2], np.take_along_axis(h, lines, 1))
    np.testing.assert_array_equal(out[3], v[places] + v)
    np.testing.assert_array_equal(out[4], x[:, 2::4])


def test_an_index_outside_of_its_line_is_an_error(checked: RunConfig) -> None:
    """Also where the flat position of the element would be inside of the tensor."""
    x, h, v = numbers(1, 40, 70000), numbers(2, 3, 50, 60, dtype=H), numbers(3, 7)
    columns, planes, lines = np.zeros((33, 300), Z), np.zeros((2, 50, 60), Z), np.zeros((3, 90, 60), Z)
    lines[1, 3, 4] = -1
    out = [blank(33, 300), blank(2, 50, 60, dtype=H), blank(3, 90, 60, dtype=H), blank(7), blank(40, 17500)]
    with pytest.raises(SimulatorCheckError, match="the index -1 is outside of"):
        kernels.chosen(x, h, columns, planes, lines, v, np.zeros(7, Z), *out, config=plain())


def test_elements_that_compare(mode: RunConfig) -> None:
    x = np.round(numbers(1, 2, 70, 333)).astype(H)
    keys, places, counts = np.ones((2, 70, 1), H), blank(2, 70, 90, dtype=Z), blank(2, 70, 1, dtype=Z)
    keys[:, ::2] = 2
    kernels.compared(x, keys, places, counts, config=mode)
    for row, (values, key) in enumerate(zip(x.reshape(140, 333), keys.ravel(), strict=True)):
        found = np.flatnonzero(values > key)
        assert counts.ravel()[row] == len(found)
        np.testing.assert_array_equal(places.reshape(140, 90)[row], np.pad(found + 333 * row + 7, (0, 90 - len(found))))


def test_elements_scattered(mode: RunConfig) -> None:
    x, part, rows = numbers(1, 40, 3000), numbers(2, 40, 200), numbers(3, 77, 1100, dtype=H)
    columns, low, slots = different(4, 1, 200, 40, 3000), different(5, 0, 7, 40, 3000), different(6, 0, 77, 270)
    cache, flat = numbers(7, 9, 30, 1, 1100, dtype=H), numbers(8, 40, 3000)
    wanted_cache, wanted_flat = cache.reshape(270, 1100).copy(), flat.copy()
    out = [blank(40, 3000), blank(40, 3000), blank(40, 400)]
    fetched = blank(40, 200)
    kernels.scattered(x, part, columns, low, cache, rows, slots, *out, flat, fetched, config=mode)
    wanted = [x.copy(), x.copy(), np.zeros((40, 400), F)]
    np.put_along_axis(wanted[0], columns, part, 1)
    np.put_along_axis(wanted[1], low, F(3), 0)
    wanted[2][:, 1::2] = part
    for made, exactly in zip(out, wanted, strict=True):
        np.testing.assert_array_equal(made, exactly)
    wanted_cache[slots] = rows
    np.testing.assert_array_equal(cache.reshape(270, 1100), wanted_cache)
    # Of equal places the last one stays.
    for place, value in zip(columns.ravel(), part.ravel(), strict=True):
        wanted_flat.ravel()[place] = value
    np.testing.assert_array_equal(flat, wanted_flat)
    looked_up = x.ravel()[columns]
    looked_up[20:35, 100:130] = x[3:33, 7:22].T
    np.testing.assert_array_equal(fetched, looked_up)


def test_places_of_extremes(mode: RunConfig) -> None:
    h, i = numbers(1, 2, 33, 9000, dtype=H), indices(2, 10**6, 2, 9000, 33)
    # Of equal elements the first one counts.
    h[1, 5, [700, 8000]], i[0, [400, 8999], 7] = 100, -5
    out = [blank(2, 33, 1, dtype=Z), blank(2, 1, 33, dtype=Z), blank(33, 9000, 2, dtype=Z), blank(33, 2, 9000, dtype=H)]
    kernels.extremes(h, i, *out, config=mode)
    np.testing.assert_array_equal(out[0], h.argmax(axis=-1, keepdims=True))
    np.testing.assert_array_equal(out[1], i.argmin(axis=-2, keepdims=True))
    assert (out[0][1, 5, 0], out[1][0, 0, 7]) == (700, 400)
    np.testing.assert_array_equal(out[2], i.swapaxes(0, 2))
    np.testing.assert_array_equal(out[3], h.swapaxes(0, 1))


def values_and_places(pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return pairs[:, ::2], np.ascontiguousarray(pairs).view(Z)[:, 1::2]


def test_sorting(mode: RunConfig) -> None:
    x = numbers(1, 70, 1040)
    places = np.broadcast_to(np.arange(1040, dtype=Z), x.shape).copy()
    places[0, :50] = np.arange(50) * 3 - 40
    out = [blank(70, 2080), blank(70, 2080), blank(70, 512), blank(50, 1040)]
    kernels.sorted_rows(x, places, *out, config=mode)
    for pairs, length, columns in ((out[0], 32, 1040), (out[1], 128, 1040), (out[2], 256, 256)):
        values, found = values_and_places(pairs)
        for first in range(0, columns, length):
            part = slice(first, min(first + length, columns))
            order = first + np.argsort(-x[:, part], axis=1, kind="stable")
            np.testing.assert_array_equal(values[:, part], np.take_along_axis(x, order, 1))
            np.testing.assert_array_equal(found[:, part], np.take_along_axis(places, order, 1))
    np.testing.assert_array_equal(out[3], x[(np.arange(50) * 3 - 40) % 70])
