"""Plans: what every rank does, and for whom it waits; arithmetic of HOST entries against Python."""

from __future__ import annotations

import random
from typing import Any

import host_programs
import numpy as np
import pytest
from host_programs import COLUMNS, ROWS

from pypto.codegen.host import generate_distributed
from pypto.runtime.distributed.host_program import HostProgram
from pypto.runtime.distributed.order import Order
from pypto.runtime.distributed.plan import Plan, make_plan
from pypto.runtime.distributed.regions import Region, row_major
from pypto.runtime.errors import HostProgramError
from pypto.runtime.kernel_config import KernelConfig


def plan_of(function: Any, *args: Any, world: int) -> Plan:
    files = generate_distributed(function.lower(), "Ascend910B", "sim", "host_build_graph")
    host = HostProgram.from_bytes(files["kernel_config.json"])
    chips = [KernelConfig.from_bytes(files[f"{chip}/kernel_config.json"]).params for chip in host.chips]
    return make_plan(host, chips, args, [a if isinstance(a, np.ndarray) else None for a in args], world)


def rows(world: int) -> np.ndarray:
    return np.zeros((world, ROWS, COLUMNS), np.float32)


def test_every_rank_gets_its_own_steps_on_its_own_part() -> None:
    plan = plan_of(host_programs.spliced, rows(3), rows(3), world=3)
    size = ROWS * COLUMNS * 4
    x, y = plan.arguments
    assert x is not None
    assert y is not None
    for rank, steps in enumerate(plan.steps):
        (step,) = steps
        assert (step["do"], step["chip"], step["after"]) == ("call", 0, [])
        assert [a["offset"] for a in step["arguments"]] == [x.offset + rank * size, y.offset + rank * size]
        assert [a["written"] for a in step["arguments"]] == [False, True]
    assert plan.size >= 2 * 3 * size


def test_a_rank_waits_for_whoever_writes_what_it_reads() -> None:
    plan = plan_of(host_programs.swapped, rows(3), rows(3), world=3)
    assert [steps[1]["after"] for steps in plan.steps] == [[2], [], [0]]
    assert [steps[0].get("tell", []) for steps in plan.steps] == [[2], [], [0]]


@pytest.mark.parametrize(("count", "first", "world"), [(10, 0, 4), (10, 5, 4), (10, 7, 4), (100, -1, 3), (1, 2, 2)])
def test_numbers_are_those_of_python(count: int, first: int, world: int) -> None:
    chosen = np.full(world, first, np.int32)
    plan = plan_of(host_programs.numbers, rows(world), count, 3.0, chosen, rows(world), world=world)
    i = 0
    while i * i < count:
        i += 1
    device = first % world if first > 2 and first != 7 else min(i // 2, world - 1)
    assert [len(steps) for steps in plan.steps] == [int(rank == device) for rank in range(world)]
    assert plan.steps[device][0]["arguments"][1] == {"scalar": (1.5).hex()}


@pytest.mark.parametrize(
    ("nbytes", "count", "message"),
    [
        (0, ROWS, "a window buffer needs a positive number of bytes, got 0"),
        (124, ROWS, "a window [4, 8] of FP32 takes 128 bytes, but the buffer buffer has 124"),
        (1024, ROWS + 1, "copy: y: axis 0 is 5, expected 4 = 4"),
        (1024, 0, "every size of a tensor must be positive, got [0, 8]"),
        (130, ROWS, "a buffer of 130 bytes cannot be divided into elements of FP32"),
    ],
)
def test_a_window_that_does_not_fit_is_an_error_with_its_place(nbytes: int, count: int, message: str) -> None:
    with pytest.raises(HostProgramError) as caught:
        plan_of(host_programs.windows, rows(2), rows(2), nbytes, count, world=2)
    assert message in str(caught.value)
    assert caught.value.function == "windows"
    assert caught.value.line is not None


def test_windows_of_ranks_lie_side_by_side() -> None:
    plan = plan_of(host_programs.windows, rows(2), rows(2), 128, ROWS, world=2)
    written = [steps[0]["arguments"][1]["offset"] for steps in plan.steps]
    assert written[1] - written[0] == 128
    assert [steps[1]["arguments"][0]["offset"] for steps in plan.steps] == written


def test_cores_that_talk_get_all_parts_and_the_rank() -> None:
    plan = plan_of(host_programs.ranks_meet, 128, rows(2), world=2)
    for rank, (step,) in enumerate(plan.steps):
        data, signal, _, number = step["arguments"]
        assert (data["shape"], signal["shape"], number) == ([2, 4, 8], [2, 2, 1], {"scalar": rank})
        # They run at the same time and order themselves.
        assert step["after"] == []
    with pytest.raises(HostProgramError, match="the window buf must fill its buffer, since meeting uses other ranks"):
        plan_of(host_programs.ranks_meet, 256, rows(2), world=2)


def test_what_a_region_says_of_itself() -> None:
    whole = Region(0, 64, (3, 4, 8), row_major((3, 4, 8)), "FP16")
    assert whole.contiguous
    assert whole.span == (64, 64 + 3 * 4 * 8 * 2)
    assert whole.row(2) == Region(0, 64 + 2 * 64, (4, 8), (8, 1), "FP16")
    assert not Region(0, 0, (4, 2), (8, 1), "FP16").contiguous
    assert Region(0, 0, (1, 2), (8, 1), "FP16").contiguous


def test_blocks_of_a_tensor_overlap_where_they_share_an_element() -> None:
    random.seed(3)
    shape = (5, 6, 7)
    strides = row_major(shape)
    apart = 0
    for _ in range(400):
        blocks = []
        for _ in range(2):
            start = [random.randrange(length) for length in shape]
            size = [random.randint(1, length - first) for first, length in zip(start, shape, strict=True)]
            offset = 4 * sum(first * stride for first, stride in zip(start, strides, strict=True))
            indices = np.zeros(shape, bool)
            indices[tuple(slice(f, f + s) for f, s in zip(start, size, strict=True))] = True
            blocks.append((Region(0, offset, tuple(size), strides, "FP32"), indices))
        (one, mine), (other, theirs) = blocks
        assert one.overlaps(other) == other.overlaps(one) == bool((mine & theirs).any())
        apart += not one.overlaps(other) and one.span[0] < other.span[1] and other.span[0] < one.span[1]
    assert apart > 20, "some blocks lie between each other's rows"
    # What is not a block of the same tensor is told by its bounds.
    whole = Region(0, 0, (4, 4), (4, 1), "FP32")
    assert whole.overlaps(Region(0, 4, (2,), (1,), "FP32"))
    assert not whole.overlaps(Region(1, 0, (4, 4), (4, 1), "FP32"))


def test_an_order_lets_every_conflict_wait_and_nothing_else() -> None:
    """Against every pair of steps: one that conflicts with an earlier one of another rank comes after it."""
    random.seed(7)
    for _ in range(60):
        world = random.randint(2, 4)
        order = Order(world)
        counts = [0] * world
        waits: dict[tuple[int, int], dict[int, int]] = {}
        made: list[tuple[int, int, list[tuple[Region, bool]]]] = []
        for _ in range(12):
            rank = random.randrange(world)
            touched = [
                (
                    Region(random.randrange(2), random.randrange(0, 32, 4), (random.randint(1, 4),), (1,), "FP32"),
                    bool(w),
                )
                for w in random.choices((0, 1), k=2)
            ]
            waits[rank, counts[rank]] = order.waits(rank, touched)
            order.add(rank, counts[rank], touched)
            made.append((rank, counts[rank], touched))
            counts[rank] += 1
        for later in range(len(made)):
            rank, step, touched = made[later]
            for other_rank, other_step, other in made[:later]:
                conflict = other_rank != rank and any(
                    (w or v) and a.base == b.base and a.span[0] < b.span[1] and b.span[0] < a.span[1]
                    for a, w in touched
                    for b, v in other
                )
                if conflict:
                    assert max(waits[rank, s].get(other_rank, -1) for s in range(step + 1)) >= other_step
        for (rank, step), needed in waits.items():
            for other_rank, other_step in needed.items():
                mine = next(t for r, s, t in made if (r, s) == (rank, step))
                theirs = next(t for r, s, t in made if (r, s) == (other_rank, other_step))
                assert any(
                    (w or v) and a.base == b.base and a.span[0] < b.span[1] and b.span[0] < a.span[1]
                    for a, w in mine
                    for b, v in theirs
                )
