"""From Python source to the IR that code is generated from, with every error at its place in the source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from pypto.ir.errors import IRError
from pypto.ir.footprint import MemoryLimitError
from pypto.ir.nodes import Loc, Program
from pypto.ir.passes import pipeline
from pypto.ir.passes.cleanup import remove_unused
from pypto.language.errors import CompileError, KernelMemoryError, KernelTypeError
from pypto.language.parser import parse
from pypto.language.signature import ArgSpec
from pypto.language.source import SourceClosure
from pypto.language.source_text import SourceText


def lower(
    closure: SourceClosure,
    arguments: Mapping[str, ArgSpec],
    backend_type: str = "Ascend910B",
    observe: pipeline.Observer | None = None,
) -> Program:
    """Parse the entry of a closure and run all passes.

    Args:
        observe: shown the program after ``Parse`` and after each pass.

    Raises:
        CompileError: the kernel is wrong; one error with its place.
    """
    program = parse(closure.entry, arguments, closure, backend_type)
    if observe is not None:
        observe("Parse", program)
    with errors_at_source(closure):
        if program.chips:
            # A HOST entry stays as it is written; what runs on chips is lowered, one program after the other.
            remove_unused(program)
            chips = tuple(pipeline.run(chip, backend_type, observe) for chip in program.chips)
            return replace(program, chips=chips)
        return pipeline.run(program, backend_type, observe)


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
    message = error.message
    if isinstance(error, MemoryLimitError):
        message = error.text(lambda loc: _line_of(loc, closure))
    other = _text_of(error.related, closure)
    if error.related is not None and other is not None:
        message += f"; the other place is line {_line_of(error.related, closure)}"
    text = _text_of(error.loc, closure)
    if error.loc is None or text is None:
        text = closure.entry.text
        return text.error(message, text.name, kind)
    return text.error(message, error.loc, kind)


def _line_of(loc: Loc, closure: SourceClosure) -> int | None:
    text = _text_of(loc, closure)
    return None if text is None else text.first_line + loc.line - 1


def _text_of(loc: Loc | None, closure: SourceClosure) -> SourceText | None:
    """The source that a place is in."""
    for function in closure.functions:
        if loc is not None and function.kernel.text.function == loc.function:
            return function.kernel.text
    return None
