"""What can be known about scalar values: constants, equality by structure, affine differences."""

from __future__ import annotations

from collections.abc import Iterator

from pypto.ir.nodes import Op, Value
from pypto.ir.types import Dim, DynDim, ScalarType, TensorType, TileType, Type, Valid


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


def same_length(a: Dim, b: Dim) -> bool:
    """Whether two dimensions are certainly equal; one may be named and the other read from a tensor that has it."""
    x, y = named_length(a), named_length(b)
    if isinstance(x, DynDim) or isinstance(y, DynDim):
        return x == y
    return same_value(x, y)


def named_length(length: Dim) -> Dim:
    """The named dimension that a run-time number is, if it is one."""
    op = defining_op(length) if isinstance(length, Value) else None
    if op is not None and op.name == "tensor.dim" and isinstance(op.operands[0].type, TensorType):
        dim = op.operands[0].type.shape[op.attrs["axis"]]
        return dim if isinstance(dim, DynDim) else length
    return length


def difference(a: Valid, b: Valid) -> int | None:
    """``a - b`` when it is a known number whatever the run-time values are, else ``None``."""
    forms = _Forms()
    terms_a, constant_a = forms.of(a)
    terms_b, constant_b = forms.of(b)
    return constant_a - constant_b if terms_a == terms_b else None


_SIGNS = {"arith.add": "+", "arith.sub": "-", "arith.mul": "*"}


def length_text(length: Valid) -> str:
    """A length in words, for messages: dimensions by their names, sums and the like as they are computed."""
    if isinstance(length, int):
        return str(length)
    op = defining_op(length)
    if op is not None and op.name == "arith.constant":
        return str(op.attrs["value"])
    if op is None or length.name != "v":
        return length.name
    if op.name == "arith.cast":
        return length_text(op.operands[0])
    if op.name == "arith.sub" and constant_of(op.operands[1]) == 0:
        return length_text(op.operands[0])
    if op.name == "arith.neg":
        return f"-{length_text(op.operands[0])}"
    parts = [length_text(operand) for operand in op.operands]
    if op.name in ("arith.min", "arith.max"):
        return f"{op.name.removeprefix('arith.')}({', '.join(parts)})"
    if op.name in _SIGNS:
        return f"({parts[0]} {_SIGNS[op.name]} {parts[1]})"
    return length.name


# A leaf is the number of a structure: the identity of a value, or an operation that is not affine (such as min).
_Leaf = int
# Factors of leaves, none of them 0, and a constant.
_Affine = tuple[dict[_Leaf, int], int]


class _Forms:
    """Affine forms of scalars; each value is looked at once."""

    def __init__(self) -> None:
        self.known: dict[int, _Affine] = {}
        self.leaves: dict[tuple[object, ...], _Leaf] = {}

    def of(self, value: Valid) -> _Affine:
        if isinstance(value, int):
            return {}, value
        if id(value) not in self.known:
            self.known[id(value)] = self.computed(value)
        return self.known[id(value)]

    def computed(self, value: Value) -> _Affine:
        op = defining_op(value)
        if op is None:
            return self.opaque("value", id(value))
        name, operands = op.name, op.operands
        if name == "arith.constant" and isinstance(op.attrs["value"], int):
            return {}, int(op.attrs["value"])
        if name == "arith.add":
            return _combined(self.of(operands[0]), self.of(operands[1]), 1)
        if name == "arith.sub":
            return _combined(self.of(operands[0]), self.of(operands[1]), -1)
        if name == "arith.neg":
            return _combined(({}, 0), self.of(operands[0]), -1)
        if name == "arith.cast" and _widens(operands[0], value):
            return self.of(operands[0])
        if name == "arith.mul":
            left, right = self.of(operands[0]), self.of(operands[1])
            for (terms, factor), other in ((left, right), (right, left)):
                if not terms:
                    return _combined(({}, 0), other, factor)
        if name in ("arith.min", "arith.max"):
            # Whatever their order; of whole numbers, also whatever their width.
            kind = "" if _is_integer(value) else str(value.type)
            return self.opaque(name, kind, frozenset(map(self.operand, operands)))
        if name.startswith("arith.") or name == "tensor.dim":
            # Pure: two operations with equal operands and attributes give equal values.
            return self.opaque(name, str(value.type), *sorted(op.attrs.items()), *map(self.operand, operands))
        return self.opaque("value", id(value))

    def opaque(self, *structure: object) -> _Affine:
        return {self.leaves.setdefault(structure, len(self.leaves)): 1}, 0

    def operand(self, value: Value) -> object:
        """What stands for an operand in a structure."""
        if not _is_integer(value):
            number = constant_of(value)
            return ("value", id(value)) if number is None else ("constant", repr(number))
        terms, constant = self.of(value)
        return (frozenset(terms.items()), constant)


def _combined(a: _Affine, b: _Affine, factor: int) -> _Affine:
    """``a + factor * b``."""
    terms = dict(a[0])
    for leaf, count in b[0].items():
        terms[leaf] = terms.get(leaf, 0) + factor * count
    return {leaf: count for leaf, count in terms.items() if count}, a[1] + factor * b[1]


def _widens(source: Value, result: Value) -> bool:
    """Whether a conversion keeps every whole number as it is."""
    if not isinstance(source.type, ScalarType) or not isinstance(result.type, ScalarType):
        return False
    a, b = source.type.dtype, result.type.dtype
    return a.kind in ("int", "index") and b.kind in ("int", "index") and a.bits <= b.bits


def _is_integer(value: Value) -> bool:
    return isinstance(value.type, ScalarType) and value.type.dtype.is_integer


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
