"""Replacing values throughout blocks, and asking who uses what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pypto.ir.nodes import Block, Function, Op, Program, Value
from pypto.ir.types import TensorType, TileType, Type, Valid
from pypto.ir.values import used_values, values_in_type


def substitute(block: Block, mapping: Mapping[int, Value]) -> None:
    """Replace values (by identity) in operands and types of a block and everything inside it."""
    for arg in block.args:
        arg.type = _mapped_type(arg.type, mapping)
    for op in block.ops:
        op.operands = [mapping.get(id(v), v) for v in op.operands]
        for result in op.results:
            result.type = _mapped_type(result.type, mapping)
        for region in op.regions:
            substitute(region, mapping)


def _mapped_type(type: Type, mapping: Mapping[int, Value]) -> Type:
    def mapped(part: Valid) -> Valid:
        return mapping.get(id(part), part) if isinstance(part, Value) else part

    if isinstance(type, TileType):
        rows, cols = type.valid
        return replace(type, valid=(mapped(rows), mapped(cols)))
    if isinstance(type, TensorType):
        return replace(type, shape=tuple(mapped(d) if isinstance(d, Value) else d for d in type.shape))
    return type


def captured(block: Block) -> list[Value]:
    """Values that a block uses and does not define, in order of first use."""
    defined: set[int] = set()
    found: dict[int, Value] = {}
    _capture(block, defined, found)
    return list(found.values())


def _capture(block: Block, defined: set[int], found: dict[int, Value]) -> None:
    for arg in block.args:
        for value in values_in_type(arg.type):
            if id(value) not in defined:
                found.setdefault(id(value), value)
        defined.add(id(arg))
    for op in block.ops:
        for value in used_values(op):
            if id(value) not in defined:
                found.setdefault(id(value), value)
        for region in op.regions:
            _capture(region, defined, found)
        defined.update(id(result) for result in op.results)


def blocks(block: Block) -> Iterator[Block]:
    """A block and all blocks inside it."""
    yield block
    for op in block.ops:
        for region in op.regions:
            yield from blocks(region)


def all_used(block: Block) -> set[int]:
    """Identities of the values that a block uses anywhere, types included."""
    used: set[int] = set()
    for inner in blocks(block):
        for arg in inner.args:
            used.update(id(v) for v in values_in_type(arg.type))
        for op in inner.ops:
            used.update(id(v) for v in used_values(op))
    return used


def last_op(block: Block) -> Op:
    """The operation that ends a block."""
    return block.ops[-1]


def cloned(op: Op, mapping: dict[int, Value]) -> Op:
    """A deep copy of an operation; ``mapping`` (by identity) replaces values and learns the copies of results."""
    made = Op(op.name, [mapping.get(id(v), v) for v in op.operands], [], dict(op.attrs), [], op.loc)
    made.regions = [cloned_block(region, mapping) for region in op.regions]
    made.results = [_cloned_value(result, made, mapping) for result in op.results]
    return made


def cloned_block(block: Block, mapping: dict[int, Value]) -> Block:
    """A deep copy of a block; see :func:`cloned`."""
    made = Block()
    made.args = [_cloned_value(arg, made, mapping) for arg in block.args]
    made.ops = [cloned(op, mapping) for op in block.ops]
    return made


def cloned_program(program: Program) -> Program:
    """A deep copy of a program."""
    functions = {name: _cloned_function(function) for name, function in program.functions.items()}
    return replace(program, functions=functions, chips=tuple(map(cloned_program, program.chips)))


def _cloned_function(function: Function) -> Function:
    mapping: dict[int, Value] = {}
    body = Block()
    params = []
    for param in function.params:
        made = Value(param.name, param.type, body)
        mapping[id(param.value)] = made
        params.append(replace(param, value=made))
    copy = cloned_block(function.body, mapping)
    body.args, body.ops = copy.args, copy.ops
    return replace(function, params=params, body=body)


def _cloned_value(value: Value, owner: Op | Block, mapping: dict[int, Value]) -> Value:
    made = Value(value.name, _mapped_type(value.type, mapping), owner)
    mapping[id(value)] = made
    return made
