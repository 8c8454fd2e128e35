"""A kernel means what Python would do with its body: IR that is interpreted against the body that Python runs."""

from __future__ import annotations

import numpy as np
import pytest
import python_meaning
from ir_interpreter import run
from kernel_texts import in_incore, in_scope, module
from random_kernels import body

from pypto.language.errors import CompileError
from pypto.language.lower import lower
from pypto.language.source import collect

SEEDS = range(250)


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


def test_random_kernels_mean_what_python_does() -> None:
    compiled = 0
    for seed in SEEDS:
        text = (in_incore if seed % 2 else in_scope)(body(seed))
        try:
            compiled += compare(text, n=(5, 0, 2)[seed % 3])
        except AssertionError as error:
            pytest.fail(f"seed {seed}: {error}\n{text}")
    # The comparison is worth nothing if most bodies are refused.
    assert compiled > len(SEEDS) // 2
