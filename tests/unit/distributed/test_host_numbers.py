"""Numbers that a HOST entry computes."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest

from pypto.runtime.distributed.scalars import compute


@pytest.mark.parametrize(
    ("name", "python"),
    [
        ("bitand", operator.and_),
        ("bitor", operator.or_),
        ("bitxor", operator.xor),
        ("shl", operator.lshift),
        ("shr", operator.rshift),
    ],
)
def test_work_on_bits_is_that_of_python(name: str, python: Callable[[int, int], int]) -> None:
    for a in (-7, 0, 12):
        for b in (0, 1, 5):
            assert compute(name, [a, b], {"dtype": "INT64"}) == python(a, b)


def test_shifts_out_of_a_number() -> None:
    assert compute("shl", [5, 70], {"dtype": "INT64"}) == 0
    assert compute("shr", [-5, 70], {"dtype": "INT64"}) == -1
    assert compute("shl", [5, -1], {"dtype": "INT64"}) == 5
