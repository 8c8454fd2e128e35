"""Precision check: what a program computes after each pass, in NumPy float64, and what the compiled kernel computes.

The program as it was parsed is the reference. A pass that changes results beyond rounding is wrong; where the compiled
kernel is far from a program that all passes left alone, the element types are too small for the computation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pypto.build.generate import lowered_program
from pypto.diagnostics.samples import sample_arguments
from pypto.ir.nodes import Direction, FunctionKind, Program
from pypto.ir.reference.interpreter import NoReference, run

if TYPE_CHECKING:
    from pypto.build.specialize import ParameterSpec
    from pypto.jit.function import JITFunction
    from pypto.runtime.config import RunConfig

KERNEL = "compiled kernel"
"""What the last comparison is called: the run of the compiled kernel."""

# How far results may be apart, relative to the largest one: between two ways of computing in float64 that round to the
# type of the output on the way, and between float64 and the kernel.
_BETWEEN_PASSES = {"FP32": 1e-6, "FP16": 2e-3, "BF16": 1.6e-2}
_OF_THE_KERNEL = {"FP32": 1e-5, "FP16": 4e-3, "BF16": 3.2e-2}


@dataclass(frozen=True)
class Difference:
    """An output compared with the reference.

    Attributes:
        output: name of the parameter.
        absolute, relative: the largest difference, and its part of the largest magnitude in the reference.
        allowed: the largest ``relative`` that is only rounding.
        place: index of the largest difference.
        expected, got: the numbers there.
    """

    output: str
    absolute: float
    relative: float
    allowed: float
    place: tuple[int, ...]
    expected: float
    got: float

    @property
    def ok(self) -> bool:
        """Whether this is only rounding."""
        return self.relative <= self.allowed


@dataclass(frozen=True)
class Check:
    """A program after a pass, or the compiled kernel.

    Attributes:
        name: of the pass, or `KERNEL`.
        differences: of each output; none for the reference itself and when there was a problem.
        problem: why nothing could be compared.
    """

    name: str
    differences: tuple[Difference, ...] = ()
    problem: str = ""

    @property
    def ok(self) -> bool:
        """Whether everything that was compared is only rounding."""
        return all(difference.ok for difference in self.differences)


@dataclass(frozen=True)
class PrecisionReport:
    """What `check_precision` found.

    Attributes:
        entry: name of the kernel.
        checks: the program after each pass, in order, and the compiled kernel.
    """

    entry: str
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether no comparison shows more than rounding. Something has to have been compared."""
        return all(check.ok for check in self.checks) and any(check.differences for check in self.checks)

    def record(self) -> dict[str, Any]:
        """The report as plain data."""
        checks = [
            {
                "name": check.name,
                "ok": check.ok,
                "problem": check.problem,
                "outputs": [{**vars(each), "place": list(each.place), "ok": each.ok} for each in check.differences],
            }
            for check in self.checks
        ]
        return {"schema": 1, "entry": self.entry, "ok": self.ok, "checks": checks}

    def __str__(self) -> str:
        lines = [f"Precision of {self.entry}: {'ok' if self.ok else 'NOT OK'}"]
        for number, check in enumerate(self.checks):
            label = f"  {number:02} after {check.name}" if check.name != KERNEL else f"     {KERNEL}"
            if check.problem:
                lines.append(f"{label}: not compared: {check.problem}")
            elif not check.differences:
                lines.append(f"{label}: the reference")
            for each in check.differences:
                text = f"{label}: {each.output} differs by {each.absolute:.3g} (relative {each.relative:.2g}"
                if each.ok:
                    lines.append(f"{text})" if each.absolute else f"{label}: {each.output} is equal")
                    continue
                at = ", ".join(map(str, each.place))
                lines.append(f"{text}, allowed {each.allowed:.2g}): [{at}] is {each.got:.9g}, not {each.expected:.9g}")
        return "\n".join(lines)


def check_precision(
    function: JITFunction,
    *arguments: Any,
    config: RunConfig | None = None,
    execute: bool = True,
    golden: Callable[..., Any] | None = None,
) -> PrecisionReport:
    """Compare what a kernel computes after each pass, and compiled, with what it computes as it was parsed.

    Args:
        function: a ``@pl.jit`` entry.
        arguments: one per parameter, which are not changed; with none, small random ones, for a kernel without dynamic
            dimensions whose annotations are complete.
        config: compile options; its ``rtol`` is allowed at least between the compiled kernel and the reference.
        execute: also compile the kernel and run it.
        golden: computes the outputs from the same arguments as float64 arrays, by writing the outputs in place; it then
            is the reference.

    Raises:
        CompileError: the kernel is wrong.
        TypeError, ValueError: arguments that do not fit.
    """
    from pypto.jit.request import capture

    if function.kind is FunctionKind.HOST:
        raise ValueError(f"{function.qualname} is a distributed program; check the entries that run on its chips")
    request = capture(function, arguments, {}, config)
    parameters = request.specialization.parameters
    values = list(arguments) if arguments else sample_arguments(parameters)
    outputs = [p for p in parameters if p.shape is not None and p.direction is not Direction.In]
    if not outputs:
        raise ValueError(f"{function.qualname} writes no tensor, so there is nothing to compare")
    checker = _Checker({p.name: value for p, value in zip(parameters, values, strict=True)}, outputs)
    if golden is not None:
        checker.take("golden function", lambda arrays: golden(*arrays.values()))
    lowered_program(request.closure, request.specialization, checker.observe)
    if execute:
        copies = [value.copy() if isinstance(value, np.ndarray) else value for value in values]
        function.compile(*copies, config=config)(*copies)
        # Kernels round what they compute to the element types of their tensors on the way, not to the output's alone.
        rounding = max((_OF_THE_KERNEL.get(p.dtype.name, 0.0) for p in parameters if p.shape is not None), default=0.0)
        allowed = dict.fromkeys(_OF_THE_KERNEL, max(rounding, request.config.rtol))
        checker.compare(KERNEL, dict(zip((p.name for p in parameters), copies, strict=True)), allowed)
    return PrecisionReport(function.name, tuple(checker.checks))


class _Checker:
    """Runs programs on the same arguments and compares their outputs with the first one's."""

    def __init__(self, arguments: Mapping[str, Any], outputs: list[ParameterSpec]) -> None:
        self.arguments = arguments
        self.outputs = outputs
        self.reference: dict[str, Any] | None = None
        self.checks: list[Check] = []

    def observe(self, name: str, program: Program) -> None:
        """The program after a pass."""
        self.take(name, lambda arrays: run(program, arrays))

    def take(self, name: str, compute: Callable[[dict[str, Any]], object]) -> None:
        arrays = {
            name: np.array(value, np.float64) if isinstance(value, np.ndarray) else value
            for name, value in self.arguments.items()
        }
        try:
            with np.errstate(all="ignore"):
                compute(arrays)
        except NoReference as missing:
            self.checks.append(Check(name, problem=str(missing)))
            return
        if self.reference is None:
            self.reference = arrays
            self.checks.append(Check(name))
        else:
            self.compare(name, arrays, _BETWEEN_PASSES)

    def compare(self, name: str, arrays: Mapping[str, Any], allowed: Mapping[str, float]) -> None:
        if self.reference is None:
            self.checks.append(Check(name, problem="there is no reference to compare with"))
            return
        found = [
            _difference(p.name, self.reference[p.name], arrays[p.name], allowed.get(p.dtype.name, 0.0))
            for p in self.outputs
        ]
        self.checks.append(Check(name, tuple(found)))


def _difference(name: str, expected: Any, got: Any, allowed: float) -> Difference:
    got = np.asarray(got).astype(np.float64)
    # Equal numbers, infinities and what is no number in both are no difference.
    with np.errstate(invalid="ignore"):
        apart = np.where((expected == got) | (np.isnan(expected) & np.isnan(got)), 0.0, np.abs(expected - got))
    apart = np.where(np.isnan(apart), np.inf, apart)
    where = tuple(int(index) for index in np.unravel_index(int(np.argmax(apart)), apart.shape))
    absolute = float(apart[where])
    scale = float(np.abs(expected[np.isfinite(expected)]).max(initial=0.0)) or 1.0
    return Difference(name, absolute, absolute / scale, allowed, where, float(expected[where]), float(got[where]))
