"""Vector work on tiles (AIV): reductions of rows and columns, and columns and rows that stand beside a tile."""

from __future__ import annotations

from pypto.ir.ops.lowering import ByElement, Form, Instruction
from pypto.ir.ops.registry import Call
from pypto.ir.ops.user_names import user_name
from pypto.ir.ops.vector import (
    ANY,
    NUMBER,
    REAL,
    check_lengths,
    either,
    own,
    same_dtype,
    text,
    tile_operand,
    vec,
    vector_op,
)
from pypto.ir.types import BF16, FP16, FP32, INT32, DType, Type

_REAL = (FP32, FP16)
_REAL_BF16 = (FP32, FP16, BF16)


def _reduce_rows(call: Call) -> tuple[Type, ...]:
    a = call.tile(0)
    return vec(a, (a.shape[0], 1), (a.valid[0], 1))


def _reduce_columns(call: Call) -> tuple[Type, ...]:
    a = call.tile(0)
    return vec(a, (1, a.shape[1]), (1, a.valid[1]))


def _place_in_row(call: Call) -> tuple[Type, ...]:
    a = call.tile(0)
    return vec(a, (a.shape[0], 1), (a.valid[0], 1), INT32)


def _place_in_column(call: Call) -> tuple[Type, ...]:
    a = call.tile(0)
    return vec(a, (1, a.shape[1]), (1, a.valid[1]), INT32)


def _expand_rows(call: Call) -> tuple[Type, ...]:
    a, column = call.tile(0), call.tile(1)
    if column.shape != (a.shape[0], 1):
        raise call.error(f"needs a column [{a.shape[0]}, 1] beside {text(a.shape)}, got {text(column.shape)}")
    same_dtype(call, a, column)
    check_lengths(call, a.valid[0], column.valid[0], "valid rows")
    return vec(a, a.shape, a.valid)


def _expand_columns(call: Call) -> tuple[Type, ...]:
    a, row = call.tile(0), call.tile(1)
    if row.shape != (1, a.shape[1]):
        raise call.error(f"needs a row [1, {a.shape[1]}] beside {text(a.shape)}, got {text(row.shape)}")
    same_dtype(call, a, row)
    check_lengths(call, a.valid[1], row.valid[1], "valid columns")
    return vec(a, a.shape, a.valid)


_native: tuple[DType, ...]

for _name, _instruction, _native, _functor, _doc in (
    ("sum", Instruction("trowsum", ("a",)), _REAL_BF16, "Add", "Sum"),
    ("max", Instruction("trowmax", ("a",)), _REAL_BF16, "Max", "Largest element"),
    ("min", Instruction("trowmin", ("a", "a"), form=Form.GROUPED), _REAL, "Min", "Smallest element"),
):
    vector_op(
        f"row_{_name}",
        (tile_operand("a", NUMBER),),
        _reduce_rows,
        either(_native, _instruction, own(f"reduce_rows<{_functor}>", "a", isa=f"TROW{_name.upper()}")),
        pointwise=False,
    )
    user_name(
        f"row_{_name}",
        "input, tmp_tile=None",
        f"{_doc} of each row: a column ``[rows, 1]``. ``tmp_tile`` is not needed.",
        also=("tile, tmp_tile",),
    )
for _name, _instruction, _native, _functor, _doc in (
    (
        "sum",
        Instruction("tcolsum", ("a", "a"), form=Form.GROUPED, suffix=" isBinary = false"),
        _REAL,
        "Add",
        "Sum",
    ),
    ("max", Instruction("tcolmax", ("a",), call="TCOLEXPAND", rename="TCOLMAX"), _REAL, "Max", "Largest element"),
    ("min", Instruction("tcolmin", ("a",), call="TCOLEXPAND", rename="TCOLMIN"), _REAL, "Min", "Smallest element"),
):
    vector_op(
        f"col_{_name}",
        (tile_operand("a", NUMBER),),
        _reduce_columns,
        either(_native, _instruction, own(f"reduce_columns<{_functor}>", "a", isa=f"TCOL{_name.upper()}")),
        pointwise=False,
    )
    user_name(
        f"col_{_name}",
        "input, tmp_tile=None",
        f"{_doc} of each column: a row ``[1, cols]``. ``tmp_tile`` is not needed.",
        also=("tile, tmp_tile",),
    )
for _axis, _rule, _shape in (
    ("row", _reduce_rows, "a column ``[rows, 1]``"),
    ("col", _reduce_columns, "a row ``[1, cols]``"),
):
    _whole = {"row": "rows", "col": "columns"}[_axis]
    vector_op(
        f"{_axis}_prod",
        (tile_operand("a", NUMBER),),
        _rule,
        own(f"reduce_{_whole}<Mul>", "a", isa=f"T{_axis.upper()}PROD"),
        pointwise=False,
    )
    user_name(
        f"{_axis}_prod",
        "input, tmp_tile=None",
        f"Product of each {_whole[:-1]}: {_shape}. ``tmp_tile`` is not needed.",
        also=("tile, tmp_tile",),
    )
    for _name, _beats, _doc in (("argmax", "gt", "largest"), ("argmin", "lt", "smallest")):
        vector_op(
            f"{_axis}_{_name}",
            (tile_operand("a", NUMBER),),
            _place_in_row if _axis == "row" else _place_in_column,
            own(f"arg_{_whole}<compare::{_beats}>", "a", isa=f"T{_axis.upper()}{_name.upper()}"),
            pointwise=False,
        )
        user_name(
            f"{_axis}_{_name}",
            "input, tmp_tile=None",
            f"Position of the first {_doc} element of each {_whole[:-1]}: {_shape} of INT32.",
            also=("tile, tmp_tile",),
        )

_OPERATIONS = (
    ("add", "Add", "TADD", Form.GROUPED, "``lhs + rhs``", NUMBER),
    ("sub", "Sub", "TSUB", Form.GROUPED, "``lhs - rhs``", NUMBER),
    ("mul", "Mul", "TMUL", Form.SPLIT, "``lhs * rhs``", NUMBER),
    ("div", "Div", "TDIV", Form.GROUPED, "``lhs / rhs``", REAL),
    ("max", "Max", "TMAX", Form.SPLIT, "the larger one", NUMBER),
    ("min", "Min", "TMIN", Form.SPLIT, "the smaller one", NUMBER),
    ("expdif", "ExpDif", "", Form.SPLIT, "``exp(lhs - rhs)``", REAL),
)
for _name, _functor, _instruction_name, _form, _doc, _dtypes in _OPERATIONS:
    _isa = f"EXPAND{_name.upper()}"
    _operand = tile_operand("a", _dtypes), tile_operand("column", _dtypes)
    _template = own(f"with_column<{_functor}>", "a", "column", isa=f"TROW{_isa}")
    _op = _instruction_name.lower()
    if _name in ("sub", "mul", "div"):
        _lowering = either(_REAL, Instruction(f"trowexpand{_name}", ("a", "column"), form=Form.GROUPED), _template)
    elif _op:
        _expanded = (Instruction("trowexpand", ("column",)), Instruction(_op, ("a", "result"), form=_form))
        _lowering = ByElement(frozenset((d, d) for d in _REAL), _expanded, _template)
    vector_op(f"row_expand_{_name}", _operand, _expand_rows, _lowering if _op else _template)
    user_name(
        f"row_expand_{_name}",
        "lhs, rhs, tmp=None" if _name == "add" else "lhs, rhs",
        f"Element by element: {_doc}, with the column ``rhs`` ``[rows, 1]`` beside each column of ``lhs``.",
        also=("tile, row_vec, tmp", "tensor, row_vec"),
    )
    _operand = tile_operand("a", _dtypes), tile_operand("row", _dtypes)
    _template = own(f"with_row<{_functor}>", "a", "row", isa=f"TCOL{_isa}")
    if _op and _name not in ("max", "min"):
        _expanded = (Instruction("tcolexpand", ("row",)), Instruction(_op, ("a", "result"), form=_form))
        _lowering = ByElement(frozenset((d, d) for d in _REAL), _expanded, _template)
        vector_op(f"col_expand_{_name}", _operand, _expand_columns, _lowering)
    else:
        vector_op(f"col_expand_{_name}", _operand, _expand_columns, _template)
    user_name(
        f"col_expand_{_name}",
        "lhs, rhs",
        f"Element by element: {_doc}, with the row ``rhs`` ``[1, cols]`` beside each row of ``lhs``.",
        also=("tile, col_vec", "tensor, col_vec"),
    )
vector_op(
    "row_expand",
    (tile_operand("a", ANY), tile_operand("column", ANY)),
    _expand_rows,
    either(_REAL, Instruction("trowexpand", ("column",)), own("column_repeated", "column", isa="TROWEXPAND")),
    pointwise=False,
)
user_name(
    "row_expand",
    "lhs, rhs",
    "The column ``rhs`` ``[rows, 1]`` repeated to the shape of ``lhs``.",
    also=("target, row_vec",),
)
vector_op(
    "col_expand",
    (tile_operand("a", ANY), tile_operand("row", ANY)),
    _expand_columns,
    either(_REAL, Instruction("tcolexpand", ("row",)), own("row_repeated", "row", isa="TCOLEXPAND")),
    pointwise=False,
)
user_name(
    "col_expand",
    "lhs, rhs",
    "The row ``rhs`` ``[1, cols]`` repeated to the shape of ``lhs``.",
    also=("target, col_vec", "tensor, col_vec"),
)
user_name(
    "expands",
    "target, scalar",
    "A tile or tensor of the shape and dtype of ``target``, filled with a scalar.",
    ops=("tile.full",),
)
