"""The `.pto` text of one kernel while it is being written, and beside it the plan for what ptoas makes of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pypto.codegen import scalars
from pypto.codegen.divisions import Divisions
from pypto.codegen.scalars import Const, Expr, Leaf
from pypto.codegen.sidework import Read, SideWork, is_invariant, leaves
from pypto.codegen.tiles import CPP_NAMES, Frame, element_name
from pypto.ir.errors import IRError
from pypto.ir.nodes import Loc, Op
from pypto.ir.types import BOOL, FP16, FP32, INDEX, DType, MemorySpace, Valid

_NAME = re.compile(r"%\w+")
# ptoas computes with elements in 32 bits.
_MAX_INT32 = 2**31 - 1


@dataclass(frozen=True)
class Tile:
    """A tile in the text: its SSA name, its storage and its valid sizes."""

    name: str
    frame: Frame
    valid: tuple[Valid, Valid]

    @property
    def type(self) -> str:
        """Its type as an operand's."""
        return f"!pto.tile_buf<{self.frame.text(*self.frame.fixed(self.valid))}>"

    @property
    def typed(self) -> str:
        """Name and type."""
        return f"{self.name} : {self.type}"


class KernelText:
    """Lines, constants, calls and noted operations of a kernel.

    Attributes:
        side: slots and statements for numbers that ptoas cannot compute.
        calls: what ptoas will print, in order: operation, call, and what the repair step makes of it.
        ops: the operations that are noted at run time.
        constants: SSA names of constants, by their text.
        base_lines: lines in front of all others, behind the constants.
        templates: which of ``ops`` call function templates of ours.
        functions: which of ``ops`` are functions of numbers.
    """

    def __init__(self, tensors: int) -> None:
        self.side = SideWork(tensors)
        self.lines: list[str] = []
        self.base_lines: list[str] = []
        self.constants: dict[str, str] = {}
        self.calls: list[dict[str, Any]] = []
        self.ops: list[dict[str, Any]] = []
        self.indent = 2
        self._counter = 0
        self._op_number = -1
        self._held = 0
        self._elements: dict[str, str] = {}
        self.templates: list[int] = []
        self.functions: list[int] = []
        # Conditions and messages of the next call, and the note to which a check belongs that is not the call's own.
        self._pending: list[tuple[str, str] | tuple[str, str, int]] = []
        self.divisions = Divisions()
        self.side.used = self._use

    def print(self, symbol: str, tensors: Sequence[str], device_spec: str | None) -> str:
        """The whole module.

        Args:
            tensors: the dialect's names of the tensor arguments' elements.
            device_spec: what the assembler calls the target; ``None`` for its default.
        """
        attributes = "" if device_spec is None else f'attributes {{"pto.device-spec" = "{device_spec}"}} '
        header = [f"%a{i}: !pto.ptr<{name}>" for i, name in enumerate(tensors)]
        header += [f"%a{len(tensors) + i}: {slot.dialect}" for i, slot in enumerate(self.side.slots)]
        text = [f"module {attributes}{{", f"  func.func @{symbol}({', '.join(header)}) {{"]
        text += [f"    {name} = arith.constant {value}" for value, name in self.constants.items()]
        return "\n".join([*text, *self.base_lines, *self.lines, "    return", "  }", "}", ""])

    def tile_elements(self) -> list[str]:
        """Element types in C++ of the tiles that ptoas declares: those that are used, in order of allocation."""
        used = {name for line in self.lines if " = pto.alloc_tile" not in line for name in _NAME.findall(line)}
        return [element for name, element in self._elements.items() if name in used]

    def line(self, text: str) -> None:
        """Append a line."""
        self.lines.append("  " * self.indent + text)

    def fresh(self, prefix: str) -> str:
        """A new SSA name."""
        self._counter += 1
        return f"%{prefix}{self._counter}"

    def constant(self, value: str, name: str) -> str:
        """SSA name of a constant, given as text with its type."""
        return self.constants.setdefault(value, f"%{name}")

    def index_constant(self, value: int, op: Op | None = None) -> str:
        """SSA name of an index constant.

        Raises:
            IRError: it does not fit into 32 bits.
        """
        if abs(value) > _MAX_INT32:
            loc = op.loc if op else None
            raise IRError(f"the number {value} does not fit into 32 bits, in which kernels count elements", loc)
        return self.constant(f"{value} : index", f"c{value}" if value >= 0 else f"m{-value}")

    def index(self, expr: Expr, op: Op | None = None) -> str:
        """SSA name of an index: loop variables, their sums and products are written out, anything else is a slot."""
        if isinstance(expr, Const):
            return self.index_constant(int(expr.value), op)
        if isinstance(expr, Leaf) and expr.kind == "loop":
            return f"%i{expr.index}"
        if isinstance(expr, scalars.Apply) and not is_invariant(expr):
            left, right = expr.args[0], expr.args[-1]
            if expr.op == "sub" and isinstance(right, Const):
                right = Const(-int(right.value), INDEX)
            elif expr.op not in ("add", "mul"):
                return self._slot(expr)
            if all(leaf.kind not in ("state", "read") for leaf in leaves(expr)):
                a, b = self.index(left, op), self.index(right, op)
                name = self.fresh("n")
                self.line(f"{name} = arith.{'muli' if expr.op == 'mul' else 'addi'} {a}, {b} : index")
                return name
        return self._slot(expr)

    def _slot(self, expr: Expr) -> str:
        return f"%a{self.side.slot(expr, 'index')}"

    def valid_number(self, valid: Valid, numbers: dict[Any, Expr]) -> Expr:
        """A valid length as an expression."""
        return Const(valid, INDEX) if isinstance(valid, int) else numbers[valid]

    def tile_scalar(self, expr: Expr, dialect: DType, element: DType, loc: Loc | None) -> tuple[str, str]:
        """SSA name and type of a number beside a tile of ``element``, written in the type ``dialect``."""
        name = element_name(dialect, loc)
        if isinstance(expr, Const):
            if dialect == FP32 and (element.is_float or abs(expr.value) <= 2**24):
                bits = scalars.float32_bits(expr.value, loc)
                return self.constant(f"0x{bits:08X} : f32", f"f{bits:08X}"), name
            if dialect == FP16:
                bits = scalars.float16_bits(expr.value, loc)
                return self.constant(f"0x{bits:04X} : f16", f"h{bits:04X}"), name
            if dialect.is_integer:
                value = int(expr.value)
                return self.constant(f"{value} : {name}", f"{name}_{value}".replace("-", "m")), name
        # Beside whole numbers the dialect writes f32, but C++ takes the element: it must not lose digits on the way.
        cpp = "int32_t" if element.is_integer else None
        return f"%a{self.side.slot(expr, name, cpp)}", name

    def allocate(
        self,
        frame: Frame,
        valid: tuple[Valid, Valid],
        numbers: dict[Any, Expr],
        prefix: str,
        remark: str = "temporary",
    ) -> Tile:
        """Allocate a tile here; the remark says what for, to whoever reads the text."""
        tile = Tile(self.fresh(prefix), frame, valid)
        self._elements[tile.name] = CPP_NAMES[frame.dtype]
        fixed = frame.fixed(valid)
        given = [
            f" valid_{axis} = {self.index(self.valid_number(v, numbers))}"
            for axis, v, known in zip(("row", "col"), valid, fixed, strict=True)
            if known is None
        ]
        self.line(f"{tile.name} = pto.alloc_tile{''.join(given)} : <{frame.text(*fixed)}>  // {remark}")
        return tile

    def call(
        self,
        op: str,
        ins: str,
        outs: str,
        *,
        suffix: str = "",
        printed: str | None = None,
        name: str | None = None,
        replace: dict[int, str] | None = None,
    ) -> None:
        """One instruction.

        Args:
            printed: the call that ptoas makes of it, if it is not the instruction's own name.
            name: the call that it has to be, if that is another one.
            replace: arguments of the call, by position, that the repair step puts in.
        """
        self.line(f"pto.{op} ins({ins}) outs({outs}){suffix}")
        printed = printed or op.replace(".", "_").upper()
        entry: dict[str, Any] = {"op": self._op_number, "call": printed, "name": name or printed}
        if replace:
            entry["replace"] = {str(k): v for k, v in sorted(replace.items())}
        if self._pending:
            entry["require"] = [list(pair) for pair in self._pending]
            self._pending = []
        self.calls.append(entry)

    def template(
        self,
        name: str,
        outs: Sequence[Tile],
        kept: Sequence[Tile],
        arguments: Sequence[Tile | str],
        read: Read | None = None,
    ) -> None:
        """A call of one of our own function templates: ``name(outs..., arguments...)``.

        ptoas is shown reshapes of each source into each result, which it takes for any tiles and which keep all of
        them in memory; the repair step takes the tiles' names from them and prints the call instead.

        Args:
            kept: tiles that the call reads besides those among its arguments: results that it updates.
            arguments: tiles, and C++ text with ``$aN`` and ``$lN`` as in :mod:`pypto.codegen.sidework`.
            read: takes what the call returns.
        """
        sources = {tile.name: tile for tile in (*kept, *(a for a in arguments if isinstance(a, Tile)))}
        if not sources:
            blank = self._blank(out.frame.dtype.nbytes for out in outs)
            sources = {} if blank is None else {blank.name: blank}
        pairs: list[tuple[Tile | None, Tile]] = [(source, out) for source in sources.values() for out in outs]
        names: dict[str, str] = {}
        entry: dict[str, Any] = {}
        for source, out in pairs or [(None, out) for out in outs]:
            names.setdefault(out.name, f"$p{self._held}.0")
            if source is None:
                self._fill_any(out)
            else:
                names.setdefault(source.name, f"$p{self._held}.1")
                self.line(f"pto.treshape ins({source.typed}) outs({out.typed})")
            entry = self._hold("TEXPANDS" if source is None else "TRESHAPE")
        self._held = 0
        del entry["held"]
        shown = [names[a.name] if isinstance(a, Tile) else a for a in arguments]
        entry["statement"] = f"pypto::tiles::{name}({', '.join([*(names[t.name] for t in outs), *shown])});"
        if self._pending:
            entry["require"] = [list(pair) for pair in self._pending]
            self._pending = []
        if read is not None:
            entry["statement"] = f"$a{read.slot} = {entry['statement']}"
            entry["after"] = read.after
        self.templates.append(self._op_number)

    def _hold(self, call: str) -> dict[str, Any]:
        """Plan a call that only names the tiles of the one that follows."""
        entry = {"op": self._op_number, "call": call, "held": True}
        self.calls.append(entry)
        self._held += 1
        return entry

    def _blank(self, sizes: Iterable[int]) -> Tile | None:
        """A source for results that ptoas cannot fill: those of 8 bytes an element."""
        if max(sizes) <= 4:
            return None
        tile = self.allocate(Frame(MemorySpace.Vec, FP32, 1, 8), (1, 8), {}, "b")
        self._fill_any(tile)
        self._hold("TEXPANDS")
        return tile

    def _fill_any(self, tile: Tile) -> None:
        zero, name = self.blank_scalar(tile.frame.dtype)
        self.line(f"pto.texpands ins({zero} : {name}) outs({tile.typed})")

    def blank_scalar(self, dtype: DType) -> tuple[str, str]:
        """SSA name and type of a zero that stands for a number which the repair step puts in."""
        name = element_name(dtype)
        return self.constant(f"{'0.0' if name.startswith('f') else '0'} : {name}", f"z_{name}"), name

    def copy(self, target: Tile, source: Tile, op: Op) -> None:
        """Copy between tiles of equal storage and valid sizes.

        Raises:
            IRError: the hardware does not copy inside this memory.
        """
        if target.frame.memory is MemorySpace.Mat:
            self.template("copy", [target], [], [source])
            return
        if target.frame.memory is not MemorySpace.Vec:
            raise IRError(
                f"not supported: a copy of a tile in {target.frame.memory.value}; "
                "update it in place (pl.matmul_acc) and do not use the old value afterwards",
                op.loc,
            )
        self.call("tmov", source.typed, target.typed)

    def reinterpret(self, target: Tile, source: Tile) -> None:
        """Let ``target`` name the memory of ``source``.

        The planner of ptoas does not know that it does: it takes them for two memories, and gives the source's away
        when the source is not used again. So whoever reinterprets uses the source again when the target is done with.
        """
        self.call("treshape", source.typed, target.typed)

    def note(self, op: Op, function: str) -> None:
        """The following calls belong to this operation."""
        self._op_number = len(self.ops)
        self._append(op, function)

    def _append(self, op: Op, function: str) -> None:
        place = op.loc or Loc(function, 0, 0)
        self.ops.append({"op": op.name, "function": place.function, "line": place.line, "column": place.column})

    def divide(self, op: Op, quotient: Expr, function: str) -> None:
        """A division of whole numbers, whose divisor is checked wherever the result is used."""
        self.divisions.add(quotient, len(self.ops))
        self._append(op, function)

    def function(self, op: Op, function: str) -> None:
        """A function of a number, which C++ computes."""
        self.functions.append(len(self.ops))
        self._append(op, function)

    def must(self, op: Op, condition: Expr, message: str, function: str) -> None:
        """Check a condition in front of the next call, loop or branch; ``op`` is to blame."""
        self._pending.append((self.side.condition(condition), message, len(self.ops)))
        self._append(op, function)

    def _use(self, expr: Expr) -> None:
        for condition, note in self.divisions.checks(expr, self.side.current):
            self._pending.append((self.side.condition(condition), "division by zero", note))

    def checks(self) -> list[str]:
        """Statements with the checks that stand in front of no call but of a loop or branch, or end a loop's turn."""
        pending, self._pending = self._pending, []
        texts = []
        for condition, message, *note in pending:
            texts += [f"PYPTO_OP({number});" for number in note]
            texts.append(f'PYPTO_REQUIRE({condition}, "{message}");')
        return texts

    def require(self, low: Expr | None, value: Expr, high: Expr | None, message: str) -> None:
        """Check ``low <= value <= high`` in front of the next call, as far as it is not known."""
        for op, bound in (("ge", low), ("le", high)):
            if bound is None or bound == value:
                continue
            # What is known of the value itself, or of one of the numbers that it is the least or greatest of.
            chooses = "max" if op == "ge" else "min"
            parts = value.args if isinstance(value, scalars.Apply) and value.op == chooses else (value,)
            numbers = [p.value for p in parts if isinstance(p, Const)]
            if isinstance(bound, Const) and any(n >= bound.value if op == "ge" else n <= bound.value for n in numbers):
                continue
            self._pending.append((self.side.text(scalars.Apply(op, (value, bound), BOOL)), message))
