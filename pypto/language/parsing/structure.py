"""Early ends as structured code: ``return``, ``break`` and ``continue`` become branches and values."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Sequence

ErrorMaker = Callable[[str, ast.AST], Exception]
_LEAVES = (ast.Return, ast.Break, ast.Continue)


def structured(body: Sequence[ast.stmt], error: ErrorMaker) -> list[ast.stmt]:
    """The statements of a function so that ``return`` stands last, and no ``break`` or ``continue`` in them.

    A loop that had a ``break`` has the attribute ``going``: a name that is false at the end of a turn after which the
    loop ends. Names that are made here have a space in them, so that no other is the same.
    """
    if not any(isinstance(node, _LEAVES) for statement in body[:-1] for node in ast.walk(statement)) and not (
        isinstance(body[-1], (ast.If, ast.With, ast.For, ast.While)) and _leaving(body[-1])
    ):
        return list(body)
    return _Structure(error).function(body)


def _leaving(statement: ast.stmt) -> list[ast.stmt]:
    return [node for node in ast.walk(statement) if isinstance(node, _LEAVES)]


class _Structure:
    def __init__(self, error: ErrorMaker) -> None:
        self.error = error
        self.loops = 0
        # Of the loop that is being rewritten: the name that says whether it goes on.
        self.going: str | None = None
        self.in_loop = False
        self.results: ast.Return | None = None

    def function(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        returns = [node for statement in body for node in ast.walk(statement) if isinstance(node, ast.Return)]
        made = self.block(body)
        if not returns:
            return made
        if any(node.value is not None for node in returns) and not _always(body):
            raise self.error("the function can end without return; let every path return its outputs", body[-1])
        if self.results is not None and self.results.value is not None:
            made.append(self.results)
        return made

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Statements of which none stands behind one that leaves."""
        made: list[ast.stmt] = []
        for position, statement in enumerate(statements):
            rest = list(statements[position + 1 :])
            if isinstance(statement, _LEAVES):
                if rest:
                    raise self.error("this is never reached; remove it", rest[0])
                made.extend(self.leave(statement))
                return made
            if isinstance(statement, (ast.For, ast.While)):
                made.extend(self.loop(statement))
            elif isinstance(statement, ast.If) and _outside_loops(statement):
                made.append(self.branch(statement, rest))
                return made
            elif isinstance(statement, ast.With) and _outside_loops(statement):
                made.extend(self.block([*self.around(statement), *rest]))
                return made
            else:
                made.append(self.inside(statement))
        return made

    def inside(self, node: ast.stmt) -> ast.stmt:
        """A statement that nothing leaves, with the loops in it rewritten."""
        if not isinstance(node, (ast.If, ast.With)):
            return node
        made = copy.copy(node)
        made.body = self.block(node.body)
        if isinstance(node, ast.If) and isinstance(made, ast.If):
            made.orelse = self.block(node.orelse)
        return made

    def branch(self, node: ast.If, rest: list[ast.stmt]) -> ast.If:
        arms = []
        for arm in (node.body, node.orelse):
            follows = [] if _always(arm) else copy.deepcopy(rest)
            arms.append(self.block([*arm, *follows]) or [ast.copy_location(ast.Pass(), node)])
        return ast.copy_location(ast.If(node.test, arms[0], arms[1]), node)

    def around(self, node: ast.With) -> list[ast.stmt]:
        """A scope whose last statement leaves: the scope, and that statement behind it."""
        *body, last = node.body
        if any(_outside_loops(statement) for statement in body) or not isinstance(last, _LEAVES):
            first = _outside_loops(node)[0]
            raise self.error(f"{_word(first)} inside of a scope must be its last statement", first)
        scope = copy.copy(node)
        scope.body = body or [ast.copy_location(ast.Pass(), node)]
        return [scope, last]

    def leave(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, ast.Return):
            return self.returned(node)
        if not self.in_loop:
            raise self.error(f"{_word(node)} stands outside of a loop", node)
        if isinstance(node, ast.Break) and self.going is not None:
            return [_assigned(self.going, ast.Constant(False), node)]
        return []

    def returned(self, node: ast.Return) -> list[ast.stmt]:
        if self.in_loop:
            raise self.error("return inside a loop is not part of the language; use break, and return behind it", node)
        values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value] if node.value else []
        names = [f"return {number}" for number in range(len(values))]
        loads: list[ast.expr] = [ast.copy_location(ast.Name(name, ast.Load()), node) for name in names]
        value = loads[0] if len(loads) == 1 else ast.copy_location(ast.Tuple(loads, ast.Load()), node)
        known = self.results
        if known is None:
            self.results = ast.copy_location(ast.Return(value if loads else None), node)
        elif _count(known.value) != len(loads):
            raise self.error(f"returns {len(loads)} values here and {_count(known.value)} elsewhere", node)
        return [_assigned(name, item, node) for name, item in zip(names, values, strict=True)]

    def loop(self, node: ast.For | ast.While) -> list[ast.stmt]:
        outer = self.going, self.in_loop
        leaving = _in_own_turn(node)
        self.in_loop = True
        broken = any(isinstance(inner, ast.Break) for inner in leaving)
        self.going = None
        if broken:
            self.loops += 1
            self.going = f"going {self.loops}"
        made = copy.copy(node)
        made.body = self.block(node.body) or [ast.copy_location(ast.Pass(), node)]
        going = self.going
        self.going, self.in_loop = outer
        if going is None:
            return [made]
        # Where the place of a break cannot be shown, that of the loop is.
        read = ast.copy_location(ast.Name(going, ast.Load()), node)
        if isinstance(made, ast.While):
            made.test = ast.copy_location(ast.BoolOp(ast.And(), [read, made.test]), made.test)
            return [_assigned(going, ast.Constant(True), node), made]
        made.going = going  # type: ignore[attr-defined]
        made.body = [_assigned(going, ast.Constant(True), node), *made.body, _assigned(going, read, node)]
        return [made]


def _assigned(name: str, value: ast.expr, node: ast.AST) -> ast.stmt:
    target = ast.copy_location(ast.Name(name, ast.Store()), node)
    if not hasattr(value, "lineno"):
        value = ast.copy_location(value, node)
    return ast.copy_location(ast.Assign([target], value), node)


def _outside_loops(statement: ast.stmt) -> list[ast.stmt]:
    """What leaves the block that a statement stands in."""
    found: list[ast.stmt] = []

    def look(node: ast.AST, in_loop: bool) -> None:
        if isinstance(node, ast.Return) or (isinstance(node, _LEAVES) and not in_loop):
            found.append(node)
        for child in ast.iter_child_nodes(node):
            look(child, in_loop or isinstance(node, (ast.For, ast.While)))

    look(statement, False)
    return found


def _in_own_turn(loop: ast.For | ast.While) -> Iterator[ast.stmt]:
    for statement in loop.body:
        yield from _outside_loops(statement)


def _always(statements: Sequence[ast.stmt]) -> bool:
    """Whether the last of some statements leaves on every path."""
    if not statements:
        return False
    last = statements[-1]
    if isinstance(last, ast.If):
        return _always(last.body) and _always(last.orelse)
    if isinstance(last, ast.With):
        return _always(last.body)
    return isinstance(last, _LEAVES)


def _count(value: ast.expr | None) -> int:
    if value is None:
        return 0
    return len(value.elts) if isinstance(value, ast.Tuple) else 1


def _word(node: ast.AST) -> str:
    return type(node).__name__.lower()
