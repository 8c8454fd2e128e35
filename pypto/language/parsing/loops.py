"""Loops: counted ones, ones with a condition, ones that are written out."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pypto.ir.nodes import Block, Direction, Value
from pypto.ir.types import INDEX, ScalarType
from pypto.language.parsing import tasks
from pypto.language.parsing.carrying import Loop, carry
from pypto.language.parsing.expressions import condition_value, evaluate
from pypto.language.parsing.frame import Frame
from pypto.language.parsing.liveness import stored_names
from pypto.language.parsing.model import (
    Model,
    describe,
    is_number,
    is_whole,
)
from pypto.language.source import Builtin
from pypto.language.stubs import Operation

if TYPE_CHECKING:
    from pypto.language.parsing.statements import Statements

_FORMS = ("range", "parallel", "unroll", "pipeline", "while_", "spmd", "split_aiv")
_MOST_TURNS = 4096
# Cores count turns in 32 bits.
_MOST_COUNTED = 2**31 - 1


def parse_for(statements: Statements, node: ast.For) -> None:
    """A ``for`` over ``pl.range``, ``pl.parallel``, ``pl.pipeline``, ``pl.unroll`` or ``pl.while_``."""
    frame, call = statements.frame, node.iter
    if node.orelse:
        raise frame.syntax_error("else after a loop is not part of the language", node.orelse[0])
    target = evaluate(frame, call.func) if isinstance(call, ast.Call) else None
    if not isinstance(call, ast.Call) or not isinstance(target, Operation) or target.name not in _FORMS:
        own = isinstance(call, ast.Call) and (not isinstance(target, Builtin) or target.name == "range")
        items = None if own else evaluate(frame, call)
        if not isinstance(items, tuple):
            raise frame.syntax_error("a loop runs over pl.range(...)", node.iter)
        _write_out(statements, node, items)
        return
    if target.name in ("parallel", "spmd", "split_aiv", "while_") and hasattr(node, "going"):
        advice = (
            "put the condition into pl.cond" if target.name == "while_" else "its turns do not depend on each other"
        )
        raise frame.syntax_error(f"break cannot end a loop over pl.{target.name}: {advice}", node)
    if target.name in ("spmd", "split_aiv"):
        tasks.parse_for(statements, node, target, call)
        return
    options = _options(frame, target, call)
    if target.name == "unroll":
        _unroll(statements, node, call)
        return
    if target.name == "while_":
        if call.args:
            raise frame.syntax_error("pl.while_ takes its first values as init_values=(...)", call)
        _while_form(statements, node, options.get("init_values"), call)
        return
    variable, names = node.target, None
    if options.get("init_values") is not None:
        if not isinstance(node.target, ast.Tuple) or len(node.target.elts) != 2:
            raise frame.syntax_error(
                "with init_values a loop has a variable and carried names: for i, (a, b) in ...", node.target
            )
        variable, names = node.target.elts
    if not isinstance(variable, ast.Name):
        raise frame.syntax_error("a loop has one variable", node.target)
    bounds = _bounds(frame, target.name, call)
    loop = _loop(frame, node, names, options.get("init_values"), node.body)
    going = getattr(node, "going", None)
    if going is None:
        _count(statements, loop, list(bounds), variable.id)
        return

    def condition(first: bool) -> Value:
        return condition_value(frame, True if first else frame.env[going], node)

    _count(statements, loop, list(bounds), variable.id, condition)


def _count(
    statements: Statements,
    loop: Loop,
    bounds: list[Value],
    name: str | None,
    condition: Callable[[bool], Value] | None = None,
) -> None:
    """A loop with a number of turns, which also ends in front of a turn for which ``condition`` does not hold.

    Args:
        name: of the loop variable.
        condition: appends the condition of the next turn; told whether that is the first one.
    """
    frame = statements.frame

    def parse_turn(args: list[Value], turn: Callable[[], list[Value]]) -> list[Block]:
        body = Block([Value(name or "turn", ScalarType(INDEX)), *args])
        if frame.on_core:
            frame.core_values.update(id(arg) for arg in body.args)
        if name is not None:
            frame.env[name] = body.args[0]
        with frame.builder.inside(body):
            frame.op("scf.yield", turn(), loop.node)
        return [body]

    kind = "range" if condition is None else "while"
    carry(statements, loop, "scf.for", bounds, {"kind": kind}, parse_turn, [name] if name else [], condition)


def parse_while(statements: Statements, node: ast.While) -> None:
    """``while condition:`` over run-time scalars."""
    if node.orelse:
        raise statements.frame.syntax_error("else after a loop is not part of the language", node.orelse[0])
    _while(statements, Loop(node, (), node.body), node.test)


def _while_form(statements: Statements, node: ast.For, inits: Model, call: ast.Call) -> None:
    """``for (a, b) in pl.while_(init_values=(...)):`` with ``pl.cond(...)`` first and ``pl.yield_`` last."""
    frame = statements.frame
    if inits is None:
        raise frame.syntax_error("pl.while_ needs init_values=(...)", call)
    first = node.body[0]
    condition = _call_of(frame, first.value, "cond") if isinstance(first, ast.Expr) else None
    if condition is None or len(condition.args) != 1:
        raise frame.syntax_error("the body of a pl.while_ loop begins with pl.cond(condition)", first)
    if len(node.body) < 2:
        raise frame.syntax_error("the body of a pl.while_ loop ends with pl.yield_(...)", first)
    loop = _loop(frame, node, node.target, inits, node.body[1:])
    _while(statements, loop, condition.args[0])


def _while(statements: Statements, loop: Loop, test: ast.expr) -> None:
    frame, node = statements.frame, loop.node
    if frame.on_core:

        def check(first: bool) -> Value:
            condition = evaluate(frame, test)
            if is_number(condition) and not first:
                raise frame.error(f"the condition of the loop is always {bool(condition)}", test)
            value = condition_value(frame, condition, test)
            if not first:
                _check_change(frame, loop, test)
            return value

        zero, most = frame.builder.index(0), frame.builder.index(_MOST_COUNTED)
        _count(statements, loop, [zero, most, frame.builder.index(1)], None, check)
        return

    def parse_turn(args: list[Value], turn: Callable[[], list[Value]]) -> list[Block]:
        head = Block(args)
        with frame.builder.inside(head):
            condition = evaluate(frame, test)
            if is_number(condition):
                raise frame.error(f"the condition of the loop is always {bool(condition)}", test)
            frame.op("scf.yield", [condition_value(frame, condition, test)], node)
            _check_change(frame, loop, test)
        body = Block([Value(a.name, a.type) for a in args])
        for old, new in zip(args, body.args, strict=True):
            frame.directions[id(new)] = frame.directions.get(id(old), Direction.InOut)
            for name, model in frame.env.items():
                if model is old:
                    frame.env[name] = new
        with frame.builder.inside(body):
            frame.op("scf.yield", turn(), node)
        return [head, body]

    carry(statements, loop, "scf.while", [], {}, parse_turn, [])


def _check_change(frame: Frame, loop: Loop, test: ast.expr) -> None:
    """A condition of plain numbers has to depend on something that the loop changes."""
    changing = {*stored_names(loop.body), *(name for name, _ in loop.explicit)}
    parts = list(ast.walk(test))
    reads = any(isinstance(part, (ast.Call, ast.Subscript)) for part in parts)
    if not reads and changing.isdisjoint(part.id for part in parts if isinstance(part, ast.Name)):
        raise frame.error("nothing in the loop changes its condition", test)


def _options(frame: Frame, target: Operation, call: ast.Call) -> dict[str, Model]:
    """The keywords of a loop's call."""
    allowed = {"unroll": (), "pipeline": ("stage", "init_values")}.get(target.name, ("init_values",))
    options: dict[str, Model] = {}
    for keyword in call.keywords:
        if keyword.arg in ("start", "stop", "step"):
            raise frame.syntax_error(f"pl.{target.name} takes its bounds by position: (start, stop, step)", keyword)
        if keyword.arg not in allowed:
            raise frame.syntax_error(
                f"pl.{target.name}: {keyword.arg} is not supported; names that are rebound in the body are carried",
                keyword,
            )
        options[keyword.arg] = evaluate(frame, keyword.value)
    if target.name == "pipeline":
        if "stage" not in options:
            raise frame.error("pl.pipeline misses the argument stage: pl.pipeline(..., stage=2)", call)
        if not is_whole(options["stage"]) or options["stage"] < 1:
            raise frame.error(f"pl.pipeline: stage must be a positive number, not {describe(options['stage'])}", call)
    return options


def _models_of_bounds(frame: Frame, name: str, call: ast.Call) -> tuple[Model, Model, Model]:
    if not 1 <= len(call.args) <= 3:
        raise frame.error(f"pl.{name} takes 1 to 3 arguments, got {len(call.args)}", call)
    models = [evaluate(frame, arg) for arg in call.args]
    start, stop, step = {1: (0, *models, 1), 2: (*models, 1), 3: tuple(models)}[len(models)]
    return start, stop, step


def _bounds(frame: Frame, name: str, call: ast.Call) -> tuple[Value, Value, Value]:
    start, stop, step = _models_of_bounds(frame, name, call)
    if is_whole(step) and step == 0:
        raise frame.error(f"pl.{name}: step must not be 0", call)
    parts = ((start, "start"), (stop, "stop"), (step, "step"))
    values = [frame.index(m, call, f"pl.{name}: {what}") for m, what in parts]
    return values[0], values[1], values[2]


def _unroll(statements: Statements, node: ast.For, call: ast.Call) -> None:
    """Every turn is parsed by itself, with the loop variable as a known number."""
    frame = statements.frame
    start, stop, step = (frame.known(m, call, "pl.unroll: a bound") for m in _models_of_bounds(frame, "unroll", call))
    if step == 0:
        raise frame.error("pl.unroll: step must not be 0", call)
    turns = range(start, stop, step)
    if len(turns) > _MOST_TURNS:
        raise frame.error(f"pl.unroll: {len(turns)} turns are too many to write out; use pl.range", call)
    _write_out(statements, node, turns)


def _write_out(statements: Statements, node: ast.For, items: Sequence[Model]) -> None:
    frame, going = statements.frame, getattr(node, "going", None)
    for item in items:
        statements.assign(node.target, item, node)
        statements.block(node.body)
        if going is not None and not is_number(frame.env[going]):
            raise frame.error("break of a loop that is written out depends on a run-time number; use pl.range", node)
        if going is not None and not frame.env[going]:
            break


def _call_of(frame: Frame, node: ast.expr | None, name: str) -> ast.Call | None:
    """``node`` when it is a call of ``pl.name``."""
    if not isinstance(node, ast.Call):
        return None
    target = evaluate(frame, node.func)
    return node if isinstance(target, Operation) and target.name == name else None


def _loop(frame: Frame, node: ast.For, names: ast.expr | None, inits: Model, body: Sequence[ast.stmt]) -> Loop:
    """The parts of a loop; with ``names`` its body ends with ``pl.yield_``."""
    if names is None:
        return Loop(node, (), body)
    parts = names.elts if isinstance(names, (ast.Tuple, ast.List)) else [names]
    models = inits if isinstance(inits, tuple) else (inits,)
    if len(parts) != len(models) or not all(isinstance(p, ast.Name) for p in parts):
        raise frame.syntax_error(f"{len(models)} init_values need {len(models)} names in the loop", names)
    explicit = tuple((p.id, m) for p, m in zip(parts, models, strict=True) if isinstance(p, ast.Name))
    last = body[-1]
    value = last.value if isinstance(last, (ast.Expr, ast.Assign)) else None
    call = _call_of(frame, value, "yield_")
    if call is None or len(call.args) != len(models) or call.keywords:
        raise frame.syntax_error(
            f"the body of a loop with init_values ends with pl.yield_ of {len(models)} values", last
        )
    results: list[ast.expr] = []
    if isinstance(last, ast.Assign):
        target = last.targets[0]
        results = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        if len(last.targets) != 1 or len(results) != len(models):
            raise frame.syntax_error(f"pl.yield_ gives {len(models)} values", last)
    return Loop(node, explicit, body[:-1], results, call.args)
