"""Programs as text, for people, dumps and tests: stable, with unique names, without places of this machine."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

from pypto.ir.nodes import Block, Direction, Function, Op, Program, Value
from pypto.ir.types import DType, DynDim, ScalarType, TensorType, Type


def print_program(program: Program, locations: bool = False) -> str:
    """The text of a program.

    Args:
        locations: append the place of every operation, relative to its function.
    """
    functions = (print_function(f, locations) for f in program.functions.values())
    text = f"entry @{program.entry}\n\n" + "\n".join(functions)
    for number, chip in enumerate(program.chips):
        text += f"\nchip {number} " + print_program(chip, locations)
    return text


def print_function(function: Function, locations: bool = False) -> str:
    """The text of one function."""
    return _Printer(locations).function(function)


class _Printer:
    def __init__(self, locations: bool) -> None:
        self.locations = locations
        self.names: dict[int, str] = {}
        self.taken: set[str] = set()
        self.lines: list[str] = []

    def function(self, function: Function) -> str:
        params = []
        for param in function.params:
            name = self.define(param.value)
            direction = "" if param.direction is Direction.In else f"{param.direction.value} "
            params.append(f"{name}: {direction}{self.type(param.type)}")
        core = f" {function.core.value}" if function.core else ""
        returns = ""
        if function.returns:
            returns = " -> " + ", ".join(self.name(function.params[i].value) for i in function.returns)
        self.lines.append(f"{function.kind.value}{core} @{function.name}({', '.join(params)}){returns} {{")
        self.block(function.body, 1)
        self.lines.append("}")
        return "\n".join(self.lines) + "\n"

    def block(self, block: Block, depth: int) -> None:
        for op in block.ops:
            self.op(op, depth)

    def op(self, op: Op, depth: int) -> None:
        indent = "  " * depth
        # Operands first: a result may have its operand's name as a hint.
        operands = ", ".join(self.name(v) for v in op.operands)
        results = ", ".join(self.define(v) for v in op.results)
        text = f"{indent}{results} = {op.name}" if results else f"{indent}{op.name}"
        if operands:
            text += f" {operands}"
        attrs = ", ".join(f"{key}={_plain(op.attrs[key])}" for key in sorted(op.attrs))
        if attrs:
            text += f" {{{attrs}}}"
        if op.results:
            text += " : " + ", ".join(self.type(v.type) for v in op.results)
        if self.locations and op.loc is not None:
            text += f"  // {op.loc}"
        self.lines.append(text)
        for region in op.regions:
            args = ", ".join(f"{self.define(v)}: {self.type(v.type)}" for v in region.args)
            self.lines.append(f"{indent}({args}) {{" if args else f"{indent}{{")
            self.block(region, depth + 1)
            self.lines.append(f"{indent}}}")

    def define(self, value: Value) -> str:
        base = value.name or "v"
        candidate, number = base, 0
        while candidate in self.taken:
            number += 1
            candidate = f"{base}_{number}"
        self.taken.add(candidate)
        self.names[id(value)] = f"%{candidate}"
        return self.names[id(value)]

    def name(self, value: Value) -> str:
        # A value that nothing defines is a broken program; it must still be printable.
        return self.names.get(id(value), f"%<undefined {value.name}>")

    def type(self, type: Type) -> str:
        if isinstance(type, ScalarType):
            return type.dtype.name
        if isinstance(type, TensorType):
            view = "View" if type.is_view else ""
            return f"Tensor{view}[[{self.dims(type.shape)}], {type.dtype}]"
        memory = type.memory.value if type.memory else "?"
        text = f"Tile[[{self.dims(type.shape)}], {type.dtype}, {memory}"
        if type.valid != type.shape:
            text += f", valid=[{self.dims(type.valid)}]"
        return text + "]"

    def dims(self, dims: Iterable[int | DynDim | Value]) -> str:
        return ", ".join(self.name(d) if isinstance(d, Value) else str(d) for d in dims)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{int(value)}.0" if value.is_integer() else value.hex()
    if isinstance(value, DType):
        return value.name
    if isinstance(value, enum.Enum):
        return str(value.value)
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_plain, value)) + "]"
    return str(value)
