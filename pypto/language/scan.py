"""A look at a syntax tree before anything has a type: is it in the language, which outside names does it use."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

_STATEMENTS: tuple[type[ast.stmt], ...] = (
    ast.Assign,
    ast.AnnAssign,
    ast.Assert,
    ast.AugAssign,
    ast.Break,
    ast.Continue,
    ast.Delete,
    ast.Expr,
    ast.For,
    ast.If,
    ast.Pass,
    ast.Return,
    ast.While,
    ast.With,
)
_EXPRESSIONS: tuple[type[ast.expr], ...] = (
    ast.Attribute,
    ast.BinOp,
    ast.BoolOp,
    ast.Call,
    ast.Compare,
    ast.Constant,
    ast.Dict,
    ast.FormattedValue,
    ast.IfExp,
    ast.JoinedStr,
    ast.List,
    ast.Name,
    ast.Slice,
    ast.Starred,
    ast.Subscript,
    ast.Tuple,
    ast.UnaryOp,
)
_ADVICE: dict[type[ast.AST], str] = {
    ast.AsyncFor: "async is not part of the language",
    ast.AsyncFunctionDef: "async is not part of the language",
    ast.AsyncWith: "async is not part of the language",
    ast.Await: "async is not part of the language",
    ast.ClassDef: "a class cannot be defined inside a kernel",
    ast.DictComp: "comprehensions are not part of the language; use a pl.range loop",
    ast.FunctionDef: "a function cannot be defined inside a kernel; define it in the module under @pl.jit.incore",
    ast.GeneratorExp: "comprehensions are not part of the language; use a pl.range loop",
    ast.Global: "global is not part of the language; pass values as arguments",
    ast.Import: "import is not part of the language; import at the top of the module",
    ast.ImportFrom: "import is not part of the language; import at the top of the module",
    ast.Lambda: "lambda is not part of the language",
    ast.ListComp: "comprehensions are not part of the language; use a pl.range loop",
    ast.Match: "match is not part of the language; use if",
    ast.NamedExpr: "assignment inside an expression is not part of the language; assign on a line of its own",
    ast.Nonlocal: "nonlocal is not part of the language; pass values as arguments",
    ast.Raise: "raise is not part of the language",
    ast.Set: "sets are not part of the language",
    ast.SetComp: "comprehensions are not part of the language; use a pl.range loop",
    ast.Try: "try is not part of the language",
    ast.Yield: "yield is not part of the language",
    ast.YieldFrom: "yield is not part of the language",
}


TOO_DEEP = "this is nested too deeply; split it into several statements"


@dataclass(frozen=True)
class OutsideName:
    """A name that a body uses and does not define: ``("pl", "add")`` for ``pl.add``."""

    path: tuple[str, ...]
    node: ast.expr


ErrorMaker = Callable[[str, ast.AST], Exception]


def dotted(node: ast.expr) -> tuple[str, ...] | None:
    """``("a", "b")`` for the expression ``a.b``; ``None`` when it is not a dotted name."""
    path: list[str] = []
    while isinstance(node, ast.Attribute):
        path.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return (node.id, *reversed(path))


def scan(node: ast.FunctionDef, error: ErrorMaker, called: Callable[[OutsideName], None]) -> tuple[OutsideName, ...]:
    """Refuse Python that is not part of the language; return outside names in order of first use.

    Args:
        called: shown the name that a call calls before the arguments are looked at; may refuse it.
    """
    scanner = _Scanner(_local_names(node), error, called)
    for statement in node.body:
        scanner.statement(statement)
    return tuple(scanner.found.values())


def _local_names(node: ast.FunctionDef) -> frozenset[str]:
    arguments = node.args
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
    names = {a.arg for a in every if a is not None}
    names |= {n.id for s in node.body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return frozenset(names)


class _Scanner:
    def __init__(self, local_names: frozenset[str], error: ErrorMaker, called: Callable[[OutsideName], None]) -> None:
        self.local_names = local_names
        self.error = error
        self.called = called
        self.found: dict[tuple[str, ...], OutsideName] = {}

    def statement(self, node: ast.stmt) -> None:
        if not isinstance(node, _STATEMENTS):
            raise self.error(_advice(node), node)
        if isinstance(node, (ast.For, ast.With)) and node.type_comment is not None:
            raise self.error("type comments are not part of the language", node)
        for name, value in ast.iter_fields(node):
            if name == "annotation":
                continue
            try:
                self._field(value)
            except RecursionError:
                raise self.error(TOO_DEEP, node) from None

    def _field(self, value: object) -> None:
        if isinstance(value, list):
            for item in value:
                self._field(item)
        elif isinstance(value, ast.stmt):
            self.statement(value)
        elif isinstance(value, ast.expr):
            self.expression(value)
        elif isinstance(value, (ast.withitem, ast.keyword)):
            if isinstance(value, ast.keyword) and value.arg is None:
                raise self.error("arguments from a dictionary are not part of the language; write them out", value)
            for _, part in ast.iter_fields(value):
                self._field(part)

    def expression(self, node: ast.expr) -> None:
        if not isinstance(node, _EXPRESSIONS):
            raise self.error(_advice(node), node)
        path = dotted(node)
        if path is not None:
            if path[0] not in self.local_names:
                self.found.setdefault(path, OutsideName(path, node))
            return
        if isinstance(node, ast.Call) and (path := dotted(node.func)) is not None and path[0] not in self.local_names:
            self.called(OutsideName(path, node.func))
        for _, value in ast.iter_fields(node):
            self._field(value)


def _advice(node: ast.AST) -> str:
    return _ADVICE.get(type(node), f"{type(node).__name__} is not part of the language")
