"""Loops: counted ones, ones with a condition, unrolled ones, and what they carry from turn to turn."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pypto.ir.nodes import Block, Direction, Value
from pypto.ir.types import INDEX, ScalarType, TensorType, Type
from pypto.language.errors import KernelNameError
from pypto.language.parsing import tasks
from pypto.language.parsing.expressions import condition_value, evaluate
from pypto.language.parsing.frame import Frame
from pypto.language.parsing.groups import no_tasks
from pypto.language.parsing.liveness import stored_names
from pypto.language.parsing.model import (
    Model,
    Unusable,
    describe,
    is_number,
    is_scalar,
    is_tasks,
    is_tensor,
    is_tile,
    is_whole,
    same_type,
    valid_text,
)
from pypto.language.stubs import Operation

if TYPE_CHECKING:
    from pypto.language.parsing.statements import Statements

_FORMS = ("range", "parallel", "unroll", "pipeline", "while_", "spmd", "split_aiv")
_MOST_TURNS = 4096
# Cores count turns in 32 bits.
_MOST_COUNTED = 2**31 - 1


@dataclass(frozen=True)
class _Loop:
    """The parts of a loop statement.

    Attributes:
        explicit: names that the statement itself carries, with their first values.
        body: the statements of a turn.
        results: where the last statement of the body binds what it yields.
        yielded: the expressions that it yields.
    """

    node: ast.For | ast.While
    explicit: tuple[tuple[str, Model], ...]
    body: Sequence[ast.stmt]
    results: Sequence[ast.expr] = ()
    yielded: Sequence[ast.expr] = ()


@dataclass
class _Plan:
    """What one attempt to parse a body found out for the next one.

    Attributes:
        tensors: names of tensors that the loop has to carry.
        changed: names of tiles that the body changes without an assignment.
        loaded: names of tensors that are tiles from the first turn on.
        inputs: carried tensors that may be an input of the function, so that nothing may write them.
        tasks: names of tasks that begin as None.
    """

    tensors: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    loaded: set[str] = field(default_factory=set)
    inputs: set[str] = field(default_factory=set)
    tasks: set[str] = field(default_factory=set)


class _Again(Exception):
    """The plan has grown: the body has to be parsed anew."""


def parse_for(statements: Statements, node: ast.For) -> None:
    """A ``for`` over ``pl.range``, ``pl.parallel``, ``pl.pipeline``, ``pl.unroll`` or ``pl.while_``."""
    frame, call = statements.frame, node.iter
    if node.orelse:
        raise frame.syntax_error("else after a loop is not part of the language", node.orelse[0])
    target = evaluate(frame, call.func) if isinstance(call, ast.Call) else None
    if not isinstance(call, ast.Call) or not isinstance(target, Operation) or target.name not in _FORMS:
        items = None if isinstance(call, ast.Call) else evaluate(frame, call)
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
    loop: _Loop,
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
    _carry(statements, loop, "scf.for", bounds, {"kind": kind}, parse_turn, [name] if name else [], condition)


def parse_while(statements: Statements, node: ast.While) -> None:
    """``while condition:`` over run-time scalars."""
    if node.orelse:
        raise statements.frame.syntax_error("else after a loop is not part of the language", node.orelse[0])
    _while(statements, _Loop(node, (), node.body), node.test)


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


def _while(statements: Statements, loop: _Loop, test: ast.expr) -> None:
    frame, node = statements.frame, loop.node
    if frame.on_core:

        def check(first: bool) -> Value:
            condition = evaluate(frame, test)
            if is_number(condition) and not first:
                raise frame.error(f"the condition of the loop is always {bool(condition)}", test)
            return condition_value(frame, condition, test)

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
        body = Block([Value(a.name, a.type) for a in args])
        for old, new in zip(args, body.args, strict=True):
            frame.directions[id(new)] = frame.directions.get(id(old), Direction.InOut)
            for name, model in frame.env.items():
                if model is old:
                    frame.env[name] = new
        with frame.builder.inside(body):
            frame.op("scf.yield", turn(), node)
        return [head, body]

    _carry(statements, loop, "scf.while", [], {}, parse_turn, [])


def _options(frame: Frame, target: Operation, call: ast.Call) -> dict[str, Model]:
    """The keywords of a loop's call."""
    allowed = {"unroll": (), "pipeline": ("stage", "init_values")}.get(target.name, ("init_values",))
    options: dict[str, Model] = {}
    for keyword in call.keywords:
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


def _loop(frame: Frame, node: ast.For, names: ast.expr | None, inits: Model, body: Sequence[ast.stmt]) -> _Loop:
    """The parts of a loop; with ``names`` its body ends with ``pl.yield_``."""
    if names is None:
        return _Loop(node, (), body)
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
    return _Loop(node, explicit, body[:-1], results, call.args)


def _carry(
    statements: Statements,
    loop: _Loop,
    op: str,
    operands: list[Value],
    attrs: dict[str, str],
    parse_turn: Callable[[list[Value], Callable[[], list[Value]]], list[Block]],
    local: list[str],
    condition: Callable[[bool], Value] | None = None,
) -> None:
    """Parse the body until it is known what the loop carries, and append the loop.

    Args:
        parse_turn: makes the regions from the carried values; its second argument parses the body in the current block
            and gives the values for the next turn.
        local: names that only the body has.
        condition: as in `_count`; its value is carried behind all others.
    """
    frame, node, plan = statements.frame, loop.node, _Plan()
    frame.env.update(loop.explicit)
    if frame.on_core:
        plan.loaded.update(name for name, model in loop.explicit if is_tensor(model))
    outside = dict(frame.env)
    state = frame.program.checkpoint()
    while True:
        frame.env = dict(outside)
        names = [name for name in _carried_names(statements, loop, plan) if name not in local]
        inits = [_initial(frame, name, plan, node) for name in names]
        first = [] if condition is None else [condition(True)]
        args = [Value(name, _open(v)) for name, v in zip(names, inits, strict=True)]
        for name, init, arg in zip(names, inits, args, strict=True):
            if is_tensor(arg):
                frame.directions[id(arg)] = Direction.In if name in plan.inputs else frame.direction(init)
            frame.env[name] = arg

        def turn(names: list[str] = names, inits: list[Value] = inits) -> list[Value]:
            statements.block(loop.body)
            for (name, _), model in zip(loop.explicit, [evaluate(frame, part) for part in loop.yielded], strict=True):
                frame.env[name] = model
            _look_back(statements, loop, outside, names, plan)
            last = [_last(frame, name, init, plan, node) for name, init in zip(names, inits, strict=True)]
            return last if condition is None else [*last, condition(False)]

        try:
            regions = parse_turn([*args, *(Value("going", value.type) for value in first)], turn)
            break
        except _Again:
            frame.program.restore(state)
    for region in regions:
        for arg in region.args:
            arg.owner = region
    with frame.at(node):
        made = frame.builder.op(op, [*operands, *inits, *first], attrs, regions=regions)
    if frame.on_core:
        frame.core_values.add(id(made))
    _forget(statements, loop, outside, names, local)
    for name, arg, result in zip(names, args, made.results, strict=False):
        result.name, result.type = name, arg.type
        frame.directions[id(result)] = frame.directions.get(id(arg), Direction.InOut)
        frame.env[name] = result
    for (name, _), target in zip(loop.explicit, loop.results, strict=False):
        statements.assign(target, frame.env[name], node)


def _open(init: Value) -> Type:
    """The type of a carried value: a tensor may become a view of another one."""
    return replace(init.type, is_view=True) if isinstance(init.type, TensorType) else init.type


def _carried_names(statements: Statements, loop: _Loop, plan: _Plan) -> list[str]:
    """Names that the body rebinds and that are read in the next turn or after the loop."""
    needed = statements.live.entering_body(loop.node) | statements.live.after(loop.node)
    explicit = [name for name, _ in loop.explicit]
    names = []
    stored = [*stored_names(loop.body), *sorted(plan.changed)]
    for name in [*explicit, *(n for n in stored if n not in explicit)]:
        env = statements.frame.env
        if name not in env or (name not in explicit and name not in needed):
            continue
        model = env[name]
        chosen = name in plan.tensors or name in plan.loaded or name in explicit
        plain = is_number(model) or is_scalar(model) or is_tile(model) or is_tasks(model) or name in plan.tasks
        if plain or (is_tensor(model) and chosen):
            names.append(name)
    return names


def _initial(frame: Frame, name: str, plan: _Plan, node: ast.AST) -> Value:
    model = frame.env[name]
    if is_number(model):
        return frame.scalar(model, frame.default_dtype(model), node, name)
    if name in plan.loaded:
        return frame.tile(model, node, name)
    if name in plan.tasks and model is None:
        return no_tasks(frame, node)
    value: Value = model
    return value


def _look_back(
    statements: Statements, loop: _Loop, outside: dict[str, Model], names: Sequence[str], plan: _Plan
) -> None:
    """After the body: a tensor that has become another one, or a tile, has to be carried after all."""
    frame = statements.frame
    needed = statements.live.entering_body(loop.node) | statements.live.after(loop.node)
    changed = {n for n, old in outside.items() if is_tile(old) and n not in names and frame.env.get(n) is not old}
    if changed := changed - set(stored_names(loop.body)):
        plan.changed |= changed
        raise _Again
    for name in stored_names(loop.body):
        old, new = outside.get(name), frame.env.get(name)
        if name in outside and old is None and is_tasks(new) and name not in names:
            plan.tasks.add(name)
            raise _Again
        if name in names or name not in needed or old is None or not is_tensor(old) or old is new:
            continue
        if is_tensor(new) and not frame.on_core:
            plan.tensors.add(name)
            raise _Again
        if is_tile(new) and frame.direction(old) is Direction.In:
            plan.loaded.add(name)
            raise _Again


def _last(frame: Frame, name: str, init: Value, plan: _Plan, node: ast.AST) -> Value:
    """The value a carried name has at the end of the body; it must keep the type it began with."""
    model = frame.env[name]
    if isinstance(model, Unusable):
        raise frame.error(f"{name} {model.reason}", node, KernelNameError)
    if isinstance(init.type, ScalarType) and (is_number(model) or is_scalar(model)):
        dtype = init.type.dtype
        given = model.type.dtype if is_scalar(model) else frame.default_dtype(model)
        if given == dtype or (given.is_integer and dtype.is_integer):
            return frame.scalar(model, dtype, node, name)
    elif is_tile(init) and is_tensor(model):
        model = frame.tile(model, node, name)
        if same_type(init.type, model.type):
            return model
    elif isinstance(model, Value) and same_type(init.type, model.type):
        if is_tensor(model) and frame.direction(model) is Direction.In and name not in plan.inputs:
            # Writes in the body would reach an input in the next turn.
            plan.inputs.add(name)
            raise _Again
        return model
    raise frame.error(
        f"{name} is carried by the loop and changes from {describe(init)}{valid_text(init)} to "
        f"{describe(model)}{valid_text(model)}; "
        "let it begin and end with one type" + (", such as 0.0" if init.type == ScalarType(INDEX) else ""),
        node,
    )


def _forget(
    statements: Statements, loop: _Loop, before: dict[str, Model], carried: Sequence[str], local: Sequence[str]
) -> None:
    """After a loop: names that only its body knows are unusable, tensors must be what they were."""
    reason = "is assigned only inside a loop; give it a value before the loop"
    env, live = statements.frame.env, statements.live
    needed = live.entering_body(loop.node) | live.after(loop.node)
    for name in [*stored_names(loop.body), *local]:
        if name not in env:
            continue
        if name not in before:
            env[name] = Unusable(reason)
        elif before[name] is not env[name]:
            if name in needed and name not in carried:
                _check_unchanged(statements.frame, name, before[name], env[name], loop.node)
            env[name] = Unusable(reason)


def _check_unchanged(frame: Frame, name: str, old: Model, new: Model, node: ast.AST) -> None:
    """A name that is not carried has to mean the same in every turn."""
    if isinstance(old, Unusable) or (not isinstance(old, Value) and type(old) is type(new) and old == new):
        return
    if not is_tensor(old):
        message = f"{name} changes in the loop from {describe(old)} to {describe(new)}; use two names"
    elif is_tensor(new):
        message = f"{name} is a tensor and stands for another one after a turn of the loop; use two names"
    else:
        message = f"{name} begins as a tensor and becomes {describe(new)} in the loop; load it before the loop"
    raise frame.divisible(message, node) if is_tensor(old) else frame.error(message, node)
