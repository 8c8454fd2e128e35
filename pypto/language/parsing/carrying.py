"""What loops carry from turn to turn: found out by parsing their bodies until nothing new is found."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pypto.ir.nodes import Block, Direction, Value
from pypto.ir.types import FP32, ScalarType, TensorType, Type
from pypto.language.errors import KernelNameError
from pypto.language.parsing import handing, lanes
from pypto.language.parsing.expressions import evaluate
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
    same_type,
    valid_text,
)

if TYPE_CHECKING:
    from pypto.language.parsing.statements import Statements


@dataclass(frozen=True)
class Loop:
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
        floats: names that begin as a whole number and become floating-point ones.
        plain: carried tensors that begin as the tile of a scope and become other tensors.
        tasks: names of tasks that begin as None.
        lanes: names that have a value of its own on each vector core at the end of a turn.
    """

    tensors: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    loaded: set[str] = field(default_factory=set)
    inputs: set[str] = field(default_factory=set)
    floats: set[str] = field(default_factory=set)
    plain: set[str] = field(default_factory=set)
    tasks: set[str] = field(default_factory=set)
    lanes: set[str] = field(default_factory=set)


class _Again(Exception):
    """The plan has grown: the body has to be parsed anew."""


def carry(
    statements: Statements,
    loop: Loop,
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
        condition: appends the condition of the next turn, told whether that is the first one; its value is carried
            behind all others.
    """
    frame, node, plan = statements.frame, loop.node, _Plan()
    frame.env.update(loop.explicit)
    if frame.on_core:
        plan.loaded.update(name for name, model in loop.explicit if is_tensor(model))
    outside, outer = dict(frame.env), frame.outer_names()
    state = frame.program.checkpoint()
    while True:
        frame.env = dict(outside)
        frame.restore_names(outer)
        for name in sorted(plan.lanes):
            lanes.set_apart(frame.env, name)
        names = [name for name in _carried_names(statements, loop, plan) if name not in local]
        aliases = _aliases(names, outside, plan)
        names = [name for name in names if name not in aliases]
        inits = [_initial(frame, name, plan, node) for name in names]
        first = [] if condition is None else [condition(True)]
        args = [Value(lanes.base_name(name), _open(v)) for name, v in zip(names, inits, strict=True)]
        for name, init, arg in zip(names, inits, args, strict=True):
            if is_tensor(arg):
                frame.directions[id(arg)] = Direction.In if name in plan.inputs else frame.direction(init)
                if name not in plan.plain:
                    handing.keep_tile(frame, arg, init)
            frame.env[name] = arg
        frame.env.update((alias, frame.env[name]) for alias, name in aliases.items())

        def turn(
            names: list[str] = names, inits: list[Value] = inits, aliases: dict[str, str] = aliases
        ) -> list[Value]:
            statements.block(loop.body)
            for (name, _), model in zip(loop.explicit, [evaluate(frame, part) for part in loop.yielded], strict=True):
                frame.env[name] = model
            _look_back(statements, loop, outside, [*names, *aliases], plan)
            for name in plan.lanes:
                lanes.set_apart(frame.env, name)
            last = [_last(frame, name, init, plan, node) for name, init in zip(names, inits, strict=True)]
            _check_tiles(frame, names, inits, last, plan)
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
    _forget(statements, loop, outside, [*names, *plan.lanes], local)
    for name, arg, result in zip(names, args, made.results, strict=False):
        result.name, result.type = lanes.base_name(name), arg.type
        frame.directions[id(result)] = frame.directions.get(id(arg), Direction.InOut)
        handing.keep_tile(frame, result, arg)
        frame.env[name] = result
    frame.env.update((alias, frame.env[name]) for alias, name in aliases.items())
    frame.env.update((name, lanes.PER_LANE) for name in plan.lanes)
    for name in plan.changed & set(names):
        # What was changed in place is changed for the callers as well.
        frame.rebind(outside[name], frame.env[name])
    for (name, _), target in zip(loop.explicit, loop.results, strict=False):
        statements.assign(target, frame.env[name], node)


def _open(init: Value) -> Type:
    """The type of a carried value: a tensor may become a view of another one."""
    return replace(init.type, is_view=True) if isinstance(init.type, TensorType) else init.type


def _carried_names(statements: Statements, loop: Loop, plan: _Plan) -> list[str]:
    """Names that the body rebinds and that are read in the next turn or after the loop."""
    needed = statements.live.entering_body(loop.node) | statements.live.after(loop.node)
    explicit = [name for name, _ in loop.explicit]
    names = []
    stored = [*stored_names(loop.body), *sorted(plan.changed)]
    keys = [lanes.lane_key(name, lane) for name in sorted(plan.lanes) for lane in lanes.LANES]
    for name in [*explicit, *(n for n in stored if n not in explicit)]:
        env = statements.frame.env
        if name not in env or (name not in explicit and name not in needed and name not in plan.changed):
            continue
        model = env[name]
        chosen = name in plan.tensors or name in plan.loaded or name in explicit
        plain = is_number(model) or is_scalar(model) or is_tile(model) or is_tasks(model) or name in plan.tasks
        if plain or (is_tensor(model) and chosen):
            names.append(name)
    return [*names, *keys]


def _aliases(names: Sequence[str], outside: dict[str, Model], plan: _Plan) -> dict[str, str]:
    """Names of tiles that the body changes in place and that another carried name stands for as well."""
    found: dict[str, str] = {}
    changed = [name for name in names if name in plan.changed]
    for position, name in enumerate(changed):
        twin = next((n for n in changed[:position] if outside[n] is outside[name]), None)
        if twin is not None:
            found[name] = twin
    return found


def _initial(frame: Frame, name: str, plan: _Plan, node: ast.AST) -> Value:
    model = frame.env[name]
    if is_number(model):
        model = float(model) if name in plan.floats else model
        return frame.scalar(model, frame.default_dtype(model), node, name)
    if name in plan.floats:
        return frame.operand(model, FP32, node, name)
    if name in plan.loaded:
        return frame.tile(model, node, name)
    if name in plan.tasks and model is None:
        return no_tasks(frame, node)
    value: Value = model
    return value


def _look_back(
    statements: Statements, loop: Loop, outside: dict[str, Model], names: Sequence[str], plan: _Plan
) -> None:
    """After the body: a tensor that has become another one, or a tile, has to be carried after all."""
    frame = statements.frame
    needed = statements.live.entering_body(loop.node) | statements.live.after(loop.node)
    if fresh := lanes.apart(frame.env, outside) - plan.lanes:
        plan.lanes |= fresh & (needed | {n for n in fresh if n not in stored_names(loop.body)})
        if fresh & plan.lanes:
            raise _Again
    changed = {
        n
        for n, old in outside.items()
        if is_tile(old) and n not in names and frame.env.get(n) is not old and lanes.base_name(n) not in plan.lanes
    }
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
    model, key = frame.env[name], name
    name = lanes.base_name(name)
    if isinstance(model, Unusable):
        raise frame.error(f"{name} {model.reason}", node, KernelNameError)
    if isinstance(init.type, ScalarType) and (is_number(model) or is_scalar(model)):
        dtype = init.type.dtype
        given = model.type.dtype if is_scalar(model) else frame.default_dtype(model)
        if given == dtype or (given.is_integer and dtype.is_integer):
            return frame.scalar(model, dtype, node, name)
        if dtype.is_integer and given.is_float:
            plan.floats.add(key)
            raise _Again
        if dtype == FP32 and given.is_integer:
            return frame.operand(model if is_scalar(model) else float(model), FP32, node, name)
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
        "let it begin and end with one type",
        node,
    )


def _check_tiles(
    frame: Frame, names: Sequence[str], inits: Sequence[Value], last: Sequence[Value], plan: _Plan
) -> None:
    """A carried tensor that begins as the tile of a scope is that in each turn, or never."""
    for name, init, model in zip(names, inits, last, strict=True):
        if name not in plan.plain and init in frame.tiles and not handing.same_tile(frame, init, model):
            plan.plain.add(name)
            raise _Again


def _forget(
    statements: Statements, loop: Loop, before: dict[str, Model], carried: Sequence[str], local: Sequence[str]
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
