"""The NumPy reference of operations against NumPy's own arithmetic on the element types."""

from __future__ import annotations

import numpy as np
import pytest

from pypto.ir.reference.tiles import TILES, chosen, compared, converted, wrapped
from pypto.ir.types import BF16, DTYPES, FP16, INT8, INT32, UINT8

WHOLE = {"INT8": np.int8, "INT16": np.int16, "INT32": np.int32, "UINT8": np.uint8, "UINT16": np.uint16}


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_whole_numbers_lose_the_bits_that_their_type_has_no_room_for(name: str) -> None:
    kind = WHOLE[name]
    limits = np.iinfo(kind)
    random = np.random.default_rng(3)
    a, b = (random.integers(limits.min, limits.max, 200, dtype=kind, endpoint=True) for _ in range(2))
    for operation, expected in (
        ("add", a + b), ("sub", a - b), ("and_", a & b), ("or_", a | b), ("xor", a ^ b),
    ):  # fmt: skip
        got = wrapped(TILES[operation](a.astype(np.float64), b.astype(np.float64)), DTYPES[name])
        np.testing.assert_array_equal(got, expected, err_msg=operation)
    np.testing.assert_array_equal(wrapped(TILES["not_"](a.astype(np.float64)), DTYPES[name]), ~a)
    places = random.integers(0, 5, 200).astype(np.float64)
    for operation, expected in (("shl", a << places.astype(kind)), ("shr", a >> places.astype(kind))):
        np.testing.assert_array_equal(wrapped(TILES[operation](a.astype(np.float64), places), DTYPES[name]), expected)


def test_remainders_have_the_sign_of_their_operand() -> None:
    a, b = np.array([7.0, -7.0, 7.0, -7.0]), np.array([3.0, 3.0, -3.0, -3.0])
    np.testing.assert_array_equal(TILES["fmod"](a, b), [1, -1, 1, -1])
    np.testing.assert_array_equal(TILES["rem"](a, b), [1, 2, -2, -1])
    np.testing.assert_array_equal(TILES["floordiv"](a, b), [2, -3, -3, 2])


def test_conversions_round_as_the_type_and_the_mode_say() -> None:
    values = np.array([0.5, 1.5, -1.5, 2049.0, 1.0 + 2.0**-9])
    # Halves: away from 0, or to the even number.
    np.testing.assert_array_equal(converted(values, INT32)[:3], [1, 2, -2])
    np.testing.assert_array_equal(converted(values, INT32, "rint")[:3], [0, 2, -2])
    np.testing.assert_array_equal(converted(values, INT32, "floor")[:3], [0, 1, -2])
    np.testing.assert_array_equal(converted(values, INT32, "ceil")[:3], [1, 2, -1])
    np.testing.assert_array_equal(converted(values, INT32, "trunc")[:3], [0, 1, -1])
    assert converted(values, FP16)[3] == 2048
    assert converted(values, BF16)[4] == 1
    np.testing.assert_array_equal(wrapped(converted(np.array([200.0, 300.0]), INT8), INT8), [-56, 44])
    np.testing.assert_array_equal(wrapped(np.array([-1.0]), UINT8), [255])


def test_comparisons_and_choices() -> None:
    a, b = np.arange(16.0).reshape(2, 8), np.full((2, 8), 4.0)
    np.testing.assert_array_equal(compared("ge", a, b), a >= b)
    np.testing.assert_array_equal(chosen("elements", compared("ge", a, b), a, -a), np.where(a >= b, a, -a))
    bits = np.array([[0b00000101], [0b10000000]], np.float64)
    picked = chosen("bits", bits, a, b)
    np.testing.assert_array_equal(picked[0], [0, 4, 2, 4, 4, 4, 4, 4])
    np.testing.assert_array_equal(picked[1], [4, 4, 4, 4, 4, 4, 4, 15])


def test_parts_that_only_one_tile_has_come_from_that_one() -> None:
    a, b = np.ones((2, 3)), np.full((4, 2), 2.0)
    got = TILES["part_add"](a, b)
    np.testing.assert_array_equal(got[:2], [[3, 3, 1], [3, 3, 1]])
    np.testing.assert_array_equal(got[2:, :2], [[2, 2], [2, 2]])
    assert np.isnan(got[2:, 2]).all()
