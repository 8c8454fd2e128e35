"""The verifier: what must hold for every program that code is generated from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pypto.ir.effects import tensor_written
from pypto.ir.errors import IRError, TileShapeError
from pypto.ir.footprint import check_footprint
from pypto.ir.handles import Handles
from pypto.ir.limits import capacity, shape_problem
from pypto.ir.nodes import Block, Direction, Function, FunctionKind, Op, Program, Value
from pypto.ir.ops.registry import Kind, definition
from pypto.ir.rewrite import last_op
from pypto.ir.types import BOOL, DynDim, ScalarType, TensorType, TileType, Type
from pypto.ir.values import defining_op, same_length, same_value, used_values, values_in_type


def verify(program: Program, backend_type: str = "Ascend910B") -> None:
    """Check a lowered program.

    Raises:
        IRError: naming the operation and what is wrong with it.
    """
    capacity(backend_type)
    for function in program.functions.values():
        _Verifier(program, function).run()
        if function.kind is FunctionKind.INCORE:
            _check_shapes(function)
            check_footprint(function, backend_type)


class _Verifier:
    def __init__(self, program: Program, function: Function) -> None:
        self.program = program
        self.function = function
        self.incore = function.kind is FunctionKind.INCORE
        self.visible: set[int] = set()

    def run(self) -> None:
        function = self.function
        if self.incore and function.core is None:
            raise IRError(f"{function.name} has no core type", function.loc)
        self.visible.update(id(p.value) for p in function.params)
        if not function.body.ops or last_op(function.body).name != "scf.return":
            raise IRError(f"{function.name} does not end with scf.return", function.loc)
        self.block(function.body)
        self.check_outputs()

    def check_outputs(self) -> None:
        """Something must be stored into every output, or its caller reads what was there before."""
        if self.function.extern is not None:
            return
        written: set[int] = set()
        handles = Handles(self.function.body)
        for op in self.function.body.walk():
            stored: list[Value] = []
            target = tensor_written(op)
            if target is not None:
                stored = [target]
            elif op.name == "func.call":
                callee = self.program.functions[op.attrs["callee"]]
                pairs = zip(callee.params, op.operands, strict=True)
                stored = [v for p, v in pairs if p.direction is not Direction.In]
            written.update(id(root) for value in stored for root in handles.roots(value))
        for param in self.function.params:
            if param.direction is Direction.Out and id(param.value) not in written:
                raise IRError(
                    f"{param.name} is an output of {self.function.name}, but nothing is stored into it; store into it, "
                    "or do not annotate it with pl.Out",
                    self.function.loc,
                )

    def block(self, block: Block) -> None:
        outer = set(self.visible)
        for arg in block.args:
            self.check_type(arg, None)
            self.visible.add(id(arg))
        for position, op in enumerate(block.ops):
            ends = op.name in ("scf.yield", "scf.return")
            if ends != (position == len(block.ops) - 1):
                raise IRError(f"{op.name} stands in the wrong place", op.loc)
            self.op(op)
        self.visible = outer

    def op(self, op: Op) -> None:
        known = definition(op.name)
        if not (known.incore if self.incore else known.entry):
            where = "a function that runs on a core" if self.incore else "an entry"
            raise IRError(f"{known.label} cannot stand in {where}", op.loc)
        for value in used_values(op):
            if id(value) not in self.visible:
                raise IRError(f"{known.label} uses {value.name}, which is not defined there", op.loc)
        if len(op.regions) != known.regions:
            raise IRError(f"{known.label} needs {known.regions} regions, has {len(op.regions)}", op.loc)
        self.check_memories(op)
        try:
            types = known.check_call(op.operands, op.attrs, [r.type for r in op.results])
        except IRError as error:
            raise IRError(error.message, error.loc or op.loc) from None
        self.check_results(op, types)
        self.check_written(op)
        for region in op.regions:
            self.block(region)
        self.check_regions(op)
        if op.name == "func.call":
            self.check_call(op)
        for result in op.results:
            self.check_type(result, op)
            self.visible.add(id(result))

    def check_memories(self, op: Op) -> None:
        known = definition(op.name)
        for index, value in enumerate(op.operands):
            operand = known.operand(index)
            if operand.kind is not Kind.TILE or not operand.memory or not isinstance(value.type, TileType):
                continue
            if value.type.memory not in operand.memory:
                raise IRError(f"{known.label}: {operand.misplaced(value.type.memory)}", op.loc)

    def check_results(self, op: Op, types: Sequence[Type]) -> None:
        if len(types) != len(op.results) or not all(
            equal_types(t, r.type) for t, r in zip(types, op.results, strict=True)
        ):
            shown = ", ".join(str(r.type) for r in op.results)
            raise IRError(f"{op.name} cannot result in {shown or 'nothing'}", op.loc)

    def check_written(self, op: Op) -> None:
        """A tile that was only created has no values to read."""
        if not op.name.startswith("tile."):
            return
        for position, value in enumerate(op.operands):
            source = defining_op(value)
            if position == definition(op.name).inplace and op.name != "tile.matmul_acc":
                continue  # what is not changed may have no values
            if source is not None and source.name == "tile.create":
                raise IRError(
                    f"{definition(op.name).label} reads {value.name}, which has no values yet; use pl.full", op.loc
                )

    def check_regions(self, op: Op) -> None:
        if op.name == "scf.for":
            (body,) = op.regions
            groups = [[a.type for a in body.args[1:]], [v.type for v in last_op(body).operands]]
        elif op.name == "scf.if":
            groups = [[v.type for v in last_op(region).operands] for region in op.regions]
        elif op.name == "scf.while":
            head, body = op.regions
            groups = [[a.type for a in head.args], [a.type for a in body.args]]
            groups.append([v.type for v in last_op(body).operands])
            if [v.type for v in last_op(head).operands] != [ScalarType(BOOL)]:
                raise IRError("the first region of scf.while must give a condition", op.loc)
        else:
            return
        for types in groups:
            if len(types) != len(op.results) or not all(
                _becomes(t, r.type) for t, r in zip(types, op.results, strict=True)
            ):
                raise IRError(f"the values that {op.name} hands on do not have its result types", op.loc)

    def check_call(self, op: Op) -> None:
        callee = self.program.functions.get(op.attrs["callee"])
        if callee is None or callee.kind is not FunctionKind.INCORE:
            raise IRError(f"there is no incore function {op.attrs['callee']}", op.loc)
        if len(callee.params) != len(op.operands):
            raise IRError(f"{callee.name} takes {len(callee.params)} arguments, got {len(op.operands)}", op.loc)
        directions = {id(p.value): p.direction for p in self.function.params}
        for param, value in zip(callee.params, op.operands, strict=True):
            if not _fits(value.type, param.type):
                raise IRError(f"{callee.name}: {param.name} is {param.type}, but gets {value.type}", op.loc)
            if param.direction is not Direction.In and directions.get(id(value)) is Direction.In:
                raise IRError(f"{callee.name} writes {param.name}, but {value.name} is an input of the entry", op.loc)

    def check_type(self, value: Value, op: Op | None) -> None:
        for part in values_in_type(value.type):
            if id(part) not in self.visible:
                loc = op.loc if op is not None else self.function.loc
                raise IRError(
                    f"the size {part.name} of {value.name} is not known where {value.name} is used; compute it before",
                    loc,
                )


def equal_types(a: Type, b: Type) -> bool:
    """Whether two types are equal, run-time sizes compared by what they certainly are."""
    if isinstance(a, TileType) and isinstance(b, TileType):
        return (a.shape, a.dtype, a.memory) == (b.shape, b.dtype, b.memory) and all(
            same_value(x, y) for x, y in zip(a.valid, b.valid, strict=True)
        )
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return (a.dtype, a.is_view, a.rank) == (b.dtype, b.is_view, b.rank) and all(map(same_length, a.shape, b.shape))
    return a == b


def _becomes(a: Type, b: Type) -> bool:
    """Whether a value can be handed on as a result; a tensor as a view."""
    if isinstance(a, TensorType) and isinstance(b, TensorType) and b.is_view:
        a = replace(a, is_view=True)
    return equal_types(a, b)


def _fits(argument: Type, parameter: Type) -> bool:
    """Whether an argument can be passed; a dynamic dimension takes any size."""
    if isinstance(argument, ScalarType) or isinstance(parameter, ScalarType):
        return argument == parameter
    if not isinstance(argument, TensorType) or not isinstance(parameter, TensorType):
        return False
    return (
        argument.dtype == parameter.dtype
        and argument.rank == parameter.rank
        and all(isinstance(p, DynDim) or a == p for a, p in zip(argument.shape, parameter.shape, strict=True))
    )


def _check_shapes(function: Function) -> None:
    for op in function.body.walk():
        for result in op.results:
            if isinstance(result.type, TileType):
                problem = shape_problem(result.type)
                if problem is not None:
                    raise TileShapeError(problem, op.loc)
