"""What to say when ptoas finds no place for a kernel's tiles."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pypto.build.errors import OnChipOverflow

if TYPE_CHECKING:
    from pypto.toolchain.errors import ToolError

_SAID = re.compile(r"\b(\w+) overflow, requires (\d+) bits while (\d+) bits")
_TILE = re.compile(
    r"pto\.alloc_tile.*<loc=(?P<place>\w+), dtype=[a-z]+(?P<bits>\d+), rows=(?P<rows>\d+), cols=(?P<cols>\d+),"
    r".*// (?P<name>.+)"
)
_MEMORIES = {"ub": "Vec", "mat": "Mat", "left": "Left", "right": "Right", "acc": "Acc", "bias": "Bias"}
_SHOWN = 3


def overflow(error: ToolError, kernel: str, pto: str) -> OnChipOverflow | None:
    """The error for a kernel whose tiles do not fit, from what ptoas said; ``None`` when it failed for another reason.

    Args:
        pto: its input; a remark behind each tile says what it is for.
    """
    said = _SAID.search("\n".join(error.lines))
    if said is None:
        return None
    place, need, limit = said[1], int(said[2]) // 8, int(said[3]) // 8
    tiles = [tile for tile in _TILE.finditer(pto) if tile["place"] == place]
    largest = sorted(tiles, key=lambda tile: -_nbytes(tile))[:_SHOWN]
    shown = ", ".join(f"{t['name']} [{t['rows']}, {t['cols']}], {_size(_nbytes(t))}" for t in largest)
    return OnChipOverflow(
        f"kernel {kernel}: its tiles need {_size(need)} of {_MEMORIES.get(place, place)} as ptoas places them, and "
        f"there are {_size(limit)}; the largest tiles: {shown}; use smaller tiles or fewer at a time"
    )


def _nbytes(tile: re.Match[str]) -> int:
    return int(tile["rows"]) * int(tile["cols"]) * int(tile["bits"]) // 8


def _size(nbytes: int) -> str:
    return f"{nbytes // 1024} KiB" if nbytes % 1024 == 0 else f"{nbytes} bytes"
