"""Numbers that ptoas cannot compute: argument slots of the kernel, and C++ statements at places in the kernel's text.

The kernel's function takes, after its tensors, one slot for every number it needs. A number that does not change
during the task is computed by the wrapper and passed in. Any other is assigned inside the kernel, by a statement that
the repair step puts at the start of a loop's turn or behind a loop or branch; ptoas sees an argument and knows
nothing about it. The repair step checks that every use of such a slot stands behind its assignment, so that a ptoas
that moves code is an error and never a wrong number.

In the statements ``$aN`` is the kernel function's argument N and ``$lN`` the variable of loop N.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pypto.codegen import scalars
from pypto.codegen.scalars import Apply, Const, Expr, Leaf
from pypto.ir.types import DType


@dataclass(eq=False)
class Construct:
    """A loop or branch of the printed kernel.

    Attributes:
        depth: number of loops and branches around it.
        before, begin, end, after: statements in front of it, at the start and end of a loop's turn, and behind it.
        opened, closed: where it begins and ends, in the order in which the text was written.
    """

    kind: str
    number: int
    parent: Construct | None
    opened: int = 0
    closed: int = 0
    before: list[str] = field(default_factory=list)
    begin: list[str] = field(default_factory=list)
    end: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)

    @property
    def depth(self) -> int:
        """Number of constructs around it."""
        return 0 if self.parent is None else self.parent.depth + 1

    def encoded(self) -> dict[str, Any]:
        """The plan's entry."""
        return {
            "kind": self.kind,
            "before": self.before,
            "begin": self.begin,
            "end": self.end,
            "after": self.after,
        }


@dataclass(eq=False)
class Read:
    """A place where an element of memory becomes a number.

    Attributes:
        slot: the argument that holds it.
        parent: the loop or branch it stands in.
        place: where it stands, in the order in which the text was written.
        after: statements behind it.
    """

    slot: int
    parent: Construct | None
    place: int
    after: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Anchor:
    """A place for statements: the list they go to, its name among all, and its position in the text."""

    statements: list[str]
    name: str
    place: int


@dataclass(frozen=True)
class Slot:
    """An argument of the kernel's function.

    Attributes:
        dialect: its type in the `.pto` text.
        cpp: its type in C++.
        initial: C++ text of what the wrapper passes.
    """

    dialect: str
    cpp: str
    initial: str


# Types of the slots in which statements keep numbers, by C++ type.
_WIDE = {"int64_t": "i64", "float": "f32", "bool": "i1"}


class SideWork:
    """Slots and statements of one kernel.

    Attributes:
        tensors: number of tensor arguments in front of the slots.
        slots: the arguments behind the tensors.
        constructs: loops and branches in the order of the text.
        current: the construct that is being printed.
        used: is told of each expression whose value the text that is printed now uses.
    """

    def __init__(self, tensors: int) -> None:
        self.tensors = tensors
        self.slots: list[Slot] = []
        self.constructs: list[Construct] = []
        self.current: Construct | None = None
        self.reads: dict[int, Read] = {}
        self.used: Callable[[Expr], None] = lambda expr: None
        self._place = 0
        self._known: dict[tuple[Expr, str, str, str], int] = {}

    def slot(self, expr: Expr, dialect: str, cpp: str | None = None) -> int:
        """The argument that holds ``expr`` wherever the text that is printed now may use it.

        Args:
            dialect: type in the `.pto` text.
            cpp: type in C++, when it is not the one that belongs to ``dialect``.

        Returns:
            Index among all arguments of the kernel's function.
        """
        self.used(expr)
        return self._slot(expr, dialect, cpp)

    def _slot(self, expr: Expr, dialect: str, cpp: str | None = None) -> int:
        cpp = cpp or CPP_TYPES[dialect]
        if is_invariant(expr):
            key = (expr, dialect, cpp, "")
            if key not in self._known:
                text = scalars.text(expr, lambda leaf: f"a{leaf.index}")
                self._known[key] = self._add(Slot(dialect, cpp, converted(text, expr.dtype, cpp, dialect)))
            return self._known[key]
        anchor = self._anchor(expr)
        key = (expr, dialect, cpp, anchor.name)
        if key not in self._known:
            self._known[key] = index = self._add(Slot(dialect, cpp, "{}"))
            text = self._text(expr)
            anchor.statements.append(f"$a{index} = {converted(text, expr.dtype, cpp, dialect)};")
        return self._known[key]

    def state(self, dtype: DType) -> int:
        """A new slot for a number that a loop carries."""
        cpp = scalars.cpp_type(dtype)
        return self._add(Slot(_WIDE[cpp], cpp, "{}"))

    def read(self, dtype: DType) -> Read:
        """A new slot for a number that is read from memory at this point of the text."""
        slot = self.state(dtype)
        self.reads[slot] = Read(slot, self.current, self._next())
        return self.reads[slot]

    def text(self, expr: Expr) -> str:
        """C++ text of ``expr`` inside the kernel."""
        self.used(expr)
        return self._text(expr)

    def condition(self, expr: Expr) -> str:
        """C++ text of a check, which uses no value."""
        return self._text(expr)

    def _text(self, expr: Expr) -> str:
        def shortcut(part: Expr) -> str | None:
            if isinstance(part, Const) or not is_invariant(part):
                return None
            return f"$a{self._slot(part, _WIDE[scalars.cpp_type(part.dtype)])}"

        def variable(leaf: Leaf) -> str:
            return f"int64_t{{$l{leaf.index}}}" if leaf.kind == "loop" else f"$a{leaf.index}"

        return scalars.text(expr, variable, shortcut)

    def open(self, kind: str) -> Construct:
        """A new construct inside the current one."""
        made = Construct(kind, len(self.constructs), self.current, self._next())
        self.constructs.append(made)
        self.current = made
        return made

    def close(self, construct: Construct) -> None:
        """The construct's text is complete."""
        self.current = construct.parent
        construct.closed = self._next()

    def _next(self) -> int:
        self._place += 1
        return self._place

    def _add(self, slot: Slot) -> int:
        self.slots.append(slot)
        return self.tensors + len(self.slots) - 1

    def _anchor(self, expr: Expr) -> _Anchor:
        """The latest place among those from which the expression's variables hold their values."""
        around: list[Construct | None] = [None]
        construct = self.current
        while construct is not None:
            around.append(construct)
            construct = construct.parent
        places = [self._since(leaf, around) for leaf in leaves(expr) if leaf.kind != "arg"]
        if not places:
            raise ValueError("an expression without variables has no place")
        return max(places, key=lambda anchor: anchor.place)

    def _since(self, leaf: Leaf, around: list[Construct | None]) -> _Anchor:
        """From where a variable holds its value; ``around`` are the loops and branches around the current point."""
        if leaf.kind == "read":
            read = self.reads[leaf.index]
            if read.parent in around:
                return _Anchor(read.after, f"read {read.slot}", read.place)
            construct = read.parent
        else:
            construct = self.constructs[leaf.loop]
            if not leaf.after and construct in around:
                return _Anchor(construct.begin, f"{construct.number} begin", construct.opened)
        # Behind the loop, or behind the outermost branch that it stands in and that has ended.
        while construct is not None and construct.parent not in around:
            construct = construct.parent
        if construct is None:
            raise ValueError("a variable belongs to no loop or branch")
        return _Anchor(construct.after, f"{construct.number} after", construct.closed)


CPP_TYPES = {
    "index": "int32_t",
    "i64": "int64_t",
    "i32": "int32_t",
    "i16": "int32_t",
    "i8": "int32_t",
    "f32": "float",
    "f16": "half",
    "i1": "bool",
}


def converted(text: str, dtype: DType, cpp: str, dialect: str) -> str:
    """A computed number as the type of a slot. Indices saturate, so that one outside of 32 bits stays out of bounds."""
    if scalars.cpp_type(dtype) == cpp:
        return text
    if dialect == "index":
        return f"pypto::narrow({text})"
    return f"static_cast<{cpp}>({text})"


def leaves(expr: Expr) -> list[Leaf]:
    """The variables of an expression."""
    if isinstance(expr, Leaf):
        return [expr]
    if isinstance(expr, Apply):
        return [leaf for arg in expr.args for leaf in leaves(arg)]
    return []


def is_invariant(expr: Expr) -> bool:
    """Whether an expression has one value during a task."""
    return all(leaf.kind == "arg" for leaf in leaves(expr))
