"""Calls of our own templates in place of those that only named their tiles, and what is assigned behind them."""

from __future__ import annotations

from typing import Any

import pytest

from pypto.toolchain.repair import RepairError, repair

TILE = "Tile<TileType::Vec, float, 8, 64, BLayout::RowMajor, 8, 64, SLayout::NoneBox, 512, PadValue::Null>"
PRINTED = f"""\
__global__ AICORE void k_kernel(__gm__ float* v1, int64_t v2, int32_t v3) {{
  {TILE} v4;
  {TILE} v5;
  TRESHAPE(v5, v4);
  TRESHAPE(v5, v5);
  unsigned v6 = (unsigned) v3;
  return;
}}
"""


def plan(**last: Any) -> dict[str, Any]:
    statement = "$a1 = pypto::tiles::read($p1.0, $p0.1, 3);"
    call = {"op": 7, "call": "TRESHAPE", "statement": statement, "after": ["$a2 = pypto::narrow($a1);"], **last}
    return {
        "symbol": "k_kernel",
        "arguments": ["float*", "int64_t", "int32_t"],
        "tiles": ["float", "float"],
        "bfloat16": False,
        "constructs": [],
        "calls": [{"op": 7, "call": "TRESHAPE", "held": True}, call],
    }


def test_a_call_takes_the_tiles_of_those_that_were_held() -> None:
    lines = [line.strip() for line in repair(PRINTED, plan(require=[["($a0 != 0)", "text"]])).splitlines()]
    start = lines.index("PYPTO_OP(7);")
    assert lines[start : start + 5] == [
        "PYPTO_OP(7);",
        'PYPTO_REQUIRE((v1 != 0), "text");',
        "v2 = pypto::tiles::read(v5, v4, 3);",
        "v3 = pypto::narrow(v2);",
        "unsigned v6 = (unsigned) v3;",
    ]
    assert not any("TRESHAPE" in line for line in lines)


def test_a_number_that_is_used_in_front_of_its_read_is_an_error() -> None:
    use = "  unsigned v6 = (unsigned) v3;\n"
    moved = PRINTED.replace(use, "").replace("  TRESHAPE(v5, v4);\n", use + "  TRESHAPE(v5, v4);\n")
    with pytest.raises(RepairError, match="moved a use of v3 out of the place where it has its value"):
        repair(moved, plan())


@pytest.mark.parametrize("statement", ["pypto::tiles::nothing($p2.0);", "pypto::tiles::nothing($p0.2);"])
def test_arguments_that_were_not_printed_are_an_error(statement: str) -> None:
    with pytest.raises(RepairError, match="printed too few arguments of call 1 of k_kernel"):
        repair(PRINTED, plan(statement=statement))
