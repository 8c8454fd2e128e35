"""Generated kernels, assembled by the real ptoas and run in the simulator, against float64."""

from __future__ import annotations

import cases_control
import cases_memory
import cases_random
import cases_vector
import numpy as np
import pytest
from generated import Case, Library, check

from pypto.ir.builder import function
from pypto.ir.nodes import CoreType, Direction, Function, FunctionKind
from pypto.ir.types import FP32, DynDim, MemorySpace, TensorType

CASES: list[Case] = [*cases_vector.cases(), *cases_memory.cases(), *cases_control.cases(), *cases_random.cases()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_result(case: Case, library: Library) -> None:
    check(case, library)


def windows_of_views() -> Function:
    """Three dimensions, two of them known at run time; a view of a view; a result that is a view itself."""
    dims = DynDim("R"), DynDim("C")
    made, b = function(
        "windows_of_views",
        FunctionKind.INCORE,
        [
            ("x", TensorType((4, *dims), FP32)),
            ("o", TensorType((DynDim("A"), DynDim("B")), FP32, is_view=True), Direction.Out),
        ],
    )
    made.core = CoreType.AIV
    x, out = (p.value for p in made.params)
    rows = b.value("arith.sub", [b.value("tensor.dim", [x], axis=1), b.constant(1)])
    inner = b.view(b.view(x, [1, 1, 0], [3, rows, 9]), [0, 0, 2], [2, rows, 7])
    b.store(b.load(inner, [1, 2, 0], (3, 7), memory=MemorySpace.Vec), out, [1, 0])
    b.store(b.load(inner, [1, 2, 0], (7, 3), memory=MemorySpace.Vec, transposed=True), out, [4, 0])
    b.op("scf.return")
    return made


def test_windows_of_views(library: Library) -> None:
    x = np.random.default_rng(3).standard_normal((4, 9, 11)).astype(np.float32)
    whole = np.zeros((12, 20), np.float32)
    view = whole[:, 4:]
    # Behind the tensors: dimensions of x, dimensions and row stride of the view.
    assert library.run("windows_of_views", [x, view, 9, 11, 12, 16, 20]) is None
    expected = np.zeros((12, 20), np.float32)
    expected[1:4, 4:11] = x[2, 3:6, 2:9]
    expected[4:11, 4:7] = x[2, 3:6, 2:9].T
    np.testing.assert_array_equal(whole, expected)


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ([5, 11, 12, 16, 20], "pl.load reads outside of x"),
        ([9, 11, 3, 16, 20], "pl.store writes outside of o"),
        ([9, 11, 12, 6, 20], "pl.store writes outside of o"),
        # The view's own rows are enough, but it reaches behind the third axis.
        ([9, 8, 12, 16, 20], "pl.load reads outside of x"),
    ],
)
def test_access_outside_of_a_tensor_is_refused(library: Library, dims: list[int], message: str) -> None:
    x, whole = np.zeros((4, 9, 11), np.float32), np.zeros((12, 20), np.float32)
    assert library.run("windows_of_views", [x, whole, *dims]) == message


def test_valid_length_outside_of_the_tile_is_refused(library: Library) -> None:
    case = next(c for c in CASES if c.name == "shapes_FP32")
    inputs = [np.zeros(shape, np.float32) for shape, _ in case.inputs]
    outputs = [np.zeros(shape, np.float32) for shape, _ in case.outputs.values()]
    assert library.run(case.name, [*inputs, 9, 1.0, *outputs]) == ("pl.slice ends behind the valid part of its tile")
