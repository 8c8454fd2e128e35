"""Arguments of calls as what an operation needs, or one error that names the argument."""

from __future__ import annotations

import ast
import enum
import math
from collections.abc import Sequence

from pypto.ir.nodes import Value
from pypto.ir.ops.arith import PREDICATES
from pypto.ir.ops.tile_index import PATTERNS
from pypto.ir.types import BF16, BOOL, FP16, FP32, DType, DynDim, MemorySpace, ScalarType, TensorType, TileType
from pypto.ir.values import defining_op
from pypto.language.parsing.binding import Bound
from pypto.language.parsing.frame import Frame
from pypto.language.parsing.model import (
    Model,
    describe,
    is_number,
    is_scalar,
    is_tensor,
)


def shape_argument(frame: Frame, bound: Bound, name: str) -> tuple[int, int]:
    """Two known sizes ``[rows, cols]``; ``[cols]`` is one row."""
    model = bound[name]
    if isinstance(model, tuple) and len(model) == 1:
        model = (1, *model)
    if not isinstance(model, tuple) or len(model) != 2:
        raise frame.error(f"{bound.label}: {name} must be [rows, cols], not {describe(model)}", bound.place(name))
    rows, cols = (frame.known(m, bound.place(name), f"{bound.label}: a size in {name}") for m in model)
    if rows <= 0 or cols <= 0:
        raise frame.error(f"{bound.label}: {name} must be positive, got [{rows}, {cols}]", bound.place(name))
    return rows, cols


def made_shape(frame: Frame, bound: Bound, name: str) -> tuple[int, int]:
    """The shape of a tile that a call makes from nothing; as a whole tensor it may be larger, or of run-time sizes."""
    frame.program.loads_of_tensors += 1
    model = bound[name]
    if isinstance(model, tuple) and len(model) > 2:
        raise frame.divisible(f"{bound.label}: a tile has the shape [rows, cols]", bound.place(name))
    if isinstance(model, tuple) and any(is_scalar(size) for size in model):
        message = f"{bound.label}: a tile has sizes that are known while compiling; valid_shape can be run-time numbers"
        raise frame.divisible(message, bound.place(name))
    return shape_argument(frame, bound, name)


def reshaped(frame: Frame, bound: Bound, name: str, given: Sequence[Model]) -> None:
    """Replace a size of -1 in a shape by what the other sizes leave of ``given``, the lengths before."""
    model, place = bound[name], bound.place(name)
    if not isinstance(model, tuple) or not any(is_number(m) and m == -1 for m in model):
        return
    others = [m for m in model if not (is_number(m) and m == -1)]
    if len(others) + 1 != len(model):
        raise frame.error(f"{bound.label}: only one size can be -1", place)
    if not all(isinstance(m, int) and m > 0 for m in (*others, *given)):
        raise frame.error(f"{bound.label}: -1 needs sizes that are known while compiling; write the size", place)
    elements, rest = math.prod(given), math.prod(others)
    if elements % rest:
        raise frame.error(f"{bound.label}: {elements} elements do not divide into {rest}", place)
    bound.models[name] = tuple(elements // rest if is_number(m) and m == -1 else m for m in model)


def dtype_argument(frame: Frame, bound: Bound, name: str) -> DType:
    """An element type."""
    model = bound[name]
    if not isinstance(model, DType):
        raise frame.error(
            f"{bound.label}: {name} must be a dtype such as pl.FP32, not {describe(model)}", bound.place(name)
        )
    return model


def memory_argument(frame: Frame, bound: Bound, name: str) -> MemorySpace:
    """A memory space."""
    model = bound[name]
    if not isinstance(model, MemorySpace):
        raise frame.error(
            f"{bound.label}: {name} must be a memory such as pl.MemorySpace.Vec, not {describe(model)}",
            bound.place(name),
        )
    return model


def need_matrix(frame: Frame, bound: Bound, name: str, flat: bool = False) -> None:
    """As `need_axes_of_tile`, for an argument."""
    if isinstance(bound[name], Value):
        need_axes_of_tile(frame, bound[name], f"{bound.label}: {name}", bound.node, flat)


def need_axes_of_tile(frame: Frame, model: Value, what: str, node: ast.AST, flat: bool = False) -> None:
    """Leave a tensor whose axes are not those of a tile, and what was computed of one, to the work on whole tensors.

    Args:
        flat: a tensor of one dimension may be a tile of one row.
    """
    taken = {id(tile): tile for tile, _, _ in frame.program.taken_whole}
    waiting, seen = [model], set[int]()
    while waiting:
        value = waiting.pop()
        op = defining_op(value)
        if id(value) in seen or (op is None and not isinstance(value.type, TensorType)):
            continue
        seen.add(id(value))
        if isinstance(value.type, TensorType):
            if value.type.rank > 2 or (value.type.rank == 1 and not flat):
                raise frame.divisible(f"{what} is made of {describe(value)}, with other axes than a tile", node)
        elif op is not None and op.name == "tile.load":
            waiting += op.operands[:1] if id(value) in taken else []
        elif op is not None:
            waiting += [v for v in op.operands if isinstance(v.type, TileType)]


def one_of(frame: Frame, bound: Bound, names: Sequence[str]) -> None:
    """Refuse a call that gives several arguments of which each says by itself what is done."""
    given = [name for name in names if bound[name] is not None]
    if len(given) > 1:
        raise frame.error(f"{bound.label}: {given[0]} and {given[1]} exclude each other", bound.place(given[1]))


def axis_argument(frame: Frame, bound: Bound, name: str, rank: int) -> int:
    """An axis of a tensor of ``rank`` dimensions, from 0 on; below 0 it counts from the end."""
    axis = frame.known(bound[name], bound.place(name), f"{bound.label}: {name}")
    if not -rank <= axis < rank:
        raise frame.error(
            f"{bound.label}: {name} is {axis}, but the tensor has the axes 0 to {rank - 1}", bound.place(name)
        )
    return axis % rank


def offsets_argument(frame: Frame, bound: Bound, name: str, rank: int, what: str) -> list[Value]:
    """One offset for each dimension of ``what``."""
    model = bound[name]
    if not isinstance(model, tuple) or len(model) != rank:
        raise frame.error(
            f"{bound.label}: {name} must be a list of {rank} offsets, one per dimension of {what}, "
            f"not {describe(model)}",
            bound.place(name),
        )
    return [frame.index(m, bound.place(name), f"{bound.label}: an offset") for m in model]


def tensor_argument(frame: Frame, bound: Bound, name: str) -> Value:
    """A tensor or a view of one."""
    model = bound[name]
    if not is_tensor(model):
        hint = "; its order is (tile, offsets, tensor)" if bound.label == "pl.store" else ""
        raise frame.error(f"{bound.label}: {name} must be a tensor, not {describe(model)}{hint}", bound.place(name))
    value: Value = model
    return value


def flag_argument(frame: Frame, bound: Bound, name: str) -> bool:
    """True or False."""
    if not isinstance(bound[name], bool):
        raise frame.error(
            f"{bound.label}: {name} must be True or False, not {describe(bound[name])}", bound.place(name)
        )
    flag: bool = bound[name]
    return flag


def element(frame: Frame, model: Model, dtype: DType, node: ast.AST, what: str) -> Value:
    """A number that stands for elements of ``dtype``.

    A run-time FP32 stands beside elements of 16 bits, and a whole number becomes a floating-point one, as in Python.
    """
    if isinstance(model, DynDim):
        model = frame.dimension(model, node)
    if is_scalar(model) and dtype in (FP16, BF16) and model.type.dtype == FP32:
        value: Value = model
        return value
    if is_scalar(model) and dtype.is_float and model.type.dtype.is_integer:
        return frame.op("arith.cast", [model], node, (ScalarType(dtype),)).result
    if isinstance(model, bool) and dtype != BOOL:
        raise frame.error(f"{what} must be a number, not {model}", node)
    if is_number(model) and dtype.is_float:
        frame.check_range(model, dtype, node)
        model = float(model)
    return frame.scalar(model, dtype, node, what)


def scalar_argument(frame: Frame, bound: Bound, name: str, dtype: DType) -> Value:
    """An argument that is a number for elements of ``dtype``."""
    return element(frame, bound[name], dtype, bound.place(name), f"{bound.label}: {name}")


def predicate(frame: Frame, bound: Bound) -> str:
    """The comparison that ``cmp_type`` names: a number or a name of :data:`~pypto.ir.ops.arith.PREDICATES`."""
    model, place = bound["cmp_type"], bound.place("cmp_type")
    if isinstance(model, str) and model.lower() in PREDICATES:
        return model.lower()
    if isinstance(model, int) and not isinstance(model, bool) and 0 <= model < len(PREDICATES):
        return PREDICATES[model]
    known = ", ".join(f"{number} ({name})" for number, name in enumerate(PREDICATES))
    raise frame.error(f"{bound.label}: cmp_type must be one of {known}, not {describe(model)}", place)


def pattern_argument(frame: Frame, bound: Bound, name: str) -> int:
    """The number of a mask pattern, from its name, number or `pl.MaskPattern`."""
    model = bound[name]
    if isinstance(model, enum.Enum):
        model = model.value
    if isinstance(model, str) and model in PATTERNS:
        return PATTERNS.index(model) + 1
    if isinstance(model, int) and not isinstance(model, bool) and 1 <= model <= len(PATTERNS):
        return model
    raise frame.error(
        f"{bound.label}: {name} must be one of pl.MaskPattern.{', '.join(PATTERNS)}, not {describe(model)}",
        bound.place(name),
    )


def choice_argument(frame: Frame, bound: Bound, name: str, choices: tuple[str, ...]) -> int:
    """One of some strings, by its position among them."""
    model = bound[name]
    if not isinstance(model, str) or model not in choices:
        shown = ", ".join(map(repr, choices))
        raise frame.error(f"{bound.label}: {name} must be one of {shown}, not {describe(model)}", bound.place(name))
    return choices.index(model)
