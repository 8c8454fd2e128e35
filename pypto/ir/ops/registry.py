"""The one registry of operations.

For each operation: operands, attributes, core type, the rule that checks a use and gives the result types, and how it
is lowered. Registering an operation is one call of :func:`register` in one of the modules beside this one.
"""

from __future__ import annotations

import enum
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pypto.ir.errors import IRError
from pypto.ir.nodes import CoreType, Value
from pypto.ir.ops.lowering import Lowering
from pypto.ir.types import DType, MemorySpace, ScalarType, TensorType, TileType, Type


class Kind(enum.Enum):
    """What an operand may be."""

    TILE = "tile"
    TENSOR = "tensor"
    SCALAR = "scalar"
    INDEX = "index"  # a scalar of the index type: offsets, sizes, loop bounds
    ANY = "value"

    def accepts(self, type: Type) -> bool:
        """Whether a value of ``type`` may stand here."""
        if self is Kind.TILE:
            return isinstance(type, TileType)
        if self is Kind.TENSOR:
            return isinstance(type, TensorType)
        if self is Kind.SCALAR:
            return isinstance(type, ScalarType)
        if self is Kind.INDEX:
            return isinstance(type, ScalarType) and type.dtype.kind == "index"
        return True


@dataclass(frozen=True)
class Operand:
    """One operand.

    Attributes:
        name: how messages and lowerings call it.
        kind: what it may be.
        memory: for tiles, the memories it may stand in; empty means any.
        moved_from: memories from which memory inference inserts a move, so that a kernel may use such a tile directly.
        dtypes: allowed element types; empty means any.
        variadic: any number of values from here on (last operand only).
    """

    name: str
    kind: Kind
    memory: tuple[MemorySpace, ...] = ()
    moved_from: tuple[MemorySpace, ...] = ()
    dtypes: tuple[DType, ...] = ()
    variadic: bool = False

    def takes(self, memory: MemorySpace | None) -> bool:
        """Whether a tile in this memory may stand here, moved at most within its core."""
        return not self.memory or memory in (None, *self.memory, *self.moved_from)

    def crosses(self, memory: MemorySpace | None) -> bool:
        """Whether a tile in this memory can be brought here through global memory, in another task."""
        return not self.takes(memory) and memory in (MemorySpace.Acc, MemorySpace.Vec)

    def misplaced(self, memory: MemorySpace | None) -> str:
        """What to say about a tile in a memory where this operand cannot be."""
        text = f"{self.name} stands in {memory.value if memory else 'no memory'}, but must stand in "
        text += " or ".join(m.value for m in self.memory)
        if memory is not None and (memory is MemorySpace.Vec) != (MemorySpace.Vec in self.memory):
            text += "; matrix and vector cores do not share tiles: hand it on through a tensor"
        return text


@dataclass(frozen=True)
class Attr:
    """One attribute: its name, its type, and whether it must be given."""

    name: str
    type: type | tuple[type, ...]
    required: bool = True
    choices: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Call:
    """A use of an operation, as its rule sees it.

    Attributes:
        types: result types that were asked for (loads, creates, casts); empty when the rule derives them.
    """

    op: OpDef
    operands: Sequence[Value]
    attrs: dict[str, Any]
    types: Sequence[Type] = ()

    def tile(self, index: int) -> TileType:
        """Type of a tile operand."""
        type = self.operands[index].type
        if not isinstance(type, TileType):
            raise self.error(f"operand {index} must be a tile, not {type}")
        return type

    def tensor(self, index: int) -> TensorType:
        """Type of a tensor operand."""
        type = self.operands[index].type
        if not isinstance(type, TensorType):
            raise self.error(f"operand {index} must be a tensor, not {type}")
        return type

    def scalar(self, index: int) -> DType:
        """Element type of a scalar operand."""
        type = self.operands[index].type
        if not isinstance(type, ScalarType):
            raise self.error(f"operand {index} must be a scalar, not {type}")
        return type.dtype

    def wanted_tile(self) -> TileType:
        """The one tile type that was asked for."""
        if len(self.types) != 1 or not isinstance(self.types[0], TileType):
            raise self.error("needs one tile type as its result")
        return self.types[0]

    def error(self, message: str) -> IRError:
        """An error about this use."""
        return IRError(f"{self.op.label}: {message}")


Rule = Callable[[Call], tuple[Type, ...]]
# Operations that are one of several with the name that users write.
_WRITTEN = {"gather_along": "tensor.gather", "scatter_along": "tensor.scatter", "mrgsort_blocks": "mrgsort"}


@dataclass(frozen=True)
class OpDef:
    """What is known about one operation.

    Attributes:
        rule: checks a use and gives the result types.
        core: the core type it needs, or ``None`` when both have it.
        lowering: instructions it is written as, or ``None`` when code generation handles it by name.
        pure: no effect besides its results, so it may be removed when they are unused.
        inplace: index of the operand whose buffer the result takes over, if any.
        pointwise: whether each element of the result needs, of the operands that have its shape, only the same element,
            so that result and operand may be one buffer.
        regions: number of nested blocks.
        result_memory: where a tile result stands; ``None``: the rule or memory inference says.
        incore: allowed in an incore function.
        entry: allowed in an orchestration entry.
    """

    name: str
    operands: tuple[Operand, ...]
    rule: Rule
    attrs: tuple[Attr, ...] = ()
    core: CoreType | None = None
    lowering: Lowering | None = None
    pure: bool = True
    inplace: int | None = None
    pointwise: bool = False
    regions: int = 0
    result_memory: MemorySpace | None = None
    incore: bool = True
    entry: bool = False

    @property
    def label(self) -> str:
        """The name in messages: users write ``pl.add`` for ``tile.add``."""
        family, _, short = self.name.partition(".")
        return f"pl.{_WRITTEN.get(short, short)}" if family in ("tile", "tensor") else self.name

    def operand(self, index: int) -> Operand:
        """Description of the operand at a position."""
        return self.operands[min(index, len(self.operands) - 1)]

    def check_call(
        self, operands: Sequence[Value], attrs: dict[str, Any], types: Sequence[Type] = ()
    ) -> tuple[Type, ...]:
        """Check operand count, kinds, dtypes, memories and attributes; return the result types.

        Raises:
            IRError: naming the operand or attribute that is wrong.
        """
        call = Call(self, operands, attrs, types)
        variadic = bool(self.operands) and self.operands[-1].variadic
        least = len(self.operands) - variadic
        if len(operands) < least or (len(operands) > least and not variadic):
            raise call.error(f"takes {'at least ' if variadic else ''}{least} operands, got {len(operands)}")
        for index, value in enumerate(operands):
            self._check_operand(call, self.operand(index), value)
        for attr in self.attrs:
            if attr.name not in attrs:
                if attr.required:
                    raise call.error(f"misses the attribute {attr.name}")
                continue
            given = attrs[attr.name]
            if not isinstance(given, attr.type) or (attr.choices and given not in attr.choices):
                allowed = f"; one of {', '.join(map(str, attr.choices))}" if attr.choices else ""
                raise call.error(f"attribute {attr.name} cannot be {given!r}{allowed}")
        unknown = sorted(set(attrs) - {attr.name for attr in self.attrs})
        if unknown:
            raise call.error(f"has no attribute {unknown[0]}")
        return self.rule(call)

    @staticmethod
    def _check_operand(call: Call, operand: Operand, value: Value) -> None:
        type = value.type
        if not operand.kind.accepts(type):
            raise call.error(f"{operand.name} must be a {operand.kind.value}, but is {type}")
        if operand.dtypes and not isinstance(type, TensorType) and type.dtype not in operand.dtypes:
            names = ", ".join(d.name for d in operand.dtypes)
            raise call.error(f"{operand.name} has element type {type.dtype}, but must have one of {names}; use pl.cast")
        if isinstance(type, TileType) and not operand.takes(type.memory) and not operand.crosses(type.memory):
            raise call.error(operand.misplaced(type.memory))


_REGISTRY: dict[str, OpDef] = {}
_DEFINITIONS = (
    *("arith", "control", "control_names", "tensor", "tensor_compute", "tile_memory", "tile_filling"),
    *("elementwise", "reductions", "tile_matrix", "tile_index"),
    "host",
)
_loaded = False


def register(definition: OpDef) -> None:
    """Add an operation; its name must be new."""
    if definition.name in _REGISTRY:
        raise ValueError(f"operation {definition.name} is registered twice")
    _REGISTRY[definition.name] = definition


def all_definitions() -> dict[str, OpDef]:
    """Every operation by name."""
    global _loaded
    if not _loaded:
        _loaded = True
        for module in _DEFINITIONS:
            importlib.import_module(f"pypto.ir.ops.{module}")
    return _REGISTRY


def definition(name: str) -> OpDef:
    """The operation with this name.

    Raises:
        IRError: there is none.
    """
    found = all_definitions().get(name)
    if found is None:
        raise IRError(f"there is no operation {name}")
    return found
