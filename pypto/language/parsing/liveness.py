"""Which names are read later: decides what a loop carries and what an `if` merges."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

_Names = frozenset[str]


class Liveness:
    """Names that are live around the loops and conditions of one function.

    A name is live at a point when some path from there reads it before writing it.
    """

    def __init__(self, body: Sequence[ast.stmt]) -> None:
        self._after: dict[int, _Names] = {}
        self._body_entry: dict[int, _Names] = {}
        self._block(body, frozenset())

    def after(self, statement: ast.stmt) -> _Names:
        """Names live after a loop, an `if` or a scope."""
        return self._after[id(statement)]

    def entering_body(self, loop: ast.For | ast.While) -> _Names:
        """Names live at the start of a loop's turn, the loop variable excluded."""
        return self._body_entry[id(loop)]

    def _block(self, statements: Sequence[ast.stmt], live: _Names) -> _Names:
        for statement in reversed(statements):
            live = self._statement(statement, live)
        return live

    def _statement(self, statement: ast.stmt, live: _Names) -> _Names:
        if isinstance(statement, ast.For):
            self._after[id(statement)] = live
            targets = _stored([statement.target])
            entering: _Names = frozenset()
            while True:
                # Turn after turn until nothing new is live at the end of the body.
                again = self._block(statement.body, live | entering) - targets
                if again == entering:
                    break
                entering = again
            self._body_entry[id(statement)] = entering
            return live | entering | _read([statement.iter])
        if isinstance(statement, ast.While):
            self._after[id(statement)] = live
            condition = _read([statement.test])
            entering = condition | live
            while True:
                again = entering | self._block(statement.body, entering)
                if again == entering:
                    break
                entering = again
            self._body_entry[id(statement)] = entering
            return entering
        if isinstance(statement, ast.If):
            self._after[id(statement)] = live
            return self._block(statement.body, live) | self._block(statement.orelse, live) | _read([statement.test])
        if isinstance(statement, ast.With):
            self._after[id(statement)] = live
            names = [item.optional_vars for item in statement.items if item.optional_vars is not None]
            body = self._block(statement.body, live - _stored(names))
            return body | _read([item.context_expr for item in statement.items])
        if isinstance(statement, ast.AugAssign):
            return live | _read([statement.target, statement.value]) | _stored([statement.target])
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            assigned = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            values = [statement.value] if statement.value is not None else []
            return (live - _stored(assigned)) | _read([*assigned, *values])
        return live | _read([statement])


def stored_names(statements: Sequence[ast.stmt]) -> list[str]:
    """Names that statements assign, in order of first assignment."""
    names: dict[str, None] = {}
    for statement in statements:
        for node in _in_order(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.setdefault(node.id)
    return list(names)


def read_names(statements: Sequence[ast.stmt]) -> list[str]:
    """Names that statements read, in order of first use."""
    names: dict[str, None] = {}
    for statement in statements:
        for node in _in_order(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                names.setdefault(node.id)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                names.setdefault(node.target.id)
    return list(names)


def _in_order(node: ast.AST) -> Iterable[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _in_order(child)


def _stored(nodes: Sequence[ast.AST]) -> _Names:
    return frozenset(
        n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    )


def _read(nodes: Sequence[ast.AST]) -> _Names:
    return frozenset(
        n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
    )
