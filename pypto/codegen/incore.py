"""One incore function as `.pto` text, with the plan of what the repair step adds to ptoas' output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pypto.codegen import scalars
from pypto.codegen.buffers import Buffer, BufferPlan, Copies, is_tile, ordered, plan_buffers
from pypto.codegen.divisions import may_be_zero
from pypto.codegen.scalars import Apply, Const, Expr, Leaf, binary
from pypto.codegen.sidework import Slot, leaves
from pypto.codegen.tensors import TaskArguments, task_arguments
from pypto.codegen.text import KernelText, Tile
from pypto.codegen.tile_ops import TileOps, Values, fills
from pypto.codegen.tiles import CPP_NAMES, Frame, element_name, vector_line
from pypto.ir.errors import IRError
from pypto.ir.nodes import Block, CoreType, Function, Op, Value
from pypto.ir.ops.arith import FUNCTIONS
from pypto.ir.types import BF16, BOOL, INDEX, DType, ScalarType, TensorType
from pypto.ir.values import defining_op

# What ptoas calls a backend, by one of its chips; the default is A2/A3, also for a name that it does not know.
DEVICE_SPECS: dict[str, str | None] = {"Ascend910B": None, "Ascend950": "Ascend910_9599"}


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
        templates: which of ``ops`` call function templates of ours, which only the simulator has.
        functions: which of ``ops`` are functions of numbers, which devices have outside of their cores only.
    """

    pto: str
    symbol: str
    slots: tuple[Slot, ...]
    repairs: dict[str, Any]
    ops: list[dict[str, Any]]
    arguments: TaskArguments
    templates: tuple[int, ...] = ()
    functions: tuple[int, ...] = ()


def print_kernel(function: Function, backend_type: str = "Ascend910B", memory_planner: str = "PYPTO") -> Kernel:
    """Print an incore function that has passed the verifier for this backend.

    Args:
        memory_planner: as `pypto.codegen.buffers.plan_buffers` takes it.

    Raises:
        IRError: the function uses something that cannot be lowered; the error has the place in the source.
    """
    return _Printer(function, backend_type, memory_planner).print()


class _Printer:
    def __init__(self, function: Function, backend_type: str, memory_planner: str) -> None:
        self.function = function
        self.backend_type = backend_type
        self.arguments = task_arguments(function)
        tensors = [p for p in function.params if isinstance(p.type, TensorType)]
        self.dtypes = [window.dtype for window in self.arguments.windows]
        self.plan: BufferPlan = plan_buffers(function, memory_planner)
        self.block_line = vector_line(function)
        self.places = _allocation_places(function.body, self.plan)
        self.text = KernelText(len(tensors))
        self.values = Values(self.plan, self.arguments, tuple(p.name for p in tensors))
        self.values.numbers.update((param.value, expr) for param, expr in self.arguments.scalars)
        self.values.windows.update((p.value, w) for p, w in zip(tensors, self.arguments.windows, strict=True))
        self.tile_ops = TileOps(self.text, self.values)

    def print(self) -> Kernel:
        symbol = f"{self.function.name}_kernel"
        names = [element_name(dtype, self.function.loc) for dtype in self.dtypes]
        self.block(self.function.body)
        pto = self.text.print(symbol, names, DEVICE_SPECS[self.backend_type])
        tiles = self.text.tile_elements()
        repairs: dict[str, Any] = {
            "symbol": symbol,
            "arguments": [*(f"{CPP_NAMES[t]}*" for t in self.dtypes), *(slot.cpp for slot in self.text.side.slots)],
            "tiles": tiles,
            # GCC 12 has no such type: such kernels are compiled with a stand-in.
            "bfloat16": BF16 in self.dtypes or CPP_NAMES[BF16] in tiles,
            "constructs": [c.encoded() for c in self.text.side.constructs],
            "calls": self.text.calls,
        }
        slots = tuple(self.text.side.slots)
        only_simulated = tuple(self.text.templates), tuple(self.text.functions)
        return Kernel(pto, symbol, slots, repairs, self.text.ops, self.arguments, *only_simulated)

    def number(self, value: Value) -> Expr:
        return self.values.numbers[value]

    def note(self, op: Op) -> None:
        self.text.note(op, self.place)

    @property
    def place(self) -> str:
        """The name of the function as the source has it."""
        return self.function.loc.function if self.function.loc else self.function.name

    def allocate(self, buffer: Buffer, prefix: str) -> Tile:
        type, place = buffer.type, buffer.loc
        remark = f"{buffer.name} ({place.function}, line {place.line})" if place else buffer.name
        return self.text.allocate(Frame.of(type, self.block_line), type.valid, self.values.numbers, prefix, remark)

    def block(self, block: Block) -> None:
        for index, op in enumerate(block.ops):
            for buffer in self.places.get((block, index), ()):
                self.values.tiles[buffer] = self.allocate(buffer, "t")
            self.operation(op, block)

    def operation(self, op: Op, block: Block) -> None:
        windows = self.values.windows
        if op.name.startswith("arith."):
            self.arithmetic(op)
        elif op.name.startswith("tile."):
            self.note(op)
            self.tile_ops.write(op)
        elif op.name == "scf.for":
            self.loop(op)
        elif op.name == "scf.if":
            self.branch(op)
        elif op.name == "scf.yield":
            self.copies(self.plan.at_end.get(block), op)
        elif op.name == "tensor.dim":
            self.values.numbers[op.result] = windows[op.operands[0]].length(op.attrs["axis"])
        elif op.name == "tensor.read":
            self.note(op)
            self.tile_ops.read_tensor(op, self.function.core is CoreType.AIC)
        elif op.name == "tensor.view":
            rank = op.attrs["rank"]
            numbers = [self.number(v) for v in op.operands[1:]]
            windows[op.result] = windows[op.operands[0]].view(
                numbers[:rank], numbers[rank:], op.attrs.get("dropped", ())
            )
        elif op.name != "scf.return":
            raise IRError(f"not supported: {op.name} inside a kernel", op.loc)

    def arithmetic(self, op: Op) -> None:
        operands = tuple(self.number(v) for v in op.operands)
        number = self.values.numbers[op.result] = scalars.from_op(op, operands)
        if op.name.removeprefix("arith.") in FUNCTIONS:
            self.text.function(op, self.place)
        divides = op.name in ("arith.floordiv", "arith.mod") and may_be_zero(operands[1])
        # The lengths of tensors are positive.
        divisor = defining_op(op.operands[1]) if divides else None
        if divides and (divisor is None or divisor.name != "tensor.dim"):
            self.text.divide(op, number, self.place)

    def copies(self, copies: Copies | None, op: Op) -> None:
        if copies is None:
            return
        saves, sequence = ordered([(self.plan.buffer[t], self.plan.buffer[s]) for t, s in copies.moves])
        if sequence:
            self.note(op)
        saved: dict[Buffer, Tile] = {}
        for buffer in saves:
            saved[buffer] = self.allocate(buffer, "s")
            self.text.copy(saved[buffer], self.values.tiles[buffer], op)
        for target, source in sequence:
            self.text.copy(self.values.tiles[target], saved.get(source, self.values.tiles[source]), op)

    def has_calls(self, block: Block) -> bool:
        """Whether anything of a block is printed."""
        copies = self.plan.at_end.get(block)
        if copies and any(self.plan.buffer[t] is not self.plan.buffer[s] for t, s in copies.moves):
            return True
        return any(
            (op.name.startswith("tile.") and (op.name != "tile.create" or fills(op)))
            or op.name == "tensor.read"
            or (op.name == "scf.for" and any(not is_tile(r) for r in op.results))
            or any(self.has_calls(region) for region in op.regions)
            for op in block.ops
        )

    def refuse_tensors(self, op: Op) -> None:
        for result in op.results:
            if isinstance(result.type, TensorType):
                raise IRError(
                    f"not supported: {result.name} names different tensors inside a kernel; "
                    "choose the tensor in the entry, or compute the offsets instead",
                    op.loc,
                )

    def loop(self, op: Op) -> None:
        self.refuse_tensors(op)
        body = op.regions[0]
        start, stop, step = (self.number(v) for v in op.operands[:3])
        carried = [(a, i) for a, i in zip(body.args[1:], op.operands[3:], strict=True) if not is_tile(a)]
        self.copies(self.plan.before.get(op), op)
        silent = not self.has_calls(body)
        if silent and not carried:
            return
        side = self.text.side
        initial = [side.text(self.number(init)) for _, init in carried]
        # ptoas prints loops that go upwards, and none that starts at another loop's variable.
        nested = any(leaf.kind == "loop" for leaf in leaves(start))
        direct = isinstance(step, Const) and int(step.value) > 0 and not nested
        first, last = start, stop
        if not direct:  # Count the turns.
            first, last = Const(0, INDEX), turns(start, stop, step)
        bounds = [self.text.index(e, op) for e in (first, last, step if direct else Const(1, INDEX))]
        if not isinstance(step, Const):
            self.text.must(op, Apply("ne", (step, Const(0, INDEX)), BOOL), "a range has the step 0", self.place)
        checks = self.text.checks()
        construct = side.open("for")
        construct.before.extend(checks)
        number = construct.number
        variable = Leaf("loop", number, INDEX, number)
        self.values.numbers[body.args[0]] = variable if direct else binary("add", start, binary("mul", variable, step))
        states = [side.state(_dtype(arg)) for arg, _ in carried]
        for (arg, _), state, text in zip(carried, states, initial, strict=True):
            construct.before.append(f"$a{state} = {text};")
            self.values.numbers[arg] = Leaf("state", state, _dtype(arg), number)
        if op.attrs["kind"] == "while":
            construct.begin.append(f"if (!$a{states[-1]}) break;")
        self.text.line(f"scf.for %i{number} = {bounds[0]} to {bounds[1]} step {bounds[2]} {{")
        self.text.indent += 1
        if silent:
            # ptoas prints no loop without a call.
            self.note(op)
            self.tile_ops.nothing(self.function.core is CoreType.AIC)
        self.block(body)
        construct.end.extend(self.updates(body, states))
        self.text.indent -= 1
        self.text.line("}")
        side.close(construct)
        remaining = iter(states)
        for arg, result in zip(body.args[1:], op.results, strict=True):
            if not is_tile(arg):
                self.values.numbers[result] = Leaf("state", next(remaining), _dtype(arg), number, after=True)

    def updates(self, body: Block, states: Sequence[int]) -> list[str]:
        """Statements that give carried numbers their next values, all at once."""
        if not states:
            return []
        values = [self.text.side.text(self.number(v)) for v in body.ops[-1].operands if not is_tile(v)]
        saved = [f"const auto next{i} = {text};" for i, text in enumerate(values)]
        return ["{", *self.text.checks(), *saved, *(f"$a{state} = next{i};" for i, state in enumerate(states)), "}"]

    def branch(self, op: Op) -> None:
        self.refuse_tensors(op)
        condition = self.number(op.operands[0])
        printed = [r for r in op.regions if self.has_calls(r)]
        silent = [r for r in op.regions if r not in printed]
        for region in silent:
            self.block(region)
        if printed:
            flag = condition if printed[0] is op.regions[0] else Apply("not", (condition,), BOOL)
            # Never a constant: ptoas would drop the branch, and the plan counts it.
            name = f"%a{self.text.side.slot(flag, 'i1')}"
            checks = self.text.checks()
            construct = self.text.side.open("if")
            construct.before.extend(checks)
            self.text.line(f"scf.if {name} {{")
            for index, region in enumerate(printed):
                if index:
                    self.text.line("} else {")
                self.text.indent += 1
                self.block(region)
                self.text.indent -= 1
            self.text.line("}")
            self.text.side.close(construct)
        arms = [r.ops[-1].operands if r.ops and r.ops[-1].name == "scf.yield" else () for r in op.regions]
        for index, result in enumerate(op.results):
            if not is_tile(result):
                chosen = (condition, self.number(arms[0][index]), self.number(arms[1][index]))
                self.values.numbers[result] = Apply("select", chosen, _dtype(result))


def turns(start: Expr, stop: Expr, step: Expr) -> Expr:
    """How often ``range(start, stop, step)`` runs, for either sign of the step."""
    zero, one = Const(0, INDEX), Const(1, INDEX)
    reach = binary("add", binary("sub", stop, start), step)
    up = binary("floordiv", binary("sub", reach, one), step)
    down = binary("floordiv", binary("add", reach, one), step)
    if isinstance(step, Const):
        return binary("max", zero, up if int(step.value) > 0 else down)
    positive = Apply("gt", (step, zero), BOOL)
    return binary("max", zero, Apply("select", (positive, up, down), INDEX))


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
        # Either the paths part here, or one of them ends; all pass through this block.
        block = paths[0][depth][0]
        if any(p[depth][0] is not block for p in paths):
            depth -= 1
            block = paths[0][depth][0]
        places.setdefault((block, min(p[depth][1] for p in paths)), []).append(buffer)
    return places


def _dtype(value: Value) -> DType:
    if not isinstance(value.type, ScalarType):
        raise TypeError(f"{value.name} is no number")
    return value.type.dtype
