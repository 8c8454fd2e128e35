"""What a kernel author sees when a kernel is wrong: one error with file, line, column and the marked source line."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


class CompileError(Exception):
    """A kernel cannot be compiled.

    Attributes:
        message: what is wrong and what to do.
        filename: file of the live function.
        line: line in that file, from 1.
        column: column in that line, from 1, in characters.
        end_column: column after the marked text.
        source_line: the line as it is written.
        function: qualified name of the function.
        divisible: the code would be right for tensors that the compiler divides itself.
    """

    divisible = False

    def __init__(
        self,
        message: str,
        filename: str = "<unknown>",
        line: int = 0,
        column: int = 0,
        end_column: int = 0,
        source_line: str = "",
        function: str = "",
    ) -> None:
        self.message = message
        self.filename = filename
        self.line = line
        self.column = column
        self.end_column = end_column
        self.source_line = source_line
        self.function = function
        super().__init__(message, filename, line, column, end_column, source_line, function)

    def __str__(self) -> str:
        place = f"{self.filename}:{self.line}:{self.column}: " if self.line else f"{self.filename}: "
        within = f" (in {self.function})" if self.function else ""
        text = f"{place}error: {self.message}{within}"
        if not self.source_line:
            return text
        start = max(self.column - 1, 0)
        width = max(min(self.end_column - 1, len(self.source_line)) - start, 1)
        # Tabs stay tabs below the line, so that the mark stands under the text on any terminal.
        lead = "".join("\t" if c == "\t" else " " for c in self.source_line[:start])
        return f"{text}\n{self.source_line}\n{lead}{'^' * width}"


class KernelSyntaxError(CompileError):
    """Python that is not part of the language, or a form that is used in the wrong way."""


class KernelNameError(CompileError):
    """A name that is not defined, does not exist in the language, or whose value cannot enter a kernel."""


class KernelTypeError(CompileError):
    """Shapes, dtypes, memories or argument lists that do not fit."""


class TileCodeError(KernelTypeError):
    """Code for tiles where the compiler works on whole tensors, since they do not fit on chip."""


class KernelMemoryError(CompileError):
    """Tiles that do not fit into an on-chip memory."""


class OutsideKernelError(TypeError):
    """An operation of the language was called by Python instead of being compiled."""


def about_the_kernel(call: Callable[_P, _R]) -> Callable[_P, _R]:
    """Errors about a kernel leave ``call`` without the frames of the compiler, of which none helps its author.

    So do other errors that say ``says_all``. Python's development mode (``python -X dev``) shows the frames.
    """

    @functools.wraps(call)
    def wrapper(*args: _P.args, **named: _P.kwargs) -> _R:
        try:
            return call(*args, **named)
        except Exception as error:
            if sys.flags.dev_mode or not (isinstance(error, CompileError) or getattr(error, "says_all", False)):
                raise
            raise error.with_traceback(None) from None

    return wrapper
