"""The precision check finds the pass that changes what a program computes."""

from __future__ import annotations

from typing import Any

import diagnosed_kernels as kernels
import numpy as np
import pytest

from pypto.diagnostics import check_precision
from pypto.diagnostics.precision import KERNEL
from pypto.ir.nodes import Program
from pypto.ir.passes import pipeline


@pytest.mark.parametrize("name", ["joined", "loops", "narrow"])
def test_every_pass_keeps_what_a_kernel_computes(name: str) -> None:
    report = check_precision(getattr(kernels, name), execute=False)
    assert report.ok, str(report)
    assert [check.name for check in report.checks] == ["Parse", *(name for name, _ in pipeline.PASSES)]
    assert "00 after Parse: the reference" in str(report)


def test_a_golden_function_is_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.linspace(-2, 2, kernels.R * kernels.C).reshape(kernels.R, kernels.C).astype(np.float32)
    arguments = (x, 3.0, np.zeros_like(x))

    def golden(x: np.ndarray, factor: float, out: np.ndarray) -> None:
        out[:] = x * factor + x * x

    assert check_precision(kernels.joined, *arguments, execute=False, golden=golden).ok

    def wrong(x: np.ndarray, factor: float, out: np.ndarray) -> None:
        golden(x, factor, out)
        out[3, 5] += 0.5

    report = check_precision(kernels.joined, *arguments, execute=False, golden=wrong)
    assert not report.ok
    (difference,) = report.checks[1].differences
    assert (difference.place, round(difference.absolute, 6)) == ((3, 5), 0.5)
    assert not arguments[2].any()


def test_the_pass_that_changes_a_program_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(program: Program, _backend_type: str) -> None:
        for function in program.incore_functions():
            for op in function.body.walk():
                if op.name == "tile.add":
                    op.name = "tile.sub"

    passes = list(pipeline.PASSES)
    passes.insert(5, ("BreakSums", breaks))
    monkeypatch.setattr(pipeline, "PASSES", tuple(passes))
    report = check_precision(kernels.joined, execute=False)
    assert not report.ok
    assert next(check.name for check in report.checks if not check.ok) == "BreakSums"
    assert "BreakSums: out differs by" in str(report)
    (first,) = [check for check in report.record()["checks"] if check["name"] == "BreakSums"]
    assert first["outputs"][0]["output"] == "out"
    assert not first["outputs"][0]["ok"]


def test_what_has_no_reference_is_said_and_is_not_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    from pypto.ir.reference import interpreter

    monkeypatch.setattr(interpreter, "TILES", {})
    report = check_precision(kernels.joined, execute=False)
    assert not report.ok
    assert "not compared: tile.muls has no NumPy reference (joined:" in str(report)


def test_what_is_no_number_compares(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.full((kernels.R, kernels.C), np.nan, np.float32)
    x[0] = np.inf
    assert check_precision(kernels.joined, x, 1.0, np.zeros_like(x), execute=False).ok


def test_arguments_are_needed_where_annotations_leave_something_open() -> None:
    with pytest.raises(ValueError, match="dimension N of 'x' is dynamic"):
        check_precision(kernels.sized, execute=False)
    x = np.ones((48, kernels.C), np.float32)
    assert check_precision(kernels.sized, x, np.zeros_like(x), execute=False).ok


def test_the_compiled_kernel_is_held_to_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled(error: float) -> Any:
        def call(x: np.ndarray, factor: float, out: np.ndarray) -> None:
            out[:] = x * factor + x * x
            out[1, 2] += error

        return lambda *_samples, config=None: call

    for error, ok in ((0.0, True), (0.5, False)):
        monkeypatch.setattr(kernels.joined, "compile", compiled(error))
        report = check_precision(kernels.joined)
        assert report.checks[-1].name == KERNEL
        assert report.ok is ok
        if not ok:
            assert report.checks[-1].differences[0].place == (1, 2)
            assert f"{KERNEL}: out differs by 0.5" in str(report)
