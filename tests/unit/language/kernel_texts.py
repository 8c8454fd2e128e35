"""Kernels from text, for tests of what the language makes of them and says about them."""

from __future__ import annotations

import itertools
import linecache
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pypto.ir.nodes import FunctionKind, Program
from pypto.language.lower import lower
from pypto.language.signature import ArgSpec
from pypto.language.source import KernelSource, collect

PRELUDE = """\
import math
import pypto.language as pl
from kernel_texts import entry, incore, inline, opaque
"""

PARAMETERS = (
    "a: pl.Tensor[[64, 64], pl.FP32], b: pl.Tensor[[64, 64], pl.FP32], h: pl.Tensor[[64, 64], pl.FP16], "
    "n: int, x: float, out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]"
)

_numbers = itertools.count()


def entry(function: Callable[..., Any]) -> KernelSource:
    """What ``@pl.jit`` is for the compiler."""
    return KernelSource(function, FunctionKind.ORCHESTRATION)


def incore(function: Callable[..., Any]) -> KernelSource:
    """What ``@pl.jit.incore`` is for the compiler."""
    return KernelSource(function, FunctionKind.INCORE)


def inline(function: Callable[..., Any]) -> KernelSource:
    """What ``@pl.jit.inline`` is for the compiler."""
    return KernelSource(function, FunctionKind.INLINE)


def opaque(function: Callable[..., Any]) -> KernelSource:
    """What ``@pl.jit.opaque`` is for the compiler."""
    return KernelSource(function, FunctionKind.OPAQUE)


def module(text: str, filename: str | None = None) -> dict[str, Any]:
    """The names of a module with this text behind :data:`PRELUDE`; its functions know their source."""
    filename = filename or f"<kernels {next(_numbers)}>"
    full = PRELUDE + text
    linecache.cache[filename] = (len(full), None, full.splitlines(keepends=True), filename)
    names: dict[str, Any] = {"__name__": "kernels_from_text"}
    exec(compile(full, filename, "exec"), names)
    return names


def in_incore(body: str) -> str:
    """A module whose entry ``main`` calls an incore function with this body."""
    return (
        f"@incore\ndef part({PARAMETERS}):\n{textwrap.indent(body, '    ')}\n"
        f"@entry\ndef main({PARAMETERS}):\n    part(a, b, h, n, x, out)\n    return out\n"
    )


def in_scope(body: str) -> str:
    """A module whose entry ``main`` has a scope with this body."""
    return in_entry(f"with pl.at(level=pl.Level.CORE_GROUP):\n{textwrap.indent(body, '    ')}\nreturn out")


def in_entry(body: str) -> str:
    """A module whose entry ``main`` has this body."""
    return f"@entry\ndef main({PARAMETERS}):\n{textwrap.indent(body, '    ')}\n"


def lowered(text: str, arguments: Mapping[str, ArgSpec] | None = None) -> Program:
    """The program of the entry ``main`` of a module, all passes run."""
    return lower(collect(module(text)["main"]), arguments or {})


@dataclass(frozen=True)
class Marked:
    """A text in which ``⟦`` and ``⟧`` marked a place of one line.

    Attributes:
        line: of the place in the module, from 1, prelude included.
        column: from 1.
        width: of the marked text.
    """

    text: str
    line: int
    column: int
    width: int


def unmarked(text: str) -> Marked:
    """Take the marks out of a text."""
    before, rest = text.split("⟦")
    inside, after = rest.split("⟧")
    if "\n" in inside:
        raise ValueError("a mark stays on one line")
    line = (PRELUDE + before).count("\n") + 1
    column = len(before) - (before.rfind("\n") + 1) + 1
    return Marked(before + inside + after, line, column, len(inside))
