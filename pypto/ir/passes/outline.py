"""Scopes of an entry become incore functions."""

from __future__ import annotations

import re

from pypto.ir.effects import tensor_read, tensor_written
from pypto.ir.nodes import Block, Direction, Function, FunctionKind, Op, Param, Program, Value
from pypto.ir.rewrite import blocks, captured, substitute
from pypto.ir.types import DynDim, ScalarType, TensorType, Type
from pypto.ir.values import defining_op, same_value


def outline_scopes(program: Program) -> None:
    """Replace every scope of the entry by a call of a new incore function.

    What the scope uses from outside becomes a parameter; constants are copied into the function. Tensors that are only
    loaded are inputs, tensors that are only stored outputs. Functions are put in the order of their first use.
    """
    entry = program.entry_function
    ordered: dict[str, Function] = {program.entry: entry}
    scopes = [op for op in entry.body.walk() if op.name == "func.scope"]
    numbers = {id(op): number for number, op in enumerate(scopes, 1)}
    for block in list(blocks(entry.body)):
        for position, op in enumerate(block.ops):
            if op.name != "func.scope":
                continue
            name = _new_name(program, op.attrs["name"] or f"{entry.name}_{numbers[id(op)]}")
            function, arguments = _outlined(name, op)
            program.functions[name] = function
            block.ops[position] = Op("func.call", arguments, [], {"callee": name}, [], op.loc)
    for op in entry.body.walk():
        if op.name == "func.call":
            callee = op.attrs["callee"]
            ordered.setdefault(callee, program.functions[callee])
    program.functions = ordered


def _new_name(program: Program, wanted: str) -> str:
    name, number = wanted, 2
    while name in program.functions:
        name, number = f"{wanted}_{number}", number + 1
    return name


def _outlined(name: str, scope: Op) -> tuple[Function, list[Value]]:
    (body,) = scope.regions
    mapping: dict[int, Value] = {}
    params: list[Param] = []
    arguments: list[Value] = []
    constants: list[Op] = []
    taken: set[str] = set()
    outside = captured(body)
    roles = _roles(body)
    for value in outside:
        source = defining_op(value)
        if source is not None and source.name == "arith.constant":
            copy = Op(source.name, [], [], dict(source.attrs), [], source.loc)
            copy.results = [Value(value.name, value.type, copy)]
            constants.append(copy)
            mapping[id(value)] = copy.result
            continue
        twin = next((v for v in arguments if _same_number(v, value)), None)
        if twin is not None:
            # Lengths that are equal in the entry stay equal in the function.
            mapping[id(value)] = mapping[id(twin)]
            continue
        param_name = _identifier(value.name, taken)
        inner = Value(param_name, _param_type(param_name, value.type), body)
        params.append(Param(inner, roles.get(id(value), Direction.In)))
        arguments.append(value)
        mapping[id(value)] = inner
    substitute(body, mapping)
    body.ops = [*constants, *body.ops, Op("scf.return", [], [], {}, [], scope.loc)]
    return Function(name, FunctionKind.INCORE, params, body, loc=scope.loc), arguments


def _same_number(a: Value, b: Value) -> bool:
    return isinstance(a.type, ScalarType) and a.type == b.type and a.type.dtype.is_integer and same_value(a, b)


def _identifier(wanted: str, taken: set[str]) -> str:
    base = re.sub(r"[^A-Za-z0-9_]", "_", wanted)
    name, number = base, 2
    while name in taken:
        name, number = f"{base}_{number}", number + 1
    taken.add(name)
    return name


def _param_type(name: str, type: Type) -> Type:
    """The type inside the function: sizes that only the entry knows are read from the argument."""
    if isinstance(type, ScalarType) or not isinstance(type, TensorType):
        return type
    shape = tuple(DynDim(f"{name}_{axis}") if isinstance(d, Value) else d for axis, d in enumerate(type.shape))
    return TensorType(shape, type.dtype, type.is_view)


def _roles(body: Block) -> dict[int, Direction]:
    """How each tensor that a block uses is used, by identity of the handle that comes from outside."""
    inner_views = {id(op.result): op.operands[0] for op in body.walk() if op.name == "tensor.view"}

    def handle(value: Value) -> Value:
        while id(value) in inner_views:
            value = inner_views[id(value)]
        return value

    reads: set[int] = set()
    writes: set[int] = set()
    for op in body.walk():
        source, target = tensor_read(op), tensor_written(op)
        if source is not None:
            reads.add(id(handle(source)))
        if target is not None:
            writes.add(id(handle(target)))
    roles = dict.fromkeys(writes, Direction.Out)
    roles.update(dict.fromkeys(reads & writes, Direction.InOut))
    return roles
