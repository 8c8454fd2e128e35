"""What a golden file and the attributes of `pypto_kernel_test` give: used as it is, or one clear error."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
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


def plan(**given: Any) -> dict[str, Any]:
    return {"inputs": "", "dimensions": {"N": "5"}, "arguments": {}, "seed": 1, **given}


SCALARS = (
    ParameterSummary("x", "tensor", "in", "FP32", ("N",)),
    ParameterSummary("factor", "scalar", "in", "FP32", ()),
    ParameterSummary("count", "scalar", "in", "INT32", ()),
    ParameterSummary("wide", "scalar", "in", "BOOL", ()),
)
VALUES = {"factor": "2.5", "count": "-3", "wide": "True"}


def test_scalars_have_the_kind_of_their_parameters(program: ModuleType) -> None:
    _, factor, count, wide = program.arguments_of(SCALARS, plan(arguments=VALUES), golden(None))
    assert (factor, count, wide) == (2.5, -3, True)
    assert [type(value) for value in (factor, count, wide)] == [float, int, bool]


@pytest.mark.parametrize(
    ("arguments", "dimensions", "message"),
    [
        ({"factor": "two"}, {}, "arguments gives 'two' for factor: FP32, which is not a number"),
        ({"count": "1.5"}, {}, "arguments gives '1.5' for count: INT32, which is not a whole number"),
        ({"wide": "yes"}, {}, "arguments gives 'yes' for wide: BOOL, which is neither True nor False"),
        ({"facter": "1"}, {}, "arguments names 'facter', which is no scalar parameter; those are: count, factor, wide"),
        ({}, {"N": "many"}, "dimensions gives 'many' for N, which is not a whole number"),
        ({}, {"N": "-1"}, "x: FP32[N] would have the shape (-1,)"),
        ({}, {"M": "1"}, 'give its size, dimensions = {"N": "128"}'),
    ],
)
def test_what_the_attributes_say_wrong(
    program: ModuleType, arguments: dict[str, str], dimensions: dict[str, str], message: str
) -> None:
    given = plan(arguments=VALUES | arguments, dimensions=dimensions or {"N": "5"})
    with pytest.raises(program.TestFailed) as caught:
        program.arguments_of(SCALARS, given, golden(None))
    assert message in str(caught.value)


def test_a_scalar_without_a_value(program: ModuleType) -> None:
    with pytest.raises(program.TestFailed) as caught:
        program.arguments_of(SCALARS, plan(arguments={"factor": "1"}), golden(None))
    assert 'count: INT32 is a scalar: give its value, arguments = {"count": "1"}' in str(caught.value)


def test_a_dimension_that_no_specialization_has(program: ModuleType) -> None:
    entries = [SimpleNamespace(params=PARAMETERS), SimpleNamespace(params=())]
    program.check_dimensions(entries, {"N": "5"})
    with pytest.raises(program.TestFailed, match="names 'M', which is no dynamic dimension; those are: N"):
        program.check_dimensions(entries, {"N": "5", "M": "5"})


def test_a_tolerance_that_is_no_number(program: ModuleType) -> None:
    with pytest.raises(program.TestFailed, match="tolerance gives 'tight', which is not a number"):
        program.tolerance_of(SCALARS, plan(tolerance="tight"))


def test_results_of_the_golden_function(program: ModuleType) -> None:
    def scale(x: np.ndarray, factor: float, eps: float = 0.0) -> tuple[np.ndarray, float]:
        return x * factor + eps, 2.0

    read = {"x": np.arange(3.0), "factor": 2.0}
    first, second = program.golden_results(scale, read, {"eps": "0.5"})
    np.testing.assert_array_equal(first, [0.5, 2.5, 4.5])
    assert second.shape == ()


@pytest.mark.parametrize(
    ("function", "further", "message"),
    [
        (lambda x: x, {}, "cannot be called as <lambda>(x, factor): too many positional arguments"),
        (
            lambda x, factor: x,
            {"eps": "1"},
            "as <lambda>(x, factor, eps=...): got an unexpected keyword argument 'eps'",
        ),
        (lambda x, factor, eps: x, {"eps": "small"}, "golden_arguments gives 'small' for eps, which is not a number"),
        (lambda x, factor: None, {}, "returns object where an array of numbers is needed"),
        (lambda x, factor: "text", {}, "where an array of numbers is needed"),
    ],
)
def test_a_golden_function_that_does_not_fit(
    program: ModuleType, function: Callable[..., Any], further: dict[str, str], message: str
) -> None:
    with pytest.raises(program.TestFailed) as caught:
        program.golden_results(function, {"x": np.arange(3.0), "factor": 2.0}, further)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import no_such_module\n", "golden.py needs the module 'no_such_module', which is in no target of deps"),
        ("x = 1\ndef f(:\n", "golden.py:2: "),
    ],
)
def test_a_golden_file_that_cannot_be_imported(program: ModuleType, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "golden.py").write_text(text)
    with pytest.raises(program.TestFailed) as caught:
        program.golden_module(tmp_path / "golden.py")
    assert message in str(caught.value)
