"""Expressions of a kernel."""

from __future__ import annotations

import ast
import enum
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pypto.ir.nodes import Block, FunctionKind, Value
from pypto.ir.types import BOOL, DType, DynDim, TileType
from pypto.ir.values import difference
from pypto.language.errors import KernelNameError
from pypto.language.parsing import calls, elements, known_values, memory_calls
from pypto.language.parsing.arguments import need_axes_of_tile
from pypto.language.parsing.elementwise import apply_binary, compared, inverted, negate
from pypto.language.parsing.frame import Frame
from pypto.language.parsing.groups import in_order
from pypto.language.parsing.model import (
    Interval,
    MethodOfDType,
    Model,
    Unusable,
    describe,
    is_number,
    is_scalar,
    is_tensor,
    is_tile,
    same_type,
)
from pypto.language.parsing.python_calls import call_builtin, call_math
from pypto.language.scan import dotted
from pypto.language.source import Builtin, KernelSource, MathFunction, Table
from pypto.language.stubs import Operation, operations

_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.BitAnd: "and_",
    ast.BitOr: "or_",
    ast.BitXor: "xor",
    ast.LShift: "shl",
    ast.RShift: "shr",
}
PREDICATES: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("eq", operator.eq),
    ast.NotEq: ("ne", operator.ne),
    ast.Lt: ("lt", operator.lt),
    ast.LtE: ("le", operator.le),
    ast.Gt: ("gt", operator.gt),
    ast.GtE: ("ge", operator.ge),
}
# Operations that only head a loop or a scope.
_HEADS = frozenset({"range", "parallel", "unroll", "pipeline", "while_", "at", "spmd", "cluster", "split_aiv"})


def evaluate(frame: Frame, node: ast.expr) -> Model:
    """What an expression stands for; appends the operations it needs."""
    if isinstance(node, ast.Constant):
        return _constant(frame, node)
    if isinstance(node, ast.Name):
        return lookup(frame, node)
    if isinstance(node, ast.Attribute):
        return _attribute(frame, node)
    if isinstance(node, (ast.Tuple, ast.List)):
        return tuple(evaluate(frame, item) for item in node.elts)
    if isinstance(node, ast.BinOp):
        return _binary(frame, node)
    if isinstance(node, ast.UnaryOp):
        return _unary(frame, node)
    if isinstance(node, ast.Compare):
        return _compare(frame, node)
    if isinstance(node, ast.BoolOp):
        return _bool_op(frame, node)
    if isinstance(node, ast.IfExp):
        return _if_expression(frame, node)
    if isinstance(node, ast.Call):
        return _call(frame, node)
    if isinstance(node, ast.Subscript):
        return _subscript(frame, node)
    if isinstance(node, ast.Dict):
        return known_values.table(frame, node, evaluate)
    if isinstance(node, ast.JoinedStr):
        return known_values.text(frame, node, evaluate)
    if isinstance(node, ast.Starred):
        raise frame.syntax_error("* can only stand in front of an argument or of a name that is assigned", node)
    raise frame.syntax_error("a slice can only stand inside [ ]", node)


def _constant(frame: Frame, node: ast.Constant) -> Model:
    value = node.value
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise frame.syntax_error(f"a constant of type {type(value).__name__} is not part of the language", node)


def lookup(frame: Frame, node: ast.Name) -> Model:
    """What a name stands for here."""
    if node.id in frame.env:
        model = frame.env[node.id]
        if isinstance(model, Unusable):
            raise frame.error(f"{node.id} {model.reason}", node, KernelNameError)
        return model
    if node.id in frame.source.values:
        return frame.source.values[node.id]
    raise frame.error(f"{node.id} is read before it is assigned", node, KernelNameError)


def _attribute(frame: Frame, node: ast.Attribute) -> Model:
    path = dotted(node)
    if path is not None and path[0] not in frame.env:
        for length in range(len(path), 0, -1):
            key = ".".join(path[:length])
            if key in frame.source.values:
                model = frame.source.values[key]
                for attribute in path[length:]:
                    model = _member(frame, model, attribute, node)
                return model
    return _member(frame, evaluate(frame, node.value), node.attr, node)


def _member(frame: Frame, model: Model, attribute: str, node: ast.Attribute) -> Model:
    if isinstance(model, DType) and attribute == "get_byte":
        return MethodOfDType(model.get_byte())
    if is_tensor(model):
        if attribute == "shape":
            return frame.dims(model, node)
        if attribute == "dtype":
            return model.type.dtype
    elif is_tile(model):
        if attribute in ("shape", "dtype"):
            return getattr(model.type, attribute)
    elif is_scalar(model) and attribute == "dtype":
        return model.type.dtype
    what = describe(model)
    if is_tensor(model) or is_tile(model):
        raise frame.error(f"{what} has no attribute {attribute}; it has shape and dtype", node, KernelNameError)
    raise frame.error(f"{what} has no attribute {attribute}", node, KernelNameError)


def _binary(frame: Frame, node: ast.BinOp) -> Model:
    left, right = evaluate(frame, node.left), evaluate(frame, node.right)
    if isinstance(node.op, ast.MatMult):
        return calls.call_operation(frame, operations("pl")["matmul"], [left, right], {}, known_values.as_call(node))
    sign = _SIGNS[type(node.op)]
    known = known_values.combined(sign, left, right)
    if known is not None:
        return known
    return apply_binary(frame, sign, left, right, node)


def _unary(frame: Frame, node: ast.UnaryOp) -> Model:
    model = evaluate(frame, node.operand)
    if isinstance(node.op, ast.USub):
        return negate(frame, model, node)
    if isinstance(node.op, ast.UAdd) and (is_number(model) or is_scalar(model) or is_tile(model) or is_tensor(model)):
        return model
    if isinstance(node.op, ast.Invert):
        return inverted(frame, model, node)
    if isinstance(node.op, ast.Not):
        model = known_values.truth(model)
        if is_number(model):
            return not model
        return frame.op("arith.not", [condition_value(frame, model, node)], node).result
    raise frame.syntax_error(f"the operator {type(node.op).__name__} does not take {describe(model)}", node)


def _compare(frame: Frame, node: ast.Compare) -> Model:
    models = [evaluate(frame, part) for part in (node.left, *node.comparators)]
    result: Model = True
    for op, left, right in zip(node.ops, models, models[1:], strict=False):
        part = _compare_two(frame, op, left, right, node)
        if any(is_tile(m) or is_tensor(m) for m in (result, part)):
            result = part if result is True else apply_binary(frame, "and_", result, part, node)
        else:
            result = part if result is True else _both(frame, "and", result, part, node)
    return result


def _compare_two(frame: Frame, op: ast.cmpop, left: Model, right: Model, node: ast.Compare) -> Model:
    known = None
    if isinstance(op, (ast.Is, ast.IsNot)):
        known = known_values.identical(left, right)
    elif isinstance(op, (ast.In, ast.NotIn)):
        known = known_values.contains(right, left)
    elif isinstance(op, (ast.Eq, ast.NotEq)):
        known = known_values.equal(left, right)
    if known is not None:
        return known != isinstance(op, (ast.IsNot, ast.NotIn, ast.NotEq))
    if type(op) not in PREDICATES:
        raise frame.syntax_error(f"the comparison {type(op).__name__} is not part of the language", node)
    pred, python = PREDICATES[type(op)]
    left, right = (frame.dimension(m, node) if isinstance(m, DynDim) else m for m in (left, right))
    if any(is_tile(m) or is_tensor(m) for m in (left, right)):
        return compared(frame, pred, left, right, node)
    if is_scalar(left) or is_scalar(right):
        dtype = scalar_dtype(frame, left, right, node)
        operands = [frame.operand(m, dtype, node) for m in (left, right)]
        return frame.op("arith.cmp", operands, node, pred=pred).result
    plain = (bool, int, float, str, DType, enum.Enum)
    if isinstance(left, plain) and isinstance(right, plain) and (pred in ("eq", "ne") or _ordered(left, right)):
        return python(left, right)
    if left is None or right is None or isinstance(left, plain) or isinstance(right, plain):
        raise frame.error(f"cannot compare {describe(left)} with {describe(right)}", node)
    raise frame.error(f"cannot compare {describe(left)} with {describe(right)}; only scalars compare", node)


def _ordered(left: Model, right: Model) -> bool:
    return (is_number(left) and is_number(right)) or (isinstance(left, str) and isinstance(right, str))


def scalar_dtype(frame: Frame, left: Model, right: Model, node: ast.AST) -> DType:
    """The dtype in which a scalar is combined with another scalar or number."""
    if is_scalar(left) and is_scalar(right):
        dtype = frame.mixed_dtype(left, right)
        if dtype is None:
            raise frame.error(
                f"{left.type.dtype} and {right.type.dtype} do not mix; convert one of them with pl.cast", node
            )
        return dtype
    scalar, other = (left, right) if is_scalar(left) else (right, left)
    if not is_number(other):
        raise frame.error(f"cannot combine {describe(left)} with {describe(right)}", node)
    return frame.mixed_dtype(scalar, other) or scalar.type.dtype


def condition_value(frame: Frame, model: Model, node: ast.AST) -> Value:
    """A run-time condition."""
    if is_scalar(model) and model.type.dtype == BOOL:
        value: Value = model
        return value
    if isinstance(model, bool):
        return frame.scalar(model, BOOL, node, "a condition")
    advice = "; write a comparison such as n != 0" if is_scalar(model) else ""
    if is_tile(model) or is_tensor(model):
        advice = "; to choose between elements use pl.sel, and & | ~ for comparisons of tiles"
    raise frame.error(f"a condition must be a comparison of scalars, not {describe(model)}{advice}", node)


def _both(frame: Frame, name: str, left: Model, right: Model, node: ast.AST) -> Model:
    if is_number(left) and is_number(right):
        return (left and right) if name == "and" else (left or right)
    for known, other in ((left, right), (right, left)):
        if isinstance(known, bool):
            return other if known is (name == "and") else known
    operands = [condition_value(frame, m, node) for m in (left, right)]
    return frame.op(f"arith.{name}", operands, node).result


def _bool_op(frame: Frame, node: ast.BoolOp) -> Model:
    name = "and" if isinstance(node.op, ast.And) else "or"
    result = evaluate(frame, node.values[0])
    for part in node.values[1:]:
        with _aside(frame) as block:
            later = evaluate(frame, part)
        if is_scalar(result) and _must_wait(frame, block):
            with frame.builder.inside(Block()) as shortcut:
                known = frame.scalar(name == "or", BOOL, node, "a condition")
            with frame.builder.inside(block):
                later = condition_value(frame, later, part)
            chosen = (later, known) if name == "and" else (known, later)
            regions = (block, shortcut) if name == "and" else (shortcut, block)
            result = _choice(frame, condition_value(frame, result, node), regions, chosen, node)
        else:
            frame.builder.block.ops.extend(block.ops)
            result = _both(frame, name, result, later, node)
    return result


def _if_expression(frame: Frame, node: ast.IfExp) -> Model:
    condition = known_values.truth(evaluate(frame, node.test))
    if is_number(condition):
        return evaluate(frame, node.body if condition else node.orelse)
    chosen = condition_value(frame, condition, node.test)
    blocks: list[Block] = []
    models: list[Model] = []
    for branch in (node.body, node.orelse):
        with _aside(frame) as block:
            model = evaluate(frame, branch)
        blocks.append(block)
        models.append(model)
    if any(is_tile(model) or is_tensor(model) for model in models):
        return _choose_tile(frame, chosen, blocks, models, node)
    for model in models:
        if not is_scalar(model) and not is_number(model):
            raise frame.error(f"`a if c else b` chooses between scalars and tiles, not {describe(model)}", node)
    dtype = _choice_dtype(frame, models[0], models[1], node)
    operands = []
    for block, model in zip(blocks, models, strict=True):
        with frame.builder.inside(block):
            operands.append(frame.operand(model, dtype, node, "a choice"))
    if any(_must_wait(frame, block) for block in blocks):
        return _choice(frame, chosen, (blocks[0], blocks[1]), (operands[0], operands[1]), node)
    for block in blocks:
        frame.builder.block.ops.extend(block.ops)
    return frame.op("arith.select", [chosen, *operands], node).result


def _choose_tile(frame: Frame, chosen: Value, blocks: list[Block], models: list[Model], node: ast.IfExp) -> Value:
    frame.need_core("`a if c else b` of tiles", node)
    tiles: list[Value] = []
    for block, model in zip(blocks, models, strict=True):
        with frame.builder.inside(block):
            tiles.append(frame.tile(model, node, "a choice"))
    if not same_type(tiles[0].type, tiles[1].type):
        raise frame.error(f"cannot choose between {describe(tiles[0])} and {describe(tiles[1])}", node)
    made = _choice(frame, chosen, (blocks[0], blocks[1]), (tiles[0], tiles[1]), node)
    frame.core_values.add(id(made.owner))
    return made


def _choice_dtype(frame: Frame, left: Model, right: Model, node: ast.IfExp) -> DType:
    if not is_number(left) or not is_number(right):
        return scalar_dtype(frame, left, right, node)
    dtype = frame.common_dtype(frame.default_dtype(left), frame.default_dtype(right))
    if dtype is None:
        raise frame.error(f"cannot choose between {describe(left)} and {describe(right)}", node)
    return dtype


@contextmanager
def _aside(frame: Frame) -> Iterator[Block]:
    """Operations go into a block that is not part of the program yet."""
    with frame.builder.inside(Block()) as block:
        yield block


def _must_wait(frame: Frame, block: Block) -> bool:
    """Whether operations may only run when they are chosen: an entry stops at a division by zero."""
    return not frame.on_core and any(op.name in ("arith.floordiv", "arith.mod") for op in block.walk())


def _choice(
    frame: Frame, condition: Value, blocks: tuple[Block, Block], values: tuple[Value, Value], node: ast.AST
) -> Value:
    for block, value in zip(blocks, values, strict=True):
        with frame.builder.inside(block):
            frame.op("scf.yield", [value], node)
    with frame.at(node):
        return frame.builder.op("scf.if", [condition], types=[values[0].type], regions=blocks).result


def _call(frame: Frame, node: ast.Call) -> Model:
    target = evaluate(frame, node.func)
    if isinstance(target, Builtin):
        return call_builtin(frame, target.name, node, evaluate)
    if isinstance(target, Operation) and target.name in _HEADS:
        form = (
            f"with pl.{target.name}(...):" if target.name in ("at", "cluster") else f"for i in pl.{target.name}(...):"
        )
        raise frame.syntax_error(f"pl.{target.name} can only stand in `{form}`", node)
    if isinstance(target, Operation) and target.name in ("submit", "spmd_submit"):
        # It parses calls itself.
        from pypto.language.parsing.tasks import submit

        return submit(frame, target, node)
    if isinstance(target, Operation) and target.name == "matmul_acc":
        _check_sum_begun(frame, node)
    args = known_values.spread(frame, node.args, evaluate)
    kwargs = {k.arg: evaluate(frame, k.value) for k in node.keywords if k.arg is not None}
    if isinstance(target, Operation):
        return calls.call_operation(frame, target, args, kwargs, node)
    if isinstance(target, MethodOfDType) and not node.args and not node.keywords:
        return target.value
    if isinstance(target, MathFunction):
        return call_math(frame, target, args, kwargs, node)
    if isinstance(target, KernelSource):
        return call_function(frame, target, args, kwargs, node)
    raise frame.error(f"{describe(target)} cannot be called", node)


def _check_sum_begun(frame: Frame, node: ast.Call) -> None:
    """What a loop adds up has to exist in front of it, also where its first turn begins the sum."""
    acc = node.args[0] if node.args else None
    if isinstance(acc, ast.Name) and acc.id not in frame.env and acc.id not in frame.source.values:
        raise frame.error(
            f"{acc.id} is read before it is assigned; make it before the loop, with the first pl.matmul or with "
            f"pl.create_tile and pl.matmul_acc({acc.id}, ..., init_cond=...)",
            acc,
            KernelNameError,
        )


def call_function(
    frame: Frame, target: KernelSource, args: list[Model], kwargs: dict[str, Model], node: ast.Call
) -> Model:
    """A call of another kernel."""
    host = frame.function.kind is FunctionKind.HOST
    if target.kind is FunctionKind.HOST or (target.kind is FunctionKind.ORCHESTRATION and not host):
        raise frame.syntax_error(
            f"{target.name} is an entry; an entry calls functions under @pl.jit.incore, .inline and .opaque only", node
        )
    if target.kind is FunctionKind.INCORE and host:
        raise frame.syntax_error(
            f"{target.name} is a device kernel; a HOST entry calls functions under @pl.jit, and those call it", node
        )
    if target.kind is FunctionKind.INCORE and (frame.on_core or frame.in_scope):
        where = "inside a scope" if frame.in_scope else "in a function under @pl.jit.incore"
        raise frame.syntax_error(f"{target.name} is called {where}; call it from the entry, outside of any scope", node)
    if target.kind is not FunctionKind.INCORE:
        return frame.program.call(frame, target, args, kwargs, node)
    with in_order(frame, node):
        return frame.program.call(frame, target, args, kwargs, node)


def _subscript(frame: Frame, node: ast.Subscript) -> Model:
    base = evaluate(frame, node.value)
    if isinstance(base, (tuple, Table)):
        return known_values.item(frame, base, node, evaluate)
    if is_tensor(base):
        offsets, sizes, dropped = window(frame, base, node)
        if len(dropped) == len(sizes):
            return elements.read(frame, base, offsets, node)
        with frame.at(node):
            return frame.builder.view(base, offsets, sizes, base.name, dropped)
    if is_tile(base):
        offsets, sizes, dropped = window(frame, base, node)
        if len(dropped) == len(sizes):
            return elements.read_tile(frame, base, offsets, node)
        shape = [frame.known(s, node, "the size of a slice of a tile") for s in sizes]
        return memory_calls.slice_tile(frame, base, (shape[0], shape[1]), (offsets[0], offsets[1]), None, node)
    raise frame.error(f"{describe(base)} has no elements", node)


def window(frame: Frame, base: Value, node: ast.Subscript) -> tuple[list[Value], list[int | Value], tuple[int, ...]]:
    """Offsets and sizes of ``base[lower:upper, ...]``, and the axes with a single index.

    Sizes are numbers where they can be known.
    """
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if is_tile(base):
        need_axes_of_tile(frame, base, "what is sliced", node, flat=len(parts) == 2)
    dims: tuple[Model, ...] = base.type.shape if isinstance(base.type, TileType) else frame.dims(base, node)
    spread = [i for i, part in enumerate(parts) if isinstance(part, ast.Constant) and part.value is Ellipsis]
    if len(spread) > 1:
        raise frame.error("... can stand once in a subscript", parts[spread[1]])
    if spread:
        whole = [ast.copy_location(ast.Slice(), parts[spread[0]])] * (len(dims) - len(parts) + 1)
        parts = [*parts[: spread[0]], *whole, *parts[spread[0] + 1 :]]
    if len(parts) > len(dims):
        raise frame.error(f"{describe(base)} has {len(dims)} dimensions, not {len(parts)}", node)
    offsets: list[Value] = []
    sizes: list[int | Value] = []
    dropped: list[int] = []
    for axis, dim in enumerate(dims):
        part = parts[axis] if axis < len(parts) else None
        if part is None:
            interval = Interval(None, None)
        elif isinstance(part, ast.Slice):
            interval = _interval(frame, part)
        else:
            dropped.append(axis)
            interval = elements.single(frame, evaluate(frame, part), dim, part)
        place = part if part is not None else node
        lower = 0 if interval.lower is None else _from_start(frame, interval.lower, dim, place)
        upper = dim if interval.upper is None else _from_start(frame, interval.upper, dim, place)
        start = frame.index(lower, place, "a bound of a slice")
        end = frame.index(upper, place, "a bound of a slice")
        size = difference(end, start)
        if size is not None and size <= 0:
            raise frame.error("the slice is empty", place)
        offsets.append(start)
        sizes.append(frame.op("arith.sub", [end, start], place).result if size is None else size)
    if dropped and len(dropped) < len(dims) and len(dims) - 1 in dropped and is_tensor(base):
        raise frame.error(
            "the last dimension cannot be dropped; write i:i+1 to keep it, or index all dimensions", parts[-1]
        )
    return offsets, sizes, tuple(dropped)


def _from_start(frame: Frame, bound: Model, dim: Model, node: ast.AST) -> Model:
    """A bound of a slice; one that is known and below 0 counts from the end."""
    if not isinstance(bound, int) or bound >= 0:
        return bound
    moved = apply_binary(frame, "add", dim, bound, node)
    if isinstance(moved, int) and moved < 0:
        raise frame.error(f"the bound {bound} is outside of a dimension of {dim}", node)
    return moved


def _interval(frame: Frame, node: ast.Slice) -> Interval:
    if node.step is not None:
        raise frame.error("a slice with a step is not supported", node)
    lower, upper = (None if part is None else evaluate(frame, part) for part in (node.lower, node.upper))
    return Interval(lower, upper)
