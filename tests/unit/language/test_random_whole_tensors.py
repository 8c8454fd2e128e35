"""Random expressions of whole tensors of any shapes that NumPy takes: they compile, and mean the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from whole_texts import check

Made = tuple[str, np.ndarray]
Step = Callable[[np.random.Generator, Made, Made], Made]


def _operator(sign: str, work: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Step:
    return lambda random, a, b: (sign.format(a[0], b[0]), work(a[1], b[1]))


def _transposed(random: np.random.Generator, a: Made, b: Made) -> Made:
    first, second = (int(axis) for axis in random.permutation(a[1].ndim)[:2])
    return f"pl.transpose({a[0]}, {first}, {second})", np.swapaxes(a[1], first, second)


def _reduced(name: str, axis: int, work: Callable[..., np.ndarray]) -> Step:
    return lambda random, a, b: (name.format(a[0]), work(a[1], axis=axis, keepdims=True))


def _sliced(random: np.random.Generator, a: Made, b: Made) -> Made:
    start = int(random.integers(0, len(a[1])))
    return f"{a[0]}[{start}:{len(a[1])}]", a[1][start:]


STEPS: tuple[Step, ...] = (
    _operator("{} + {}", np.add),
    _operator("{} - {}", np.subtract),
    _operator("{} * {}", np.multiply),
    _operator("pl.maximum({}, {})", np.maximum),
    _operator("pl.matmul({}, {})", np.matmul),
    _operator("pl.matmul({}, {}, b_trans=True)", lambda a, b: a @ np.swapaxes(b, -1, -2)),
    _operator("1.5 - pl.exp({} * 0.1)", lambda a, b: 1.5 - np.exp(a * 0.1)),
    _transposed,
    _sliced,
    _reduced("pl.row_sum({})", -1, np.sum),
    _reduced("pl.col_max({})", -2, np.max),
    _reduced("pl.cast(pl.row_argmax({}), pl.FP32)", -1, np.argmax),
)
MOST = 300_000


def _shape(random: np.random.Generator, lead: list[int], rows: int, cols: int) -> tuple[int, ...]:
    """A shape that stands beside others of the same lengths, as far as NumPy repeats dimensions."""
    dropped = int(random.integers(0, len(lead) + 1)) if random.random() < 0.4 else 0
    shape = [length if random.random() < 0.7 else 1 for length in lead[dropped:]]
    if not shape and random.random() < 0.1:
        return (cols,)
    kind = random.random()
    last = [1, cols] if kind < 0.15 else [rows, 1] if kind < 0.3 else [cols, rows] if kind < 0.4 else [rows, cols]
    return (*shape, *last)


def _program(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows, cols = (int(length) for length in random.choice([1, 2, 5, 33, 70, 130, 300], 2))
    lead = [int(length) for length in random.choice([1, 2, 3], random.integers(0, 3))]
    made: list[Made] = [(f"x{i}", random.uniform(0.5, 1.5, _shape(random, lead, rows, cols))) for i in range(3)]
    given = {name: (array, "FP32") for name, array in made}
    lines: list[str] = []
    for number in range(int(random.integers(1, 6))):
        for _ in range(30):
            step = STEPS[random.integers(len(STEPS))]
            a, b = (made[random.integers(len(made))] for _ in range(2))
            try:
                text, array = step(random, a, b)
            except ValueError:  # NumPy does not take these shapes
                continue
            # Axes and products of one dimension mean something else in NumPy.
            few = min(a[1].ndim, b[1].ndim) < 2 and "+" not in text
            if few or array.ndim > 5 or array.size > MOST:
                continue
            lines.append(f"t{number} = {text}")
            made.append((f"t{number}", array.astype(np.float64)))
            break
    name, wanted = made[-1]
    body = "\n".join([*lines, f"out[:] = {name}"])
    try:
        check(body, given, wanted)
    except Exception as error:
        raise AssertionError(f"seed {seed}: {[(n, a.shape) for n, (a, _) in given.items()]}\n{body}") from error


def test_random_expressions() -> None:
    for seed in range(60):
        _program(seed)


@pytest.mark.long
def test_many_random_expressions() -> None:
    for seed in range(1000, 4000):
        _program(seed)
