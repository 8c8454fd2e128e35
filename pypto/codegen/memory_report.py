"""On-chip memory of each kernel as plain data: which tiles live when, and how much that is of what there is."""

from __future__ import annotations

from typing import Any

from pypto.ir.footprint import TileBuffer, tile_buffers
from pypto.ir.limits import capacity
from pypto.ir.nodes import Function, Program

MEMORY_SCHEMA = 1


def memory_report(program: Program, backend_type: str) -> dict[str, Any]:
    """What the kernels of a lowered program need.

    Sizes are bytes. ``first`` and ``last`` count the operations of the kernel in program order; a tile that is used in
    a loop lives until the loop's end. ``peak`` is the most that lives at the same time. Lines count from the first line
    of their function.
    """
    return {
        "schema": MEMORY_SCHEMA,
        "entry": program.entry,
        "backend_type": backend_type,
        "kernels": [_kernel(f, backend_type) for f in program.incore_functions() if f.extern is None],
    }


def _kernel(function: Function, backend_type: str) -> dict[str, Any]:
    buffers, steps = tile_buffers(function)
    memories = []
    for memory, limit in capacity(backend_type).items():
        held = [buffer for buffer in buffers if buffer.memory is memory]
        if not held:
            continue
        peak = max(sum(b.nbytes for b in held if b.first <= at <= b.last) for at in {b.first for b in held})
        memories.append(
            {"memory": memory.value, "limit": limit, "peak": peak, "buffers": [_buffer(buffer) for buffer in held]}
        )
    return {
        "kernel": function.name,
        "core": function.core.value if function.core else None,
        "steps": steps,
        "memories": memories,
    }


def _buffer(buffer: TileBuffer) -> dict[str, Any]:
    return {
        "name": buffer.name,
        "shape": list(buffer.type.shape),
        "dtype": buffer.type.dtype.name,
        "bytes": buffer.nbytes,
        "first": buffer.first,
        "last": buffer.last,
        "function": buffer.loc.function if buffer.loc else None,
        "line": buffer.loc.line if buffer.loc else None,
    }
