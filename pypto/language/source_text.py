"""The text of one function: where it is in its file, and errors that mark a place of it."""

from __future__ import annotations

import ast
import functools
import types
from dataclasses import dataclass, field

from pypto.ir.nodes import Loc
from pypto.language.errors import CompileError, KernelSyntaxError


@dataclass(frozen=True)
class SourceText:
    """The text of one function.

    Attributes:
        function: qualified name.
        text: its lines, LF newlines, no newline at the end.
        first_line: line of the file where the text begins; for display only.
        node: syntax tree of the function, with positions in the file.
        lines: the lines of ``text``.
    """

    function: str
    filename: str
    text: str
    first_line: int
    node: ast.FunctionDef
    lines: tuple[str, ...] = field(repr=False)

    @property
    def name(self) -> Loc:
        """Place of the function's name in its `def` line."""
        line = self.node.lineno - self.first_line + 1
        column = self.lines[line - 1].index("def ") + 4
        return Loc(self.function, line, column, line, column + len(self.node.name))

    def parameter(self, name: str) -> Loc:
        """Place of a parameter."""
        for argument in (*self.node.args.posonlyargs, *self.node.args.args):
            if argument.arg == name:
                return self.loc(argument)
        return self.name

    def loc(self, node: ast.AST | Loc) -> Loc:
        """Place of a node, relative to the function, columns in characters."""
        if isinstance(node, Loc):
            return node
        line = getattr(node, "lineno", self.first_line) - self.first_line + 1
        end_line = (getattr(node, "end_lineno", None) or self.first_line + line - 1) - self.first_line + 1
        return Loc(
            self.function,
            line,
            self._characters(line, getattr(node, "col_offset", 0)),
            end_line,
            self._characters(end_line, getattr(node, "end_col_offset", None) or 0),
        )

    def _characters(self, line: int, byte_offset: int) -> int:
        if not 1 <= line <= len(self.lines):
            return byte_offset
        text = self.lines[line - 1]
        return byte_offset if text.isascii() else len(text.encode()[:byte_offset].decode(errors="ignore"))

    def error(self, message: str, place: ast.AST | Loc, kind: type[CompileError] = KernelSyntaxError) -> CompileError:
        """An error that marks a place of this function."""
        loc = self.loc(place)
        line = self.lines[loc.line - 1] if 1 <= loc.line <= len(self.lines) else ""
        end = loc.end_column if loc.end_line in (0, loc.line) else len(line)
        return kind(
            message,
            self.filename,
            self.first_line + loc.line - 1,
            loc.column + 1,
            max(end, loc.column + 1) + 1,
            line,
            self.function,
        )


@functools.lru_cache(maxsize=8)
def _definitions(module_text: str) -> dict[tuple[str, int], ast.FunctionDef]:
    found = {}
    for node in ast.walk(ast.parse(module_text)):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            found[node.name, first] = node
    return found


def locate(function: types.FunctionType, module_lines: list[str]) -> SourceText:
    """The text of a function in its module's lines.

    Raises:
        KernelSyntaxError: it is not there.
    """
    code = function.__code__
    where = _UnreadableSource(code.co_filename, code.co_firstlineno, function.__qualname__)
    if not module_lines:
        raise where.error("its source cannot be read; define kernels in a file")
    try:
        node = _definitions("".join(module_lines)).get((code.co_name, code.co_firstlineno))
    except SyntaxError:
        node = None
    if node is None:
        raise where.error("its source is not where Python says: a plain `def` in an unchanged file is needed")
    first, last = code.co_firstlineno, node.end_lineno or node.lineno
    lines = tuple(line.rstrip("\r\n") for line in module_lines[first - 1 : last])
    return SourceText(function.__qualname__, code.co_filename, "\n".join(lines), first, node, lines)


@dataclass(frozen=True)
class _UnreadableSource:
    """A function whose source is unknown, for errors about it."""

    filename: str
    line: int
    function: str

    def error(self, message: str) -> CompileError:
        """An error about the function as a whole."""
        return KernelSyntaxError(f"{self.function}: {message}", self.filename, self.line, 1, 1, "", self.function)
