"""Repairs, on fragments of what ptoas 0.1.1 printed."""

from __future__ import annotations

from typing import Any

import pytest

from pypto.toolchain.repair import RepairError, repair

# Pieces of real output: the first lines, constants, a tile, a view, a conversion, a loop, a branch.
PRINTED = """\
#include "common/pto_instr.hpp"
using namespace pto;
__global__ AICORE void k_kernel(__gm__ float* v1, void* v2, int32_t v3, int32_t v4, bool v5) {
  bool v6 = RoundMode::CAST_RINT;
  unsigned v7 = 1;
  float v8 = 3f;
  float v9 = -Inff;
  float v10 = 0.0883883461f;
  half v11 = Inff;
  int64_t v12 = 0;
  using T = float;
  for (int32_t v13 = v12; v13 < v3; v13 += v12) {
    unsigned v14 = (unsigned) v4;
    __gm__ int32_t* v15 = v2 + v14;
    using GTShape_448772128 = pto::Shape<1, 1, 1, 8, 64>;;
    using GTStride_448772128 = pto::Stride<64, 64, 64, 64, 1>;;
    GTShape_448772128 v16 = GTShape_448772128();
    GTStride_448772128 v17 = GTStride_448772128();
    using GT_448772128 = GlobalTensor<T, GTShape_448772128, GTStride_448772128>;;
    GT_448772128 v18 = GT_448772128(v15, v16, v17);
    Tile<TileType::Vec, float, 8, 64, BLayout::RowMajor, 8, 64, SLayout::NoneBox, 512, PadValue::Null> v19;
    TASSIGN(v19, v12);
    TLOAD(v19, v18);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    if (v5) {
      TMINS(v19, v19, v8);
    } else {
      TCVT(v19, v19, v6);
    };
  }
  pipe_barrier(PIPE_ALL);
  return;
}


"""

REPAIRED = """\
#include "common/pto_instr.hpp"
using namespace pto;
__global__ AICORE void k_kernel(__gm__ float* v1, __gm__ int16_t* v2, int32_t v3, int32_t v4, bool v5) {
  unsigned v7 = 1;
  float v8 = 3.0f;
  float v9 = -__builtin_inff();
  float v10 = 0.0883883461f;
  half v11 = __builtin_inff();
  int64_t v12 = 0;
  using T = float;
  for (int32_t v13 = v12; v13 < v3; v13 += v12) {
    v4 = pypto::narrow((int64_t{v13} * 2));
    unsigned v14 = (unsigned) v4;
    auto v15 = v2 + v14;
    using GTShape_0 = pto::Shape<1, 1, 1, 8, 64>;
    using GTStride_0 = pto::Stride<64, 64, 64, 64, 1>;
    GTShape_0 v16 = GTShape_0();
    GTStride_0 v17 = GTStride_0();
    using GT_0 = GlobalTensor<std::remove_pointer_t<decltype(v15)>, GTShape_0, GTStride_0>;
    GT_0 v18 = GT_0(v15, v16, v17);
    Tile<TileType::Vec, float, 8, 64, BLayout::RowMajor, 8, 64, SLayout::NoneBox, 512, PadValue::Null> v19;
    TASSIGN(v19, v12);
    PYPTO_OP(0);
    PYPTO_REQUIRE((int64_t{v13} >= 0), "pl.load reads outside of x");
    TLOAD(v19, v18);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    if (v5) {
      PYPTO_OP(1);
      TMAXS(v19, v19, v8);
    } else {
      PYPTO_OP(2);
      TCVT(v19, v19, pto::RoundMode::CAST_TRUNC);
    }
  }
  pipe_barrier(PIPE_ALL);
  return;
}
"""


def plan(**changes: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"before": [], "begin": [], "end": [], "after": []}
    made = {
        "symbol": "k_kernel",
        "arguments": ["float*", "int16_t*", "int32_t", "int32_t", "bool"],
        "tiles": ["float"],
        "constructs": [
            {**empty, "kind": "for", "begin": ["$a3 = pypto::narrow((int64_t{$l0} * 2));"]},
            {**empty, "kind": "if"},
        ],
        "calls": [
            {
                "op": 0,
                "call": "TLOAD",
                "name": "TLOAD",
                "require": [["(int64_t{$l0} >= 0)", "pl.load reads outside of x"]],
            },
            {"op": 1, "call": "TMINS", "name": "TMAXS"},
            {"op": 2, "call": "TCVT", "name": "TCVT", "replace": {"2": "pto::RoundMode::CAST_TRUNC"}},
        ],
    }
    return {**made, **changes}


def test_everything_that_is_repaired() -> None:
    assert repair(PRINTED, plan()) == REPAIRED


def test_names_from_pointer_values_do_not_show() -> None:
    assert repair(PRINTED.replace("448772128", "99"), plan()) == REPAIRED


def test_repair_of_a_repaired_text_is_refused() -> None:
    with pytest.raises(RepairError):
        repair(REPAIRED, plan())


def test_tiles_take_the_element_types_that_were_planned() -> None:
    text = repair(PRINTED.replace("Vec, float", "Vec, half"), plan(tiles=["bfloat16_t"]))
    assert "Tile<TileType::Vec, bfloat16_t, 8, 64," in text
    # Others that are written the same way in ptoas' dialect stay what they are.
    assert "half v11" in text
    sized = PRINTED.replace("v19;", "v19 = Tile<TileType::Vec, float, 8, 64, BLayout::RowMajor, -1, 64>(v3);")
    assert repair(sized, plan(tiles=["uint8_t"])).count("TileType::Vec, uint8_t, ") == 2


@pytest.mark.parametrize(
    ("tiles", "message"),
    [([], "behind the last one that was planned"), (["float", "half"], "printed 1 tiles .* 2 were")],
)
def test_tiles_that_were_not_planned(tiles: list[str], message: str) -> None:
    with pytest.raises(RepairError, match=message):
        repair(PRINTED, plan(tiles=tiles))


def test_statements_around_a_loop() -> None:
    constructs = plan()["constructs"]
    constructs[0] = {
        **constructs[0],
        "before": ["$a2 = 4;"],
        "end": ["{", "const auto next0 = $a3 + 1;", "}"],
        "after": ["$a0 = nullptr;"],
    }
    lines = repair(PRINTED, plan(constructs=constructs)).splitlines()
    at = lines.index("  for (int32_t v13 = v12; v13 < v3; v13 += v12) {")
    assert lines[at - 1] == "  v3 = 4;"
    end = lines.index("  v1 = nullptr;")
    assert lines[end - 4 : end] == ["    {", "    const auto next0 = v4 + 1;", "    }", "  }"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("TMINS(", "TMIN(", "printed TMIN as call 1 .* planned was TMINS"),
        ("      TMINS(v19, v19, v8);\n", "", "printed TCVT as call 1"),
        ("    TLOAD(v19, v18);\n", "    TLOAD(v19, v18);\n    TADD(v19, v19);\n", "printed TADD as call 1"),
        ("  pipe_barrier(PIPE_ALL);\n", "  TADD(v1, v2);\n", "behind the last one"),
        ("k_kernel(", "other(", "planned was k_kernel"),
        ("int32_t v4, ", "", "planned was k_kernel of 5"),
        ("    if (v5) {", "    while (v5) {", "a block that is not known"),
        ("    if (v5) {", "    for (int32_t v20 = v12; v20 < v3; v20 += v12) {", "a for as loop or branch 1"),
        ("    } else {", "    } else if (v5) {", "a block that is not known"),
        ("using namespace pto;", "int x;", "a line that is not known"),
        ("  unsigned v7 = 1;", "  unsigned v7 = (unsigned) v4;", "moved a use of v4"),
        ("  pipe_barrier(PIPE_ALL);", "  unsigned v20 = (unsigned) v4;", "moved a use of v4"),
        ("  return;\n}", "  return;", "left a block"),
    ],
)
def test_what_was_not_planned_is_an_error(old: str, new: str, message: str) -> None:
    assert old in PRINTED
    with pytest.raises(RepairError, match=message):
        repair(PRINTED.replace(old, new), plan())


def test_missing_calls_are_an_error() -> None:
    calls = [*plan()["calls"], {"op": 3, "call": "TADD", "name": "TADD"}]
    with pytest.raises(RepairError, match="printed 3 operations for k_kernel, 4 were planned"):
        repair(PRINTED, plan(calls=calls))


def test_empty_output_is_an_error() -> None:
    with pytest.raises(RepairError, match="printed no function k_kernel"):
        repair('#include "common/pto_instr.hpp"\nusing namespace pto;\n', plan())
