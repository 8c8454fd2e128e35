"""Kernels of one scope with whole tensors, run by the reference after all passes, beside what NumPy gives."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
from kernel_texts import lowered, unmarked

from pypto.ir.reference.interpreter import run
from pypto.language.errors import CompileError

Given = Mapping[str, tuple[np.ndarray, str]]


def real(seed: int, *shape: int) -> tuple[np.ndarray, str]:
    """Normally distributed numbers, FP32."""
    return np.random.default_rng(seed).standard_normal(shape), "FP32"


def places(seed: int, limit: int, *shape: int) -> tuple[np.ndarray, str]:
    """Whole numbers below a limit, INT32."""
    return np.random.default_rng(seed).integers(0, limit, shape).astype(np.float64), "INT32"


def different(seed: int, axis: int, count: int, *shape: int) -> tuple[np.ndarray, str]:
    """The first ``count`` numbers of a permutation along an axis, INT32."""
    order = np.argsort(np.random.default_rng(seed).random(shape), axis)
    return np.take(order, range(count), axis).astype(np.float64), "INT32"


def whole(array: np.ndarray) -> np.ndarray:
    """Positions as NumPy takes them."""
    return array.astype(np.int64)


def text_of(body: str, given: Given, out: tuple[tuple[int, ...], str], dynamic: bool = False) -> str:
    """The module of the entry; with ``dynamic`` every dimension but those of length 1 is known at run time only."""
    names: dict[int, str] = {}

    def annotation(shape: tuple[int, ...], dtype: str) -> str:
        if dynamic:
            for size in shape:
                names.setdefault(size, f"N{size}")
        shown = [names[size] if dynamic and size != 1 else str(size) for size in shape]
        return f"pl.Tensor[[{', '.join(shown)}], pl.{dtype}]"

    params = [f"{name}: {annotation(array.shape, dtype)}" for name, (array, dtype) in given.items()]
    params.append(f"out: pl.Out[{annotation(*out)}]")
    head = "".join(f"{name} = pl.dynamic('{name}')\n" for name in names.values())
    scope = f"    with pl.at(level=pl.Level.CORE_GROUP):\n{textwrap.indent(body, '        ')}\n    return out\n"
    return f"{head}@entry\ndef main({', '.join(params)}):\n{scope}"


def check(body: str, given: Given, wanted: Any, dtype: str = "FP32", dynamic: bool = False) -> None:
    """The scope must put ``wanted`` into ``out``."""
    wanted = np.asarray(wanted, np.float64)
    values = {**{name: array.copy() for name, (array, _) in given.items()}, "out": np.full(wanted.shape, np.nan)}
    run(lowered(text_of(body, given, (wanted.shape, dtype), dynamic)), values)
    np.testing.assert_allclose(values["out"], wanted, rtol=1e-9, atol=1e-9)


def refused(body: str, given: Given, out: tuple[tuple[int, ...], str] = ((64, 64), "FP32")) -> str:
    """The message about the marked part of a scope."""
    marked = unmarked(text_of(body, given, out))
    try:
        lowered(marked.text)
    except CompileError as error:
        assert (error.line, error.column) == (marked.line, marked.column), (error.line, error.column, str(error))
        return error.message
    raise AssertionError("the scope compiles")
