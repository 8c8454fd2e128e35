"""Calls that exist for tensors only: other handles of them, copies that repeat, windows that are filled up."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pypto.ir.nodes import Value
from pypto.ir.ops.tile_filling import pad_number
from pypto.ir.types import DType, MemorySpace, TensorLayout, TensorType, TileType
from pypto.ir.values import same_value, simplified
from pypto.language.parsing import arrays
from pypto.language.parsing.arguments import dtype_argument, flag_argument, shape_argument, tensor_argument
from pypto.language.parsing.binding import Bound
from pypto.language.parsing.elementwise import apply_binary
from pypto.language.parsing.frame import Frame, tile_type
from pypto.language.parsing.model import Model, describe, is_number, is_tensor


def check_layout(frame: Frame, bound: Bound) -> None:
    """Tensors are row-major."""
    if bound["layout"] not in (None, TensorLayout.ND):
        raise frame.error(
            f"{bound.label}: layout={describe(bound['layout'])} is not supported: tensors are row-major (ND)",
            bound.place("layout"),
        )


def _view(frame: Frame, bound: Bound) -> Model:
    """Another shape of a tensor, or a part from its beginning."""
    check_layout(frame, bound)
    tensor = tensor_argument(frame, bound, "tensor")
    if bound["shape"] is not None:
        if frame.on_core:
            raise frame.syntax_error(
                f"{bound.label} with a shape stands on a core; reshape the tensor in the entry and use it here",
                bound.node,
            )
        bound.models["input"] = tensor
        tensor = arrays.reshape(frame, bound)
    if bound["valid_shape"] is None:
        return tensor
    sizes, rank = bound["valid_shape"], tensor.type.rank if isinstance(tensor.type, TensorType) else 0
    if not isinstance(sizes, tuple) or len(sizes) != rank:
        raise frame.error(f"{bound.label}: valid_shape must be a list of {rank} sizes", bound.place("valid_shape"))
    lengths = [frame.index(m, bound.place("valid_shape"), f"{bound.label}: a size") for m in sizes]
    with frame.at(bound.node):
        return frame.builder.view(tensor, [0] * rank, lengths, tensor.name)


def _expand_clone(frame: Frame, bound: Bound) -> Model:
    """``src`` repeated along its axes of length 1 to the shape of ``target``."""
    tensors = [bound["src"], bound["target"]]
    if frame.on_core:
        return _expanded_tile(frame, bound)
    if not frame.whole or not all(is_tensor(t) for t in tensors):
        frame.need_core(bound.label, bound.node)
    source, target = tensors
    frame.check_reads(source, bound.place("src"))
    have, wanted = (arrays.shape_of(frame, t, bound.node) for t in (source, target))
    differing = [axis for axis, (a, b) in enumerate(zip(have, wanted, strict=False)) if not same_value(a, b)]
    if len(have) != len(wanted) or len(differing) > 1 or any(have[axis] != 1 for axis in differing):
        raise frame.error(
            f"{bound.label}: {describe(source)} is repeated along one axis of length 1; target is {describe(target)}",
            bound.node,
        )
    dtype = source.type.dtype
    with frame.at(bound.node):
        made: Value = frame.builder.create_tensor(list(wanted), dtype, "expanded")
        if not differing:
            frame.builder.op("tensor.assign", [source, made])
            return made
        axis = differing[0]
        with frame.builder.loop(0, wanted[axis], 1, name="copy") as loop:
            place = [loop.index if a == axis else 0 for a in range(len(wanted))]
            sizes = [1 if a == axis else d for a, d in enumerate(wanted)]
            frame.builder.op("tensor.assign", [source, frame.builder.view(made, place, sizes, "copy")])
    return made


def _expanded_tile(frame: Frame, bound: Bound) -> Value:
    source, target = (frame.tile(bound[n], bound.place(n), f"{bound.label}: {n}") for n in ("src", "target"))
    have, wanted = tile_type(source), tile_type(target)
    if have.shape == wanted.shape:
        return frame.op("tile.move", [source], bound.node, (replace(have, memory=MemorySpace.Vec),)).result
    name = "tile.row_expand" if have.shape == (wanted.shape[0], 1) else "tile.col_expand"
    return frame.op(name, [target, source], bound.node).result


def _create_l1(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    shape, dtype = shape_argument(frame, bound, "shape"), dtype_argument(frame, bound, "dtype")
    if flag_argument(frame, bound, "transpose"):
        shape = (shape[1], shape[0])
    return frame.op("tile.create", [], bound.node, (TileType(shape, dtype, MemorySpace.Mat, shape),)).result


def filled_window(
    frame: Frame, bound: Bound, tensor: Value, offsets: Sequence[Value], sizes: Sequence[Model], pad: int | None
) -> Value:
    """A window of a tensor as a tensor: only what the tensor has there, and filled up when the call says with what."""
    lengths: list[Model] = list(bound["valid_shape"] if bound["valid_shape"] is not None else sizes)
    if bound["clamp"]:
        lengths = [
            _shorter(frame, length, start, dim, bound.node)
            for length, start, dim in zip(lengths, offsets, frame.dims(tensor, bound.node), strict=True)
        ]
    values = [frame.index(m, bound.node, f"{bound.label}: a size") for m in lengths]
    with frame.at(bound.node):
        part = frame.builder.view(tensor, offsets, values, tensor.name)
    if pad is None:
        return part
    dtype: DType = tensor.type.dtype if isinstance(tensor.type, TensorType) else DType("", 0, "")
    made = filled_tensor(frame, list(sizes), dtype, pad_number(dtype, pad), bound.node)
    with frame.at(bound.node):
        place = frame.builder.view(made, [0] * len(values), values, tensor.name)
        frame.builder.op("tensor.assign", [part, place])
    return made


def _shorter(frame: Frame, length: Model, start: Value, dim: Model, node: ast.AST) -> Model:
    rest = apply_binary(frame, "sub", dim, simplified(start), node)
    return apply_binary(frame, "min", length, rest, node)


def filled_tensor(frame: Frame, sizes: Sequence[Model], dtype: DType, value: Model, node: ast.AST) -> Value:
    """A new tensor with one number everywhere."""
    number = frame.scalar(float(value) if dtype.is_float and is_number(value) else value, dtype, node, "a filling")
    full = arrays.apply(frame, "full", [number], sizes, dtype, node)
    dims = [simplified(frame.index(size, node, "a size")) for size in sizes]
    with frame.at(node):
        made = frame.builder.create_tensor(dims, dtype, "filled")
        frame.builder.op("tensor.assign", [full, made])
    return made


HANDLERS: dict[str, Callable[[Frame, Bound], Any]] = {
    "tensor.view": _view,
    "tensor.expand_clone": _expand_clone,
    "tensor.create_l1": _create_l1,
}
OPTIONS = frozenset(
    {
        ("tensor.view", "layout"),
        ("tensor.create_l1", "transpose"),
        ("create_tensor", "layout"),
        ("create_tensor", "init_value"),
    }
)
