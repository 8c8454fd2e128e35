"""Kernels that hold many operations each, written as users write them, compiled together and compared with NumPy.

A test module lists its kernels in ``KERNELS``; the fixture ``operations`` compiles those of all modules that the
session runs, in one piece per core type, and :func:`check` runs one of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from generated import Library
from kernel_texts import module

from pypto.ir.nodes import Function
from pypto.language.lower import lower
from pypto.language.source import collect

NUMPY: dict[str, Any] = {
    "FP32": np.float32,
    "FP16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "BOOL": np.bool_,
    **{f"{kind}{bits}": np.dtype(f"{kind.lower()}{bits}").type for kind in ("INT", "UINT") for bits in (8, 16, 32, 64)},
}
# Relative to the larger of 1 and the exact value: a few roundings of the element type.
TOLERANCE = {"FP32": 5e-6, "FP16": 4e-3, "BF16": 2e-2}
# What outputs hold before the kernel runs; all element types can hold it.
UNTOUCHED = 1


@dataclass
class Result:
    """What one operation has to store.

    Attributes:
        label: for messages.
        dtype: name of the element type.
        shape: of the tile.
        exact: the valid part, from the first element on.
        tolerance: instead of that of the element type.
    """

    label: str
    dtype: str
    shape: tuple[int, int]
    exact: np.ndarray
    tolerance: float | None = None


@dataclass
class OpKernel:
    """One kernel under construction.

    Attributes:
        name: of the kernel, unique in the session.
        inputs: arrays by the name of their parameter.
        numbers: scalar arguments by name: dtype and value.
        body: lines of the kernel, without indentation.
        results: what it stores.
    """

    name: str
    inputs: dict[str, np.ndarray] = field(default_factory=dict)
    numbers: dict[str, tuple[str, float]] = field(default_factory=dict)
    body: list[str] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)

    def input(self, name: str, array: np.ndarray) -> np.ndarray:
        """A tensor parameter; gives the array in float64 or, for whole numbers, as it is."""
        self.inputs[name] = array
        return array if array.dtype.kind in "iub" else array.astype(np.float64)

    def load(self, name: str, array: np.ndarray, valid: tuple[int, int] | None = None) -> np.ndarray:
        """A parameter and, under the name ``t_<name>``, its tile; gives the valid part for NumPy."""
        given = self.input(name, array)
        rows, cols = valid or array.shape
        part = f", valid_shape=[{rows}, {cols}]" if valid else ""
        self.body.append(f"t_{name} = pl.load({name}, [0, 0], [{array.shape[0]}, {array.shape[1]}]{part})")
        return given[:rows, :cols]

    def store(
        self, expression: str, dtype: str, shape: tuple[int, int], exact: Any, tolerance: float | None = None
    ) -> None:
        """Compute an expression and keep its result; ``exact`` is what NumPy says about its valid part."""
        group = self._group(dtype, shape)
        index = sum(1 for r in self.results if self._group(r.dtype, r.shape) == group)
        self.body.append(f"pl.store({expression}, [{index}, 0, 0], {group})")
        self.results.append(Result(f"{self.name}: {expression}", dtype, shape, np.asarray(exact), tolerance))

    @staticmethod
    def _group(dtype: str, shape: tuple[int, int]) -> str:
        return f"out_{dtype}_{shape[0]}x{shape[1]}"

    def outputs(self) -> dict[str, list[Result]]:
        """The results by the tensor that holds them, in order of its first dimension."""
        found: dict[str, list[Result]] = {}
        for result in self.results:
            found.setdefault(self._group(result.dtype, result.shape), []).append(result)
        return found

    def text(self) -> str:
        """The module with the kernel and an entry that calls it."""
        params = [f"{n}: pl.Tensor[{list(a.shape)}, pl.{dtype_name(a.dtype)}]" for n, a in self.inputs.items()]
        params += [f"{n}: pl.Scalar[pl.{dtype}]" for n, (dtype, _) in self.numbers.items()]
        params += [
            f"{name}: pl.Out[pl.Tensor[{[len(results), *results[0].shape]}, pl.{results[0].dtype}]]"
            for name, results in self.outputs().items()
        ]
        names = [*self.inputs, *self.numbers, *self.outputs()]
        lines = "".join(f"    {line}\n" for line in self.body)
        return (
            f"@incore\ndef {self.name}({', '.join(params)}):\n{lines}"
            f"@entry\ndef main({', '.join(params)}):\n    {self.name}({', '.join(names)})\n"
            f"    return {', '.join(self.outputs())}\n"
        )

    def function(self) -> Function:
        """The kernel after all passes."""
        (made,) = lower(collect(module(self.text())["main"]), {}).incore_functions()
        return made


def dtype_name(dtype: Any) -> str:
    """Name of an element type in the language."""
    return next(name for name, known in NUMPY.items() if np.dtype(known) == dtype)


def check(kernel: OpKernel, library: Library) -> None:
    """Run a kernel and compare all that it stored; what is not valid must be untouched."""
    outputs = {
        name: np.full((len(results), *results[0].shape), UNTOUCHED, NUMPY[results[0].dtype])
        for name, results in kernel.outputs().items()
    }
    numbers = [float(v) if dtype.startswith(("FP", "BF")) else int(v) for dtype, v in kernel.numbers.values()]
    assert library.run(kernel.name, [*kernel.inputs.values(), *numbers, *outputs.values()]) is None
    wrong = []
    for name, results in kernel.outputs().items():
        for index, result in enumerate(results):
            problem = difference(outputs[name][index], result)
            if problem:
                wrong.append(f"{result.label}: {problem}")
    assert not wrong, "\n".join(wrong)


def difference(got: np.ndarray, result: Result) -> str | None:
    """How a stored tile differs from what it has to be."""
    rows, cols = result.exact.shape
    outside = np.ones(got.shape, bool)
    outside[:rows, :cols] = False
    if not (got[outside] == got.dtype.type(UNTOUCHED)).all():
        return "elements that are not valid were written"
    inside, exact = got[:rows, :cols], result.exact
    if got.dtype.kind in "iub":
        wrong = inside != exact.astype(got.dtype)
        return f"{inside[wrong][:4]} instead of {exact[wrong][:4]}" if wrong.any() else None
    values, exact = inside.astype(np.float64), exact.astype(np.float64)
    finite = np.isfinite(exact)
    if not np.array_equal(values[~finite], exact[~finite], equal_nan=True):
        return "infinite elements differ"
    error = np.abs(values[finite] - exact[finite]) / np.maximum(1, np.abs(exact[finite]))
    limit = TOLERANCE[result.dtype] if result.tolerance is None else result.tolerance
    return f"error {error.max()} above {limit}" if not error.max(initial=0) <= limit else None
