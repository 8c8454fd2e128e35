"""Tensors that a golden file makes for `pypto_kernel_test`: used as they are, or one clear error."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from pypto.bundle.description import ParameterSummary


@pytest.fixture(scope="module")
def program() -> ModuleType:
    """The program that the rule runs; it stands outside of the package."""
    path = Path(__file__).resolve().parents[3] / "rules/private/kernel_test.py"
    spec = importlib.util.spec_from_file_location("pypto_kernel_test_program", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


PARAMETERS = (
    ParameterSummary("places", "tensor", "in", "INT32", ("N",)),
    ParameterSummary("x", "tensor", "in", "FP32", (2, "N")),
    ParameterSummary("out", "tensor", "out", "FP32", (2, "N")),
)
PLAN = {"inputs": "inputs", "dimensions": {"N": "5"}, "arguments": {}, "seed": 1}


def golden(inputs: Callable[..., Any] | None) -> ModuleType:
    module = ModuleType("golden")
    if inputs is not None:
        module.inputs = inputs  # type: ignore[attr-defined]
    return module


def test_made_tensors_stand_in_their_places_and_the_others_are_random(program: ModuleType) -> None:
    seen: dict[str, tuple[int, ...]] = {}

    def inputs(numbers: np.random.Generator, shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
        seen.update(shapes)
        return {"places": numbers.permutation(5).astype(np.int32)}

    places, x, out = program.arguments_of(PARAMETERS, PLAN, golden(inputs))
    assert seen == {"places": (5,), "x": (2, 5), "out": (2, 5)}
    assert sorted(places) == [0, 1, 2, 3, 4]
    assert x.shape == (2, 5) and len(set(x.ravel())) == 10
    assert np.isnan(out).all()


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ({"places": np.zeros(5, np.int64)}, "must make places as an array (5,) of int32"),
        ({"places": np.zeros(4, np.int32)}, "must make places as an array (5,) of int32"),
        ({"places": [0, 1, 2, 3, 4]}, "must make places as an array (5,) of int32"),
        ({"out": np.zeros((2, 5), np.float32)}, "makes 'out', which the kernel does not read; it reads: places, x"),
        ({"place": np.zeros(5, np.int32)}, "makes 'place', which the kernel does not read"),
    ],
)
def test_what_cannot_be_an_argument_is_refused(program: ModuleType, made: dict[str, Any], message: str) -> None:
    with pytest.raises(program.TestFailed) as caught:
        program.arguments_of(PARAMETERS, PLAN, golden(lambda numbers, shapes: made))
    assert message in str(caught.value)


def test_a_function_that_is_not_there(program: ModuleType) -> None:
    with pytest.raises(program.TestFailed, match=r"golden\.py has no function 'inputs'; name it by the attribute `inp"):
        program.arguments_of(PARAMETERS, PLAN, golden(None))
