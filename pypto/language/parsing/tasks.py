"""Scopes and launches as tasks: where they run, how often, and what they wait for."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pypto.ir.limits import MOST_BLOCKS
from pypto.ir.nodes import Block, FunctionKind, Op, Value
from pypto.ir.rewrite import all_used
from pypto.ir.types import INDEX, ScalarType
from pypto.language.annotations import Level
from pypto.language.parsing import lanes, scopes
from pypto.language.parsing.binding import Bound, bind
from pypto.language.parsing.block_calls import block_number
from pypto.language.parsing.expressions import PREDICATES, call_function, evaluate, window
from pypto.language.parsing.frame import Frame
from pypto.language.parsing.groups import Terms, group, in_order
from pypto.language.parsing.handing import Handover, gone
from pypto.language.parsing.liveness import stored_names
from pypto.language.parsing.model import (
    Hint,
    Model,
    ResultsOfNothing,
    Unusable,
    describe,
    is_tasks,
    is_tensor,
    is_whole,
)
from pypto.language.source import KernelSource
from pypto.language.stubs import Operation

if TYPE_CHECKING:
    from pypto.language.parsing.statements import Statements

_FORM = "`with pl.at(level=pl.Level.CORE_GROUP):`"
_LAUNCH_OPTIONS = ("deps", "predicate", "allow_early_resolve", "dumps")


def parse_with(statements: Statements, node: ast.With) -> None:
    """``with`` around a scope, a launch over blocks, or a group of them."""
    frame = statements.frame
    if len(node.items) != 1:
        raise frame.syntax_error(f"only {_FORM} can follow with", node)
    item = node.items[0]
    call = item.context_expr
    target = evaluate(frame, call.func) if isinstance(call, ast.Call) else None
    parse = _FORMS.get(target.name) if isinstance(target, Operation) else None
    if not isinstance(call, ast.Call) or not isinstance(target, Operation) or parse is None:
        raise frame.syntax_error(f"only {_FORM}, pl.spmd and pl.cluster can follow with", call)
    name = item.optional_vars
    if name is not None and not isinstance(name, ast.Name):
        raise frame.syntax_error("the tasks of a scope get one name: `as first`", name)
    _refuse_cores(frame, target, call)
    bound = _bound(frame, target, call)
    tasks = parse(statements, bound, node, name is not None)
    if name is not None:
        frame.env[name.id] = tasks


def parse_for(statements: Statements, node: ast.For, target: Operation, call: ast.Call) -> None:
    """``for block in pl.spmd(n):`` and ``for lane in pl.split_aiv(2, mode=...):``."""
    frame = statements.frame
    if not isinstance(node.target, ast.Name):
        raise frame.syntax_error("a loop has one variable", node.target)
    if target.name == "split_aiv":
        lanes.parse_region(statements, node.body, _bound(frame, target, call), node.target.id)
        return
    _refuse_cores(frame, target, call)
    bound = _bound(frame, target, call)
    _blocks(statements, bound, node, False, node.target.id)


def submit(frame: Frame, target: Operation, node: ast.Call) -> Model:
    """``pl.submit(kernel, ...)``, ``pl.spmd_submit(kernel, ..., core_num=n)``: what a kernel returns, and its tasks."""
    label = f"pl.{target.name}"
    kernel = evaluate(frame, node.args[0]) if node.args else None
    if not isinstance(kernel, KernelSource) or kernel.kind is not FunctionKind.INCORE:
        raise frame.syntax_error(
            f"{label} takes a function under @pl.jit.incore first, and then its arguments, not {describe(kernel)}",
            node.args[0] if node.args else node,
        )
    own = (*_LAUNCH_OPTIONS, *(("core_num", "sync_start") if target.name == "spmd_submit" else ()))
    options = {k.arg: k.value for k in node.keywords if k.arg in own}
    inner = ast.copy_location(
        ast.Call(node.args[0], node.args[1:], [k for k in node.keywords if k.arg not in own]), node
    )
    args = [evaluate(frame, arg) for arg in inner.args]
    kwargs = {k.arg: evaluate(frame, k.value) for k in inner.keywords if k.arg is not None}
    given = {name: evaluate(frame, value) for name, value in options.items() if name != "predicate"}
    for name in ("allow_early_resolve", "sync_start"):
        _flag(frame, label, name, given.get(name, False), options.get(name, node))
    _check_dumps(frame, label, given.get("dumps"), options.get("dumps", node))
    terms = Terms(
        _dependencies(frame, label, given.get("deps"), options.get("deps", node)),
        _gate(frame, label, options.get("predicate")),
    )
    results: list[Model] = []

    def call() -> None:
        results.append(call_function(frame, kernel, args, kwargs, inner))

    with group(frame, node, terms, True, "data" if target.name == "submit" else "blocks") as tasks:
        if target.name == "submit":
            call()
        else:
            if "core_num" not in given:
                raise frame.error(f"{label} misses the argument core_num: {label}(kernel, ..., core_num=8)", node)
            loop = _over_blocks(frame, label, given["core_num"], options["core_num"], call)
            _refuse_equal_blocks(frame, label, loop, True, node)
    result = results[0]
    if isinstance(result, ResultsOfNothing):
        return tasks[0]
    return (*(result if isinstance(result, tuple) else (result,)), tasks[0])


# Scopes


def _at(statements: Statements, bound: Bound, node: ast.With, named: bool) -> Model:
    frame = statements.frame
    level = bound["level"]
    if level is not Level.CORE_GROUP:
        raise frame.error(f"pl.at: level must be pl.Level.CORE_GROUP, not {_level_text(level)}", bound.node)
    if bound["role"] is not None:
        raise frame.error(
            "pl.at: role is not supported: which cores a scope runs on follows from its operations", bound.place("role")
        )
    if bound["windowize"] is not False:
        raise frame.error("pl.at: windowize is not supported", bound.place("windowize"))
    _check_dumps(frame, bound.label, bound["dumps"], bound.place("dumps"))
    untracked = _listed(bound["no_dep_args"])
    if not all(is_tensor(tensor) for tensor in untracked):
        raise frame.error("pl.at: no_dep_args must be a list of tensors", bound.place("no_dep_args"))
    terms = Terms(_common(frame, bound))
    frame.program.untracked |= bool(untracked)
    with group(frame, bound.node, terms, named) as tasks, _without_tracking(frame, untracked, bound.node):
        _scope(statements, bound, node.body, statements.live.after(node))
    return tasks[0]


def _cluster(statements: Statements, bound: Bound, node: ast.With, named: bool) -> Model:
    _name(statements.frame, bound)
    with group(statements.frame, bound.node, Terms(), named) as tasks:
        statements.block(node.body)
    return tasks[0]


def _spmd(statements: Statements, bound: Bound, node: ast.With, named: bool) -> Model:
    return _blocks(statements, bound, node, named, None)


def _blocks(statements: Statements, bound: Bound, node: ast.With | ast.For, named: bool, variable: str | None) -> Model:
    """A launch: the body once for each block; the blocks do not depend on each other."""
    frame, body = statements.frame, node.body
    _flag(frame, bound.label, "sync_start", bound["sync_start"], bound.place("sync_start"))
    gate = next((k.value for k in bound.node.keywords if k.arg == "predicate"), None)
    terms = Terms(_common(frame, bound), _gate(frame, bound.label, gate))
    before = dict(frame.env)
    launches = any(_launches(frame, statement) for statement in body)

    def block() -> None:
        if variable is not None:
            frame.env[variable] = block_number(frame, "idx")
        if launches:
            statements.block(body)
        else:
            _scope(statements, bound, body, None)

    with group(frame, bound.node, terms, named, "blocks") as tasks:
        loop = _over_blocks(frame, bound.label, bound["core_num"], bound.place("core_num"), block)
    if bound["core_num"] != 1:
        _refuse_equal_blocks(frame, bound.label, loop, launches, bound.node)
    _leave(frame, before, [*stored_names(body), *([variable] if variable else [])])
    return tasks[0]


def _refuse_equal_blocks(frame: Frame, label: str, loop: Op, launches: bool, node: ast.AST) -> None:
    """Blocks that do not use their number all do the same; only kernels that do not ask for it may be meant so."""
    (body,) = loop.regions
    if id(body.args[0]) in all_used(body):
        return
    if not launches:
        raise frame.error(
            f"{label}: every block does the same work to the same memory; use pl.get_block_idx(), or pl.at", node
        )
    for op in body.walk():
        callee = frame.program.functions.get(op.attrs.get("callee", ""))
        if callee is not None and callee.extern is not None:
            raise frame.error(
                f"{label}: hand-written code is not told its block; pass {callee.name} the number: "
                "`for i in pl.spmd(n): kernel(..., i)`",
                node,
            )


def _over_blocks(frame: Frame, label: str, count: Model, place: ast.AST, parse: Callable[[], None]) -> Op:
    """The loop over blocks whose body ``parse`` appends."""
    if is_whole(count) and not 1 <= count <= MOST_BLOCKS:
        raise frame.error(f"{label}: core_num must be 1 to {MOST_BLOCKS}, got {count}", place)
    number = frame.index(count, place, f"{label}: core_num")
    index = Value("block", ScalarType(INDEX))
    body = Block([index])
    index.owner = body
    outer = frame.blocks
    frame.blocks = (index, number)
    with frame.builder.inside(body):
        parse()
        frame.op("scf.yield", [], place)
    frame.blocks = outer
    with frame.at(place):
        bounds = [frame.builder.index(0), number, frame.builder.index(1)]
        return frame.builder.op("scf.for", bounds, {"kind": "blocks"}, regions=[body])


def _launches(frame: Frame, statement: ast.stmt) -> bool:
    """Whether a statement is code of an entry: it calls a device kernel, or has scopes of its own."""
    for node in ast.walk(statement):
        if isinstance(node, ast.With):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
            model = frame.source.values.get(ast.unparse(node.func))
            if isinstance(model, Operation) and model.name in ("submit", "spmd_submit"):
                return True
            if isinstance(model, KernelSource) and model.kind in (FunctionKind.INCORE, FunctionKind.OPAQUE):
                return True
    return False


def _scope(statements: Statements, bound: Bound, body: Sequence[ast.stmt], live: frozenset[str] | None) -> None:
    """The body as one scope, which runs on a core; of what it makes it hands on what is ``live`` after it.

    Args:
        live: names; ``None`` for the scope that each block of a launch runs.
    """
    frame = statements.frame
    name = _name(frame, bound)
    handover = Handover(frame, body, live, bound.node)
    frame.in_scope = True
    try:
        with in_order(frame, bound.node):
            divided = scopes.parse_scope(
                frame, lambda: handover.parse(lambda: statements.block(body)), name, bound.node
            )
    finally:
        frame.in_scope = False
    handover.finish(divided)


def _leave(frame: Frame, before: dict[str, Model], stored: Sequence[str]) -> None:
    """After a launch each of its blocks has values of its own."""
    outside = {id(model) for model in before.values()} | {id(p.value) for p in frame.function.params}
    for name in stored:
        frame.env[name] = _of_blocks(frame.env.get(name), outside)


def _of_blocks(model: Model, outside: set[int]) -> Model:
    if isinstance(model, tuple):
        parts = tuple(_of_blocks(part, outside) for part in model)
        return next((part for part in parts if isinstance(part, Unusable)), parts)
    if isinstance(model, Value) and id(model) not in outside and not is_tasks(model):
        return gone(model, "launch")
    return model


# Options


def _bound(frame: Frame, target: Operation, call: ast.Call) -> Bound:
    args = [evaluate(frame, arg) for arg in call.args]
    # A predicate is not computed here, but when the tasks could start.
    kwargs = {k.arg: None if k.arg == "predicate" else evaluate(frame, k.value) for k in call.keywords if k.arg}
    return bind(frame, target, args, kwargs, call)


def _refuse_cores(frame: Frame, target: Operation, call: ast.Call) -> None:
    if frame.function.kind is FunctionKind.INCORE:
        raise frame.syntax_error(f"a function under @pl.jit.incore is a scope already; remove pl.{target.name}", call)
    if frame.in_scope:
        raise frame.syntax_error("a scope cannot stand inside another scope", call)


def _common(frame: Frame, bound: Bound) -> tuple[Value, ...]:
    """Checks what scopes and launches have in common; what they wait for."""
    _flag(frame, bound.label, "allow_early_resolve", bound["allow_early_resolve"], bound.place("allow_early_resolve"))
    if not all(isinstance(hint, Hint) for hint in _listed(bound["optimizations"])):
        raise frame.error(
            f"{bound.label}: optimizations must be a list of pl.split(...) and pl.cross_core_slot(...)",
            bound.place("optimizations"),
        )
    return _dependencies(frame, bound.label, bound["deps"], bound.place("deps"))


def _name(frame: Frame, bound: Bound) -> str:
    hint = bound["name_hint"]
    if not isinstance(hint, str) or not (hint == "" or (hint.isidentifier() and hint.isascii())):
        raise frame.error(f"{bound.label}: name_hint must be an identifier", bound.place("name_hint"))
    return hint


def _listed(model: Model) -> tuple[Model, ...]:
    if model is None:
        return ()
    return model if isinstance(model, tuple) else (model,)


def _dependencies(frame: Frame, label: str, model: Model, place: ast.AST) -> tuple[Value, ...]:
    found: list[Value] = []
    for item in _listed(model):
        if isinstance(item, tuple):
            found.extend(_dependencies(frame, label, item, place))
        elif is_tasks(item):
            found.append(item)
        elif item is not None:
            raise frame.error(
                f"{label}: deps must be a list of tasks, which `with pl.at(...) as first:` names, not {describe(item)}",
                place,
            )
    return tuple(found)


def _flag(frame: Frame, label: str, name: str, model: Model, place: ast.AST) -> None:
    if not isinstance(model, bool):
        raise frame.error(f"{label}: {name} must be True or False, not {describe(model)}", place)


def _check_dumps(frame: Frame, label: str, model: Model, place: ast.AST) -> None:
    """Tensors to dump when a run on a device is asked to; runs on the simulator are not."""
    if not all(is_tensor(tensor) for tensor in _listed(model)):
        raise frame.error(f"{label}: dumps must be a list of tensors, not {describe(model)}", place)


def _gate(frame: Frame, label: str, node: ast.expr | None) -> tuple[Value, str, int] | None:
    if node is None or (isinstance(node, ast.Constant) and node.value is None):
        return None
    form = f"{label}: predicate must be `tensor[i, j] > 0`: one element of a tensor, compared with a whole number"
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.left, ast.Subscript):
        raise frame.error(form, node)
    pred, _ = PREDICATES.get(type(node.ops[0]), (None, None))
    tensor, number = evaluate(frame, node.left.value), evaluate(frame, node.comparators[0])
    if pred is None or not is_whole(number) or not is_tensor(tensor) or not tensor.type.dtype.is_integer:
        raise frame.error(form, node)
    offsets, sizes, dropped = window(frame, tensor, node.left)
    if len(dropped) != len(sizes):
        raise frame.error(form, node)
    with frame.at(node):
        return frame.builder.view(tensor, offsets, [1] * len(sizes), tensor.name), pred, number


@contextmanager
def _without_tracking(frame: Frame, tensors: Sequence[Value], node: ast.AST) -> Iterator[None]:
    """Inside, the names of some tensors stand for handles that order no tasks."""
    handles = {id(tensor): frame.op("tensor.untracked", [tensor], node).result for tensor in tensors}
    back = {id(handles[id(tensor)]): tensor for tensor in tensors}
    for mapping in (handles, back):
        if mapping is back:
            yield
        for name, model in frame.env.items():
            frame.env[name] = mapping.get(id(model), model)


def _level_text(model: Model) -> str:
    return f"pl.Level.{model.name}" if isinstance(model, Level) else describe(model)


_FORMS: dict[str, Callable[[Statements, Bound, ast.With, bool], Model]] = {
    "at": _at,
    "spmd": _spmd,
    "cluster": _cluster,
}
