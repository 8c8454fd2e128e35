"""Vector work on tiles (AIV), element by element: with two tiles, with scalars, comparisons, choices, conversions."""

from __future__ import annotations

from typing import NamedTuple

from pypto.ir.ops.arith import PREDICATES
from pypto.ir.ops.lowering import ByElement, Form, Instruction
from pypto.ir.ops.registry import Attr, Call, Kind, Operand
from pypto.ir.ops.tile_memory import assert_scalar_fits
from pypto.ir.ops.user_names import ON_BOTH, ON_TILES, user_name
from pypto.ir.ops.vector import (
    ANY,
    BITS,
    NUMBER,
    REAL,
    WHOLE,
    check_lengths,
    either,
    own,
    same_dtype,
    text,
    tile_operand,
    vec,
    vector_op,
)
from pypto.ir.rounding import CAST_MODES
from pypto.ir.types import BF16, FP16, FP32, INT8, INT16, INT32, DType, TileType, Type, Valid

# What ptoas and the headers of the PTO-ISA take, as measured; everything else is a template of ours.
_REAL = (FP32, FP16)
_REAL_BF16 = (FP32, FP16, BF16)
_COMMON = (FP32, FP16, INT32, INT8)
_ADDED = (FP32, FP16, BF16, INT32, INT16, INT8)

_CONVERTED: dict[DType, tuple[DType, ...]] = {
    FP32: (FP32, FP16, BF16, INT32, INT8),
    FP16: (FP32, INT8, INT32),
    BF16: (FP32,),
    INT32: (FP32, FP16),
    INT8: (FP32, FP16),
}


def _beside(call: Call, a: TileType, b: TileType) -> None:
    if a.shape != b.shape:
        hint = ""
        if b.shape == (a.shape[0], 1):
            hint = "; to combine each row with a column use pl.row_expand_*"
        elif b.shape == (1, a.shape[1]):
            hint = "; to combine each column with a row use pl.col_expand_*"
        raise call.error(f"needs tiles of one shape, got {text(a.shape)} and {text(b.shape)}{hint}")
    for axis, what in enumerate(("valid rows", "valid columns")):
        check_lengths(call, a.valid[axis], b.valid[axis], what)


def _unary(call: Call) -> tuple[Type, ...]:
    a = call.tile(0)
    return vec(a, a.shape, a.valid)


def _binary(call: Call) -> tuple[Type, ...]:
    a, b = call.tile(0), call.tile(1)
    if a.shape == b.shape:
        same_dtype(call, a, b)
    _beside(call, a, b)
    return vec(a, a.shape, a.valid)


def _with_scalar(call: Call) -> tuple[Type, ...]:
    a = call.tile(0)
    assert_scalar_fits(call, a, 1)
    return vec(a, a.shape, a.valid)


def _three(call: Call) -> tuple[Type, ...]:
    a = call.tile(0)
    for index in (1, 2):
        other = call.tile(index)
        same_dtype(call, a, other)
        _beside(call, a, other)
    return vec(a, a.shape, a.valid)


def _two_and_scalar(call: Call) -> tuple[Type, ...]:
    a, b = call.tile(0), call.tile(2)
    assert_scalar_fits(call, a, 1)
    same_dtype(call, a, b)
    _beside(call, a, b)
    return vec(a, a.shape, a.valid)


def _part(call: Call) -> tuple[Type, ...]:
    a, b = call.tile(0), call.tile(1)
    same_dtype(call, a, b)
    if a.shape != b.shape:
        raise call.error(f"needs tiles of one shape, got {text(a.shape)} and {text(b.shape)}")
    lengths: list[Valid] = []
    for axis, what in enumerate(("valid rows", "valid columns")):
        first, second = a.valid[axis], b.valid[axis]
        if isinstance(first, int) and isinstance(second, int):
            lengths.append(max(first, second))
        elif a.shape[axis] in (first, second):
            lengths.append(a.shape[axis])
        else:
            check_lengths(call, first, second, what)
            lengths.append(first)
    return vec(a, a.shape, (lengths[0], lengths[1]))


def _check_mask(call: Call, a: TileType) -> None:
    mask, packed = call.tile(0), call.attrs["mask"] == "bits"
    rows, cols = a.shape[0], -(-a.shape[1] // 8) if packed else a.shape[1]
    if mask.shape[0] != rows or mask.shape[1] < cols or (not packed and mask.shape[1] != cols):
        raise call.error(f"needs a mask [{rows}, {cols}] of {call.attrs['mask']}, got {text(mask.shape)}")


def _select(call: Call) -> tuple[Type, ...]:
    a, b = call.tile(1), call.tile(2)
    same_dtype(call, a, b)
    _beside(call, a, b)
    _check_mask(call, a)
    return vec(a, a.shape, a.valid)


def _select_scalar(call: Call) -> tuple[Type, ...]:
    a = call.tile(1)
    assert_scalar_fits(call, a, 2)
    _check_mask(call, a)
    return vec(a, a.shape, a.valid)


def _cast(call: Call) -> tuple[Type, ...]:
    a, wanted = call.tile(0), call.wanted_tile()
    if wanted.dtype not in ANY:
        raise call.error(f"cannot turn {a.dtype} into {wanted.dtype}")
    return vec(a, a.shape, a.valid, wanted.dtype)


_dtypes: tuple[DType, ...]
_native: tuple[DType, ...]
_SCALAR = Operand("scalar", Kind.SCALAR)
_LHS_RHS = "lhs, rhs"


class _Two(NamedTuple):
    """An operation on two tiles: `native` element types have the instruction ``t<functor>``, which takes one form."""

    name: str
    functor: str
    dtypes: tuple[DType, ...]
    doc: str
    native: tuple[DType, ...] = ()
    form: Form = Form.SPLIT
    parameters: str = _LHS_RHS


_SIDES = "; either side may be a scalar, a column or a row"
for _two in (
    _Two("add", "Add", NUMBER, f"``lhs + rhs``{_SIDES}", _ADDED, Form.GROUPED),
    _Two("sub", "Sub", NUMBER, f"``lhs - rhs``{_SIDES}", _ADDED, Form.GROUPED),
    _Two("mul", "Mul", NUMBER, f"``lhs * rhs``{_SIDES}", _COMMON),
    _Two("div", "Div", REAL, f"``lhs / rhs``{_SIDES}", _REAL, Form.GROUPED, "lhs, rhs, high_precision=False"),
    _Two("maximum", "Max", NUMBER, f"the larger one{_SIDES}", _COMMON),
    _Two("minimum", "Min", NUMBER, f"the smaller one{_SIDES}", _COMMON),
    _Two("fmod", "Fmod", NUMBER, "the remainder of ``lhs / rhs``, with the sign of ``lhs``"),
    _Two("and_", "And", BITS, "bits that both have", (INT32, INT8), Form.GROUPED),
    _Two("or_", "Or", BITS, "bits that one of them has", (INT32,)),
    _Two("xor", "Xor", BITS, "bits in which they differ", parameters="lhs, rhs, tmp=None"),
    _Two("shl", "Shl", WHOLE, "the bits of ``lhs`` moved up by ``rhs``"),
    _Two("shr", "Shr", WHOLE, "the bits of ``lhs`` moved down by ``rhs``; signed numbers keep their sign"),
):
    _op = f"t{_two.functor.lower()}"
    _template = own(f"binary<{_two.functor}>", "a", "b", isa=_op.upper())
    vector_op(
        _two.name,
        (tile_operand("a", _two.dtypes), tile_operand("b", _two.dtypes)),
        _binary,
        either(_two.native, Instruction(_op, ("a", "b"), form=_two.form), _template) if _two.native else _template,
    )
    user_name(
        _two.name,
        _two.parameters,
        f"Element by element: {_two.doc}.",
        ops=(f"tile.{_two.name}", f"tile.{_two.name.rstrip('_')}s"),
    )
vector_op(
    "rem",
    (tile_operand("a", NUMBER), tile_operand("b", NUMBER)),
    _binary,
    own("binary<Rem>", "a", "b", isa="TREM"),
)
user_name(
    "rem",
    "lhs, rhs, tmp=None",
    "Element by element: the remainder of ``lhs / rhs``, with the sign of ``rhs``.",
    ON_TILES,
)
vector_op(
    "floordiv", (tile_operand("a", NUMBER), tile_operand("b", NUMBER)), _binary, own("binary<FloorDiv>", "a", "b")
)

# With a scalar. Some instructions do not take column tiles; for maximums there is none that ptoas accepts.
_INS = ("a", "scalar")
for _name, _instruction, _dtypes, _native, _functor, _isa, _doc in (
    (
        "adds",
        Instruction("tadds", _INS, form=Form.GROUPED, column=False),
        NUMBER,
        _COMMON,
        "Add",
        "TADDS",
        "``lhs + rhs``",
    ),
    (
        "subs",
        Instruction("tsubs", _INS, form=Form.GROUPED, scalar=FP32, column=False),
        NUMBER,
        (FP32, FP16, INT32),
        "Sub",
        "TSUBS",
        "``lhs - rhs``",
    ),
    (
        "muls",
        Instruction("tmuls", _INS, form=Form.GROUPED, scalar=FP32, column=False),
        NUMBER,
        (FP32, FP16, INT32),
        "Mul",
        "TMULS",
        "``lhs * rhs``",
    ),
    ("divs", Instruction("tdivs", _INS, form=Form.GROUPED, column=False), REAL, _REAL, "Div", "TDIVS", "``lhs / rhs``"),
    (
        "minimums",
        Instruction("tmins", _INS, form=Form.BARE_SCALAR, scalar=FP32, column=False),
        NUMBER,
        _REAL,
        "Min",
        "TMINS",
        "The smaller one",
    ),
    (
        "maximums",
        Instruction("tmins", _INS, form=Form.BARE_SCALAR, scalar=FP32, call="TMINS", rename="TMAXS", column=False),
        NUMBER,
        _REAL,
        "Max",
        "TMAXS",
        "The larger one",
    ),
):
    vector_op(
        _name,
        (tile_operand("a", _dtypes), _SCALAR),
        _with_scalar,
        either(_native, _instruction, own(f"scalar<{_functor}>", *_INS, isa=_isa)),
    )
    user_name(
        _name,
        _LHS_RHS,
        f"{_doc} of a tile and a scalar, element by element.",
        ON_TILES if _name in ("maximums", "minimums") else ON_BOTH,
    )
vector_op(
    "rdivs",
    (tile_operand("a", REAL), _SCALAR),
    _with_scalar,
    either(
        _REAL,
        Instruction("tdivs", _INS, form=Form.GROUPED, suffix=" scalar_lhs = true", column=False),
        own("scalar_left<Div>", *_INS, isa="TDIVS"),
    ),
)
for _name, _dtypes, _functor, _isa, _parameters, _doc in (
    ("fmods", NUMBER, "Fmod", "TFMODS", _LHS_RHS, "The remainder of ``lhs / rhs``, with the sign of ``lhs``"),
    ("rems", NUMBER, "Rem", "TREMS", "lhs, rhs, tmp=None", "The remainder of ``lhs / rhs``, with the sign of ``rhs``"),
    ("ands", BITS, "And", "TANDS", _LHS_RHS, "Bits that both have"),
    ("ors", BITS, "Or", "TORS", _LHS_RHS, "Bits that one of them has"),
    ("xors", BITS, "Xor", "TXORS", "lhs, rhs, tmp=None", "Bits in which they differ"),
    ("shls", WHOLE, "Shl", "TSHLS", _LHS_RHS, "The bits of ``lhs`` moved up by ``rhs``"),
    (
        "shrs",
        WHOLE,
        "Shr",
        "TSHRS",
        _LHS_RHS,
        "The bits of ``lhs`` moved down by ``rhs``; signed numbers keep their sign",
    ),
    ("lrelu", REAL, "Prelu", "TLRELU", "tile, slope", "``tile`` where it is positive, elsewhere ``tile * slope``"),
):
    vector_op(_name, (tile_operand("a", _dtypes), _SCALAR), _with_scalar, own(f"scalar<{_functor}>", *_INS, isa=_isa))
    user_name(
        _name, _parameters, f"{_doc}, for a tile and a scalar.", ON_TILES if _name in ("rems", "lrelu") else ON_BOTH
    )
vector_op("floordivs", (tile_operand("a", NUMBER), _SCALAR), _with_scalar, own("scalar<FloorDiv>", *_INS))

# One tile.
for _name, _op, _dtypes, _native, _column, _parameters, _doc in (
    ("exp", "texp", REAL, _REAL_BF16, True, "input", "e to the power of each element"),
    ("log", "tlog", REAL, _REAL, True, "input, high_precision=False", "Natural logarithm of each element"),
    ("sqrt", "tsqrt", REAL, _REAL_BF16, True, "input", "Square root of each element"),
    ("rsqrt", "trsqrt", REAL, _REAL, True, "input, high_precision=False, tmp=None", "One over the square root"),
    ("recip", "trecip", REAL, _REAL, False, "input, high_precision=False", "One over each element"),
    ("neg", "tneg", NUMBER, _COMMON, True, "input", "Each element negated"),
    ("abs", "tabs", NUMBER, (FP32, FP16, INT32), True, "input", "Absolute value of each element"),
    ("relu", "trelu", NUMBER, _COMMON, True, "input", "The larger one of each element and 0"),
):
    vector_op(
        _name,
        (tile_operand("a", _dtypes),),
        _unary,
        either(
            _native,
            Instruction(_op, ("a",), column=_column),
            own(f"unary<{_name.capitalize()}>", "a", isa=_op.upper()),
        ),
    )
    user_name(
        _name,
        _parameters,
        f"{_doc}.",
        ON_TILES if _name == "relu" else ON_BOTH,
        also=(_parameters.replace("input", "tile"),),
    )
for _name, _doc in (("sin", "Sine of each element, in radians"), ("cos", "Cosine of each element, in radians")):
    vector_op(_name, (tile_operand("a", REAL),), _unary, own(f"unary<{_name.capitalize()}>", "a"))
    user_name(_name, "input", f"{_doc}.", also=("tile",))
vector_op("not_", (tile_operand("a", BITS),), _unary, own("unary<Not>", "a", isa="TNOT"))
user_name("not_", "input", "The bits that each element has not.", also=("tile",))

# Three operands.
for _name, _first, _doc in (
    ("addc", "Add", "``lhs + rhs + rhs2``"),
    ("subc", "Sub", "``lhs - rhs + rhs2``, as PTO-ISA has it"),
):
    vector_op(
        _name,
        tuple(tile_operand(operand, NUMBER) for operand in "abc"),
        _three,
        either(
            (FP32,),
            Instruction(f"t{_name}", ("a", "b", "c"), form=Form.GROUPED),
            own(f"ternary<{_first}, Add>", "a", "b", "c", isa=f"T{_name.upper()}"),
        ),
    )
    user_name(_name, "lhs, rhs, rhs2", f"Element by element: {_doc}.", ON_TILES)
    vector_op(
        f"{_name[:3]}sc",
        (tile_operand("a", NUMBER), _SCALAR, tile_operand("b", NUMBER)),
        _two_and_scalar,
        own(f"ternary_scalar<{_first}, Add>", "a", "b", "scalar", isa=f"T{_name[:3].upper()}SC"),
    )
    user_name(f"{_name[:3]}sc", "lhs, rhs, rhs2", f"Element by element: {_doc}; ``rhs`` is a scalar.", ON_TILES)
vector_op(
    "prelu",
    (tile_operand("a", REAL), tile_operand("slope", REAL)),
    _binary,
    own("binary<Prelu>", "a", "slope", isa="TPRELU"),
)
user_name(
    "prelu",
    "tile, slope, tmp=None",
    "Element by element: ``tile`` where it is positive, elsewhere ``tile * slope``.",
    ON_TILES,
)
for _name, _functor, _doc in (
    ("part_add", "Add", "sum"),
    ("part_mul", "Mul", "product"),
    ("part_max", "Max", "larger one"),
    ("part_min", "Min", "smaller one"),
):
    vector_op(
        _name,
        (tile_operand("a", NUMBER), tile_operand("b", NUMBER)),
        _part,
        own(f"part<{_functor}>", "a", "b", isa=f"T{_name.replace('_', '').upper()}"),
    )
    user_name(
        _name, _LHS_RHS, f"The {_doc} where both tiles are valid; elsewhere the one that is.", also=("src0, src1",)
    )

# Comparisons and choices. A comparison gives 1 and 0 of the element type of what is compared.
_PRED = (Attr("pred", str, choices=PREDICATES),)
vector_op(
    "cmp",
    (tile_operand("a", NUMBER), tile_operand("b", NUMBER)),
    _binary,
    own("binary<compare::{pred}>", "a", "b"),
    _PRED,
)
vector_op("cmps", (tile_operand("a", NUMBER), _SCALAR), _with_scalar, own("scalar<compare::{pred}>", *_INS), _PRED)
_COMPARED = (
    "1 where the comparison holds, else 0: ``cmp_type`` 0 is ==, 1 !=, 2 <, 3 <=, 4 >, 5 >=, or their names eq to ge."
)
user_name("cmp", "lhs, rhs, cmp_type=0", _COMPARED, ops=("tile.cmp", "tile.cmps"))
user_name("cmps", "lhs, rhs, cmp_type=0", f"For a tile and a scalar: {_COMPARED}", ON_TILES)
_MASKS = (Attr("mask", str, choices=("elements", "bits")),)
for _suffix, _rule, _other in (("", _select, tile_operand("b", ANY)), ("s", _select_scalar, _SCALAR)):
    vector_op(
        f"sel{_suffix}",
        (tile_operand("mask", ANY), tile_operand("a", ANY), _other),
        _rule,
        own(f"select{'_scalar' if _suffix else ''}<Mask::{{mask}}>", "mask", "a", _other.name),
        _MASKS,
    )
_MASK = "``mask`` has a number for each element, or one bit for each in whole numbers of 8 bits, the lowest bit first."
user_name("sel", "mask, lhs, rhs, tmp=None", f"``lhs`` where the mask is not 0, elsewhere ``rhs``. {_MASK}", ON_TILES)
user_name("sels", "mask, src, tmp, scalar", f"``src`` where the mask is not 0, elsewhere the scalar. {_MASK}", ON_TILES)

vector_op(
    "cast",
    (tile_operand("a", ANY),),
    _cast,
    ByElement(
        frozenset((source, target) for source, targets in _CONVERTED.items() for target in targets),
        (Instruction("tcvt", ("a",)),),
        own("convert<Round::{mode}>", "a", isa="TCVT"),
    ),
    (Attr("mode", str, choices=CAST_MODES),),
)
user_name(
    "cast",
    "input, target_type, mode='round'",
    "Another element type, for tiles and scalars. ``mode``, for whole numbers: none, rint, round, floor, ceil, trunc.",
    also=("tile, target_type, mode",),
)
for _name, _doc in (("max", "larger"), ("min", "smaller")):
    user_name(
        _name,
        _LHS_RHS,
        f"The {_doc} one of two scalars, or element by element of tiles.",
        ON_TILES,
        ops=(f"arith.{_name}", f"tile.{_name}imum"),
    )
