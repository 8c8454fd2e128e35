"""Calls that make, load, store, move and re-shape tiles and tensors."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace

from pypto.ir.limits import LAYOUTS
from pypto.ir.nodes import Value
from pypto.ir.types import INDEX, AtomicType, DynDim, MemorySpace, TensorType, TileLayout, TileType, Valid
from pypto.ir.values import defining_op, same_value, simplified
from pypto.language.parsing import arrays
from pypto.language.parsing.arguments import (
    dtype_argument,
    flag_argument,
    made_shape,
    memory_argument,
    need_matrix,
    offsets_argument,
    reshaped,
    scalar_argument,
    shape_argument,
    tensor_argument,
)
from pypto.language.parsing.binding import Bound
from pypto.language.parsing.elementwise import apply_binary
from pypto.language.parsing.filling_calls import assemble_tile, fill_tile, pad_argument
from pypto.language.parsing.frame import Frame, tile_type
from pypto.language.parsing.model import (
    Model,
    describe,
    is_number,
    is_tensor,
    is_tile,
)
from pypto.language.parsing.tensor_calls import check_layout, filled_tensor, filled_window


def _load(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    tensor = tensor_argument(frame, bound, "tensor")
    frame.check_reads(tensor, bound.node)
    rank = tensor.type.rank if isinstance(tensor.type, TensorType) else 0
    offsets = offsets_argument(frame, bound, "offsets", rank, tensor.name)
    memory = memory_argument(frame, bound, "target_memory") if "target_memory" in bound.given else None
    return load_window(frame, bound, tensor, offsets, "shapes", memory)


def load_window(
    frame: Frame, bound: Bound, tensor: Value, offsets: list[Value], shape_name: str, memory: MemorySpace | None
) -> Value:
    """A load of a window whose shape and valid_shape are arguments of the call."""
    rank, shape, place = len(offsets), bound[shape_name], bound.place(shape_name)
    if not isinstance(shape, tuple) or len(shape) not in (rank, 2):
        raise frame.error(f"{bound.label}: {shape_name} must be a list of {rank} sizes, not {describe(shape)}", place)
    if shape_name == "shape" and not all(is_number(simplified(m) if isinstance(m, Value) else m) for m in shape):
        raise frame.divisible(f"{bound.label}: a tile needs sizes that are known while compiling", place)
    sizes = [frame.known(m, place, f"{bound.label}: a size in {shape_name}") for m in shape]
    lengths = bound["valid_shape"]
    if len(sizes) == rank > 2:
        tensor, offsets, axes = plane(frame, bound, tensor, offsets, sizes, place)
        sizes = [sizes[axis] for axis in axes]
        if isinstance(lengths, tuple) and len(lengths) == rank:
            lengths = tuple(lengths[axis] for axis in axes)
        rank = 2
    rows, cols = (1, *sizes)[-2:]
    valid = frame.valid_shape(lengths, (rows, cols), rank, bound.place("valid_shape"))
    if bound.models.get("clamp"):
        valid = _clamped(frame, bound, tensor, offsets, valid)
    with frame.at(bound.node):
        return frame.builder.load(tensor, offsets, (rows, cols), valid, memory)


def plane(
    frame: Frame, bound: Bound, tensor: Value, offsets: list[Value], sizes: Sequence[Model], place: ast.AST
) -> tuple[Value, list[Value], tuple[int, int]]:
    """The two axes of a window that a tile spans, as a tensor of two dimensions with offsets in it.

    Returns:
        The view, the offsets in it, and which axes they are.
    """
    last = len(sizes) - 1
    axes = [axis for axis, size in enumerate(sizes) if size != 1 and axis != last]
    if len(axes) > 1:
        shown = ", ".join(map(str, sizes))
        raise frame.error(f"{bound.label}: a tile has two dimensions; all other sizes must be 1, got [{shown}]", place)
    row = axes[0] if axes else last - 1
    dims = frame.dims(tensor, bound.node)
    zero, others = frame.index(0, place, "an offset"), [axis for axis in range(last) if axis != row]
    starts = [offset if axis in others else zero for axis, offset in enumerate(offsets)]
    lengths = [1 if axis in others else frame.index(dim, place, "a size") for axis, dim in enumerate(dims)]
    with frame.at(bound.node):
        view = frame.builder.view(tensor, starts, lengths, tensor.name, tuple(others))
    return view, [offsets[row], offsets[last]], (row, last)


def _clamped(
    frame: Frame, bound: Bound, tensor: Value, offsets: list[Value], valid: tuple[Valid, Valid]
) -> tuple[Valid, Valid]:
    """Valid lengths that end where the tensor ends."""
    node = bound.node
    dims = frame.dims(tensor, node)
    lengths: list[Valid] = []
    for length, offset, dim in zip(valid, [0, *offsets][-2:], [1, *dims][-2:], strict=True):
        rest = apply_binary(frame, "sub", dim, simplified(offset) if isinstance(offset, Value) else offset, node)
        shorter = apply_binary(frame, "min", rest, length, node)
        if isinstance(rest, int) and rest < 1:
            raise frame.error(
                f"{bound.label}: clamp=True leaves nothing: offset {dim - rest} is not inside of an axis of {dim}", node
            )
        lengths.append(simplified(shorter) if isinstance(shorter, Value) else shorter)
    return lengths[0], lengths[1]


def _store(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    tensor = tensor_argument(frame, bound, "output_tensor")
    if is_tensor(bound["tile"]):
        bound.models["tile"] = frame.tile(bound["tile"], bound.place("tile"), f"{bound.label}: tile")
    if not is_tile(bound["tile"]):
        raise frame.error(f"{bound.label}: tile must be a tile, not {describe(bound['tile'])}", bound.place("tile"))
    rank = tensor.type.rank if isinstance(tensor.type, TensorType) else 0
    offsets = offsets_argument(frame, bound, "offsets", rank, tensor.name)
    frame.check_writes(tensor, bound.place("output_tensor"))
    tile: Value = bound["tile"]
    target = tensor
    if bound["shapes"] is not None:
        given, place = bound["shapes"], bound.place("shapes")
        if isinstance(given, tuple) and len(given) == rank > 2:
            known = [simplified(frame.index(m, place, f"{bound.label}: a size")) for m in given]
            target, offsets, axes = plane(frame, bound, tensor, offsets, known, place)
            given, rank = tuple(known[axis] for axis in axes), 2
        tile = _narrowed(frame, bound, tile, frame.valid_shape(given, tile_type(tile).shape, rank, place))
    with frame.at(bound.node):
        frame.builder.store(tile, target, offsets, atomic=_atomic(frame, bound))
    return tensor


def _narrowed(frame: Frame, bound: Bound, tile: Value, sizes: tuple[Valid, Valid]) -> Value:
    """The tile with at most these valid lengths: what it does not hold is not stored."""
    type, lengths = tile_type(tile), list[Valid]()
    for axis, (size, valid, allocated) in enumerate(zip(sizes, type.valid, type.shape, strict=True)):
        if isinstance(size, int) and not 1 <= size <= allocated:
            raise frame.error(
                f"{bound.label}: size {size} of axis {axis} is outside 1..{allocated}", bound.place("shapes")
            )
        if size == allocated or same_value(size, valid):
            lengths.append(valid)
        elif valid == allocated:
            lengths.append(size)
        else:
            shorter = apply_binary(frame, "min", valid, size, bound.node)
            lengths.append(simplified(shorter) if isinstance(shorter, Value) else shorter)
    if all(a is b or a == b for a, b in zip(lengths, type.valid, strict=True)):
        return tile
    values = [frame.index(length, bound.place("shapes"), f"{bound.label}: a size") for length in lengths]
    return frame.op("tile.set_validshape", [tile, *values], bound.node).result


def _atomic(frame: Frame, bound: Bound) -> str:
    """How a store combines with what the tensor holds."""
    model = bound["atomic"]
    if model is None:
        return "none"
    if not isinstance(model, AtomicType):
        raise frame.error(
            f"{bound.label}: atomic must be pl.AtomicType.Add or None_, not {describe(model)}", bound.place("atomic")
        )
    return model.value


def _assemble(frame: Frame, bound: Bound) -> Model:
    if is_tile(bound["target"]):
        if _atomic(frame, bound) != "none":
            raise frame.error(f"{bound.label}: only tensors are added to, not tiles", bound.place("atomic"))
        return assemble_tile(frame, bound)
    frame.need_core(bound.label, bound.node)
    tensor = tensor_argument(frame, bound, "target")
    rank = tensor.type.rank if isinstance(tensor.type, TensorType) else 0
    offsets = offsets_argument(frame, bound, "offset", rank, tensor.name)
    frame.check_writes(tensor, bound.place("target"))
    tile = frame.tile(bound["source"], bound.place("source"), f"{bound.label}: source")
    with frame.at(bound.node):
        frame.builder.store(tile, tensor, offsets, atomic=_atomic(frame, bound))
    return tensor


def _create_tile(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    shape, dtype = shape_argument(frame, bound, "shape"), dtype_argument(frame, bound, "dtype")
    memory = memory_argument(frame, bound, "target_memory")
    if memory is MemorySpace.DDR:
        raise frame.error(f"{bound.label}: a tile cannot be in DDR; use pl.create_tensor", bound.place("target_memory"))
    return frame.op("tile.create", [], bound.node, (TileType(shape, dtype, memory, shape),)).result


def _full(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    shape, dtype = made_shape(frame, bound, "shape"), dtype_argument(frame, bound, "dtype")
    value = scalar_argument(frame, bound, "value", dtype)
    return frame.op("tile.full", [value], bound.node, (TileType(shape, dtype, MemorySpace.Vec, shape),)).result


def _expands(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    target = tile_type(frame.tile(bound["target"], bound.place("target"), f"{bound.label}: target"))
    value = scalar_argument(frame, bound, "scalar", target.dtype)
    wanted = TileType(target.shape, target.dtype, MemorySpace.Vec, target.valid)
    return frame.op("tile.full", [value], bound.node, (wanted,)).result


def _create_tensor(frame: Frame, bound: Bound) -> Model:
    known = isinstance(bound["shape"], tuple) and all(is_number(size) for size in bound["shape"])
    if frame.on_core and not (frame.in_scope and known and frame.outer is not None):
        where = "a scope" if frame.in_scope else "a function under @pl.jit.incore"
        error = frame.syntax_error(
            f"{bound.label} stands in {where}; create workspaces in the entry and pass them as arguments", bound.node
        )
        error.divisible = frame.in_scope
        raise error
    shape, dtype = bound["shape"], dtype_argument(frame, bound, "dtype")
    if dtype == INDEX:
        raise frame.error(f"{bound.label}: tensors of INDEX do not exist; use pl.INT64", bound.place("dtype"))
    if not isinstance(shape, tuple) or not shape:
        raise frame.error(f"{bound.label}: shape must be a list of sizes, not {describe(shape)}", bound.place("shape"))
    sizes = [frame.index(m, bound.place("shape"), f"{bound.label}: a size") for m in shape]
    check_layout(frame, bound)
    if bound["init_value"] is not None:
        if frame.on_core:
            raise frame.error(f"{bound.label} with init_value stands on a core; make it in the entry", bound.node)
        return filled_tensor(frame, sizes, dtype, bound["init_value"], bound.node)
    block = frame.outer if frame.on_core and frame.outer is not None else frame.builder.block
    with frame.at(bound.node), frame.builder.inside(block):
        made = frame.builder.create_tensor(list(map(simplified, sizes)), dtype)
        if not flag_argument(frame, bound, "manual_dep"):
            return made
        frame.program.untracked = True
        return frame.builder.value("tensor.untracked", (made,), made.name)


def _move(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    tile = frame.tile(bound["tile"], bound.place("tile"), f"{bound.label}: tile")
    memory = memory_argument(frame, bound, "target_memory")
    for name, layout in zip(("blayout", "slayout"), LAYOUTS.get(memory, ()), strict=False):
        if bound[name] not in (None, layout):
            given = bound[name].value if isinstance(bound[name], TileLayout) else describe(bound[name])
            raise frame.error(
                f"{bound.label}: {name}={given} is not supported: it is {layout.value} in {memory.value}",
                bound.place(name),
            )
    source = defining_op(tile)
    if memory is MemorySpace.Bias and source is not None and source.name == "tile.load":
        # Rows stand in blocks in Mat; a bias comes straight from its tensor.
        type = replace(tile_type(tile), memory=memory)
        return frame.op("tile.load", source.operands, bound.node, (type,)).result
    with frame.at(bound.node):
        return frame.builder.move(tile, memory)


def _slice(frame: Frame, bound: Bound) -> Model:
    base = bound["input"]
    if is_tile(base):
        if isinstance(bound["shape"], tuple) and len(bound["shape"]) != 2:
            need_matrix(frame, bound, "input")
        shape = shape_argument(frame, bound, "shape")
        row, col = offsets_argument(frame, bound, "offset", 2, "the tile")
        valid = frame.valid_shape(bound["valid_shape"], shape, 2, bound.place("valid_shape"))
        if bound["drop_dims"] is not None:
            raise frame.error(f"{bound.label}: a tile keeps its two dimensions", bound.place("drop_dims"))
        if bound["clamp"]:
            raise frame.error(f"{bound.label}: clamp is about tensors, not tiles", bound.place("clamp"))
        part = slice_tile(
            frame, base, shape, (row, col), valid if bound["valid_shape"] is not None else None, bound.node
        )
        return _padded(frame, bound, part)
    tensor = tensor_argument(frame, bound, "input")
    rank = tensor.type.rank if isinstance(tensor.type, TensorType) else 0
    offsets = offsets_argument(frame, bound, "offset", rank, tensor.name)
    narrowed = bound["clamp"] or any(bound[name] is not None for name in ("valid_shape", "pad_value"))
    if narrowed and frame.on_core:
        frame.check_reads(tensor, bound.node)
        # The window can be larger than a tile.
        frame.program.loads_of_tensors += 1
        return _padded(frame, bound, load_window(frame, bound, tensor, offsets, "shape", None))
    if bound["clamp"] or bound["pad_value"] is not None:
        if not isinstance(bound["shape"], tuple) or len(bound["shape"]) != rank or bound["drop_dims"] is not None:
            raise frame.error(
                f"{bound.label}: shape must be a list of {rank} sizes, and no axis is dropped", bound.node
            )
        pad = None if bound["pad_value"] is None else pad_argument(frame, bound)
        if pad is not None and not frame.whole:
            frame.need_core(f"{bound.label} with pad_value", bound.node)
        return filled_window(frame, bound, tensor, offsets, bound["shape"], pad)
    sizes = bound["shape"] if bound["valid_shape"] is None else bound["valid_shape"]
    if not isinstance(sizes, tuple) or len(sizes) != rank:
        raise frame.error(f"{bound.label}: shape must be a list of {rank} sizes, not {describe(sizes)}", bound.node)
    values = [frame.index(m, bound.node, f"{bound.label}: a size") for m in sizes]
    with frame.at(bound.node):
        return frame.builder.view(tensor, offsets, values, tensor.name, _dropped(frame, bound, values))


def _padded(frame: Frame, bound: Bound, tile: Value) -> Value:
    """The tile, filled up if the call says with what."""
    if bound["pad_value"] is None:
        return tile
    return fill_tile(frame, tile, pad_argument(frame, bound), bound)


def _dropped(frame: Frame, bound: Bound, sizes: list[Value]) -> tuple[int, ...]:
    """The axes that a slice leaves out."""
    model = bound["drop_dims"]
    if model is None:
        return ()
    axes = model if isinstance(model, tuple) else (model,)
    place, found = bound.place("drop_dims"), []
    for axis in axes:
        number = frame.known(axis, place, f"{bound.label}: an axis")
        number += len(sizes) if number < 0 else 0
        if not 0 <= number < len(sizes) or simplified(sizes[number]) != 1:
            raise frame.error(f"{bound.label}: only axes of size 1 can be dropped, not axis {number}", place)
        found.append(number)
    return tuple(sorted(found))


def slice_tile(
    frame: Frame,
    tile: Value,
    shape: tuple[int, int],
    offsets: tuple[Value, Value],
    valid: tuple[Valid, Valid] | None,
    node: ast.AST,
) -> Value:
    """A part of a tile; without valid lengths the tile itself must be valid throughout."""
    type = tile_type(tile)
    if valid is None:
        if type.valid != type.shape:
            raise frame.error("the tile is only partly valid; use pl.slice with valid_shape", node)
        valid = shape
    wanted = TileType(shape, type.dtype, MemorySpace.Vec, valid)
    return frame.op("tile.slice", [tile, *offsets], node, (wanted,)).result


def _reshape(frame: Frame, bound: Bound) -> Model:
    if is_tensor(bound["input"]) and not frame.on_core:
        return arrays.reshape(frame, bound)
    frame.need_core(bound.label, bound.node)
    tile = frame.tile(bound["input"], bound.place("input"), f"{bound.label}: input")
    reshaped(frame, bound, "shape", tile_type(tile).shape)
    shape = shape_argument(frame, bound, "shape")
    wanted = TileType(shape, tile_type(tile).dtype, MemorySpace.Vec, shape)
    return frame.op("tile.reshape", [tile], bound.node, (wanted,)).result


def _transpose(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    need_matrix(frame, bound, "input", flat=True)
    tile = frame.tile(bound["input"], bound.place("input"), f"{bound.label}: input")
    axes = [frame.known(bound[name], bound.place(name), f"{bound.label}: {name}") for name in ("axis1", "axis2")]
    if sorted(axis + 2 if axis < 0 else axis for axis in axes) != [0, 1]:
        raise frame.error(f"{bound.label}: a tile has the axes 0 and 1, got {axes[0]} and {axes[1]}", bound.node)
    return frame.op("tile.transpose", [tile], bound.node).result


def _set_validshape(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    tile = frame.tile(bound["input"], bound.place("input"), f"{bound.label}: input")
    sizes = [
        frame.index(bound[name], bound.place(name), f"{bound.label}: {name}") for name in ("valid_rows", "valid_cols")
    ]
    return frame.op("tile.set_validshape", [tile, *sizes], bound.node).result


def _dim(frame: Frame, bound: Bound) -> Model:
    tensor = tensor_argument(frame, bound, "tensor")
    axis = frame.known(bound["axis"], bound.place("axis"), f"{bound.label}: axis")
    dims = tensor.type.shape if isinstance(tensor.type, TensorType) else ()
    number, axis = axis, axis + len(dims) if axis < 0 else axis
    if not 0 <= axis < len(dims):
        raise frame.error(f"{bound.label}: axis {number} is outside a tensor of {len(dims)} dimensions", bound.node)
    dim = dims[axis]
    if isinstance(dim, DynDim):
        return frame.op("tensor.dim", [tensor], bound.node, axis=axis).result
    return dim


Handler = Callable[[Frame, Bound], Model]

HANDLERS: dict[str, Handler] = {
    "expands": _expands,
    "load": _load,
    "store": _store,
    "create": _create_tile,
    "create_tile": _create_tile,
    "full": _full,
    "create_tensor": _create_tensor,
    "move": _move,
    "slice": _slice,
    "reshape": _reshape,
    "transpose": _transpose,
    "set_validshape": _set_validshape,
    "assemble": _assemble,
    "tensor.dim": _dim,
}
# (operation, parameter) whose meaning is handled here; other calls refuse anything but the neutral value.
OPTIONS = frozenset(
    {
        *(("load", name) for name in ("shapes", "clamp")),
        *(("store", name) for name in ("shapes", "atomic")),
        *(("slice", name) for name in ("drop_dims", "pad_value", "clamp")),
        *(("move", name) for name in ("blayout", "slayout")),
        ("assemble", "atomic"),
        ("create_tensor", "manual_dep"),
    }
)
