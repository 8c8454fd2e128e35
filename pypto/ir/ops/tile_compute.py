"""Vector work on tiles (AIV): element-wise, with scalars, reductions and expansions."""

from __future__ import annotations

from pypto.ir.nodes import CoreType
from pypto.ir.ops.lowering import Form, Instruction, Lowering
from pypto.ir.ops.registry import Attr, Call, Kind, OpDef, Operand, Rule, register
from pypto.ir.ops.tile_memory import assert_scalar_fits
from pypto.ir.types import BF16, FP16, FP32, INT8, INT16, INT32, DType, MemorySpace, TileType, Type, Valid
from pypto.ir.values import same_value

_VEC = (MemorySpace.Vec,)
_REAL = (FP32, FP16)
_REAL_BF16 = (FP32, FP16, BF16)
_NUMBER = (FP32, FP16, INT32, INT8)
_ADDED = (FP32, FP16, BF16, INT32, INT16, INT8)

# What a conversion takes: source -> targets.
CASTS: dict[DType, tuple[DType, ...]] = {
    FP32: (FP32, FP16, BF16, INT32, INT8),
    FP16: (FP32, INT8, INT32),
    BF16: (FP32,),
    INT32: (FP32, FP16),
    INT8: (FP32, FP16),
}
CAST_MODES = ("none", "rint", "round", "floor", "ceil", "trunc")


def _text(shape: tuple[Valid, ...]) -> str:
    return "[" + ", ".join(str(d) if isinstance(d, int) else d.name for d in shape) + "]"


def _vec(
    like: TileType, shape: tuple[int, int], valid: tuple[Valid, Valid], dtype: DType | None = None
) -> tuple[Type, ...]:
    return (TileType(shape, dtype or like.dtype, MemorySpace.Vec, valid),)


def _same_dtype(call: Call, a: TileType, b: TileType) -> None:
    if a.dtype != b.dtype:
        raise call.error(f"needs tiles of one element type, got {a.dtype} and {b.dtype}; use pl.cast")


def _check_lengths(call: Call, a: Valid, b: Valid, what: str) -> None:
    if not same_value(a, b):
        names = [str(v) if isinstance(v, int) else v.name for v in (a, b)]
        raise call.error(
            f"the {what} are not known to be equal: {names[0]} and {names[1]}; "
            "give both tiles the same length, or use pl.set_validshape"
        )


def _unary(call: Call) -> tuple[Type, ...]:
    a = call.tile(0)
    return _vec(a, a.shape, a.valid)


def _binary(call: Call) -> tuple[Type, ...]:
    a, b = call.tile(0), call.tile(1)
    if a.shape != b.shape:
        hint = ""
        if b.shape == (a.shape[0], 1):
            hint = "; to combine each row with a column use pl.row_expand_* "
        elif b.shape == (1, a.shape[1]):
            hint = "; to combine each column with a row use pl.col_expand_*"
        raise call.error(f"needs tiles of one shape, got {_text(a.shape)} and {_text(b.shape)}{hint.rstrip()}")
    _same_dtype(call, a, b)
    for axis, what in enumerate(("valid rows", "valid columns")):
        _check_lengths(call, a.valid[axis], b.valid[axis], what)
    return _vec(a, a.shape, a.valid)


def _with_scalar(call: Call) -> tuple[Type, ...]:
    a = call.tile(0)
    assert_scalar_fits(call, a, 1)
    return _vec(a, a.shape, a.valid)


def _cast(call: Call) -> tuple[Type, ...]:
    a, wanted = call.tile(0), call.wanted_tile()
    targets = CASTS.get(a.dtype, ())
    if wanted.dtype not in targets:
        can = ", ".join(d.name for d in targets) or "nothing"
        raise call.error(f"cannot turn {a.dtype} into {wanted.dtype}; {a.dtype} can become: {can}")
    return _vec(a, a.shape, a.valid, wanted.dtype)


def _reduce_rows(call: Call) -> tuple[Type, ...]:
    a = call.tile(0)
    return _vec(a, (a.shape[0], 1), (a.valid[0], 1))


def _reduce_columns(call: Call) -> tuple[Type, ...]:
    a = call.tile(0)
    return _vec(a, (1, a.shape[1]), (1, a.valid[1]))


def _expand_rows(call: Call) -> tuple[Type, ...]:
    a, column = call.tile(0), call.tile(1)
    if column.shape != (a.shape[0], 1):
        raise call.error(f"needs a column [{a.shape[0]}, 1] beside {_text(a.shape)}, got {_text(column.shape)}")
    _same_dtype(call, a, column)
    _check_lengths(call, a.valid[0], column.valid[0], "valid rows")
    return _vec(a, a.shape, a.valid)


def _expand_columns(call: Call) -> tuple[Type, ...]:
    a, row = call.tile(0), call.tile(1)
    if row.shape != (1, a.shape[1]):
        raise call.error(f"needs a row [1, {a.shape[1]}] beside {_text(a.shape)}, got {_text(row.shape)}")
    _same_dtype(call, a, row)
    _check_lengths(call, a.valid[1], row.valid[1], "valid columns")
    return _vec(a, a.shape, a.valid)


def _vector_op(
    name: str,
    operands: tuple[Operand, ...],
    rule: Rule,
    lowering: Lowering,
    attrs: tuple[Attr, ...] = (),
) -> None:
    register(
        OpDef(
            f"tile.{name}",
            operands,
            rule,
            attrs,
            core=CoreType.AIV,
            lowering=lowering,
            result_memory=MemorySpace.Vec,
        )
    )


def _tile(name: str, dtypes: tuple[DType, ...]) -> Operand:
    return Operand(name, Kind.TILE, memory=_VEC, dtypes=dtypes)


_dtypes: tuple[DType, ...]

# Element-wise with two tiles. Addition, subtraction and division take grouped inputs, the others split ones.
for _name, _op, _form, _dtypes in (
    ("add", "tadd", Form.GROUPED, _ADDED),
    ("sub", "tsub", Form.GROUPED, _ADDED),
    ("mul", "tmul", Form.SPLIT, _NUMBER),
    ("div", "tdiv", Form.GROUPED, _REAL),
    ("maximum", "tmax", Form.SPLIT, _NUMBER),
    ("minimum", "tmin", Form.SPLIT, _NUMBER),
):
    _vector_op(_name, (_tile("a", _dtypes), _tile("b", _dtypes)), _binary, (Instruction(_op, ("a", "b"), form=_form),))

# With a scalar. Some forms do not take column tiles; maximums has no instruction that ptoas accepts.
_INS = ("a", "scalar")
for _name, _lowering, _dtypes in (
    ("adds", Instruction("tadds", _INS, form=Form.GROUPED, column=False), _NUMBER),
    ("subs", Instruction("tsubs", _INS, form=Form.GROUPED, scalar=FP32, column=False), (FP32, FP16, INT32)),
    ("muls", Instruction("tmuls", _INS, form=Form.GROUPED, scalar=FP32, column=False), (FP32, FP16, INT32)),
    ("divs", Instruction("tdivs", _INS, form=Form.GROUPED, column=False), _REAL),
    ("rdivs", Instruction("tdivs", _INS, form=Form.GROUPED, suffix=" scalar_lhs = true", column=False), _REAL),
    ("minimums", Instruction("tmins", _INS, form=Form.BARE_SCALAR, scalar=FP32, column=False), _REAL),
    (
        "maximums",
        Instruction("tmins", _INS, form=Form.BARE_SCALAR, scalar=FP32, call="TMINS", rename="TMAXS", column=False),
        _REAL,
    ),
):
    _vector_op(_name, (_tile("a", _dtypes), Operand("scalar", Kind.SCALAR)), _with_scalar, (_lowering,))

for _name, _op, _dtypes, _column in (
    ("exp", "texp", _REAL_BF16, True),
    ("log", "tlog", _REAL, True),
    ("sqrt", "tsqrt", _REAL_BF16, True),
    ("rsqrt", "trsqrt", _REAL, True),
    ("recip", "trecip", _REAL, False),
    ("neg", "tneg", _NUMBER, True),
    ("abs", "tabs", (FP32, FP16, INT32), True),
    ("relu", "trelu", _NUMBER, True),
):
    _vector_op(_name, (_tile("a", _dtypes),), _unary, (Instruction(_op, ("a",), column=_column),))

_vector_op(
    "cast",
    (_tile("a", tuple(CASTS)),),
    _cast,
    (Instruction("tcvt", ("a",)),),
    (Attr("mode", str, choices=CAST_MODES),),
)

for _name, _instruction, _dtypes in (
    ("row_sum", Instruction("trowsum", ("a",)), _REAL_BF16),
    ("row_max", Instruction("trowmax", ("a",)), _REAL_BF16),
    ("row_min", Instruction("trowmin", ("a", "a"), form=Form.GROUPED), _REAL),
):
    _vector_op(_name, (_tile("a", _dtypes),), _reduce_rows, (_instruction,))
for _name, _instruction in (
    ("col_sum", Instruction("tcolsum", ("a", "a"), form=Form.GROUPED, suffix=" isBinary = false")),
    ("col_max", Instruction("tcolmax", ("a",), call="TCOLEXPAND", rename="TCOLMAX")),
    ("col_min", Instruction("tcolmin", ("a",), call="TCOLEXPAND", rename="TCOLMIN")),
):
    _vector_op(_name, (_tile("a", _REAL),), _reduce_columns, (_instruction,))

_EXPANDED = (_tile("a", _REAL), _tile("column", _REAL))
for _name in ("sub", "mul", "div"):
    _vector_op(
        f"row_expand_{_name}",
        _EXPANDED,
        _expand_rows,
        (Instruction(f"trowexpand{_name}", ("a", "column"), form=Form.GROUPED),),
    )
for _name, _op, _form in (
    ("add", "tadd", Form.GROUPED),
    ("max", "tmax", Form.SPLIT),
    ("min", "tmin", Form.SPLIT),
):
    _vector_op(
        f"row_expand_{_name}",
        _EXPANDED,
        _expand_rows,
        (Instruction("trowexpand", ("column",), out="tmp"), Instruction(_op, ("a", "tmp"), form=_form)),
    )
_vector_op("row_expand", _EXPANDED, _expand_rows, (Instruction("trowexpand", ("column",)),))

_EXPANDED = (_tile("a", _REAL), _tile("row", _REAL))
for _name, _op, _form in (
    ("add", "tadd", Form.GROUPED),
    ("sub", "tsub", Form.GROUPED),
    ("mul", "tmul", Form.SPLIT),
    ("div", "tdiv", Form.GROUPED),
):
    _vector_op(
        f"col_expand_{_name}",
        _EXPANDED,
        _expand_columns,
        (Instruction("tcolexpand", ("row",), out="tmp"), Instruction(_op, ("a", "tmp"), form=_form)),
    )
_vector_op("col_expand", _EXPANDED, _expand_columns, (Instruction("tcolexpand", ("row",)),))
