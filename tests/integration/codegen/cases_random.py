"""Random programs of nested loops and branches that rebind a few tiles: they try buffers, copies and the planner.

All numbers are small and whole, so that results are exact.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from cases_memory import index
from cases_vector import VEC, load
from generated import Case

from pypto.ir.builder import Builder
from pypto.ir.nodes import Block, Value
from pypto.ir.types import FP32, INT32, TileType

PROGRAMS = int(os.environ.get("PYPTO_TEST_RANDOM_PROGRAMS", "6"))
SHAPE = (24, 72)
NAMES = 3
LIMIT = 50.0
ARGUMENT = 5


@dataclass
class Compute:
    """``target = operation(a, b, number)``, cut to the limits."""

    operation: str
    target: int
    a: int
    b: int
    number: int


@dataclass
class Repeat:
    """A loop of ``turns`` turns that carries some names, permuted at the end of each turn."""

    turns: int
    known: bool
    carried: list[int]
    next: list[int]
    body: list[Step]


@dataclass
class Choose:
    """A branch on the innermost loop variable; each arm gives new values to some names, permuted."""

    modulus: int
    rest: int
    changed: list[int]
    arms: list[tuple[list[Step], list[int]]]


Step = Compute | Repeat | Choose
OPERATIONS = ["add", "sub", "maximum", "neg", "relu", "muls", "adds", "less_maximum", "plus_minima", "valid", "move"]


def steps(rng: random.Random, depth: int, length: int) -> list[Step]:
    """A random block."""
    made: list[Step] = []
    for _ in range(length):
        kind = rng.random() if depth < 3 else 1
        if kind < 0.22:
            carried = sorted(rng.sample(range(NAMES), rng.randint(1, NAMES)))
            body = steps(rng, depth + 1, rng.randint(1, 4))
            turns, known = rng.randint(0, 3), rng.random() < 0.5
            made.append(Repeat(turns, known, carried, permuted(rng, carried), body))
        elif kind < 0.4:
            changed = sorted(rng.sample(range(NAMES), rng.randint(1, 2)))
            arms = [(steps(rng, depth + 1, rng.randint(0, 3)), permuted(rng, changed)) for _ in range(2)]
            made.append(Choose(rng.randint(2, 3), rng.randint(0, 1), changed, arms))
        else:
            names = [rng.randrange(NAMES) for _ in range(3)]
            made.append(Compute(rng.choice(OPERATIONS), *names, rng.randint(-2, 2)))
    return made


def permuted(rng: random.Random, names: list[int]) -> list[int]:
    return rng.sample(names, len(names)) if rng.random() < 0.4 else list(names)


def build(b: Builder, block: list[Step], tiles: list[Value], variable: Value, argument: Value) -> None:
    """Write a block; ``tiles`` are the values of the names and change."""
    for step in block:
        if isinstance(step, Compute):
            made = written(b, step, tiles)
            made = b.value("tile.minimums", [made, b.constant(LIMIT)])
            tiles[step.target] = b.value("tile.maximums", [made, b.constant(-LIMIT)])
        elif isinstance(step, Repeat):
            less = b.constant(ARGUMENT - step.turns)
            stop = b.constant(step.turns) if step.known else b.value("arith.sub", [argument, less])
            with b.loop(0, stop, 1, [tiles[i] for i in step.carried]) as loop:
                inner = list(tiles)
                rebind(inner, step.carried, loop.carried)
                build(b, step.body, inner, loop.index, argument)
                loop.carry(*(inner[i] for i in step.next))
            rebind(tiles, step.carried, loop.results)
        else:
            rest = b.value("arith.mod", [variable, b.constant(step.modulus)])
            condition = b.value("arith.cmp", [rest, b.constant(step.rest)], pred="eq")
            regions = []
            for arm, given in step.arms:
                inner, region = list(tiles), Block()
                with b.inside(region):
                    build(b, arm, inner, variable, argument)
                    b.op("scf.yield", [inner[i] for i in given])
                regions.append(region)
            types = [tiles[i].type for i in step.changed]
            rebind(tiles, step.changed, b.op("scf.if", [condition], types=types, regions=regions).results)


def rebind(tiles: list[Value], names: list[int], values: list[Value]) -> None:
    for name, value in zip(names, values, strict=True):
        tiles[name] = value


def written(b: Builder, step: Compute, tiles: list[Value]) -> Value:
    first, second, name = tiles[step.a], tiles[step.b], step.operation
    if name in ("add", "sub", "maximum"):
        return b.value(f"tile.{name}", [first, second])
    if name in ("neg", "relu"):
        return b.value(f"tile.{name}", [first])
    if name in ("muls", "adds"):
        return b.value(f"tile.{name}", [first, b.constant(float(step.number))])
    if name == "less_maximum":
        column = b.value("tile.adds", [b.value("tile.row_max", [first]), b.constant(float(step.number))])
        return b.value("tile.row_expand_sub", [second, column])
    if name == "plus_minima":
        return b.value("tile.col_expand_add", [second, b.value("tile.col_min", [first])])
    if name == "valid":
        part = b.value("tile.set_validshape", [first, b.constant(SHAPE[0]), b.constant(5)])
        return b.value("tile.row_expand_sub", [second, b.value("tile.row_max", [part])])
    return b.value("tile.move", [first], types=(TileType(SHAPE, FP32, VEC, SHAPE),))


def run(block: list[Step], arrays: list[np.ndarray], variable: int) -> None:
    """What the block means."""
    for step in block:
        if isinstance(step, Compute):
            arrays[step.target] = np.clip(computed(step, arrays), -LIMIT, LIMIT)
        elif isinstance(step, Repeat):
            for turn in range(step.turns):
                inner = list(arrays)
                run(step.body, inner, turn)
                for name, given in zip(step.carried, step.next, strict=True):
                    arrays[name] = inner[given]
        else:
            arm, next_ = step.arms[0 if variable % step.modulus == step.rest else 1]
            inner = list(arrays)
            run(arm, inner, variable)
            for name, given in zip(step.changed, next_, strict=True):
                arrays[name] = inner[given]


def computed(step: Compute, arrays: list[np.ndarray]) -> np.ndarray:
    a, b = arrays[step.a], arrays[step.b]
    results = {
        "add": lambda: a + b,
        "sub": lambda: a - b,
        "maximum": lambda: np.maximum(a, b),
        "neg": lambda: -a,
        "relu": lambda: np.maximum(a, 0),
        "muls": lambda: a * step.number,
        "adds": lambda: a + step.number,
        "less_maximum": lambda: b - (a.max(1, keepdims=True) + step.number),
        "plus_minima": lambda: b + a.min(0, keepdims=True),
        "valid": lambda: b - a[:, :5].max(1, keepdims=True),
        "move": lambda: a,
    }
    return results[step.operation]()


def cases() -> Iterator[Case]:
    """The first programs that have a loop and a branch."""
    seed = 0
    for _ in range(PROGRAMS):
        while True:
            seed += 1
            program = steps(random.Random(seed), 0, 6)
            if {Repeat, Choose} <= {type(step) for step in program}:
                break
        yield case(f"random_program_{seed}", program)


def case(name: str, program: list[Step]) -> Case:
    def body(b: Builder, x: list[Value], n: list[Value], o: list[Value]) -> None:
        tiles = [load(b, tensor, SHAPE) for tensor in x]
        argument = index(b, n[0])
        build(b, program, tiles, argument, argument)
        for tile, out in zip(tiles, o, strict=True):
            b.store(tile, out, [0, 0])

    def expected(*values: np.ndarray) -> list[np.ndarray]:
        arrays = list(values[:-1])
        run(program, arrays, ARGUMENT)
        return arrays

    return Case(
        name,
        [(SHAPE, FP32)] * NAMES,
        {f"o{i}": (SHAPE, FP32) for i in range(NAMES)},
        body,
        expected,
        numbers=[(INT32, ARGUMENT)],
        tolerance=0,
        sample=lambda rng, shape: rng.integers(-9, 10, shape),
    )
