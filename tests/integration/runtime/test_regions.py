"""Which blocks of memory share a byte, against sets of byte addresses."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable

import numpy as np
import pytest

from pypto.runtime import shared_objects

Block = tuple[int, int, list[int], list[int]]  # first byte, element size, shape, steps in bytes


@pytest.fixture(scope="module")
def library(shared_object: Callable[[str], bytes]) -> ctypes.CDLL:
    return shared_objects.load(shared_object("regions"), "regions")


def numbers(block: Block) -> ctypes.Array[ctypes.c_int64]:
    begin, element, shape, steps = block
    values = [begin, element, len(shape), *shape, *steps]
    return (ctypes.c_int64 * len(values))(*values)


def addresses(block: Block) -> set[int]:
    begin, element, shape, steps = block
    found = set()
    for index in itertools.product(*(range(length) for length in shape)):
        first = begin + sum(i * step for i, step in zip(index, steps, strict=True))
        found.update(range(first, first + element))
    return found


def box_of(generator: np.random.Generator, tensor: list[int], element: int) -> Block:
    """A random box of a row-major tensor."""
    steps = [element]
    for length in reversed(tensor[1:]):
        steps.insert(0, steps[0] * length)
    sizes = [int(generator.integers(1, length + 1)) for length in tensor]
    offsets = [int(generator.integers(0, length - size + 1)) for length, size in zip(tensor, sizes, strict=True)]
    begin = 1000 + sum(offset * step for offset, step in zip(offsets, steps, strict=True))
    return begin, element, sizes, steps


@pytest.mark.parametrize("seed", range(5))
def test_boxes_of_one_tensor_are_compared_exactly(library: ctypes.CDLL, seed: int) -> None:
    generator = np.random.default_rng(seed)
    answers = set()
    for _ in range(200):
        tensor = [int(length) for length in generator.integers(1, 7, int(generator.integers(1, 5)))]
        element = int(generator.choice([1, 2, 4, 8]))
        a, b = box_of(generator, tensor, element), box_of(generator, tensor, element)
        expected = not addresses(a).isdisjoint(addresses(b))
        answers.add(expected)
        assert bool(library.regions_overlap(numbers(a), numbers(b))) is expected, (a, b)
    assert answers == {True, False}


@pytest.mark.parametrize("seed", range(5))
def test_no_shared_byte_is_ever_missed(library: ctypes.CDLL, seed: int) -> None:
    """Blocks of different tensors over the same memory, with any steps and element sizes."""
    generator = np.random.default_rng(100 + seed)
    for _ in range(300):
        blocks: list[Block] = []
        for _ in range(2):
            rank = int(generator.integers(0, 4))
            shape = [int(length) for length in generator.integers(1, 6, rank)]
            steps = [int(step) for step in generator.integers(1, 40, rank)]
            blocks.append((int(generator.integers(0, 200)), int(generator.choice([1, 2, 4, 8])), shape, steps))
        a, b = blocks
        if not addresses(a).isdisjoint(addresses(b)):
            assert library.regions_overlap(numbers(a), numbers(b)), (a, b)
        if library.region_covers(numbers(a), numbers(b)):
            assert addresses(b) <= addresses(a), (a, b)


@pytest.mark.parametrize("seed", range(8))
def test_accesses_found_by_address_are_all_there_are(library: ctypes.CDLL, seed: int) -> None:
    library.accesses_disagree.argtypes = [ctypes.c_uint64, ctypes.c_int32]
    library.accesses_disagree.restype = ctypes.c_int64
    assert library.accesses_disagree(seed, 2000) == 0
