"""Matrix work on tiles (AIC)."""

from __future__ import annotations

from pypto.ir.nodes import CoreType
from pypto.ir.ops.lowering import Form, Instruction
from pypto.ir.ops.registry import Attr, Call, Kind, OpDef, Operand, register
from pypto.ir.ops.user_names import ON_BOTH, ON_TILES, user_name
from pypto.ir.ops.vector import text
from pypto.ir.types import BF16, FP16, FP32, INT8, INT32, DType, MemorySpace, TileType, Type, Valid
from pypto.ir.values import length_text, same_value

# Element type of both operands -> element type of the result.
PRODUCTS: dict[DType, DType] = {FP32: FP32, FP16: FP32, BF16: FP32, INT8: INT32}


def _product(call: Call, left: TileType, right: TileType) -> TileType:
    def turned(type: TileType, attr: str) -> tuple[tuple[int, int], tuple[Valid, Valid]]:
        if call.attrs.get(attr, False):
            return type.shape[::-1], type.valid[::-1]
        return type.shape, type.valid

    (rows, inner), (valid_rows, valid_inner) = turned(left, "a_trans")
    (inner_right, cols), (valid_inner_right, valid_cols) = turned(right, "b_trans")
    if left.dtype != right.dtype:
        raise call.error(f"needs tiles of one element type, got {left.dtype} and {right.dtype}; use pl.cast")
    if inner != inner_right:
        raise call.error(
            f"cannot multiply [{rows}, {inner}] by [{inner_right}, {cols}]: {inner} columns meet {inner_right} rows; "
            "a_trans and b_trans swap an operand's axes"
        )
    if not same_value(valid_inner, valid_inner_right):
        raise call.error(
            "the valid columns of the left tile and the valid rows of the right one are not known to be equal: "
            f"{length_text(valid_inner)} and {length_text(valid_inner_right)}; "
            "load both with clamp=True or with one valid length"
        )
    return TileType((rows, cols), PRODUCTS[left.dtype], MemorySpace.Acc, (valid_rows, valid_cols))


def _matmul(call: Call) -> tuple[Type, ...]:
    return (_product(call, call.tile(0), call.tile(1)),)


def _matmul_acc(call: Call) -> tuple[Type, ...]:
    acc = call.tile(0)
    product = _product(call, call.tile(1), call.tile(2))
    if acc.shape != product.shape or acc.dtype != product.dtype:
        raise call.error(
            f"the accumulator is [{acc.shape[0]}, {acc.shape[1]}] of {acc.dtype}, "
            f"but the product is [{product.shape[0]}, {product.shape[1]}] of {product.dtype}"
        )
    if not all(same_value(a, p) for a, p in zip(acc.valid, product.valid, strict=True)):
        raise call.error(
            f"the valid sizes of the accumulator and of the product are not known to be equal: {text(acc.valid)} and "
            f"{text(product.valid)}; start the accumulator with pl.matmul of tiles of the same valid sizes"
        )
    return (product,)


def _matmul_bias(call: Call) -> tuple[Type, ...]:
    product, bias = _product(call, call.tile(0), call.tile(1)), call.tile(2)
    if bias.shape != (1, product.shape[1]) or not same_value(bias.valid[1], product.valid[1]):
        raise call.error(f"bias must be a row [1, {product.shape[1]}], is [{bias.shape[0]}, {bias.shape[1]}]")
    if bias.dtype != product.dtype:
        raise call.error(f"bias must be of {product.dtype}, as the product, is of {bias.dtype}; use pl.cast")
    return (product,)


_DTYPES = tuple(PRODUCTS)
_LEFT = Operand("left", Kind.TILE, (MemorySpace.Left,), moved_from=(MemorySpace.Mat,), dtypes=_DTYPES)
_RIGHT = Operand("right", Kind.TILE, (MemorySpace.Right,), moved_from=(MemorySpace.Mat,), dtypes=_DTYPES)
_ACC = Operand("acc", Kind.TILE, (MemorySpace.Acc,), dtypes=(FP32, INT32))
_BIAS = Operand("bias", Kind.TILE, (MemorySpace.Bias,), moved_from=(MemorySpace.Bias,), dtypes=(FP32, INT32))
_TRANSPOSITIONS = (Attr("a_trans", bool, required=False), Attr("b_trans", bool, required=False))

register(
    OpDef(
        "tile.matmul",
        (_LEFT, _RIGHT),
        _matmul,
        _TRANSPOSITIONS,
        core=CoreType.AIC,
        lowering=(Instruction("tmatmul", ("left", "right"), form=Form.GROUPED),),
        result_memory=MemorySpace.Acc,
    )
)
register(
    OpDef(
        "tile.matmul_acc",
        (_ACC, _LEFT, _RIGHT),
        _matmul_acc,
        _TRANSPOSITIONS,
        core=CoreType.AIC,
        lowering=(Instruction("tmatmul.acc", ("acc", "left", "right"), form=Form.GROUPED),),
        inplace=0,
        result_memory=MemorySpace.Acc,
    )
)
register(
    OpDef(
        "tile.matmul_bias",
        (_LEFT, _RIGHT, _BIAS),
        _matmul_bias,
        core=CoreType.AIC,
        lowering=(Instruction("tmatmul.bias", ("left", "right", "bias"), form=Form.GROUPED),),
        result_memory=MemorySpace.Acc,
    )
)

user_name(
    "matmul",
    "lhs, rhs, out_dtype=None, a_trans=False, b_trans=False, c_matrix_nz=False",
    (
        "Matrix product of ``[M, K]`` and ``[K, N]``; FP16, BF16 and FP32 give FP32, INT8 gives "
        "INT32. ``a_trans`` and ``b_trans`` say that an operand is stored as ``[K, M]`` or ``[N, "
        "K]``; such an operand is a load."
    ),
    ON_BOTH,
)
user_name(
    "matmul_acc",
    "acc, lhs, rhs, a_trans=False, b_trans=False, init_cond=None",
    "``acc + lhs @ rhs``; where ``init_cond`` holds, ``lhs @ rhs`` and ``acc`` is not read.",
    ON_BOTH,
    also=("acc, lhs, rhs, init_cond",),
)
user_name(
    "batch_matmul",
    "lhs, rhs, out_dtype=None, a_trans=False, b_trans=False",
    (
        "Matrix products of ``[..., M, K]`` and ``[..., K, N]``, one for each index of the leading dimensions, which "
        "are repeated as NumPy does."
    ),
    ON_TILES,
    ops=("tile.matmul",),
)
user_name(
    "batch_matmul_acc",
    "acc, lhs, rhs",
    "``acc`` plus the matrix products of ``[..., M, K]`` and ``[..., K, N]``.",
    ON_TILES,
    ops=("tile.matmul", "tile.add"),
)
user_name(
    "matmul_bias",
    "lhs, rhs, bias",
    "``lhs @ rhs + bias``, with one row of bias for all rows.",
    ON_TILES,
)
user_name(
    "matmul_mx",
    "lhs, lhs_scale, rhs, rhs_scale",
    "A product of operands that share scales in blocks.",
    ON_TILES,
    unsupported="ptoas 0.1.1 has no scaled products and no element types of fewer than 8 bits",
)
user_name(
    "matmul_mx_acc",
    "acc, lhs, lhs_scale, rhs, rhs_scale",
    "``acc`` plus such a product.",
    ON_TILES,
    unsupported="ptoas 0.1.1 has no scaled products and no element types of fewer than 8 bits",
)
user_name(
    "matmul_mx_bias",
    "lhs, lhs_scale, rhs, rhs_scale, bias",
    "Such a product plus a row of bias.",
    ON_TILES,
    unsupported="ptoas 0.1.1 has no scaled products and no element types of fewer than 8 bits",
)
user_name(
    "gemv",
    "lhs, rhs, acc_phase='unspecified'",
    "A row ``[1, K]`` times a matrix ``[K, N]``.",
    ON_TILES,
    ops=("tile.matmul",),
)
user_name(
    "gemv_acc",
    "acc, lhs, rhs, acc_phase='unspecified'",
    "``acc`` plus a row times a matrix.",
    ON_TILES,
    ops=("tile.matmul_acc",),
)
user_name(
    "gemv_bias",
    "lhs, rhs, bias, acc_phase='unspecified'",
    "A row times a matrix plus a row of bias.",
    ON_TILES,
    ops=("tile.matmul_bias",),
)
