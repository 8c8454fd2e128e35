"""What can be known about scalar values: constants, equality by structure, affine differences."""

from __future__ import annotations

from collections.abc import Iterator

from pypto.ir.nodes import Op, Value
from pypto.ir.types import Dim, ScalarType, TensorType, TileType, Type, Valid


def defining_op(value: Value) -> Op | None:
    """The operation that makes a value; ``None`` for parameters and block arguments."""
    return value.owner if isinstance(value.owner, Op) else None


def constant_of(value: Value) -> int | float | bool | None:
    """The number a value always has, or ``None``."""
    op = defining_op(value)
    if op is None or op.name != "arith.constant":
        return None
    number: int | float | bool = op.attrs["value"]
    return number


def simplified(value: Value) -> Valid:
    """An integer constant as a number, anything else as it is."""
    number = constant_of(value)
    return number if isinstance(number, int) and not isinstance(number, bool) else value


def same_value(a: Valid, b: Valid) -> bool:
    """Whether two lengths are certainly equal: equal numbers, one value, or equal affine forms of equal leaves."""
    if a is b:
        return True
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    return difference(a, b) == 0


def difference(a: Valid, b: Valid) -> int | None:
    """``a - b`` when it is a known number whatever the run-time values are, else ``None``."""
    terms_a, constant_a = _affine(a)
    terms_b, constant_b = _affine(b)
    if {k: v for k, v in terms_a.items() if v} != {k: v for k, v in terms_b.items() if v}:
        return None
    return constant_a - constant_b


# A leaf is the identity of a value, or the structure of an operation that is not affine (such as min).
_Leaf = tuple[object, ...]
_Affine = tuple[dict[_Leaf, int], int]


def _affine(value: Valid) -> _Affine:
    if isinstance(value, int):
        return {}, value
    op = defining_op(value)
    if op is None:
        return {("value", id(value)): 1}, 0
    name = op.name
    if name == "arith.constant":
        number = op.attrs["value"]
        if isinstance(number, int):
            return {}, int(number)
    elif name in ("arith.add", "arith.sub"):
        (left, c_left), (right, c_right) = _affine(op.operands[0]), _affine(op.operands[1])
        sign = 1 if name == "arith.add" else -1
        total = dict(left)
        for leaf, factor in right.items():
            total[leaf] = total.get(leaf, 0) + sign * factor
        return total, c_left + sign * c_right
    elif name == "arith.cast" and _is_integer(op.operands[0]) and _is_integer(op.result):
        return _affine(op.operands[0])
    elif name == "arith.neg":
        terms, constant = _affine(op.operands[0])
        return {k: -v for k, v in terms.items()}, -constant
    elif name == "arith.mul":
        for this, other in ((0, 1), (1, 0)):
            terms, factor = _affine(op.operands[this])
            if not any(terms.values()):
                scaled, constant = _affine(op.operands[other])
                return {k: v * factor for k, v in scaled.items()}, constant * factor
    if name.startswith("arith.") or name == "tensor.dim":
        # Pure: two operations with equal operands and attributes give equal values.
        return {(name, str(op.result.type), *sorted(op.attrs.items()), *(_frozen(v) for v in op.operands)): 1}, 0
    return {("value", id(value)): 1}, 0


def _is_integer(value: Value) -> bool:
    return isinstance(value.type, ScalarType) and value.type.dtype.is_integer


def _frozen(value: Value) -> _Leaf:
    if isinstance(value.type, TensorType):
        return ("value", id(value))
    if constant_of(value) is not None:
        return ("constant", repr(constant_of(value)))
    terms, constant = _affine(value)
    return (frozenset((k, v) for k, v in terms.items() if v), constant)


def values_in_type(type: Type) -> Iterator[Value]:
    """The SSA scalars a type mentions: valid lengths of tiles, run-time dimensions of tensors."""
    parts: tuple[Dim, ...] = ()
    if isinstance(type, TileType):
        parts = type.valid
    elif isinstance(type, TensorType):
        parts = type.shape
    for part in parts:
        if isinstance(part, Value):
            yield part


def used_values(op: Op) -> Iterator[Value]:
    """What an operation itself needs: operands and the scalars in its result types (not its regions' contents)."""
    yield from op.operands
    for result in op.results:
        yield from values_in_type(result.type)
