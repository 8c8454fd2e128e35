"""Mending and normalising the C++ that ptoas writes.

ptoas 0.1.1 prints some things wrongly, cannot compute most scalars, and names types after pointer values, so that no
two runs agree. The plan that code generation made of the same kernel says what the text has to contain; whatever the
text does not show exactly as planned is an error, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pypto.toolchain.errors import ToolchainError


class RepairError(ToolchainError):
    """The output of ptoas is not what code generation planned: another version of ptoas, or a defect of ours."""


# Calls that belong to ptoas itself: placing tiles and keeping pipelines in step.
_OWN_CALLS = frozenset({"TASSIGN", "set_flag", "wait_flag", "pipe_barrier"})

_SIGNATURE = re.compile(r"^__global__ AICORE void (\w+)\((.*)\) \{$")
_CALL = re.compile(r"^(\s*)(\w+)\((.*)\);+$")
_LOOP = re.compile(r"^for \(int32_t (v\d+) = (\w+); \1 < (\w+); \1 \+= (\w+)\) \{$")
_BRANCH = re.compile(r"^if \((v\d+)\) \{$")
_ELSE = re.compile(r"^\} else \{$")
_CLOSE = re.compile(r"^\};*$")
_TYPE_NUMBER = re.compile(r"\b(GT|GTShape|GTStride)_(\d+)\b")
_CONSTANT = re.compile(r"^(float|half) (v\d+) = (.*);$")
_FLOAT = re.compile(r"^(-?\d+)f$")
_INFINITY = re.compile(r"^([+-]?)[Ii]nff$")
_NAN = re.compile(r"^([+-]?)[Nn]a[Nn]f$")
_MODE = re.compile(r"^bool v\d+ = (?:pto::)?RoundMode::\w+;$")
_POINTER = re.compile(r"^__gm__ \w+\* (v\d+) = (v\d+) \+ (v\d+);$")
_GLOBAL = re.compile(r"^using (GT_\d+) = GlobalTensor<\w+, (GTShape_\d+), (GTStride_\d+)>;+$")
_GLOBAL_USE = re.compile(r"^(GT_\d+) v\d+ = GT_\d+\((v\d+), v\d+, v\d+\);$")
_TILE = re.compile(r"\bTile<TileType::(\w+), \w+, ")
_PLACEHOLDER = re.compile(r"\$([al])(\d+)")
_HELD = re.compile(r"\$p(\d+)\.(\d+)")


def repair(cpp: str, plan: Mapping[str, Any]) -> str:
    """The text that is compiled, stored and hashed: equal for every run of ptoas on the same input.

    Args:
        cpp: what ptoas printed.
        plan: ``repairs`` of the kernel in ``kernel_config.json``.

    Raises:
        RepairError: the text is not what the plan expects.
    """
    return _Repair(cpp, plan).text()


@dataclass
class _Open:
    """A loop or branch that is being read; ``number`` is its position among all, the function itself has -1."""

    number: int
    has_else: bool = False


@dataclass
class _Assigned:
    """Where an argument gets a value inside the kernel: line in the result, and the constructs around that line."""

    line: int
    around: tuple[int, ...]


@dataclass
class _Repair:
    cpp: str
    plan: Mapping[str, Any]
    out: list[str] = field(default_factory=list)
    open: list[_Open] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    variables: dict[int, str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    calls: int = 0
    constructs: int = 0
    tiles: int = 0
    held: list[list[str]] = field(default_factory=list)
    places: list[tuple[int, ...]] = field(default_factory=list)
    own: set[int] = field(default_factory=set)
    assigned: dict[str, list[_Assigned]] = field(default_factory=dict)

    def text(self) -> str:
        lines = self.cpp.replace("\r\n", "\n").split("\n")
        pointers = {m[1]: m[2] for m in (_GLOBAL_USE.match(line.strip()) for line in lines) if m}
        for line in lines:
            self.line(line.rstrip(), pointers)
        if self.open:
            raise RepairError(f"ptoas left a block of {self.plan['symbol']} open")
        if not self.arguments:
            raise RepairError(f"ptoas printed no function {self.plan['symbol']}")
        for what, found, planned in (
            ("operations", self.calls, len(self.plan["calls"])),
            ("loops and branches", self.constructs, len(self.plan["constructs"])),
            ("tiles", self.tiles, len(self.plan["tiles"])),
        ):
            if found != planned:
                raise RepairError(f"ptoas printed {found} {what} for {self.plan['symbol']}, {planned} were planned")
        self.check_assignments()
        while self.out and not self.out[-1]:
            self.out.pop()
        return "\n".join(self.out) + "\n"

    def emit(self, line: str, own: bool = False) -> None:
        if own:
            self.own.add(len(self.out))
        self.out.append(line)
        self.places.append(tuple(o.number for o in self.open))

    def line(self, raw: str, pointers: Mapping[str, str]) -> None:
        body = raw.strip()
        indent = raw[: len(raw) - len(raw.lstrip())]
        if not self.open:
            self.outside(raw, body)
            return
        for match, handle in ((_LOOP.match(body), self.loop), (_BRANCH.match(body), self.branch)):
            if match:
                handle(match, indent)
                return
        if _ELSE.match(body):
            if self.open[-1].number < 0 or self.kind(self.open[-1].number) != "if" or self.open[-1].has_else:
                raise RepairError("ptoas printed an else without a branch")
            self.open[-1].has_else = True
            self.emit(raw)
        elif _CLOSE.match(body):
            self.close(indent)
        elif body.endswith("{"):
            raise RepairError(f"ptoas printed a block that is not known: {body}")
        else:
            self.statement(body, indent, pointers)

    def outside(self, raw: str, body: str) -> None:
        found = _SIGNATURE.match(body)
        if not found:
            if body and not body.startswith("#include") and body != "using namespace pto;":
                raise RepairError(f"ptoas printed a line that is not known: {body}")
            self.emit(raw)
            return
        names = [part.rsplit(" ", 1)[1] for part in found[2].split(", ")] if found[2] else []
        types = self.plan["arguments"]
        if found[1] != self.plan["symbol"] or self.arguments or len(names) != len(types):
            raise RepairError(f"ptoas printed the function {body}, planned was {self.plan['symbol']} of {len(types)}")
        self.arguments = names
        # ptoas knows no types of some elements and prints others for them.
        typed = [f"__gm__ {t} {n}" if t.endswith("*") else f"{t} {n}" for t, n in zip(types, names, strict=True)]
        self.open.append(_Open(-1))
        self.out.append(f"__global__ AICORE void {found[1]}({', '.join(typed)}) {{")
        self.places.append(())

    def statement(self, body: str, indent: str, pointers: Mapping[str, str]) -> None:
        if _MODE.match(body):
            return  # every conversion is given its rounding mode by name
        if body.startswith("Tile<"):
            body = self.tile(body)
        if found := _CONSTANT.match(body):
            self.emit(f"{indent}{found[1]} {found[2]} = {_number(found[3])};")
            return
        if found := _POINTER.match(body):
            self.emit(f"{indent}auto {found[1]} = {found[2]} + {found[3]};")
            return
        if found := _GLOBAL.match(body):
            if found[1] not in pointers:
                raise RepairError(f"ptoas declared {body} and does not use it")
            element = f"std::remove_pointer_t<decltype({pointers[found[1]]})>"
            body = f"using {found[1]} = GlobalTensor<{element}, {found[2]}, {found[3]}>;"
        elif (call := _CALL.match(body)) and call[2] not in _OWN_CALLS:
            self.operation(call, indent)
            return
        self.emit(indent + self.numbered(re.sub(r";+$", ";", body)))

    def tile(self, body: str) -> str:
        """A declaration of a tile, with the element type that was planned."""
        planned: Sequence[str] = self.plan["tiles"]
        if self.tiles >= len(planned):
            raise RepairError(f"ptoas declared a tile behind the last one that was planned: {body}")
        self.tiles += 1
        return _TILE.sub(lambda m: f"Tile<TileType::{m[1]}, {planned[self.tiles - 1]}, ", body)

    def numbered(self, text: str) -> str:
        return _TYPE_NUMBER.sub(lambda m: f"{m[1]}_{self.numbers.setdefault(m[2], len(self.numbers))}", text)

    def operation(self, call: re.Match[str], indent: str) -> None:
        calls: Sequence[Mapping[str, Any]] = self.plan["calls"]
        if self.calls >= len(calls):
            raise RepairError(f"ptoas printed the call {call[2]} behind the last one that was planned")
        planned = calls[self.calls]
        if planned["call"] != call[2]:
            raise RepairError(
                f"ptoas printed {call[2]} as call {self.calls} of {self.plan['symbol']}, planned was {planned['call']}"
            )
        self.calls += 1
        arguments = call[3].split(", ")
        if "held" in planned or "statement" in planned:
            self.held.append(arguments)
        if "held" in planned:
            return
        if "statement" in planned:
            self.own_operation(planned, indent)
            return
        for position, text in sorted(planned.get("replace", {}).items()):
            if int(position) >= len(arguments):
                raise RepairError(f"ptoas printed {call[2]} with {len(arguments)} arguments only")
            arguments[int(position)] = self.filled(text)
        self.announce(planned, indent)
        self.emit(f"{indent}{planned['name']}({', '.join(arguments)});")

    def own_operation(self, planned: Mapping[str, Any], indent: str) -> None:
        """A call of our own in place of those that were held, which named its tiles."""
        self.announce(planned, indent)
        text = _HELD.sub(self.held_argument, planned["statement"])
        self.held.clear()
        self.statements([text, *planned.get("after", ())], indent)

    def held_argument(self, found: re.Match[str]) -> str:
        call, position = int(found[1]), int(found[2])
        if call >= len(self.held) or position >= len(self.held[call]):
            raise RepairError(f"ptoas printed too few arguments of call {self.calls - 1} of {self.plan['symbol']}")
        return self.held[call][position]

    def announce(self, planned: Mapping[str, Any], indent: str) -> None:
        """Note the operation that follows, and check what it requires."""
        for condition, message, *note in planned.get("require", ()):
            # A number among the arguments could not be computed: the error belongs to its own operation.
            if note:
                self.emit(f"{indent}PYPTO_OP({note[0]});", own=True)
                self.emit(f'{indent}PYPTO_REQUIRE({self.filled(condition)}, "{message}");', own=True)
        self.emit(f"{indent}PYPTO_OP({planned['op']});", own=True)
        for condition, message, *note in planned.get("require", ()):
            if note:
                continue
            self.emit(f'{indent}PYPTO_REQUIRE({self.filled(condition)}, "{message}");', own=True)

    def kind(self, number: int) -> str:
        return str(self.plan["constructs"][number]["kind"])

    def enter(self, kind: str) -> Mapping[str, Any]:
        planned: Sequence[Mapping[str, Any]] = self.plan["constructs"]
        if self.constructs >= len(planned) or planned[self.constructs]["kind"] != kind:
            raise RepairError(f"ptoas printed a {kind} as loop or branch {self.constructs}, which was not planned")
        self.constructs += 1
        return planned[self.constructs - 1]

    def loop(self, found: re.Match[str], indent: str) -> None:
        construct = self.enter("for")
        number = self.constructs - 1
        self.statements(construct["before"], indent)
        self.variables[number] = found[1]
        self.emit(f"{indent}{found[0]}")
        self.open.append(_Open(number))
        self.statements(construct["begin"], indent + "  ")

    def branch(self, found: re.Match[str], indent: str) -> None:
        construct = self.enter("if")
        self.statements(construct["before"], indent)
        self.emit(f"{indent}{found[0]}")
        self.open.append(_Open(self.constructs - 1))

    def close(self, indent: str) -> None:
        number = self.open[-1].number
        construct: Mapping[str, Any] = self.plan["constructs"][number] if number >= 0 else {"end": (), "after": ()}
        self.statements(construct["end"], indent + "  ")
        self.open.pop()
        self.emit(f"{indent}}}")
        self.statements(construct["after"], indent)

    def statements(self, texts: Sequence[str], indent: str) -> None:
        for text in texts:
            filled = self.filled(text)
            if target := re.match(r"^\$a(\d+) = ", text):
                name = self.arguments[int(target[1])]
                self.assigned.setdefault(name, []).append(_Assigned(len(self.out), tuple(o.number for o in self.open)))
            self.emit(indent + filled, own=True)

    def filled(self, text: str) -> str:
        def name(found: re.Match[str]) -> str:
            index = int(found[2])
            if found[1] == "a":
                return self.arguments[index]
            if index not in self.variables:
                raise RepairError(f"a planned statement uses the variable of loop {index} outside of it")
            return self.variables[index]

        return _PLACEHOLDER.sub(name, text)

    def check_assignments(self) -> None:
        """Every use of an assigned argument in ptoas' own text stands behind the assignment, inside the same block."""
        if not self.assigned:
            return
        words = re.compile(r"\bv\d+\b")
        for index, (line, around) in enumerate(zip(self.out, self.places, strict=True)):
            if index in self.own or line.startswith("__global__"):
                continue
            for word in words.findall(line):
                for assigned in self.assigned.get(word, ()):
                    inside = around[: len(assigned.around)] == assigned.around
                    if index < assigned.line or not inside:
                        raise RepairError(
                            f"ptoas moved a use of {word} out of the place where it has its value: {line.strip()}"
                        )


def _number(text: str) -> str:
    """A floating-point constant that C++ can read: ptoas prints whole numbers without a point, and names infinity."""
    if found := _FLOAT.match(text):
        return f"{found[1]}.0f"
    if found := _INFINITY.match(text):
        return f"{found[1]}__builtin_inff()"
    if found := _NAN.match(text):
        return f'{found[1]}__builtin_nanf("")'
    return text
