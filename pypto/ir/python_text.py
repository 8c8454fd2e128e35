"""Programs written as Python, for people who look at what a pass did: it reads like a kernel and parses, but is none.

Numbers stand where they are used, carried values are plain assignments, and comments tell types and places.
"""

from __future__ import annotations

import enum
import keyword
import re
from typing import Any

from pypto.ir.nodes import Block, Direction, Function, Op, Program, Value
from pypto.ir.types import DType, ScalarType, TensorType, Type

_OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "and": "and", "or": "or",
    "bitand": "&", "bitor": "|", "bitxor": "^", "shl": "<<", "shr": ">>",
}  # fmt: skip
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_COMMENT = 72  # column of comments, where the code leaves room


def python_text(program: Program, title: str) -> str:
    """The text of a program; ``title`` says when in its compilation."""
    functions = (_Writer().function(function) for function in program.functions.values())
    text = f'"""{title}; the entry is {program.entry}."""\n\n\n' + "\n\n".join(functions)
    chips = (f"\n\n# chip {number}\n\n{python_text(chip, title)}" for number, chip in enumerate(program.chips))
    return text + "".join(chips)


class _Writer:
    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.taken: set[str] = {"arith", "tile", "tensor", "range", "scope", "region", "extern"}
        self.lines: list[str] = []

    def function(self, function: Function) -> str:
        params = []
        for param in function.params:
            type = self.type(param.type)
            wrapped = type if param.direction is Direction.In else f"{param.direction.name}[{type}]"
            params.append(f"{self.define(param.value)}: {wrapped}")
        core = f'("{function.core.value}")' if function.core else ""
        self.lines.append(f"@{function.kind.value}{core}")
        self.lines.append(f"def {_identifier(function.name)}({', '.join(params)}):")
        if function.extern is not None:
            self.line(1, f"extern({function.extern.source!r})")
        self.block(function.body, 1)
        if function.returns:
            self.line(1, "return " + ", ".join(self.name(function.params[i].value) for i in function.returns))
        return "\n".join(self.lines) + "\n"

    def line(self, depth: int, text: str, comment: str = "") -> None:
        code = "    " * depth + text
        self.lines.append(f"{code.ljust(_COMMENT)}  # {comment}" if comment else code)

    def block(self, block: Block, depth: int, targets: tuple[Value, ...] = ()) -> None:
        """The operations of a block; what it yields is assigned to ``targets``."""
        before = len(self.lines)
        for op in block.ops:
            if op.name == "scf.yield":
                self.assign(targets, op.operands, depth)
            elif op.name not in ("scf.return", "arith.constant"):
                self.op(op, depth)
        if len(self.lines) == before:
            self.line(depth, "pass")

    def assign(self, targets: tuple[Value, ...] | list[Value], sources: list[Value], depth: int) -> None:
        pairs = [(self.name(t), self.name(s)) for t, s in zip(targets, sources, strict=False)]
        pairs = [(target, source) for target, source in pairs if target != source]
        if pairs:
            self.line(depth, f"{', '.join(t for t, _ in pairs)} = {', '.join(s for _, s in pairs)}")

    def op(self, op: Op, depth: int) -> None:
        place = str(op.loc) if op.loc else ""
        if op.name == "scf.for":
            (body,) = op.regions
            carried = tuple(body.args[1:])
            bounds = ", ".join(map(self.name, op.operands[:3]))
            index = self.define(body.args[0])
            self.declare(carried)
            self.assign(carried, op.operands[3:], depth)
            self.line(depth, f"for {index} in range({bounds}):", place)
            self.block(body, depth + 1, carried)
            self.alias(op.results, carried)
        elif op.name == "scf.while":
            head, body = op.regions
            carried = tuple(head.args)
            self.declare(carried)
            self.alias(body.args, carried)
            self.assign(carried, op.operands, depth)
            self.line(depth, "while True:", place)
            self.block(Block(head.args, head.ops[:-1]), depth + 1)
            self.line(depth + 1, f"if not {self.name(head.ops[-1].operands[0])}:")
            self.line(depth + 2, "break")
            self.block(body, depth + 1, carried)
            self.alias(op.results, carried)
        elif op.name == "scf.if":
            results = tuple(op.results)
            self.declare(results)
            self.line(depth, f"if {self.name(op.operands[0])}:", place)
            self.block(op.regions[0], depth + 1, results)
            if op.regions[1].ops:
                self.line(depth, "else:")
                self.block(op.regions[1], depth + 1, results)
        elif op.name == "func.scope":
            self.line(depth, f"with scope({op.attrs['name']!r}):", place)
            self.block(op.regions[0], depth + 1)
        else:
            self.plain(op, depth, place)

    def plain(self, op: Op, depth: int, place: str) -> None:
        """Any operation without blocks of its own, or one that this printer does not know."""
        text = self.expression(op)
        if op.results:
            types = ", ".join(self.type(result.type) for result in op.results)
            text = f"{', '.join(map(self.define, op.results))} = {text}"
            self.line(depth, text, f"{types}  {place}".rstrip())
        else:
            self.line(depth, text, place)
        for region in op.regions:
            self.declare(tuple(region.args))
            self.line(depth, f"with region({', '.join(map(self.name, region.args))}):")
            self.block(region, depth + 1)

    def expression(self, op: Op) -> str:
        family, _, name = op.name.partition(".")
        operands = [self.name(value) for value in op.operands]
        if family == "arith":
            if name in _OPERATORS:
                return f" {_OPERATORS[name]} ".join(operands)
            if name == "cmp":
                return f" {_COMPARISONS[op.attrs['pred']]} ".join(operands)
            if name in ("neg", "not"):
                return f"{'-' if name == 'neg' else 'not '}{operands[0]}"
            if name == "select":
                return f"{operands[1]} if {operands[0]} else {operands[2]}"
            if name == "cast":
                mode = f", mode={op.attrs['mode']!r}" if "mode" in op.attrs else ""
                return f"{self.type(op.result.type)}({operands[0]}{mode})"
        if op.name == "func.call":
            attrs = {key: value for key, value in op.attrs.items() if key != "callee"}
            called = _identifier(op.attrs["callee"])
        else:
            attrs, called = op.attrs, f"{family}.{_identifier(name)}"
        operands += [f"{_identifier(key)}={_literal(attrs[key])}" for key in sorted(attrs)]
        return f"{called}({', '.join(operands)})"

    def declare(self, values: tuple[Value, ...]) -> None:
        for value in values:
            self.define(value)

    def alias(self, values: list[Value], names: tuple[Value, ...]) -> None:
        """The values are the variables that stand for ``names``."""
        for value, name in zip(values, names, strict=False):
            self.names[id(value)] = self.names[id(name)]

    def define(self, value: Value) -> str:
        base = _identifier(value.name or "v")
        candidate, number = base, 0
        while candidate in self.taken:
            number += 1
            candidate = f"{base}_{number}"
        self.taken.add(candidate)
        self.names[id(value)] = candidate
        return candidate

    def name(self, value: Value) -> str:
        owner = value.owner
        if isinstance(owner, Op) and owner.name == "arith.constant":
            return _literal(owner.attrs["value"])
        return self.names.get(id(value)) or f"undefined_{_identifier(value.name)}"

    def type(self, type: Type) -> str:
        if isinstance(type, ScalarType):
            return type.dtype.name
        if isinstance(type, TensorType):
            return f"Tensor{'View' if type.is_view else ''}[[{self.dims(type.shape)}], {type.dtype}]"
        text = f"Tile[[{self.dims(type.shape)}], {type.dtype}, {type.memory.value if type.memory else None}"
        return text + (f", valid=[{self.dims(type.valid)}]]" if type.valid != type.shape else "]")

    def dims(self, dims: tuple[Any, ...]) -> str:
        return ", ".join(self.name(dim) if isinstance(dim, Value) else str(dim) for dim in dims)


def _identifier(name: str) -> str:
    text = re.sub(r"\W", "_", name)
    if not text or text[0].isdigit():
        text = f"_{text}"
    return f"{text}_" if keyword.iskeyword(text) else text


def _literal(value: Any) -> str:
    if isinstance(value, DType):
        return value.name
    if isinstance(value, enum.Enum):
        return repr(value.value)
    if isinstance(value, tuple):
        return f"({', '.join(map(_literal, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return f'float("{value}")'
    return repr(value)
