"""A watch tells of every change of an outside name for which `collect` would give another closure."""

from __future__ import annotations

import contextlib
import math
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pypto.language as pl
from pypto.language.errors import CompileError
from pypto.language.source import SourceClosure, collect
from pypto.language.watch import SourceWatch

ROWS = 4
FACTOR = 2.0
SIZES = [1, 2]
NESTED = ((1, [2, 3]), 4)
settings = types.ModuleType("settings")
settings.DEPTH = 3  # type: ignore[attr-defined]


def kernel_with_a_free_variable() -> tuple[Any, Callable[[Any], None]]:
    inner = 5

    def change(value: Any) -> None:
        nonlocal inner
        inner = value

    @pl.jit.inline
    def add_inner(x):  # type: ignore[no-untyped-def]
        return x + inner * len(SIZES)

    @pl.jit
    def entry(x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):  # type: ignore[no-untyped-def]
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [ROWS, 8]) * (FACTOR + SIZES[1] + NESTED[0][1][0] + settings.DEPTH)
            pl.store(add_inner(t) * math.sqrt(4.0), [0, 0], out)
        return out

    return entry, change


def test_nothing_changed() -> None:
    entry, _ = kernel_with_a_free_variable()
    closure = collect(entry)
    watch = SourceWatch.of(closure)
    assert watch is not None
    assert watch.unchanged()
    assert of_types(collect(entry)) == of_types(closure)
    globals()["UNRELATED"] = object()
    assert watch.unchanged()


@contextlib.contextmanager
def item(items: Any, index: int, value: Any) -> Iterator[None]:
    before = items[index]
    items[index] = value
    try:
        yield
    finally:
        items[index] = before


@contextlib.contextmanager
def more(items: list[Any]) -> Iterator[None]:
    items.append(0)
    try:
        yield
    finally:
        items.pop()


Patch = Callable[[pytest.MonkeyPatch], Any]
CHANGES: dict[str, Patch] = {
    "a number of the module": lambda patch: patch.setitem(globals(), "ROWS", 2),
    "another type of the same value": lambda patch: patch.setitem(globals(), "FACTOR", 2),
    "an item of a list": lambda _: item(SIZES, 1, 7),
    "an item of a nested list": lambda _: item(NESTED[0][1], 0, 7),
    "a longer list": lambda _: more(SIZES),
    "another list": lambda patch: patch.setitem(globals(), "SIZES", [1, 2, 3]),
    "an attribute of a module": lambda patch: patch.setattr(settings, "DEPTH", 4),
    "a name of the language": lambda patch: patch.setattr(pl, "load", pl.store),
    "a builtin that is covered": lambda patch: patch.setitem(globals(), "len", 3),
    "the module of the language": lambda patch: patch.setitem(globals(), "pl", types.ModuleType("pl")),
    "a name that is gone": lambda patch: patch.delitem(globals(), "ROWS"),
}


def of_types(closure: SourceClosure) -> list[Any]:
    return [(f.kernel, [(name, type(value), value) for name, value in f.values.items()]) for f in closure.functions]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changes(change: Patch) -> None:
    entry, _ = kernel_with_a_free_variable()
    closure = collect(entry)
    watch = SourceWatch.of(closure)
    assert watch is not None
    with pytest.MonkeyPatch.context() as patch, change(patch) or contextlib.nullcontext():
        assert not watch.unchanged()
        try:
            assert of_types(collect(entry)) != of_types(closure)
        except CompileError:
            assert SourceWatch.of(closure) is None
    assert watch.unchanged()
    assert of_types(collect(entry)) == of_types(closure)


def test_a_variable_of_a_surrounding_function() -> None:
    entry, change = kernel_with_a_free_variable()
    watch = SourceWatch.of(collect(entry))
    assert watch is not None
    change(6)
    assert not watch.unchanged()
    change(5)
    assert watch.unchanged()
