"""What a backend offers on chip: sizes of its memories, and the shapes that its instructions take."""

from __future__ import annotations

from pypto.ir.errors import IRError
from pypto.ir.types import MemorySpace, TileLayout, TileType

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


def shape_problem(type: TileType) -> str | None:
    """Why a tile cannot have its shape in its memory, with what to do; ``None`` when it can."""
    if type.memory is MemorySpace.Bias and type.shape[0] != 1:
        rows, cols = type.shape
        return f"a tile [{rows}, {cols}] of {type.dtype} in Bias: a bias has one row"
    # Code generation fills all others up to blocks.
    return None
