"""Work on whole tensors becomes loops of the entry around scopes that work on tiles.

Operations that compute row by row are fused: one scope loads a block of rows, computes all of them, and stores what is
needed later. Others (products, reductions of columns, transpositions; gathers and sorting: `indexed`) become loops of
their own. What one of these hands to the next stands in a workspace.
"""

from __future__ import annotations

from collections.abc import Iterator

from pypto.ir.builder import Builder
from pypto.ir.handles import Handles
from pypto.ir.nodes import Block, Function, Op, Program, Value
from pypto.ir.passes.blocked import Blocked
from pypto.ir.passes.blocking import extent
from pypto.ir.passes.row_groups import RowGroup
from pypto.ir.passes.shapes import is_row_local, tensor_type
from pypto.ir.values import used_values


def lower_tensors(program: Program, backend_type: str) -> None:
    """Replace all work on whole tensors in the entry.

    Raises:
        IRError: something cannot be done block by block.
    """
    _Lowering(program.entry_function, backend_type).block(program.entry_function.body)


# Work on whole tensors is not moved past these.
_ENDS = frozenset(
    {
        *("func.call", "func.scope", "scf.yield", "scf.return", "tensor.read"),
        *("task.enter", "task.leave", "task.when"),
    }
)


class _Lowering:
    def __init__(self, function: Function, backend_type: str) -> None:
        self.function = function
        self.backend_type = backend_type
        self.handles = Handles(function.body)
        self.users: dict[int, set[Op]] = {}
        for op in function.body.walk():
            for value in used_values(op):
                self.users.setdefault(id(value), set()).add(op)

    def block(self, block: Block) -> None:
        """Lower the operations of a block and of all inside it."""
        ops, block.ops = block.ops, []
        builder = Builder(block)
        group: RowGroup | Blocked | None = None
        for op in self.apart(ops):
            if op.name in ("tensor.apply", "tensor.assign"):
                if group is not None and group.joins(op):
                    continue
                if group is not None:
                    group.emit(builder)
                group = self.started(op)
                continue
            uses = {id(v) for v in used_values(op)}
            waits = op.regions or op.name in _ENDS
            if group is not None and (waits or uses & group.made()):
                group.emit(builder)
                group = None
            for region in op.regions:
                if op.name != "func.scope":
                    self.block(region)
            block.ops.append(op)
        if group is not None:
            group.emit(builder)

    def apart(self, ops: list[Op]) -> Iterator[Op]:
        """The operations; what is assigned to other places of its own tensor goes through a workspace.

        Block by block, a block's source may have been written with an earlier block.
        """
        for op in ops:
            source, target = op.operands[:2] if op.name == "tensor.assign" else (None, None)
            if source is None or target is None or source is target or not self.roots(source) & self.roots(target):
                yield op
                continue
            copied = Block()
            builder = Builder(copied)
            builder.loc = op.loc
            lengths = [extent(builder, self.function, source, axis) for axis in range(tensor_type(source).rank)]
            workspace = builder.create_tensor(lengths, tensor_type(source).dtype, source.name)
            yield from copied.ops
            yield Op("tensor.assign", [source, workspace], [], {}, [], op.loc)
            yield Op("tensor.assign", [workspace, target], [], {}, [], op.loc)

    def started(self, op: Op) -> RowGroup | Blocked:
        if is_row_local(op):
            group = RowGroup(self, op)
            if group.fits():
                return group
        return Blocked(self, op)

    # What groups ask

    def users_of(self, value: Value) -> set[Op]:
        """The operations that use a value."""
        return self.users.get(id(value), set())

    def roots(self, value: Value) -> set[int]:
        """Identities of the tensors that a handle may stand for."""
        return {id(root) for root in self.handles.roots(value)}
