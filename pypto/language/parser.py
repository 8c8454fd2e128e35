"""From Python source to IR: :func:`parse`."""

from __future__ import annotations

from collections.abc import Mapping

from pypto.ir.nodes import FunctionKind, Program
from pypto.language.parsing.program import ProgramParser
from pypto.language.signature import ArgSpec
from pypto.language.source import KernelSource, SourceClosure, collect


def parse(
    entry: KernelSource,
    arguments: Mapping[str, ArgSpec],
    closure: SourceClosure | None = None,
    backend_type: str = "Ascend910B",
) -> Program:
    """Parse an entry and everything it calls.

    Args:
        arguments: what the entry is compiled for, by parameter name; what annotations say completely may be left out.
        backend_type: whose on-chip memories decide what is divided.
        closure: the closure whose record entered the source digest; collected anew if not given.

    Returns:
        A program in which scopes are still regions of the entry; see :func:`pypto.language.lower.lower`.

    Raises:
        CompileError: the kernel is wrong; one error with its place.
    """
    if entry.kind not in (FunctionKind.ORCHESTRATION, FunctionKind.HOST):
        raise TypeError(f"{entry.name} is not an entry; compile a function under @pl.jit")
    return ProgramParser(closure or collect(entry), backend_type).parse(arguments)
