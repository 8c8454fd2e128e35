"""Tuples, strings and dictionaries: what Python's own syntax means for what is known while compiling."""

from __future__ import annotations

import ast
import enum
from collections.abc import Callable, Sequence

from pypto.ir.nodes import Value
from pypto.ir.types import DType, TensorType, TileType
from pypto.language.errors import KernelNameError
from pypto.language.parsing.frame import Frame
from pypto.language.parsing.model import Model, describe, is_number, is_whole
from pypto.language.source import Table

Evaluate = Callable[[Frame, ast.expr], Model]
_PLAIN = (bool, int, float, str, DType, enum.Enum, type(None))
_MOST_ITEMS = 4096


def combined(sign: str, left: Model, right: Model) -> Model:
    """``+`` of two strings or tuples, ``*`` of one and a whole number; ``None`` for anything else."""
    if sign == "add" and isinstance(left, str) and isinstance(right, str):
        return left + right
    if sign == "add" and isinstance(left, tuple) and isinstance(right, tuple):
        return left + right
    for kind in (str, tuple):
        for sequence, number in ((left, right), (right, left)):
            if sign == "mul" and isinstance(sequence, kind) and is_whole(number):
                return sequence * number if len(sequence) * number <= _MOST_ITEMS else None
    return None


def identical(left: Model, right: Model) -> bool | None:
    """``left is right`` for what has an identity in a kernel; ``None`` for anything else."""
    if left is None or right is None:
        return left is right
    kinds = (bool, DType, enum.Enum)
    if isinstance(left, kinds) and isinstance(right, kinds):
        return type(left) is type(right) and left == right
    return None


def truth(model: Model) -> Model:
    """What a condition that is known while compiling says: ``None`` and what is empty are false."""
    if isinstance(model, Table):
        return bool(model.items)
    return bool(model) if model is None or isinstance(model, (str, tuple)) else model


def equal(left: Model, right: Model) -> bool | None:
    """``left == right`` for tuples of what is known; ``None`` for anything else."""
    if not isinstance(left, tuple) or not isinstance(right, tuple):
        return None
    if not all(isinstance(part, (*_PLAIN, tuple)) for part in (*left, *right)):
        return None
    return left == right


def contains(container: Model, item: Model) -> bool | None:
    """``item in container`` of known values; ``None`` for anything else."""
    if isinstance(container, Table):
        container = tuple(key for key, _ in container.items)
    if isinstance(container, str):
        return item in container if isinstance(item, str) else None
    if not isinstance(container, tuple) or not all(isinstance(part, _PLAIN) for part in (*container, item)):
        return None
    return item in container


def item(frame: Frame, base: tuple[Model, ...] | Table, node: ast.Subscript, evaluate: Evaluate) -> Model:
    """An item of a tuple or dictionary, or a part of a tuple."""
    if isinstance(base, Table):
        key = evaluate(frame, node.slice)
        try:
            return base.get(key)
        except KeyError:
            keys = ", ".join(repr(key) for key, _ in base.items)
            shown = repr(key) if isinstance(key, _PLAIN) else describe(key)
            raise frame.error(f"the dictionary has no {shown}; it has {keys}", node, KernelNameError) from None
    if isinstance(node.slice, ast.Slice):
        ends = [node.slice.lower, node.slice.upper, node.slice.step]
        return base[slice(*(frame.known(evaluate(frame, e), e, "an end of a slice") if e else None for e in ends))]
    index = frame.known(evaluate(frame, node.slice), node, "the index of a tuple")
    if not -len(base) <= index < len(base):
        raise frame.error(f"there is no item {index} in a tuple of {len(base)}", node)
    return base[index]


def table(frame: Frame, node: ast.Dict, evaluate: Evaluate) -> Table:
    """A dictionary that is written in a kernel; its values may be anything."""
    items: dict[Model, Model] = {}
    for written, value in zip(node.keys, node.values, strict=True):
        if written is None:
            raise frame.syntax_error("** in a dictionary is not part of the language; write its items out", value)
        key = evaluate(frame, written)
        if not isinstance(key, _PLAIN):
            raise frame.error(f"a key of a dictionary must be known while compiling, not {describe(key)}", written)
        items[key] = evaluate(frame, value)
    return Table(tuple(items.items()))


def text(frame: Frame, node: ast.JoinedStr, evaluate: Evaluate) -> str:
    """An f-string; what is not known yet stands there in words."""
    parts = []
    for value in node.values:
        if isinstance(value, ast.Constant):
            parts.append(str(value.value))
        elif isinstance(value, ast.FormattedValue):
            model = evaluate(frame, value.value)
            spec = text(frame, value.format_spec, evaluate) if isinstance(value.format_spec, ast.JoinedStr) else ""
            shown = repr(model) if value.conversion in (ord("r"), ord("a")) and isinstance(model, str) else model
            try:
                parts.append(format(shown if isinstance(shown, (int, float, str)) else plain_text(shown), spec))
            except ValueError as error:
                raise frame.error(f"{describe(model)} cannot be written as {spec!r}: {error}", node) from None
    return "".join(parts)


def plain_text(model: Model) -> str:
    """A model as Python would print it, or in words."""
    if isinstance(model, tuple):
        return f"({', '.join(map(plain_text, model))}{',' if len(model) == 1 else ''})"
    if is_number(model) or model is None:
        return str(model)
    if isinstance(model, DType):
        return model.name
    return repr(model) if isinstance(model, str) else describe(model)


def spread(frame: Frame, nodes: list[ast.expr], evaluate: Evaluate) -> list[Model]:
    """The arguments of a call; ``*tuple`` stands for its items."""
    models: list[Model] = []
    for node in nodes:
        if not isinstance(node, ast.Starred):
            models.append(evaluate(frame, node))
            continue
        model = evaluate(frame, node.value)
        if not isinstance(model, tuple):
            raise frame.error(f"* in front of an argument takes a tuple, not {describe(model)}", node)
        models.extend(model)
    return models


def unpacked(frame: Frame, parts: list[ast.expr], model: tuple[Model, ...], node: ast.stmt) -> tuple[Model, ...]:
    """What the parts of a target get from a tuple; one of them may be ``*rest``."""
    starred = [position for position, part in enumerate(parts) if isinstance(part, ast.Starred)]
    if len(starred) == 1 and len(model) >= len(parts) - 1:
        first, after = starred[0], len(parts) - starred[0] - 1
        end = len(model) - after
        return (*model[:first], model[first:end], *model[end:])
    if starred or len(model) != len(parts):
        raise frame.error(f"{len(parts)} names for {len(model)} values", node)
    return model


def check_annotation(frame: Frame, name: str, annotation: ast.expr, model: Model, node: ast.AST) -> None:
    """Refuse an annotation such as ``pl.Tile[[16, 64], pl.FP32]`` whose plain numbers and dtype are not the value's."""
    if not isinstance(annotation, ast.Subscript) or not isinstance(annotation.slice, ast.Tuple):
        return
    kind = annotation.value.attr if isinstance(annotation.value, ast.Attribute) else ""
    if kind not in ("Tile", "Tensor") or not isinstance(model, Value):
        return
    type = model.type
    if not isinstance(type, (TileType, TensorType)):
        raise frame.error(f"{name} is annotated as pl.{kind}, but is {describe(model)}", node)
    shape, dtype = annotation.slice.elts[0], annotation.slice.elts[1] if len(annotation.slice.elts) > 1 else None
    # What compilers make of masks, and how many dimensions a tile has, may differ.
    named = dtype.attr if isinstance(dtype, ast.Attribute) and dtype.attr.isupper() else type.dtype.name
    wrong = named not in ("BOOL", "INT8", "UINT8", type.dtype.name) and type.dtype.bits > 8
    if isinstance(shape, (ast.List, ast.Tuple)) and len(shape.elts) == len(type.shape):
        for written, size in zip(shape.elts, type.shape, strict=False):
            if isinstance(written, ast.Constant) and isinstance(size, int):
                wrong |= written.value != size
    if wrong:
        raise frame.error(f"{name} is annotated as {ast.unparse(annotation)}, but is {describe(model)}", node)


def calls_func_attr(node: ast.expr) -> bool:
    """Whether an expression is a call of ``pl.func_attr``."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "func_attr"


def leading(body: Sequence[ast.stmt]) -> set[int]:
    """The statements, by identity, in front of which only documentation and attributes of the function stand."""
    found: set[int] = set()
    for node in body:
        if not isinstance(node, ast.Expr) or not (isinstance(node.value, ast.Constant) or calls_func_attr(node.value)):
            break
        found.add(id(node))
    return found


def items_of(name: str, args: list[Model]) -> Model:
    """What ``zip``, ``enumerate``, ``reversed``, ``tuple`` and ``list`` give for tuples; ``None`` for anything else."""
    if not args or not all(isinstance(arg, tuple) for arg in args):
        return None
    if name == "zip":
        return tuple(zip(*args, strict=False))
    if len(args) > 1:
        return None
    (items,) = args
    if name == "enumerate":
        return tuple(enumerate(items))
    return items[::-1] if name == "reversed" else items


def as_call(node: ast.BinOp) -> ast.Call:
    """The call that an operator with a name of its own stands for."""
    return ast.copy_location(ast.Call(node.left, [node.left, node.right], []), node)
