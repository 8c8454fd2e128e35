"""Which part of each tensor a core function touches, as far as its scalar parameters tell.

Tasks are ordered by what they touch. A function that is given a whole tensor and a place in it would otherwise wait for
every other task on that tensor.
"""

from __future__ import annotations

from dataclasses import dataclass

from pypto.ir.handles import Handles
from pypto.ir.nodes import Function, Op, Value
from pypto.ir.types import ScalarType, TensorType, TileType
from pypto.ir.values import constant_of, defining_op, difference

# Numbers that whoever calls the function may compute as well: they cannot fail.
_PURE = ("arith.constant", "arith.add", "arith.sub", "arith.mul", "arith.neg", "arith.min", "arith.max", "arith.cast")
_BY_A_NUMBER = ("arith.floordiv", "arith.mod")
_MOST_STEPS = 32


@dataclass(frozen=True)
class Extent:
    """Elements of one axis: ``size`` of them from the sum of ``start`` and ``shift`` on."""

    start: tuple[Value, ...]
    shift: int
    size: int


# For each axis its extent, or None for all of it.
Part = tuple[Extent | None, ...]


def touched_parts(function: Function) -> dict[int, Part]:
    """By the position of a tensor parameter: the part of it that every access of ``function`` stays in.

    Parameters of which nothing better is known than all of them are left out. A run-time offset may lead out of the
    tensor, which is an error of the kernel; the part holds for all accesses that are allowed.
    """
    handles = Handles(function.body)
    numbers = {param.value for param in function.params if isinstance(param.type, ScalarType)}
    parts: dict[int, Part | None] = {}
    places = {id(param.value): index for index, param in enumerate(function.params)}
    for op in function.body.walk():
        for position, value in enumerate(op.operands):
            if not isinstance(value.type, TensorType) or op.name in ("tensor.view", "tensor.dim"):
                continue
            roots = handles.roots(value)
            found = _access(op, position, numbers) if len(roots) == 1 else None
            for root in roots:
                index = places.get(id(root))
                if index is not None:
                    parts[index] = found if index not in parts else _joined(parts[index], found)
    return {index: part for index, part in parts.items() if part is not None and _says_something(function, index, part)}


def _access(op: Op, position: int, numbers: set[Value]) -> Part | None:
    """The part of the parameter behind an operand, or ``None`` when it may be all of it."""
    if op.name == "tile.load" and position == 0:
        tile = op.result.type
    elif op.name == "tile.store" and position == 1:
        tile = op.operands[0].type
    else:
        return None
    tensor, offsets = op.operands[position], op.operands[position + 1 :]
    if not isinstance(tile, TileType):
        return None
    # Accesses reach as far as the valid part, which is at most the tile.
    held = [v if isinstance(v, int) else size for v, size in zip(tile.valid, tile.shape, strict=True)]
    lengths = held[::-1] if op.attrs.get("transposed", False) else held
    sizes = (1,) * (len(offsets) - 2) + tuple(lengths[-len(offsets) :])
    part = tuple(_extent((offset,), size, numbers) for offset, size in zip(offsets, sizes, strict=True))
    view = defining_op(tensor)
    while view is not None:
        if view.name != "tensor.view":
            return None
        part = _below(view, part, numbers)
        view = defining_op(view.operands[0])
    return part


def _below(view: Op, part: Part, numbers: set[Value]) -> Part:
    """The part of a view as one of what it is a view of."""
    rank = view.attrs["rank"]
    dropped = view.attrs.get("dropped", ())
    left = iter(part)
    result: list[Extent | None] = []
    for axis, offset in enumerate(view.operands[1 : 1 + rank]):
        begin = _extent((offset,), 1, numbers)
        if axis in dropped:
            result.append(begin)
            continue
        inner = next(left)
        known = begin is not None and inner is not None
        result.append(
            Extent((*begin.start, *inner.start), begin.shift + inner.shift, inner.size)
            if known and begin is not None and inner is not None
            else None
        )
    return tuple(result)


def _extent(start: tuple[Value, ...], size: int, numbers: set[Value]) -> Extent | None:
    values: list[Value] = []
    shift = 0
    for value in start:
        known = constant_of(value)
        if isinstance(known, int) and not isinstance(known, bool):
            shift += known
        elif steps(value, numbers) is None:
            return None
        else:
            values.append(value)
    return Extent(tuple(values), shift, size)


def steps(value: Value, numbers: set[Value]) -> list[Op] | None:
    """The operations that compute a number from scalar parameters alone, in order; ``None`` if there is more to it."""
    found: dict[int, Op] = {}

    def visit(current: Value) -> bool:
        if current in numbers:
            return isinstance(current.type, ScalarType) and current.type.dtype.is_integer
        op = defining_op(current)
        if op is None or len(found) > _MOST_STEPS:
            return False
        if id(op) in found:
            return True
        whole = isinstance(current.type, ScalarType) and current.type.dtype.is_integer
        divided = op.name in _BY_A_NUMBER and constant_of(op.operands[1]) not in (None, 0)
        if not whole or not (op.name in _PURE or divided) or not all(visit(operand) for operand in op.operands):
            return False
        found[id(op)] = op
        return True

    return list(found.values()) if visit(value) else None


def _joined(a: Part | None, b: Part | None) -> Part | None:
    if a is None or b is None:
        return None
    return tuple(_hull(x, y) for x, y in zip(a, b, strict=True))


def _hull(a: Extent | None, b: Extent | None) -> Extent | None:
    """What holds both, when their distance is known."""
    if a is None or b is None or len(a.start) != len(b.start):
        return None
    distance = b.shift - a.shift
    for x, y in zip(a.start, b.start, strict=True):
        between = difference(y, x)
        if between is None:
            return None
        distance += between
    first = min(0, distance)
    return Extent(a.start, a.shift + first, max(a.size, distance + b.size) - first)


def _says_something(function: Function, index: int, part: Part) -> bool:
    type = function.params[index].type
    assert isinstance(type, TensorType)
    return any(
        extent is not None and (bool(extent.start) or not isinstance(dim, int) or extent.size < dim)
        for extent, dim in zip(part, type.shape, strict=True)
    )
