"""Types of the IR: scalars, tensors in global memory, tiles in on-chip memory."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, Union

if TYPE_CHECKING:
    from pypto.ir.nodes import Value

MAX_RANK = 5
"""Most dimensions of a tensor."""


@dataclass(frozen=True)
class DType:
    """An element type.

    Attributes:
        name: the name users write, such as ``FP32``.
        bits: size of one element in bits.
        kind: ``float``, ``int``, ``uint``, ``bool`` or ``index``.
    """

    name: str
    bits: int
    kind: str

    @property
    def nbytes(self) -> int:
        """Size of one element in bytes, at least 1."""
        return max(1, self.bits // 8)

    def get_byte(self) -> int:
        """The same as a method, as kernels write it."""
        return self.nbytes

    @property
    def is_float(self) -> bool:
        """Whether this is a floating-point type."""
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """Whether values are whole numbers; true for the index type, false for booleans."""
        return self.kind in ("int", "uint", "index")

    def __str__(self) -> str:
        return self.name


FP32 = DType("FP32", 32, "float")
FP16 = DType("FP16", 16, "float")
BF16 = DType("BF16", 16, "float")
INT8 = DType("INT8", 8, "int")
INT16 = DType("INT16", 16, "int")
INT32 = DType("INT32", 32, "int")
INT64 = DType("INT64", 64, "int")
UINT8 = DType("UINT8", 8, "uint")
UINT16 = DType("UINT16", 16, "uint")
UINT32 = DType("UINT32", 32, "uint")
UINT64 = DType("UINT64", 64, "uint")
BOOL = DType("BOOL", 8, "bool")
INDEX = DType("INDEX", 64, "index")
# What names tasks that were submitted; not a number, and not among the dtypes of users.
TASKS = DType("TASKS", 64, "tasks")

DTYPES: dict[str, DType] = {
    t.name: t for t in (FP32, FP16, BF16, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, BOOL, INDEX)
}


class MemorySpace(enum.Enum):
    """Where a value lives. ``DDR`` is global memory; the others are on-chip."""

    DDR = "DDR"
    Vec = "Vec"
    Mat = "Mat"
    Left = "Left"
    Right = "Right"
    Acc = "Acc"
    Bias = "Bias"


class PadValue(enum.Enum):
    """What a tile holds where it is not valid."""

    null = "null"
    zero = "zero"
    max = "max"
    min = "min"


class MaskPattern(enum.Enum):
    """Which elements of each group are chosen; the first one of a group is the last digit."""

    P0101 = 1
    P1010 = 2
    P0001 = 3
    P0010 = 4
    P0100 = 5
    P1000 = 6
    P1111 = 7


class AtomicType(enum.Enum):
    """How a store combines with what its tensor holds."""

    None_ = "none"
    Add = "add"


class ReduceOp(enum.Enum):
    """How a collective combines what the ranks have."""

    Sum = "sum"
    Max = "max"
    Min = "min"
    Prod = "prod"


class NotifyOp(enum.Enum):
    """What a signal does to a cell."""

    AtomicAdd = "add"
    Set = "set"


class WaitCmp(enum.Enum):
    """What a wait waits for: a cell equal to a number, or at least as large."""

    Eq = "eq"
    Ge = "ge"


class TileLayout(enum.Enum):
    """Order of a tile's blocks, or of the elements inside of them."""

    none_box = "none_box"
    row_major = "row_major"
    col_major = "col_major"


class TensorLayout(enum.Enum):
    """Order of a tensor's elements in global memory."""

    ND = "ND"
    DN = "DN"
    NZ = "NZ"


@dataclass(frozen=True)
class DynDim:
    """A named dimension that stays dynamic: it is read from the argument at run time."""

    name: str

    def __str__(self) -> str:
        return self.name

    def _no_arithmetic(self, *_: object) -> NoReturn:
        raise TypeError(
            f"there is no arithmetic with the dimension {self.name} of an annotation: a dimension is a number or a "
            "name; name each length with a pl.dynamic(...) of its own"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _no_arithmetic
    __floordiv__ = __rfloordiv__ = __truediv__ = __rtruediv__ = _no_arithmetic
    __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = _no_arithmetic


@dataclass(frozen=True)
class ScalarType:
    """A run-time number."""

    dtype: DType

    def __str__(self) -> str:
        return self.dtype.name


# A tensor dimension: known, a named dynamic one, or an SSA scalar (workspace sizes, views).
Dim = Union[int, DynDim, "Value"]


@dataclass(frozen=True)
class TensorType:
    """An array in global memory: dense row-major, or a view of one.

    A tensor is a *handle*: stores mutate what it names, and ``tensor.view`` makes another handle of
    the same memory. Strides of a view are those of its base, known at run time.
    """

    shape: tuple[Dim, ...]
    dtype: DType
    is_view: bool = False

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def __str__(self) -> str:
        dims = ", ".join(_dim_text(d) for d in self.shape)
        return f"Tensor{'View' if self.is_view else ''}[[{dims}], {self.dtype}]"


# A valid length of a tile: known, or an SSA scalar of index type.
Valid = Union[int, "Value"]


@dataclass(frozen=True)
class TileType:
    """A two-dimensional block in on-chip memory.

    Attributes:
        shape: allocated rows and columns; always known.
        valid: rows and columns that hold data; each at most the allocated size.
        memory: the on-chip memory, or ``None`` until memory inference has run.
    """

    shape: tuple[int, int]
    dtype: DType
    memory: MemorySpace | None
    valid: tuple[Valid, Valid]

    @property
    def nbytes(self) -> int:
        """Allocated size in bytes."""
        return self.shape[0] * self.shape[1] * self.dtype.nbytes

    def __str__(self) -> str:
        where = self.memory.value if self.memory else "?"
        text = f"Tile[[{self.shape[0]}, {self.shape[1]}], {self.dtype}, {where}"
        if self.valid != self.shape:
            text += f", valid=[{', '.join(_dim_text(v) for v in self.valid)}]"
        return text + "]"


Type = ScalarType | TensorType | TileType


def _dim_text(dim: Dim) -> str:
    return str(dim) if isinstance(dim, (int, DynDim)) else f"%{dim.name}"
