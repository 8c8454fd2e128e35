"""Nodes of the IR: a small typed SSA program with structured control flow.

A :class:`Program` holds functions. A function holds a block of operations; an operation has operands,
results, attributes and, for control flow, nested blocks. What an operation means, which operands it
takes and how it is lowered is written once, in :mod:`pypto.ir.ops`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pypto.ir.types import Type


@dataclass(frozen=True)
class Loc:
    """A place in a kernel's source, relative to the function so that no path or absolute line enters artifacts.

    Attributes:
        function: qualified name of the Python function.
        line: 1 for the first line of the function's source (its first decorator).
        column: 0-based column, in characters.
        end_line: last line of the marked expression, 0 if unknown.
        end_column: column after the marked expression, 0 if unknown.
    """

    function: str
    line: int
    column: int
    end_line: int = 0
    end_column: int = 0

    def __str__(self) -> str:
        return f"{self.function}:{self.line}:{self.column}"


class Value:
    """One SSA value; compared by identity. ``name`` is a hint, the printer makes names unique."""

    __slots__ = ("name", "owner", "type")

    def __init__(self, name: str, type: Type, owner: Op | Block | None = None) -> None:
        self.name = name
        self.type = type
        self.owner = owner

    def __repr__(self) -> str:
        return f"%{self.name}: {self.type}"


@dataclass(eq=False)
class Op:
    """One operation. ``attrs`` hold plain data only: numbers, strings, booleans, enums, DTypes, tuples of them."""

    name: str
    operands: list[Value]
    results: list[Value]
    attrs: dict[str, Any] = field(default_factory=dict)
    regions: list[Block] = field(default_factory=list)
    loc: Loc | None = None

    @property
    def result(self) -> Value:
        """The only result."""
        (only,) = self.results
        return only


@dataclass(eq=False)
class Block:
    """A list of operations with block arguments (loop variable, carried values)."""

    args: list[Value] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)

    def walk(self) -> Iterator[Op]:
        """All operations, outer before inner, in program order."""
        for op in self.ops:
            yield op
            for region in op.regions:
                yield from region.walk()


class Direction(enum.Enum):
    """How a function uses a tensor parameter."""

    In = "in"
    Out = "out"
    InOut = "inout"


class FunctionKind(enum.Enum):
    """What a function is for."""

    ORCHESTRATION = "orchestration"
    INCORE = "incore"
    HOST = "host"
    # Kinds that only sources have: their bodies are spliced into their callers.
    INLINE = "inline"
    OPAQUE = "opaque"


class CoreType(enum.Enum):
    """Which kind of core an incore function runs on."""

    AIC = "aic"
    AIV = "aiv"


@dataclass(eq=False)
class Param:
    """A function parameter."""

    value: Value
    direction: Direction = Direction.In

    @property
    def name(self) -> str:
        """Name as the user wrote it."""
        return self.value.name

    @property
    def type(self) -> Type:
        """Type of the parameter."""
        return self.value.type


@dataclass(frozen=True)
class ExternSource:
    """Hand-written C++ that takes the place of an incore function's body.

    Attributes:
        source: its file.
        include_dirs: folders for its includes, in order.
        lane, lanes: which of how many vector cores it runs on, where several run it for one call.
    """

    source: str
    include_dirs: tuple[str, ...] = ()
    lane: int = 0
    lanes: int = 1


@dataclass(eq=False)
class Function:
    """One function of a program.

    Attributes:
        name: unique in the program; a C identifier.
        core: core type of an incore function, set by core inference; ``None`` for orchestration.
        returns: indices of the parameters that the entry returns.
        extern: where its code is, for an incore function without a body, which has its core type from the start.
    """

    name: str
    kind: FunctionKind
    params: list[Param]
    body: Block
    core: CoreType | None = None
    returns: tuple[int, ...] = ()
    loc: Loc | None = None
    extern: ExternSource | None = None


@dataclass(eq=False)
class Program:
    """An entry (orchestration) and the incore functions it submits, in order of first use.

    Attributes:
        chips: of a distributed program, whose only function is its HOST entry: the chips' programs, by the number that
            calls use.
    """

    entry: str
    functions: dict[str, Function]
    chips: tuple[Program, ...] = ()

    def __str__(self) -> str:
        from pypto.ir.printer import print_program

        return print_program(self)

    @property
    def entry_function(self) -> Function:
        """The entry."""
        return self.functions[self.entry]

    def incore_functions(self) -> list[Function]:
        """The device kernels in their fixed order; the position is the function id."""
        return [f for f in self.functions.values() if f.kind is FunctionKind.INCORE]
