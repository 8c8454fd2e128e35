"""How a tile of the IR stands in on-chip memory: layout, and sizes rounded up to what the hardware takes."""

from __future__ import annotations

from dataclasses import dataclass

from pypto.ir import limits
from pypto.ir.errors import IRError
from pypto.ir.limits import LAYOUTS, stored_shape
from pypto.ir.nodes import Function, Loc
from pypto.ir.types import (
    BF16,
    BOOL,
    FP16,
    FP32,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DType,
    MemorySpace,
    TileType,
    Valid,
)

# Names of element types in ptoas' dialect and in C++. The dialect only has to know how large an element is: the repair
# step gives each tile and pointer the type that it has in C++.
DIALECT_NAMES: dict[DType, str] = {
    FP32: "f32",
    FP16: "f16",
    BF16: "f16",
    INT8: "i8",
    INT16: "f16",
    INT32: "i32",
    INT64: "i64",
    UINT8: "i8",
    UINT16: "f16",
    UINT32: "i32",
    UINT64: "i64",
    BOOL: "i8",
}
CPP_NAMES: dict[DType, str] = {
    FP32: "float",
    FP16: "half",
    BF16: "bfloat16_t",
    INT8: "int8_t",
    INT16: "int16_t",
    INT32: "int32_t",
    INT64: "int64_t",
    UINT8: "uint8_t",
    UINT16: "uint16_t",
    UINT32: "uint32_t",
    UINT64: "uint64_t",
    BOOL: "bool",
}
# Types whose scalars the dialect can write.
WRITTEN = frozenset({FP32, FP16, INT32, INT8})

_LOCATIONS = {
    MemorySpace.Vec: "ub",
    MemorySpace.Mat: "mat",
    MemorySpace.Left: "left",
    MemorySpace.Right: "right",
    MemorySpace.Acc: "acc",
    MemorySpace.Bias: "bias",
}
# Bytes of a block.
_FRACTAL, _ACC_FRACTAL = 512, 1024


def element_name(dtype: DType, loc: Loc | None = None) -> str:
    """Name of an element type in ptoas' dialect.

    Raises:
        IRError: ptoas has none, or it miscompiles the type.
    """
    if dtype not in DIALECT_NAMES:
        raise IRError(f"not supported: {dtype} in device kernels; use {', '.join(d.name for d in DIALECT_NAMES)}", loc)
    return DIALECT_NAMES[dtype]


def vector_line(function: Function) -> int:
    """Elements that fill a block of 32 bytes in every element type of a function's vector tiles."""
    return limits.vector_line(value.type for op in function.body.walk() for value in op.results)


@dataclass(frozen=True)
class Frame:
    """Storage of a tile: everything but its valid sizes.

    Attributes:
        rows, cols: allocated sizes, at least the tile's.
        column: a column vector, which stands in consecutive memory and in column-major order.
        plain: a row in Mat that is on its way to Bias, and does not stand in blocks.
    """

    memory: MemorySpace
    dtype: DType
    rows: int
    cols: int
    column: bool = False
    plain: bool = False

    @classmethod
    def of(cls, type: TileType, line: int, loc: Loc | None = None) -> Frame:
        """The storage for a tile type.

        Args:
            line: elements to which rows and columns in vector memory are filled up; see :func:`vector_line`.

        Raises:
            IRError: the memory or the element type cannot hold tiles.
        """
        element_name(type.dtype, loc)
        memory = type.memory
        if memory is None:
            raise IRError("internal: a tile without a memory space reached code generation", loc)
        if memory not in _LOCATIONS:
            raise IRError(f"not supported: tiles in {memory.value}", loc)
        rows, cols = stored_shape(type, line)
        return cls(memory, type.dtype, rows, cols, memory is MemorySpace.Vec and type.shape[1] == 1)

    def as_row(self) -> Frame:
        """A column vector's memory as one row."""
        return Frame(self.memory, self.dtype, 1, self.rows)

    def text(self, valid_rows: int | None, valid_cols: int | None) -> str:
        """Inside of a ``tile_buf`` type; a valid size of ``None`` is given at run time."""
        block, inner = (layout.value for layout in LAYOUTS[MemorySpace.Bias if self.plain else self.memory])
        fractal = _ACC_FRACTAL if self.memory is MemorySpace.Acc else _FRACTAL
        if self.column:
            block = "col_major"
        rows, cols = ("?" if v is None else str(v) for v in (valid_rows, valid_cols))
        return (
            f"loc={_LOCATIONS[self.memory]}, dtype={DIALECT_NAMES[self.dtype]}, rows={self.rows}, cols={self.cols}, "
            f"v_row={rows}, v_col={cols}, blayout={block}, slayout={inner}, fractal={fractal}, pad=0"
        )

    def fixed(self, valid: tuple[Valid, Valid]) -> tuple[int | None, int | None]:
        """Valid sizes that stand in the type: only full ones, because ptoas ignores a smaller number there."""
        return (
            self.rows if valid[0] == self.rows else None,
            self.cols if valid[1] == self.cols else None,
        )
