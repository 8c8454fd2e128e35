"""Which part of a tensor a task is known to touch."""

from __future__ import annotations

from typing import Any

import pytest

import pypto.language as pl
from pypto.codegen.rewrites import prepared
from pypto.ir.touched import Extent, touched_parts
from pypto.ir.values import constant_of

A = pl.Tensor[[64, 128], pl.FP32]


@pl.jit.incore
def moved(x: A, i: pl.Scalar[pl.INDEX], o: pl.Out[A]):
    """One block of rows to another."""
    pl.store(pl.load(x, [i * 16, 32], [16, 64]), [i * 16 + 16, 0], o)


@pl.jit.incore
def two_places(x: A, i: pl.Scalar[pl.INDEX], o: pl.Out[A]):
    tile = pl.load(x, [0, 0], [8, 128])
    pl.store(tile, [i + 8, 0], o)
    pl.store(tile, [i + 24, 0], o)


@pl.jit.incore
def unrelated_places(x: A, i: pl.Scalar[pl.INDEX], j: pl.Scalar[pl.INDEX], o: pl.Out[A]):
    tile = pl.load(x, [0, 0], [8, 128])
    pl.store(tile, [i, 0], o)
    pl.store(tile, [j, 0], o)


@pl.jit.incore
def looped(x: A, i: pl.Scalar[pl.INDEX], o: pl.Out[A]):
    total = pl.full([16, 32], pl.FP32, 0.0)
    for k in pl.range(4):
        total = total + pl.load(x, [i, k * 32], [16, 32])
    pl.store(total, [i, 32], o)


@pl.jit.incore
def from_memory(x: A, places: pl.Tensor[[4], pl.INT32], o: pl.Out[A]):
    row = pl.read(places, [2])
    pl.store(pl.load(x, [row, 0], [8, 128]), [row, 0], o)


@pl.jit.incore
def divided(x: A, i: pl.Scalar[pl.INDEX], j: pl.Scalar[pl.INDEX], o: pl.Out[A]):
    pl.store(pl.load(x, [i // 2, 0], [8, 128]), [i // j, 0], o)


@pl.jit.incore
def view_of_a_plane(x: pl.Tensor[[4, 64, 128], pl.FP32], i: pl.Scalar[pl.INDEX], o: pl.Out[A]):
    plane = x[i, 8:40, :]
    o[0:8, :] = plane[16:24, :]


@pl.jit.incore
def one_valid_row(x: A, i: pl.Scalar[pl.INDEX], n: pl.Scalar[pl.INDEX], o: pl.Out[A]):
    pl.store(pl.load(x, [i, 0], [16, 128], valid_shape=[1, 128]), [i, 0], o)


CALLS: dict[str, Any] = {
    "moved": moved,
    "two_places": two_places,
    "unrelated_places": unrelated_places,
    "looped": looped,
    "from_memory": from_memory,
    "divided": divided,
    "view_of_a_plane": view_of_a_plane,
    "one_valid_row": one_valid_row,
}


@pl.jit
def entry(
    x: A,
    p: pl.Tensor[[4, 64, 128], pl.FP32],
    places: pl.Tensor[[4], pl.INT32],
    i: pl.Scalar[pl.INDEX],
    j: pl.Scalar[pl.INDEX],
    o: pl.Out[A],
):
    moved(x, i, o)
    two_places(x, i, o)
    unrelated_places(x, i, j, o)
    looped(x, i, o)
    from_memory(x, places, o)
    divided(x, i, j, o)
    view_of_a_plane(p, i, o)
    one_valid_row(x, i, j, o)
    return o


def shown(extent: Extent | None) -> object:
    """An extent as (names that are added, shift, size)."""
    if extent is None:
        return None
    assert all(constant_of(value) is None for value in extent.start)
    return len(extent.start), extent.shift, extent.size


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("moved", {0: [(1, 0, 16), (0, 32, 64)], 2: [(1, 0, 16), (0, 0, 64)]}),
        ("two_places", {0: [(0, 0, 8), (0, 0, 128)], 2: [(1, 0, 24), (0, 0, 128)]}),
        ("unrelated_places", {0: [(0, 0, 8), (0, 0, 128)]}),
        ("looped", {0: [(1, 0, 16), None], 2: [(1, 0, 16), (0, 32, 32)]}),
        ("from_memory", {}),
        ("divided", {0: [(1, 0, 8), (0, 0, 128)]}),
        ("view_of_a_plane", {0: [(1, 0, 1), (0, 24, 8), (0, 0, 128)], 2: [(0, 0, 8), (0, 0, 128)]}),
        ("one_valid_row", {0: [(1, 0, 1), (0, 0, 128)], 3: [(1, 0, 1), (0, 0, 128)]}),
    ],
)
def test_parts(name: str, expected: dict[int, list[object]]) -> None:
    """An axis of which too little is known counts as a whole, and so does a tensor of which no axis is known."""
    function = prepared(entry.lower().functions[name])
    found = {index: [shown(extent) for extent in part] for index, part in touched_parts(function).items()}
    assert {index: part for index, part in found.items() if any(extent is not None for extent in part)} == expected
