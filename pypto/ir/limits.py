"""What a backend offers on chip: sizes of its memories, and the shapes that its instructions take."""

from __future__ import annotations

from pypto.ir.errors import IRError
from pypto.ir.types import MemorySpace, TileType

_KIB = 1024

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

# Tiles begin at multiples of this many bytes.
ALIGNMENT: dict[MemorySpace, int] = {
    MemorySpace.Vec: 32,
    MemorySpace.Mat: 32,
    MemorySpace.Left: 512,
    MemorySpace.Right: 512,
    MemorySpace.Acc: 512,
    MemorySpace.Bias: 32,
}

_BLOCK_BYTES = 32
_FRACTAL_ROWS = 16


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
    rows, cols = type.shape
    size = type.dtype.nbytes
    unit = _BLOCK_BYTES // size
    where = type.memory.value if type.memory else "?"
    subject = f"a tile [{rows}, {cols}] of {type.dtype} in {where}"
    # Vector memory takes any shape: code generation fills rows and columns up to blocks.
    if type.memory in (MemorySpace.Mat, MemorySpace.Left, MemorySpace.Right):
        if rows % _FRACTAL_ROWS and rows != 1:
            return (
                f"{subject}: rows must be a multiple of {_FRACTAL_ROWS}; "
                f"use {_up(rows, _FRACTAL_ROWS)} rows and valid_shape"
            )
        if (cols * size) % _BLOCK_BYTES:
            return f"{subject}: columns must be a multiple of {unit}; use {_up(cols, unit)} columns and valid_shape"
    elif type.memory is MemorySpace.Acc:
        for count, what in ((rows, "rows"), (cols, "columns")):
            if count % _FRACTAL_ROWS:
                return (
                    f"{subject}: {what} must be a multiple of {_FRACTAL_ROWS}; "
                    f"use {_up(count, _FRACTAL_ROWS)} {what} and valid_shape"
                )
    elif type.memory is MemorySpace.Bias and rows != 1:
        return f"{subject}: a bias has one row"
    return None


def _up(number: int, unit: int) -> int:
    return -(-number // unit) * unit
