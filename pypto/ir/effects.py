"""Which tensor an operation on a core reads from global memory, and which it writes."""

from __future__ import annotations

from pypto.ir.nodes import Op, Value

# Position of the tensor among the operands.
_READS = {"tile.load": 0, "tile.mgather": 0, "tile.gather_row": 1, "tensor.read": 0}
_WRITES = {"tile.store": 1, "tile.mscatter": 2, "tile.notify": 0, "tile.wait": 0}


def tensor_read(op: Op) -> Value | None:
    """The tensor whose elements an operation reads; a store that adds reads what it adds to."""
    if op.name in _READS:
        return op.operands[_READS[op.name]]
    return tensor_written(op) if op.attrs.get("atomic", "none") != "none" else None


def tensor_written(op: Op) -> Value | None:
    """The tensor into which an operation writes."""
    return op.operands[_WRITES[op.name]] if op.name in _WRITES else None
