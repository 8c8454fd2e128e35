"""Which parameters and workspaces a tensor handle may stand for."""

from __future__ import annotations

from pypto.ir.nodes import Block, Op, Value
from pypto.ir.rewrite import last_op
from pypto.ir.values import defining_op


class Handles:
    """The handles of one function's body."""

    def __init__(self, body: Block) -> None:
        self._sources: dict[int, list[Value]] = {}
        for op in body.walk():
            if op.name in ("scf.for", "scf.while"):
                inits = op.operands[3:] if op.name == "scf.for" else op.operands
                last = last_op(op.regions[-1]).operands
                groups = [r.args[1:] if op.name == "scf.for" else r.args for r in op.regions]
                for position, init in enumerate(inits):
                    for value in (*(group[position] for group in groups), op.results[position]):
                        self._sources[id(value)] = [init, last[position]]
            elif op.name == "scf.if":
                for position, result in enumerate(op.results):
                    self._sources[id(result)] = [last_op(r).operands[position] for r in op.regions]

    def roots(self, value: Value) -> list[Value]:
        """The parameters and workspaces that ``value`` may be, or be a view of."""
        found: dict[int, Value] = {}
        seen: set[int] = set()
        waiting = [value]
        while waiting:
            handle = waiting.pop()
            if id(handle) in seen:
                continue
            seen.add(id(handle))
            op: Op | None = defining_op(handle)
            if op is not None and op.name in ("tensor.view", "tensor.reshape", "tensor.untracked"):
                waiting.append(op.operands[0])
            elif id(handle) in self._sources:
                waiting.extend(self._sources[id(handle)])
            else:
                found[id(handle)] = handle
        return list(found.values())
