"""What a backend offers on chip: sizes of its memories, and the shapes that its instructions take."""

from __future__ import annotations

from collections.abc import Iterable

from pypto.ir.errors import IRError
from pypto.ir.types import INT8, INT32, MemorySpace, TileLayout, TileType

_KIB = 1024

# Most blocks of one launch; each is a task, and tasks that touch one tensor are compared with each other.
MOST_BLOCKS = 1 << 16

# Bytes of each on-chip memory.
CAPACITY: dict[str, dict[MemorySpace, int]] = {
    "Ascend910B": {
        MemorySpace.Vec: 192 * _KIB,
        MemorySpace.Mat: 512 * _KIB,
        MemorySpace.Left: 64 * _KIB,
        MemorySpace.Right: 64 * _KIB,
        MemorySpace.Acc: 128 * _KIB,
        MemorySpace.Bias: 64 * _KIB,
    },
    "Ascend950": {
        MemorySpace.Vec: 248 * _KIB,
        MemorySpace.Mat: 512 * _KIB,
        MemorySpace.Left: 64 * _KIB,
        MemorySpace.Right: 64 * _KIB,
        MemorySpace.Acc: 256 * _KIB,
        MemorySpace.Bias: 64 * _KIB,
    },
}

# Order of a tile's blocks, and of the elements inside of them.
LAYOUTS: dict[MemorySpace, tuple[TileLayout, TileLayout]] = {
    MemorySpace.Vec: (TileLayout.row_major, TileLayout.none_box),
    MemorySpace.Mat: (TileLayout.col_major, TileLayout.row_major),
    MemorySpace.Left: (TileLayout.row_major, TileLayout.row_major),
    MemorySpace.Right: (TileLayout.row_major, TileLayout.col_major),
    MemorySpace.Acc: (TileLayout.col_major, TileLayout.row_major),
    MemorySpace.Bias: (TileLayout.row_major, TileLayout.none_box),
}

# Tiles begin at multiples of this many bytes.
ALIGNMENT: dict[MemorySpace, int] = {
    MemorySpace.Vec: 32,
    MemorySpace.Mat: 32,
    MemorySpace.Left: 512,
    MemorySpace.Right: 512,
    MemorySpace.Acc: 512,
    MemorySpace.Bias: 32,
}


def capacity(backend_type: str) -> dict[MemorySpace, int]:
    """Bytes of each on-chip memory of a backend.

    Raises:
        IRError: an unknown backend.
    """
    found = CAPACITY.get(backend_type)
    if found is None:
        raise IRError(f"backend {backend_type} is not supported; supported: {', '.join(sorted(CAPACITY))}")
    return found


_LINE_BYTES = 32


def vector_line(types: Iterable[object]) -> int:
    """Elements that fill a block of 32 bytes in every element type of the vector tiles among ``types``.

    Conversions want equal allocated sizes on both sides, so that one number holds for all tiles of a function.
    """
    sizes = [t.dtype.nbytes for t in types if isinstance(t, TileType) and t.memory is MemorySpace.Vec]
    return _LINE_BYTES // min(sizes, default=4)


def stored_shape(type: TileType, line: int) -> tuple[int, int]:
    """Rows and columns that a tile in a memory has with what fills it up; ``line`` is that of :func:`vector_line`."""
    rows, cols = type.shape
    if type.memory is MemorySpace.Vec:
        return (_up(rows, line), 1) if cols == 1 else (rows, _up(cols, line))
    # Products need equal sizes on both sides, so that every matrix memory rounds alike; one-byte elements fill 32.
    multiple = 32 if type.dtype in (INT8, INT32) else 16
    return rows if type.memory is MemorySpace.Bias else _up(rows, multiple), _up(cols, multiple)


def _up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def shape_problem(type: TileType) -> str | None:
    """Why a tile cannot have its shape in its memory, with what to do; ``None`` when it can."""
    if type.memory is MemorySpace.Bias and type.shape[0] != 1:
        rows, cols = type.shape
        return f"a tile [{rows}, {cols}] of {type.dtype} in Bias: a bias has one row"
    # Code generation fills all others up to blocks.
    return None
