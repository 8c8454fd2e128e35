"""Random expressions of whole numbers: every step wraps around as NumPy's does."""

from __future__ import annotations

import os
import re
import warnings

import numpy as np
import pytest
from generated import Library
from op_kernels import NUMPY, OpKernel, check

_DTYPES = ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64")
# Kernels for each element type; a longer run gives its own number.
_KERNELS = int(os.environ.get("PYPTO_TEST_EXPRESSIONS", "1"))
_PER_KERNEL = 6
_SHAPE = (9, 40)
_OPERATORS = ("+", "-", "*", "&", "|", "^", "%", "//", "<", "==")


class _Writer:
    """Expressions as text, for the language and for NumPy alike."""

    def __init__(self, rng: np.random.Generator, dtype: str) -> None:
        self.rng, self.dtype = rng, dtype

    def leaf(self) -> str:
        return str(self.rng.choice(["a", "b", "c", "column", "row"]))

    def expression(self, depth: int) -> str:
        if depth == 0:
            return self.leaf()
        kind = self.rng.integers(10)
        left = self.expression(depth - 1)
        if kind == 0:
            return f"(~{left})"
        if kind == 1:
            return f"({left} << {self.rng.integers(0, 7)})"
        if kind == 2:
            return f"({left} >> {self.rng.integers(0, 7)})"
        if kind == 3:
            return f"maximum({left}, {self.expression(depth - 1)})"
        if kind == 4:
            return f"({left} + {self.rng.integers(0, 100)})"
        sign = str(self.rng.choice(_OPERATORS))
        right = f"({self.leaf()} | 1)" if sign in ("%", "//") else self.expression(depth - 1)
        return f"({left} {sign} {right})"


class _Numbers:
    """An array of one element type, whose operators give that type again."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def _with(self, other: object, work: np.ufunc) -> _Numbers:
        right = other.array if isinstance(other, _Numbers) else self.array.dtype.type(other)
        return _Numbers(np.asarray(work(self.array, right)).astype(self.array.dtype))

    def __add__(self, other: object) -> _Numbers:
        return self._with(other, np.add)

    def __sub__(self, other: object) -> _Numbers:
        return self._with(other, np.subtract)

    def __mul__(self, other: object) -> _Numbers:
        return self._with(other, np.multiply)

    def __and__(self, other: object) -> _Numbers:
        return self._with(other, np.bitwise_and)

    def __or__(self, other: object) -> _Numbers:
        return self._with(other, np.bitwise_or)

    def __xor__(self, other: object) -> _Numbers:
        return self._with(other, np.bitwise_xor)

    def __mod__(self, other: object) -> _Numbers:
        return self._with(other, np.remainder)

    def __floordiv__(self, other: object) -> _Numbers:
        return self._with(other, np.floor_divide)

    def __lshift__(self, other: object) -> _Numbers:
        return self._with(other, np.left_shift)

    def __rshift__(self, other: object) -> _Numbers:
        return self._with(other, np.right_shift)

    def __lt__(self, other: object) -> _Numbers:
        return self._with(other, np.less)

    def __eq__(self, other: object) -> _Numbers:  # type: ignore[override]
        return self._with(other, np.equal)

    __hash__ = None  # type: ignore[assignment]

    def __invert__(self) -> _Numbers:
        return _Numbers(~self.array)


def maximum(a: _Numbers, b: _Numbers) -> _Numbers:
    return a._with(b, np.maximum)


def kernel(dtype: str, seed: int) -> OpKernel:
    """A kernel of random expressions."""
    rng = np.random.default_rng(seed)
    k = OpKernel(f"random_{dtype}_{seed}")
    limits = np.iinfo(NUMPY[dtype])
    names: dict[str, _Numbers] = {}
    for name, shape in (("a", _SHAPE), ("b", _SHAPE), ("c", _SHAPE), ("column", (9, 1)), ("row", (1, 40))):
        data = rng.integers(limits.min, limits.max, shape, dtype=NUMPY[dtype], endpoint=True)
        names[name] = _Numbers(k.load(name, data))
    writer = _Writer(rng, dtype)
    while len(k.results) < _PER_KERNEL:
        text = writer.expression(3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            exact = eval(text, {**names, "maximum": maximum}).array
        if exact.shape != _SHAPE:
            continue
        shown = text.replace("maximum(", "pl.maximum(")
        for name in names:
            shown = _renamed(shown, name)
        k.store(shown, dtype, _SHAPE, exact)
    return k


def _renamed(text: str, name: str) -> str:
    """The tile of a parameter instead of its name."""
    return re.sub(rf"\b(?<!t_){name}\b", f"t_{name}", text)


KERNELS = [kernel(dtype, seed) for dtype in _DTYPES for seed in range(_KERNELS)]


@pytest.mark.parametrize("kernel", KERNELS, ids=[k.name for k in KERNELS])
def test_random_expressions_agree_with_numpy(kernel: OpKernel, operations: Library) -> None:
    check(kernel, operations)
