"""The entry as C++ that submits tasks: loops, branches and numbers run on the host."""

from __future__ import annotations

from collections.abc import Mapping

from pypto.codegen import scalars
from pypto.codegen.tensors import TaskArguments
from pypto.ir.effects import tensor_read, tensor_written
from pypto.ir.errors import IRError
from pypto.ir.handles import Handles
from pypto.ir.limits import MOST_BLOCKS
from pypto.ir.nodes import Block, Direction, Function, Op, Param, Value
from pypto.ir.ops.arith import FUNCTIONS
from pypto.ir.rewrite import captured
from pypto.ir.touched import steps, touched_parts
from pypto.ir.types import TASKS, ScalarType, TensorType
from pypto.ir.values import constant_of

_DIRECTIONS = {Direction.In: "in", Direction.Out: "out", Direction.InOut: "inout"}


def print_orchestration(function: Function, kernels: Mapping[str, tuple[int, Function, TaskArguments]]) -> str:
    """Source of the orchestration object.

    Args:
        function: the entry.
        kernels: by name: function id, incore function and its tasks' arguments.

    Raises:
        IRError: the entry uses something that only kernels may.
    """
    return _Printer(function, kernels).print()


def _only_begins(op: Op, value: Value) -> bool:
    """Whether an operation is a loop that needs a value only as what it begins with."""
    if op.name not in ("scf.for", "scf.while") or all(operand is not value for operand in op.operands):
        return False
    return all(inner is not value for region in op.regions for inner in captured(region))


def _only_added_to(function: Function) -> set[int]:
    """Parameters that a kernel does nothing to but adding atomically, by identity."""
    handles = Handles(function.body)
    added: set[int] = set()
    other: set[int] = set()
    for op in function.body.walk():
        adds = op.attrs.get("atomic", "none") != "none"
        for tensor in (tensor_read(op), tensor_written(op)):
            if tensor is not None:
                (added if adds else other).update(id(root) for root in handles.roots(tensor))
    return added - other


class _Printer:
    def __init__(self, function: Function, kernels: Mapping[str, tuple[int, Function, TaskArguments]]) -> None:
        self.function = function
        self.kernels = kernels
        self.added = {name: _only_added_to(callee) for name, (_, callee, _) in kernels.items()}
        self.parts = {name: touched_parts(callee) for name, (_, callee, _) in kernels.items()}
        self.handles = Handles(function.body)
        self.parameters = {param.value for param in function.params}
        self.inputs = {param.value for param in function.params if param.direction is Direction.In}
        # Handles that are not released before their block ends.
        self.kept = {result for op in function.body.walk() for result in op.results}
        # Of each loop: handles that nobody needs once its own variables have them.
        self.replaced: dict[Op, list[Value]] = {}
        self.names: dict[Value, str] = {}
        self.counter = 0
        self.lines: list[str] = []
        self.indent = 1

    def print(self) -> str:
        for index, param in enumerate(self.function.params):
            self.parameter(index, param)
        self.block(self.function.body, ())
        functions = any(op.name.removeprefix("arith.") in FUNCTIONS for op in self.function.body.walk())
        lines = [
            '#include "pypto/orchestration.h"',
            '#include "pypto/scalar.h"',
            *(['#include "pypto/functions.h"'] if functions else []),
            "",
            "static void orchestrate(pypto::Orchestrator& o) {",
            *self.lines,
            "}",
            "",
            f"PYPTO_ORCHESTRATION(orchestrate, {len(self.function.params)})",
            "",
        ]
        return "\n".join(lines)

    def line(self, text: str) -> None:
        self.lines.append("  " * self.indent + text)

    def parameter(self, index: int, param: Param) -> None:
        name = f"p{index}"
        self.names[param.value] = name
        if isinstance(param.type, TensorType):
            self.line(f"[[maybe_unused]] const pypto::Tensor {name} = o.tensor({index});")
        elif isinstance(param.type, ScalarType):
            type = scalars.cpp_type(param.type.dtype)
            self.line(f"[[maybe_unused]] const {type} {name} = o.scalar<{type}>({index});")
        else:
            raise IRError(f"the parameter {param.name} is neither a tensor nor a number", self.function.loc)

    def fresh(self, prefix: str) -> str:
        self.counter += 1
        return f"{prefix}{self.counter}"

    def text(self, value: Value, op: Op) -> str:
        if value not in self.names:
            raise IRError(f"internal: {value.name} is used before it is computed", op.loc)
        return self.names[value]

    def block(self, block: Block, targets: tuple[str, ...]) -> None:
        released = self.released(block)
        self.kept.difference_update(v for values in released.values() for v in values)
        for index, op in enumerate(block.ops):
            # A loop that replaces what it begins with lets go of it before its first turn.
            self.replaced[op] = [v for v in released.get(index, ()) if _only_begins(op, v)]
            self.operation(op, targets)
            for value in released.get(index, ()):
                if value not in self.replaced[op]:
                    self.line(f"{self.text(value, op)}.release();")

    def released(self, block: Block) -> dict[int, list[Value]]:
        """Handles of workspaces that a block makes and that other tasks follow after, by position of their last use."""
        last: dict[Value, int] = {}
        for index, op in enumerate(block.ops):
            for value in captured(Block([], [op])):
                if value in last:
                    last[value] = index
            for result in op.results:
                if isinstance(result.type, TensorType) and not self.parameters.issuperset(self.handles.roots(result)):
                    last[result] = index
        found: dict[int, list[Value]] = {}
        work = [index for index, op in enumerate(block.ops) if op.regions or op.name in ("func.call", "tensor.create")]
        for value, index in last.items():
            if work and (work[-1] > index or (work[-1] == index and _only_begins(block.ops[index], value))):
                found.setdefault(index, []).append(value)
        return found

    def handle(self, op: Op, text: str) -> None:
        """A new variable for the tensor that an operation gives."""
        name = self.fresh("t")
        # Whoever is released early is not constant.
        self.line(f"{'const ' if op.result in self.kept else ''}pypto::Tensor {name} = {text};")
        self.names[op.result] = name

    def operation(self, op: Op, targets: tuple[str, ...]) -> None:
        if op.name.startswith("arith."):
            self.number(op)
        elif op.name == "tensor.dim":
            name = self.fresh("n")
            self.line(f"const int64_t {name} = {self.text(op.operands[0], op)}.dim({op.attrs['axis']});")
            self.names[op.result] = name
        elif op.name == "tensor.create":
            type = op.result.type
            dtype = type.dtype.name if isinstance(type, TensorType) else ""
            dims = ", ".join(self.text(v, op) for v in op.operands)
            self.handle(op, f"o.create(pypto::DType::{dtype}, {{{dims}}})")
        elif op.name == "tensor.view":
            rank = op.attrs["rank"]
            numbers = [self.text(v, op) for v in op.operands[1:]]
            dropped = ", ".join(map(str, op.attrs.get("dropped", ())))
            self.handle(
                op,
                f"{self.text(op.operands[0], op)}.view({{{', '.join(numbers[:rank])}}}, "
                f"{{{', '.join(numbers[rank:])}}})"
                f"{f'.without({{{dropped}}})' if dropped else ''}",
            )
        elif op.name == "tensor.untracked":
            self.handle(op, f"{self.text(op.operands[0], op)}.untracked()")
        elif op.name == "task.enter":
            after = ", ".join(self.text(v, op) for v in op.operands)
            order = op.attrs["order"]
            self.line(f"o.enter({{{after}}}{'' if order == 'data' else f', pypto::Orchestrator::Order::{order}'});")
        elif op.name == "task.when":
            condition = f"pypto::Comparison::{op.attrs['pred']}, {op.attrs['number']}"
            self.line(f"o.when({self.text(op.operands[0], op)}, {condition});")
        elif op.name == "task.leave":
            name = self.fresh("k")
            self.line(f"[[maybe_unused]] const pypto::Tasks {name} = o.leave();")
            self.names[op.result] = name
        elif op.name == "tensor.reshape":
            sizes = ", ".join(self.text(v, op) for v in op.operands[1:])
            self.handle(op, f"{self.text(op.operands[0], op)}.reshaped({{{sizes}}})")
        elif op.name == "tensor.read":
            cpp = scalars.cpp_type(op.result.type.dtype) if isinstance(op.result.type, ScalarType) else ""
            indices = ", ".join(self.text(v, op) for v in op.operands[1:])
            name = self.fresh("n")
            tensor = self.text(op.operands[0], op)
            if self.inputs.issuperset(self.handles.roots(op.operands[0])):
                self.line(f"const {cpp} {name} = {tensor}.element<{cpp}>({{{indices}}});")
            else:
                self.line(f"const {cpp} {name} = o.element<{cpp}>({tensor}, {{{indices}}});")
            self.names[op.result] = name
        elif op.name == "func.call":
            self.submit(op)
        elif op.name == "scf.for":
            self.loop(op)
        elif op.name == "scf.while":
            self.repeat(op)
        elif op.name == "scf.if":
            self.branch(op)
        elif op.name == "scf.yield":
            self.assign(targets, [self.text(v, op) for v in op.operands])
        elif op.name != "scf.return":
            raise IRError(f"not supported: {op.name} outside of a kernel; put it into `with pl.at(...)`", op.loc)

    def number(self, op: Op) -> None:
        type = op.result.type
        if op.name == "arith.constant" and isinstance(type, ScalarType):
            self.names[op.result] = scalars.literal(scalars.Const(op.attrs["value"], type.dtype))
            return
        # Operands are variables or literals by now, and have the text that they have.
        texts = {i: self.text(v, op) for i, v in enumerate(op.operands)}
        leaves = tuple(
            scalars.Leaf("arg", i, v.type.dtype) for i, v in enumerate(op.operands) if isinstance(v.type, ScalarType)
        )
        expr = scalars.from_op(op, leaves)
        if op.name in ("arith.floordiv", "arith.mod") and constant_of(op.operands[1]) is None:
            self.line(f'o.require({texts[1]} != 0, "division by zero");')
        name = self.fresh("n")
        self.line(
            f"const {scalars.cpp_type(expr.dtype)} {name} = {scalars.text(expr, lambda leaf: texts[leaf.index])};"
        )
        self.names[op.result] = name

    def assign(self, targets: tuple[str, ...], values: list[str]) -> None:
        if len(targets) == 1:
            self.line(f"{targets[0]} = {values[0]};")
        elif targets:
            # All at once: a new value may be computed from old ones.
            saved = [self.fresh("next") for _ in targets]
            for name, value in zip(saved, values, strict=True):
                self.line(f"const auto {name} = {value};")
            for target, name in zip(targets, saved, strict=True):
                self.line(f"{target} = {name};")

    def variables(self, op: Op, initial: list[str] | None) -> tuple[str, ...]:
        names: list[str] = []
        for index, result in enumerate(op.results):
            start = initial[index] if initial else ""
            if isinstance(result.type, ScalarType):
                dtype = result.type.dtype
                name, type = self.fresh("n"), "pypto::Tasks" if dtype == TASKS else scalars.cpp_type(dtype)
            elif isinstance(result.type, TensorType):
                name, type = self.fresh("t"), "pypto::Tensor"
            else:
                raise IRError(f"not supported: {result.name} is carried outside of a kernel", op.loc)
            self.line(f"{type} {name}{{{start}}};")
            self.names[result] = name
            names.append(name)
        return tuple(names)

    def begin(self, op: Op, inits: list[Value]) -> tuple[str, ...]:
        """Variables for what a loop carries."""
        carried = self.variables(op, [self.text(v, op) for v in inits])
        for value in self.replaced.get(op, ()):
            self.line(f"{self.text(value, op)}.release();")
        return carried

    def loop(self, op: Op) -> None:
        start, stop, step = (self.text(v, op) for v in op.operands[:3])
        carried = self.begin(op, op.operands[3:])
        body = op.regions[0]
        variable = self.fresh("i")
        self.names[body.args[0]] = variable
        for arg, name in zip(body.args[1:], carried, strict=True):
            self.names[arg] = name
        if op.attrs["kind"] == "blocks" and constant_of(op.operands[1]) is None:
            self.line(f'o.require({stop} >= 1 && {stop} <= {MOST_BLOCKS}, "core_num must be 1 to {MOST_BLOCKS}");')
        if constant_of(op.operands[2]) is None:
            self.line(f'o.require({step} != 0, "a range has the step 0");')
        known = constant_of(op.operands[2])
        up, down = f"{variable} < {stop}", f"{variable} > {stop}"
        goes_on = f"({step} > 0 ? {up} : {down})" if known is None else up if known > 0 else down
        if op.attrs["kind"] == "while":
            goes_on = f"{carried[-1]} && {goes_on}"
        self.line(f"for (int64_t {variable} = {start}; {goes_on}; {variable} += {step}) {{")
        self.indent += 1
        if op.attrs["kind"] == "blocks":
            self.line("o.block();")
        self.block(body, carried)
        self.indent -= 1
        self.line("}")

    def repeat(self, op: Op) -> None:
        carried = self.begin(op, op.operands)
        head, body = op.regions
        for region in op.regions:
            for arg, name in zip(region.args, carried, strict=True):
                self.names[arg] = name
        self.line("for (;;) {")
        self.indent += 1
        for inner in head.ops[:-1]:
            self.operation(inner, ())
        self.line(f"if (!{self.text(head.ops[-1].operands[0], op)}) break;")
        self.block(body, carried)
        self.indent -= 1
        self.line("}")

    def branch(self, op: Op) -> None:
        results = self.variables(op, None)
        self.line(f"if ({self.text(op.operands[0], op)}) {{")
        self.indent += 1
        self.block(op.regions[0], results)
        self.indent -= 1
        if any(o.name != "scf.yield" or o.operands for o in op.regions[1].ops):
            self.line("} else {")
            self.indent += 1
            self.block(op.regions[1], results)
            self.indent -= 1
        self.line("}")

    def submit(self, op: Op) -> None:
        number, callee, arguments = self.kernels[op.attrs["callee"]]
        text = f"o.submit({number})"
        for index, (param, value) in enumerate(zip(callee.params, op.operands, strict=True)):
            name = self.text(value, op)
            if isinstance(param.type, TensorType):
                added = id(param.value) in self.added[callee.name]
                part = self.part(op, callee, index)
                text += f".{'add' if added else _DIRECTIONS[param.direction]}({name}{part})"
            elif isinstance(param.type, ScalarType) and param.type.dtype.is_float:
                text += f".f32({name})"
            else:
                text += f".i64({name})"
        for extra in arguments.extras:
            text += f".i64({self.text(op.operands[extra.param], op)}.{extra.what}({extra.axis}))"
        self.line(f"{text}.at({op.loc.line if op.loc else 0});")

    def part(self, op: Op, callee: Function, index: int) -> str:
        """A further argument that says which part of a tensor the task touches, when that is not all of it."""
        part = self.parts[callee.name].get(index)
        # No task waits for what nobody writes.
        if part is None or self.inputs.issuperset(self.handles.roots(op.operands[index])):
            return ""
        given = {p.value: v for p, v in zip(callee.params, op.operands, strict=True) if isinstance(p.type, ScalarType)}
        self.names.update((inner, self.text(outer, op)) for inner, outer in given.items())
        starts: list[str] = []
        for extent in part:
            terms: list[str] = []
            for value in extent.start if extent is not None else ():
                for step in steps(value, set(given)) or ():
                    self.number(step)
                terms.append(f"static_cast<int64_t>({self.names[value]})")
            if extent is not None and (extent.shift or not terms):
                terms.append(str(extent.shift))
            starts.append(" + ".join(terms) or "0")
        sizes = ", ".join("-1" if extent is None else str(extent.size) for extent in part)
        return f", {self.text(op.operands[index], op)}.part({{{', '.join(starts)}}}, {{{sizes}}})"
