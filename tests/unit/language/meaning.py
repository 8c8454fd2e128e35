"""Comparing what a kernel does with what Python does with its body."""

from __future__ import annotations

import numpy as np
import python_meaning
from kernel_texts import module

from pypto.ir.reference.interpreter import run
from pypto.language.errors import CompileError
from pypto.language.lower import lower
from pypto.language.source import collect


def arguments(n: int) -> dict[str, object]:
    random = np.random.default_rng(7)
    arrays = {name: random.integers(-8, 9, (64, 64)) / 8.0 for name in ("a", "b", "h")}
    return {**arrays, "n": n, "x": 0.25, "out": np.zeros((64, 64))}


def compare(text: str, n: int) -> bool:
    """Whether a module's entry compiles; when it does, it must do what Python does."""
    names = module(text)
    try:
        program = lower(collect(names["main"]), {})
    except CompileError:
        return False
    expected, got = arguments(n), arguments(n)
    with np.errstate(all="ignore"):
        try:
            python_meaning.run(names, names["main"], expected)
        except (ZeroDivisionError, OverflowError):
            return False
        run(program, got)
    np.testing.assert_array_equal(got["out"], expected["out"])
    return True


def agree(text: str, n: int = 5) -> None:
    """A kernel that must compile and do what Python does."""
    names = module(text)
    lower(collect(names["main"]), {})
    assert compare(text, n)
