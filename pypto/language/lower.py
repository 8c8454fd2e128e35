"""From Python source to the IR that code is generated from, with every error at its place in the source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pypto.ir.errors import IRError
from pypto.ir.footprint import MemoryLimitError
from pypto.ir.nodes import Program
from pypto.ir.passes import pipeline
from pypto.language.errors import CompileError, KernelMemoryError, KernelTypeError
from pypto.language.parser import parse
from pypto.language.signature import ArgSpec
from pypto.language.source import SourceClosure


def lower(closure: SourceClosure, arguments: Mapping[str, ArgSpec], backend_type: str = "Ascend910B") -> Program:
    """Parse the entry of a closure and run all passes.

    Raises:
        CompileError: the kernel is wrong; one error with its place.
    """
    program = parse(closure.entry, arguments, closure)
    with errors_at_source(closure):
        return pipeline.run(program, backend_type)


@contextmanager
def errors_at_source(closure: SourceClosure) -> Iterator[None]:
    """Turn errors of the IR raised inside into errors that show the line of the kernel."""
    try:
        yield
    except IRError as error:
        raise located(error, closure) from None


def located(error: IRError, closure: SourceClosure) -> CompileError:
    """An error of the IR as an error at its place in the source."""
    kind = KernelMemoryError if isinstance(error, MemoryLimitError) else KernelTypeError
    if error.loc is not None:
        for function in closure.functions:
            text = function.kernel.text
            if text.function == error.loc.function:
                return text.error(error.message, error.loc, kind)
    return closure.entry.text.error(error.message, closure.entry.text.name, kind)
