"""What an operation on whole tensors needs of its operands: which of them it can compute block by block."""

from __future__ import annotations

import enum

from pypto.ir.nodes import Op, Value
from pypto.ir.ops.registry import all_definitions
from pypto.ir.types import TensorType

ROW_REDUCTIONS = {"row_sum": "add", "row_max": "maximum", "row_min": "minimum", "row_prod": "mul"}
COLUMN_REDUCTIONS = {"col_sum": "add", "col_max": "maximum", "col_min": "minimum", "col_prod": "mul"}
PLACES = frozenset({"row_argmax", "row_argmin", "col_argmax", "col_argmin"})
ROW_LOCAL_REDUCTIONS = frozenset({*ROW_REDUCTIONS, "row_argmax", "row_argmin"})


def is_elementwise(name: str) -> bool:
    """Whether each element of what ``tile.<name>`` makes needs the same element of the operands only."""
    found = all_definitions().get(f"tile.{name}")
    if found is None or name.startswith(("row_expand", "col_expand")):
        return False
    return found.pointwise or name in ("full", "move")


class Role(enum.Enum):
    """Which part of an operand a block of the result needs."""

    BLOCK = "block"  # the same rows and columns
    ROWS = "rows"  # the same rows, all columns
    COLUMN = "column"  # the same rows of a column
    ROW = "row"  # the same columns of a row


def role(name: str, index: int) -> Role | None:
    """The role of a tensor operand of ``tile.<name>``; ``None`` when it is not computed row by row."""
    if is_elementwise(name):
        return Role.BLOCK
    if name in ROW_LOCAL_REDUCTIONS:
        return Role.ROWS
    if name.startswith("row_expand"):
        return Role.COLUMN if index else Role.BLOCK
    if name.startswith("col_expand"):
        return Role.ROW if index else Role.BLOCK
    return None


def is_row_local(op: Op) -> bool:
    """Whether rows of the result need only the same rows of the operands, or a row that is the same for all."""
    return op.name == "tensor.assign" or (op.name == "tensor.apply" and role(op.attrs["tile"], 0) is not None)


def tensor_type(value: Value) -> TensorType:
    """The type of a value that is known to be a tensor."""
    if not isinstance(value.type, TensorType):
        raise TypeError(f"{value.name} is no tensor")
    return value.type
