"""Calls of matrix products and transpositions of whole tensors."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pypto.ir.nodes import Value
from pypto.ir.ops.tile_matrix import PRODUCTS
from pypto.ir.types import TensorType
from pypto.ir.values import same_value
from pypto.language.parsing.arguments import axis_argument, dtype_argument
from pypto.language.parsing.arrays import (
    Dims,
    apply,
    as_rows,
    binary,
    joint_lead,
    result_dtype,
    shape_of,
    shape_text,
    shaped,
    tensor_operand,
    tile_code,
)
from pypto.language.parsing.frame import Frame
from pypto.language.parsing.model import Model, describe

if TYPE_CHECKING:
    from pypto.language.parsing.binding import Bound

# Fewer rows than this do not fill a block of a product.
_FEW_ROWS = 128


def _matmul(frame: Frame, bound: Bound) -> Model:
    """A product of the last two axes; the others are repeated as NumPy does."""
    left, right = tensor_operand(frame, bound, "lhs"), tensor_operand(frame, bound, "rhs")
    flags = {name: bool(bound.models.get(name)) for name in ("a_trans", "b_trans")}
    shapes = [shape_of(frame, v, bound.node) for v in (left, right)]
    cannot = f"{bound.label}: cannot multiply {shape_text(shapes[0])} by {shape_text(shapes[1])}"
    if any(len(s) < 2 for s in shapes):
        raise frame.error(f"{cannot}: needs two dimensions or more; use pl.reshape", bound.node)
    lead = joint_lead([s[:-2] for s in shapes])
    if lead is None:
        raise frame.error(f"{cannot}: the leading dimensions are neither equal nor 1", bound.node)
    (rows, inner), (inner_right, cols) = (
        reversed(s[-2:]) if turned else s[-2:] for s, turned in zip(shapes, flags.values(), strict=True)
    )
    dtypes = [v.type.dtype for v in (left, right) if isinstance(v.type, TensorType)]
    if dtypes[0] != dtypes[1] or dtypes[0] not in PRODUCTS:
        raise frame.error(f"{bound.label}: cannot multiply {dtypes[0]} by {dtypes[1]}; use pl.cast", bound.node)
    if not same_value(inner, inner_right):
        raise frame.error(
            f"{cannot}: {shape_text([inner])} columns meet {shape_text([inner_right])} rows; "
            "a_trans and b_trans swap an operand's axes",
            bound.node,
        )
    made = _folded(frame, left, right, shapes, flags, bound.node)
    if made is None:
        made = apply(frame, "matmul", [left, right], (*lead, rows, cols), PRODUCTS[dtypes[0]], bound.node, **flags)
    if bound.models.get("out_dtype") is None:
        return made
    wanted = dtype_argument(frame, bound, "out_dtype")
    if wanted == PRODUCTS[dtypes[0]]:
        return made
    return apply(frame, "cast", [made], (*lead, rows, cols), wanted, bound.node, mode="round")


def _folded(
    frame: Frame, left: Value, right: Value, shapes: Sequence[Dims], flags: dict[str, bool], node: ast.AST
) -> Value | None:
    """Many products of few rows by one matrix, as one product; ``None`` where that does not help."""
    *lead, rows, inner = shapes[0]
    view = isinstance(left.type, TensorType) and left.type.is_view
    if not lead or len(shapes[1]) != 2 or flags["a_trans"] or view:
        return None
    if not all(isinstance(d, int) for d in (*lead, rows)) or rows >= _FEW_ROWS:
        return None
    together = rows
    for length in lead:
        together *= length
    cols = shapes[1][0 if flags["b_trans"] else 1]
    dtype = PRODUCTS[left.type.dtype] if isinstance(left.type, TensorType) else None
    if dtype is None:
        return None
    flat = shaped(frame, left, (together, inner), node)
    made = apply(frame, "matmul", [flat, right], (together, cols), dtype, node, **flags)
    return shaped(frame, made, (*lead, rows, cols), node)


def _matmul_acc(frame: Frame, bound: Bound) -> Model:
    start = bound.models.get("init_cond")
    if start not in (None, False, True):
        raise tile_code(frame, f"{bound.label} with a run-time init_cond", bound.node)
    product: Value = _matmul(frame, bound)
    if start:
        return product
    return binary(frame, "add", tensor_operand(frame, bound, "acc"), product, bound.label, bound.node)


def _matmul_bias(frame: Frame, bound: Bound) -> Model:
    bias = tensor_operand(frame, bound, "bias")
    return binary(frame, "add", _matmul(frame, bound), bias, bound.label, bound.node)


def _gemv(product: Callable[[Frame, Bound], Model]) -> Callable[[Frame, Bound], Model]:
    """A product whose left side is one row."""

    def handler(frame: Frame, bound: Bound) -> Model:
        left = tensor_operand(frame, bound, "lhs")
        shape = shape_of(frame, left, bound.node)
        if len(shape) < 2 or not same_value(shape[-2], 1):
            raise frame.error(f"{bound.label}: lhs must be a row [1, K], not {describe(left)}", bound.place("lhs"))
        if bound["acc_phase"] != "unspecified":
            raise frame.error(f"{bound.label}: acc_phase is not supported; leave it out", bound.place("acc_phase"))
        return product(frame, bound)

    return handler


def _transpose(frame: Frame, bound: Bound) -> Model:
    """Two axes swapped."""
    source = tensor_operand(frame, bound, "input")
    shape = list(as_rows(shape_of(frame, source, bound.node)))
    if len(shape) > len(shape_of(frame, source, bound.node)):
        source = shaped(frame, source, shape, bound.node)
    first, second = sorted(axis_argument(frame, bound, name, len(shape)) for name in ("axis1", "axis2"))
    if first == second:
        raise frame.error(f"{bound.label}: axis1 and axis2 are both {first}", bound.node)
    shape[first], shape[second] = shape[second], shape[first]
    dtype = result_dtype(frame, "transpose", [source], bound.node)
    return apply(frame, "transpose", [source], shape, dtype, bound.node, axes=(first, second))


HANDLERS: dict[str, Callable[[Frame, Bound], Model]] = {
    "matmul": _matmul,
    "batch_matmul": _matmul,
    "matmul_acc": _matmul_acc,
    "batch_matmul_acc": _matmul_acc,
    "matmul_bias": _matmul_bias,
    "gemv": _gemv(_matmul),
    "gemv_acc": _gemv(_matmul_acc),
    "gemv_bias": _gemv(_matmul_bias),
    "transpose": _transpose,
}
