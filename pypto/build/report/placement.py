"""Where the tiles of a kernel stand on chip, read from what ptoas made: that is what runs."""

from __future__ import annotations

import re
from typing import Any

_TILE = re.compile(r"\bTile<TileType::(\w+), ([\w:]+), (\d+), (\d+),[^;=]*> (\w+)\s*(?:[;=({])")
_PLACED = re.compile(r"\bTASSIGN\((\w+), (\w+)\);")
_NUMBER = re.compile(r"\bu?int(?:8|16|32|64)_t (\w+) = (\d+);|\bunsigned (\w+) = (\d+);")
_SIZES = {
    "bool": 1, "int8_t": 1, "uint8_t": 1, "half": 2, "bfloat16_t": 2, "int16_t": 2, "uint16_t": 2,
    "float": 4, "int32_t": 4, "uint32_t": 4, "int64_t": 8, "uint64_t": 8,
}  # fmt: skip


def placements(code: str) -> list[dict[str, Any]]:
    """Memory, element type, shape, address and bytes of each tile of a kernel, in the order of their declaration.

    Sizes are those that ptoas gave the tiles, filled up to what the hardware takes. Tiles at one address share it in
    turn. A tile whose address is no constant is left out.
    """
    numbers: dict[str, int] = {}
    for found in _NUMBER.finditer(code):
        numbers[found.group(1) or found.group(3)] = int(found.group(2) or found.group(4))
    tiles: dict[str, tuple[str, str, int, int]] = {}
    for found in _TILE.finditer(code):
        tiles[found.group(5)] = (found.group(1), found.group(2), int(found.group(3)), int(found.group(4)))
    placed = []
    for found in _PLACED.finditer(code):
        name, where = found.groups()
        address = int(where) if where.isdigit() else numbers.get(where)
        if name not in tiles or address is None:
            continue
        memory, element, rows, cols = tiles[name]
        placed.append(
            {
                "memory": memory,
                "dtype": element,
                "shape": [rows, cols],
                "address": address,
                "bytes": rows * cols * _SIZES.get(element, 1),
            }
        )
    return placed
