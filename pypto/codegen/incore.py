"""One incore function as `.pto` text, with the plan of what the repair step adds to ptoas' output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pypto.codegen import scalars
from pypto.codegen.buffers import Buffer, BufferPlan, Copies, is_tile, ordered, plan_buffers
from pypto.codegen.scalars import Const, Expr, Leaf, binary
from pypto.codegen.sidework import SideWork, Slot, is_invariant, leaves
from pypto.codegen.tensors import TaskArguments, TensorWindow, task_arguments
from pypto.codegen.tiles import CPP_NAMES, DIALECT_NAMES, Frame, element_name, vector_line
from pypto.ir.errors import IRError
from pypto.ir.nodes import Block, Function, Op, Value
from pypto.ir.ops.lowering import Form, Instruction
from pypto.ir.ops.registry import definition
from pypto.ir.types import (
    FP16,
    FP32,
    INDEX,
    INT16,
    DType,
    MemorySpace,
    ScalarType,
    TensorType,
    TileType,
    Valid,
)

# The limit of ptoas' 32-bit arithmetic on elements.
_MAX_INT32 = 2**31 - 1

_ROUND_MODES = {"none": "RINT", "rint": "RINT", "round": "ROUND", "floor": "FLOOR", "ceil": "CEIL", "trunc": "TRUNC"}


@dataclass(frozen=True)
class Kernel:
    """What is generated for one incore function.

    Attributes:
        pto: input of ptoas.
        symbol: name of the function in it.
        slots: arguments of that function behind its tensors.
        repairs: plan for `pypto.toolchain.repair`.
        ops: for each noted operation its name, function, line and column.
        arguments: what a task of this kernel is given.
    """

    pto: str
    symbol: str
    slots: tuple[Slot, ...]
    repairs: dict[str, Any]
    ops: list[dict[str, Any]]
    arguments: TaskArguments


def print_kernel(function: Function) -> Kernel:
    """Print an incore function that has passed the verifier.

    Raises:
        IRError: the function uses something that cannot be lowered; the error has the place in the source.
    """
    return _Printer(function).print()


@dataclass(frozen=True)
class _Tile:
    """A tile in the text: its SSA name and its type."""

    name: str
    frame: Frame
    valid: tuple[Valid, Valid]

    @property
    def type(self) -> str:
        return f"!pto.tile_buf<{self.frame.text(*self.frame.fixed(self.valid))}>"


class _Printer:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.symbol = f"{function.name}_kernel"
        self.arguments = task_arguments(function)
        self.tensor_params = [p for p in function.params if isinstance(p.type, TensorType)]
        self.side = SideWork(len(self.tensor_params))
        self.plan: BufferPlan = plan_buffers(function)
        self.block_line = vector_line(function)
        self.numbers: dict[Value, Expr] = {}
        self.windows: dict[Value, TensorWindow] = {}
        self.tiles: dict[Buffer, _Tile] = {}
        self.constants: dict[str, str] = {}
        self.bases: dict[tuple[int, bool], str] = {}
        self.base_lines: list[str] = []
        self.lines: list[str] = []
        self.indent = 2
        self.counter = 0
        self.calls: list[dict[str, Any]] = []
        self.ops: list[dict[str, Any]] = []
        self.op_number = -1
        self.pending: list[tuple[str, str]] = []
        self.allocations = _allocation_places(function.body, self.plan)
        self.memory_element: DType | None = None

    def print(self) -> Kernel:
        for param, expr in self.arguments.scalars:
            self.numbers[param.value] = expr
        for index, param in enumerate(self.tensor_params):
            element_name(_tensor(param.value).dtype, self.function.loc)
            self.windows[param.value] = self.arguments.window(index)
        self.block(self.function.body)
        header = [f"%a{i}: !pto.ptr<{self.pointee(_tensor(p.value).dtype)}>" for i, p in enumerate(self.tensor_params)]
        header += [f"%a{len(self.tensor_params) + i}: {slot.dialect}" for i, slot in enumerate(self.side.slots)]
        text = ["module {", f"  func.func @{self.symbol}({', '.join(header)}) {{"]
        text += [f"    {name} = arith.constant {value}" for value, name in self.constants.items()]
        text += self.base_lines + self.lines + ["    return", "  }", "}", ""]
        repairs = {
            "symbol": self.symbol,
            "arguments": [f"{CPP_NAMES[_tensor(p.value).dtype]}*" for p in self.tensor_params]
            + [slot.cpp for slot in self.side.slots],
            "element": CPP_NAMES[self.memory_element or FP32],
            "constructs": [c.encoded() for c in self.side.constructs],
            "calls": self.calls,
        }
        return Kernel("\n".join(text), self.symbol, tuple(self.side.slots), repairs, self.ops, self.arguments)

    def line(self, text: str) -> None:
        self.lines.append("  " * self.indent + text)

    def fresh(self, prefix: str) -> str:
        self.counter += 1
        return f"%{prefix}{self.counter}"

    def constant(self, value: str, prefix: str) -> str:
        if value not in self.constants:
            self.constants[value] = f"%{prefix}"
        return self.constants[value]

    def index_constant(self, value: int, op: Op | None = None) -> str:
        if abs(value) > _MAX_INT32:
            raise IRError(
                f"the number {value} does not fit into 32 bits, in which kernels count elements", op.loc if op else None
            )
        return self.constant(f"{value} : index", f"c{value}" if value >= 0 else f"m{-value}")

    def pointee(self, dtype: DType) -> str:
        if dtype == INT16:
            # ptoas takes the type for "some other one" and writes T; the repair step says what T is.
            self.memory_element = dtype
        return DIALECT_NAMES[dtype]

    def number(self, value: Value) -> Expr:
        return self.numbers[value]

    def valid_number(self, valid: Valid) -> Expr:
        return Const(valid, INDEX) if isinstance(valid, int) else self.number(valid)

    def index(self, expr: Expr, op: Op | None = None) -> str:
        """SSA name of an index: constants, loop variables, sums and products as such, anything else in a slot."""
        if isinstance(expr, Const):
            return self.index_constant(int(expr.value), op)
        if isinstance(expr, Leaf) and expr.kind == "loop":
            return f"%i{expr.index}"
        if isinstance(expr, scalars.Apply) and expr.op in ("add", "mul", "sub") and not is_invariant(expr):
            left, right = expr.args
            native = all(leaf.kind == "loop" or leaf.kind == "arg" for leaf in leaves(expr))
            if native and (expr.op != "sub" or isinstance(right, Const)):
                if expr.op == "sub":
                    right = Const(-int(right.value), INDEX)  # type: ignore[union-attr]
                a, b = self.index(left, op), self.index(right, op)
                name = self.fresh("n")
                self.line(f"{name} = arith.{'muli' if expr.op == 'mul' else 'addi'} {a}, {b} : index")
                return name
        return f"%a{self.side.slot(expr, 'index')}"

    def tile_scalar(self, expr: Expr, dialect: DType, element: DType, op: Op) -> tuple[str, str]:
        """SSA name and type of a number beside a tile of ``element``, written in the type ``dialect``."""
        name = element_name(dialect, op.loc)
        if isinstance(expr, Const):
            if dialect == FP32 and (element.is_float or abs(expr.value) <= 2**24):
                bits = scalars.float32_bits(expr.value, op.loc)
                return self.constant(f"0x{bits:08X} : f32", f"f{bits:08X}"), name
            if dialect == FP16:
                bits = scalars.float16_bits(expr.value, op.loc)
                return self.constant(f"0x{bits:04X} : f16", f"h{bits:04X}"), name
            if dialect.is_integer:
                return self.constant(f"{int(expr.value)} : {name}", f"{name}_{int(expr.value)}".replace("-", "m")), name
        cpp = "int32_t" if element.is_integer else None
        return f"%a{self.side.slot(expr, name, cpp)}", name

    def allocate(self, frame: Frame, valid: tuple[Valid, Valid], prefix: str = "t") -> _Tile:
        tile = _Tile(self.fresh(prefix), frame, valid)
        fixed = frame.fixed(valid)
        given = [
            f" valid_{axis} = {self.index(self.valid_number(v))}"
            for axis, v, known in zip(("row", "col"), valid, fixed, strict=True)
            if known is None
        ]
        self.line(f"{tile.name} = pto.alloc_tile{''.join(given)} : <{frame.text(*fixed)}>")
        return tile

    def tile(self, value: Value) -> _Tile:
        return self.tiles[self.plan.buffer[value]]

    def allocate_buffers(self, block: Block, index: int) -> None:
        for buffer in self.allocations.get((block, index), ()):
            self.tiles[buffer] = self.allocate(Frame.of(buffer.type, self.block_line), buffer.type.valid)

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
        """One instruction; ``printed`` is the call that ptoas makes of it, ``name`` the call that it has to be."""
        self.line(f"pto.{op} ins({ins}) outs({outs}){suffix}")
        printed = printed or op.replace(".", "_").upper()
        entry: dict[str, Any] = {"op": self.op_number, "call": printed, "name": name or printed}
        if replace:
            entry["replace"] = {str(k): v for k, v in sorted(replace.items())}
        if self.pending:
            entry["require"] = [list(pair) for pair in self.pending]
            self.pending = []
        self.calls.append(entry)

    def copy(self, target: _Tile, source: _Tile, op: Op) -> None:
        """Copy between tiles of one memory and equal valid sizes."""
        if target.frame.memory is not MemorySpace.Vec:
            raise IRError(
                f"not supported: a copy of a tile in {target.frame.memory.value}; "
                "update it in place (pl.matmul_acc) and do not use the old value afterwards",
                op.loc,
            )
        self.call("tmov", f"{source.name} : {source.type}", f"{target.name} : {target.type}")

    def reinterpret(self, target: _Tile, source: _Tile) -> None:
        """Let ``target`` name the memory of ``source``; the planner of ptoas does not know that it does."""
        self.call("treshape", f"{source.name} : {source.type}", f"{target.name} : {target.type}")

    def require(self, condition: Expr, message: str) -> None:
        """Check before the next call; conditions that are always true are left out."""
        self.pending.append((self.side.text(condition), message))

    def note(self, op: Op) -> None:
        """The following calls belong to this operation."""
        loc = op.loc or self.function.loc
        self.op_number = len(self.ops)
        self.ops.append(
            {
                "op": op.name,
                "function": loc.function if loc else self.function.name,
                "line": loc.line if loc else 0,
                "column": loc.column if loc else 0,
            }
        )

    def block(self, block: Block) -> None:
        for index, op in enumerate(block.ops):
            self.allocate_buffers(block, index)
            self.operation(op, block)

    def operation(self, op: Op, block: Block) -> None:
        family, _, short = op.name.partition(".")
        if family == "arith":
            self.numbers[op.result] = scalars.from_op(op, tuple(self.number(v) for v in op.operands))
        elif op.name == "scf.for":
            self.loop(op)
        elif op.name == "scf.if":
            self.branch(op)
        elif op.name == "scf.yield":
            self.copies(self.plan.at_end.get(block), op)
        elif op.name == "scf.return":
            return
        elif op.name == "tensor.dim":
            self.numbers[op.result] = self.windows[op.operands[0]].dims[op.attrs["axis"]]
        elif op.name == "tensor.view":
            rank = op.attrs["rank"]
            numbers = [self.number(v) for v in op.operands[1:]]
            self.windows[op.result] = self.windows[op.operands[0]].view(numbers[:rank], numbers[rank:])
        elif family == "tile":
            self.note(op)
            found = definition(op.name)
            special = getattr(self, f"tile_{short}", None)
            if special is not None:
                special(op)
            elif found.lowering is not None:
                self.instructions(op, found.lowering)
            else:
                raise IRError(f"not supported: {found.label} has no lowering yet", op.loc)
        else:
            raise IRError(f"not supported: {op.name} inside a kernel", op.loc)

    def copies(self, copies: Copies | None, op: Op) -> None:
        if copies is None:
            return
        moves = [(self.plan.buffer[t], self.plan.buffer[s]) for t, s in copies.moves]
        saves, sequence = ordered(moves)
        if sequence:
            self.note(op)
        kept: dict[Buffer, _Tile] = {}
        for buffer, _ in saves:
            kept[buffer] = self.allocate(Frame.of(buffer.type, self.block_line), buffer.type.valid, "s")
            self.copy(kept[buffer], self.tiles[buffer], op)
        for target, source in sequence:
            self.copy(self.tiles[target], kept.get(source, self.tiles[source]), op)

    def has_calls(self, block: Block) -> bool:
        """Whether anything of a block is printed."""
        copies = self.plan.at_end.get(block)
        if copies and any(self.plan.buffer[t] is not self.plan.buffer[s] for t, s in copies.moves):
            return True
        return any(
            (op.name.startswith("tile.") and op.name != "tile.create") or any(self.has_calls(r) for r in op.regions)
            for op in block.ops
        ) or any(op.name == "tile.create" and self.creates(op) for op in block.ops)

    def loop(self, op: Op) -> None:
        body = op.regions[0]
        start, stop, step = (self.number(v) for v in op.operands[:3])
        scalar_args = [(a, i) for a, i in zip(body.args[1:], op.operands[3:], strict=True) if not is_tile(a)]
        self.copies(self.plan.before.get(op), op)
        if not self.has_calls(body):
            if scalar_args:
                raise IRError(
                    "not supported: a loop inside a kernel that only computes numbers; "
                    "compute the number in the entry and pass it, or use a closed form",
                    op.loc,
                )
            return
        initial = [self.side.text(self.number(init)) for _, init in scalar_args]
        direct = isinstance(step, Const) and int(step.value) > 0
        first, last = start, stop
        if not direct:
            # Count the turns: ptoas prints loops that go upwards only.
            first, last = Const(0, INDEX), turns(start, stop, step)
        bounds = self.index(first, op), self.index(last, op), self.index(step if direct else Const(1, INDEX), op)
        construct = self.side.open("for")
        number = construct.number
        variable = Leaf("loop", number, INDEX, number)
        self.numbers[body.args[0]] = variable if direct else binary("add", start, binary("mul", variable, step))
        states = [self.side.state(_scalar(arg).dtype) for arg, _ in scalar_args]
        for (arg, _), state, text in zip(scalar_args, states, initial, strict=True):
            construct.before.append(f"$a{state} = {text};")
            self.numbers[arg] = Leaf("state", state, _scalar(arg).dtype, number)
        self.line(f"scf.for %i{number} = {bounds[0]} to {bounds[1]} step {bounds[2]} {{")
        self.indent += 1
        self.block(body)
        construct.end.extend(self.updates(body, states))
        self.indent -= 1
        self.line("}")
        self.side.close(construct)
        remaining = iter(states)
        for arg, result in zip(body.args[1:], op.results, strict=True):
            if not is_tile(arg):
                self.numbers[result] = Leaf("state", next(remaining), _scalar(arg).dtype, number, after=True)

    def updates(self, body: Block, states: Sequence[int]) -> list[str]:
        """Statements that give carried numbers their next values, all at once."""
        if not states:
            return []
        values = [self.side.text(self.number(v)) for v in body.ops[-1].operands if not is_tile(v)]
        saved = [f"const auto next{i} = {text};" for i, text in enumerate(values)]
        return ["{", *saved, *(f"$a{state} = next{i};" for i, state in enumerate(states)), "}"]

    def branch(self, op: Op) -> None:
        then, otherwise = op.regions
        condition = self.number(op.operands[0])
        has_then, has_else = self.has_calls(then), self.has_calls(otherwise)
        if has_then or has_else:
            if not has_then:
                condition = scalars.Apply("not", (condition,), condition.dtype)
            # Never a constant: ptoas would drop the branch, and the plan counts it.
            flag = f"%a{self.side.slot(condition, 'i1')}"
            construct = self.side.open("if")
            self.line(f"scf.if {flag} {{")
            self.region(then if has_then else otherwise)
            if has_then and has_else:
                self.line("} else {")
                self.region(otherwise)
            self.line("}")
            if not has_then or not has_else:
                self.region_numbers(otherwise if has_then else then)
            self.side.close(construct)
        else:
            self.region_numbers(then)
            self.region_numbers(otherwise)
        condition = self.number(op.operands[0])
        arms = [r.ops[-1].operands if r.ops and r.ops[-1].name == "scf.yield" else () for r in op.regions]
        for index, result in enumerate(op.results):
            if not is_tile(result):
                chosen = (condition, self.number(arms[0][index]), self.number(arms[1][index]))
                self.numbers[result] = scalars.Apply("select", chosen, _scalar(result).dtype)

    def region(self, block: Block) -> None:
        self.indent += 1
        self.block(block)
        self.indent -= 1

    def region_numbers(self, block: Block) -> None:
        """Numbers of a block that prints nothing."""
        self.block(block)

    def instructions(self, op: Op, lowering: Sequence[Instruction]) -> None:
        result = self.tile(op.result)
        names = {o.name: v for o, v in zip(definition(op.name).operands, op.operands, strict=True)}
        temporary: _Tile | None = None
        for instruction in lowering:
            tiles: dict[str, _Tile] = {}
            for name in instruction.ins:
                if name == "tmp":
                    if temporary is None:
                        raise IRError(f"internal: the lowering of {op.name} reads a temporary first", op.loc)
                    tiles[name] = temporary
                elif is_tile(names[name]):
                    tiles[name] = self.tile(names[name])
            if instruction.out == "tmp":
                temporary = self.allocate(result.frame, result.valid, "x")
                target = temporary
            else:
                target = result
            if target.frame.column and not instruction.column:
                self.as_row(op, instruction, target, tiles, names)
            else:
                self.instruction(op, instruction, target, tiles, names)

    def as_row(
        self, op: Op, instruction: Instruction, target: _Tile, tiles: dict[str, _Tile], names: dict[str, Value]
    ) -> None:
        """Work on a column as one row, in the memory of the target, whose own tile stays in use meanwhile."""
        (source,) = tiles
        if tiles[source].name != target.name:
            self.copy(target, tiles[source], op)
        row = self.allocate(target.frame.as_row(), (1, target.valid[0]), "r")
        self.reinterpret(row, target)
        self.instruction(op, instruction, row, {source: row}, names)
        self.reinterpret(target, row)

    def instruction(
        self, op: Op, instruction: Instruction, target: _Tile, tiles: dict[str, _Tile], names: dict[str, Value]
    ) -> None:
        operands: list[tuple[str, str]] = []
        for name in instruction.ins:
            if name in tiles:
                operands.append((tiles[name].name, tiles[name].type))
            else:
                element = target.frame.dtype
                dialect = instruction.scalar or element
                operands.append(self.tile_scalar(self.number(names[name]), dialect, element, op))
        if instruction.form is Form.GROUPED:
            ins = f"{', '.join(n for n, _ in operands)} : {', '.join(t for _, t in operands)}"
        elif instruction.form is Form.BARE_SCALAR:
            ins = ", ".join([f"{operands[0][0]} : {operands[0][1]}", *(n for n, _ in operands[1:])])
        else:
            ins = ", ".join(f"{n} : {t}" for n, t in operands)
        replace = {2: rounding(op, target.frame.dtype)} if instruction.op == "tcvt" else None
        self.call(
            instruction.op,
            ins,
            f"{target.name} : {target.type}",
            suffix=instruction.suffix,
            printed=instruction.call,
            name=instruction.rename,
            replace=replace,
        )

    def creates(self, op: Op) -> bool:
        """Whether a created tile is filled: ptoas cannot read what was never written. Matrix operands are loaded."""
        return _tile_of(op.result).memory in (MemorySpace.Vec, MemorySpace.Acc)

    def tile_create(self, op: Op) -> None:
        if self.creates(op):
            self.fill(op, Const(0 if _tile_of(op.result).dtype.is_integer else 0.0, _tile_of(op.result).dtype))

    def tile_full(self, op: Op) -> None:
        self.fill(op, self.number(op.operands[0]))

    def fill(self, op: Op, value: Expr) -> None:
        target = self.tile(op.result)
        element = target.frame.dtype
        name, type = self.tile_scalar(value, element, element, op)
        self.call("texpands", f"{name} : {type}", f"{target.name} : {target.type}")

    def tile_move(self, op: Op) -> None:
        target, source = self.tile(op.result), self.tile(op.operands[0])
        if target.name != source.name:
            self.call("tmov", f"{source.name} : {source.type}", f"{target.name} : {target.type}")

    def tile_load(self, op: Op) -> None:
        target = self.tile(op.result)
        view, type = self.window(op, op.operands[0], op.operands[1:], target, bool(op.attrs.get("transposed")), "reads")
        self.call("tload", f"{view} : {type}", f"{target.name} : {target.type}")

    def tile_store(self, op: Op) -> None:
        source = self.tile(op.operands[0])
        view, type = self.window(op, op.operands[1], op.operands[2:], source, False, "writes")
        self.call("tstore", f"{source.name} : {source.type}", f"{view} : {type}")

    def window(
        self, op: Op, tensor: Value, offsets: Sequence[Value], tile: _Tile, transposed: bool, verb: str
    ) -> tuple[str, str]:
        """A view of global memory that has exactly the valid sizes of a tile; checked to lie inside its tensor."""
        window = self.windows[tensor]
        label = f"{definition(op.name).label} {verb} outside of {self.tensor_params[window.param].name}"
        lengths = [self.valid_number(v) for v in tile.valid]
        for length, size in zip(lengths if verb == "reads" else (), (tile.frame.rows, tile.frame.cols), strict=False):
            self.require_between(
                Const(0, INDEX),
                length,
                Const(size, INDEX),
                f"{definition(op.name).label}: the valid shape is larger than the tile",
            )
        if transposed:
            lengths.reverse()
        starts = [self.number(v) for v in offsets]
        extents = [Const(1, INDEX)] * (len(starts) - 2) + (lengths if len(starts) > 1 else lengths[1:])
        for start, extent, dim in zip(starts, extents, window.dims, strict=True):
            self.require_between(Const(0, INDEX), start, None, label)
            self.require_between(None, binary("add", start, extent), dim, label)
        shifted = [binary("add", o, s) for o, s in zip(window.offsets, starts, strict=True)]
        base = self.base(window, transposed)
        one = self.index_constant(1)
        zero = self.index_constant(0)
        rows, cols = (self.index(self.valid_number(v), op) for v in tile.valid)
        shown = [
            v if isinstance(v, int) else full
            for v, full in zip(tile.valid, (tile.frame.rows, tile.frame.cols), strict=True)
        ]
        places = [self.index(s, op) for s in shifted]
        if transposed:
            places[-2:] = places[:-3:-1]
        places = [zero] * (5 - len(places)) + places
        name = self.fresh("w")
        element = self.pointee(window.dtype)
        type = f"!pto.tile_view<1x1x1x{shown[0]}x{shown[1]}x{element}>"
        self.line(
            f"{name} = pto.subview {base}, offsets = [{', '.join(places)}], "
            f"sizes = [{one}, {one}, {one}, {rows}, {cols}] : !pto.tensor_view<5x{element}> -> {type}"
        )
        return name, type

    def require_between(self, low: Expr | None, value: Expr, high: Expr | None, message: str) -> None:
        for op, bound in (("ge", low), ("le", high)):
            if bound is None:
                continue
            if isinstance(bound, Const) and isinstance(value, Const):
                if (value.value >= bound.value) if op == "ge" else (value.value <= bound.value):
                    continue
            elif bound == value:
                continue
            self.require(scalars.Apply(op, (value, bound), scalars.BOOL), message)

    def base(self, window: TensorWindow, transposed: bool) -> str:
        """The five-dimensional view of a whole tensor parameter, made once at the start of the function."""
        key = (window.param, transposed)
        if key in self.bases:
            return self.bases[key]
        whole = self.arguments.window(window.param)
        shape, strides = list(whole.dims), list(whole.strides)
        if transposed:
            shape[-2:] = shape[:-3:-1]
            strides[-2:] = strides[:-3:-1]
        outer = strides[0]
        shape = [Const(1, INDEX)] * (5 - len(shape)) + shape
        strides = [outer] * (5 - len(strides)) + strides
        name = f"%v{window.param}{'t' if transposed else ''}"
        shape_text = ", ".join(self.index(e) for e in shape)
        stride_text = ", ".join(self.index(e) for e in strides)
        self.base_lines.append(
            f"    {name} = pto.make_tensor_view %a{window.param}, shape = [{shape_text}] "
            f"strides = [{stride_text}] : !pto.tensor_view<5x{self.pointee(window.dtype)}>"
        )
        self.bases[key] = name
        return name

    def tile_slice(self, op: Op) -> None:
        target, source = self.tile(op.result), self.tile(op.operands[0])
        starts = [self.number(v) for v in op.operands[1:]]
        for start, length, whole in zip(starts, target.valid, source.valid, strict=True):
            end = binary("add", start, self.valid_number(length))
            self.require_between(Const(0, INDEX), start, None, "pl.slice starts before its tile")
            self.require_between(None, end, self.valid_number(whole), "pl.slice ends behind the valid part of its tile")
        row, col = (self.index(s, op) for s in starts)
        self.call("textract", f"{source.name}[{row}, {col}] : {source.type}", f"{target.name} : {target.type}")

    def tile_reshape(self, op: Op) -> None:
        target, source = self.tile(op.result), self.tile(op.operands[0])
        for type, frame in ((_tile_of(op.result), target.frame), (_tile_of(op.operands[0]), source.frame)):
            padded = frame.cols != type.shape[1] or (frame.rows != type.shape[0] and not frame.column)
            line = 1 in type.shape
            if padded and not line:
                raise IRError(
                    f"not supported: a reshape of a tile whose rows do not fill blocks of 32 bytes: {list(type.shape)}",
                    op.loc,
                )
        if target.frame.rows * target.frame.cols != source.frame.rows * source.frame.cols:
            raise IRError("not supported: a reshape between tiles that are padded differently", op.loc)
        self.copy_reinterpreted(op, target, source)

    def tile_set_validshape(self, op: Op) -> None:
        target, source = self.tile(op.result), self.tile(op.operands[0])
        for valid, size in zip(target.valid, _tile_of(op.result).shape, strict=True):
            self.require_between(
                Const(0, INDEX),
                self.valid_number(valid),
                Const(size, INDEX),
                "pl.set_validshape: a length outside the tile",
            )
        self.copy_reinterpreted(op, target, source)

    def copy_reinterpreted(self, op: Op, target: _Tile, source: _Tile) -> None:
        """Copy the source's memory, seen as the target's type. The source stays in use until the copy is complete."""
        seen = self.allocate(target.frame, target.valid, "r")
        self.reinterpret(seen, source)
        self.copy(target, seen, op)
        self.reinterpret(source, seen)

    def tile_transpose(self, op: Op) -> None:
        target, source = self.tile(op.result), self.tile(op.operands[0])
        self.call(
            "treshape",
            f"{source.name} : {source.type}",
            f"{target.name} : {target.type}",
            name="PYPTO_TRANSPOSE",
        )


def rounding(op: Op, target: DType) -> str:
    """The rounding mode of a conversion, in C++.

    Raises:
        IRError: a conversion to a floating-point type would ignore the mode.
    """
    mode = op.attrs["mode"]
    if target.is_float and mode in ("floor", "ceil", "trunc"):
        raise IRError(
            f"not supported: mode {mode} in a conversion to {target}; it applies to whole numbers only", op.loc
        )
    return f"pto::RoundMode::CAST_{_ROUND_MODES[mode]}"


def turns(start: Expr, stop: Expr, step: Expr) -> Expr:
    """How often ``range(start, stop, step)`` runs, for either sign of the step."""
    zero = Const(0, INDEX)
    up = binary("floordiv", binary("sub", binary("add", binary("sub", stop, start), step), Const(1, INDEX)), step)
    down = binary("floordiv", binary("add", binary("add", binary("sub", stop, start), step), Const(1, INDEX)), step)
    if isinstance(step, Const):
        return binary("max", zero, up if int(step.value) > 0 else down)
    positive = scalars.Apply("gt", (step, zero), scalars.BOOL)
    return binary("max", zero, scalars.Apply("select", (positive, up, down), INDEX))


_Path = tuple[tuple[Block, int], ...]


def _allocation_places(body: Block, plan: BufferPlan) -> dict[tuple[Block, int], list[Buffer]]:
    """Where each buffer is allocated: in front of its first use in the innermost block that holds all its uses.

    ptoas reuses the memory of tiles that are allocated inside a loop or branch, and of no others used there.
    """
    sites: dict[Buffer, list[_Path]] = {}

    def walk(block: Block, path: _Path) -> None:
        for index, op in enumerate(block.ops):
            here = (*path, (block, index))
            values = [*op.operands, *op.results, *(a for r in op.regions for a in r.args)]
            if op.name == "scf.yield" and block in plan.at_end:
                values += [v for move in plan.at_end[block].moves for v in move]
            if op in plan.before:
                values += [v for move in plan.before[op].moves for v in move]
            for value in values:
                if value in plan.buffer:
                    sites.setdefault(plan.buffer[value], []).append(here)
            for region in op.regions:
                walk(region, here)

    walk(body, ())
    places: dict[tuple[Block, int], list[Buffer]] = {}
    for buffer, paths in sites.items():
        depth = 0
        while all(len(p) > depth + 1 and p[depth] == paths[0][depth] for p in paths):
            depth += 1
        block = paths[0][depth][0]
        places.setdefault((block, min(p[depth][1] for p in paths)), []).append(buffer)
    return places


def _tensor(value: Value) -> TensorType:
    if not isinstance(value.type, TensorType):
        raise TypeError(f"{value.name} is no tensor")
    return value.type


def _tile_of(value: Value) -> TileType:
    if not isinstance(value.type, TileType):
        raise TypeError(f"{value.name} is no tile")
    return value.type


def _scalar(value: Value) -> ScalarType:
    if not isinstance(value.type, ScalarType):
        raise TypeError(f"{value.name} is no number")
    return value.type
