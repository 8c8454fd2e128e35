"""What is said when ptoas finds no place for tiles."""

from __future__ import annotations

from pypto.build.overflow import overflow
from pypto.toolchain.errors import ToolError

FORM = "blayout=row_major, slayout=none_box, fractal=512, pad=0>"
PTO = f"""\
    %t1 = pto.alloc_tile : <loc=ub, dtype=f32, rows=64, cols=256, v_row=64, v_col=256, {FORM}  // x (f, line 7)
    %t2 = pto.alloc_tile valid_row = %a3 : <loc=ub, dtype=f16, rows=64, cols=32, v_row=?, v_col=32, {FORM}  // temporary
    %t3 = pto.alloc_tile : <loc=ub, dtype=i8, rows=1, cols=20, v_row=1, v_col=20, {FORM}  // c (f, line 8)
    %t4 = pto.alloc_tile : <loc=ub, dtype=i8, rows=1, cols=32, v_row=1, v_col=32, {FORM}  // d (f, line 8)
    %t5 = pto.alloc_tile : <loc=mat, dtype=f32, rows=512, cols=512, v_row=512, v_col=512, {FORM}  // m (f, line 9)
"""


def failed(*lines: str) -> ToolError:
    return ToolError("assemble f", ["t/ptoas/bin/ptoas"], 1, "exited with status 1", lines, "")


def test_the_memory_the_need_and_the_largest_tiles_are_named() -> None:
    said = failed("loc(...): error: ub overflow, requires 1581056 bits while 1572864 bits avaliable!")
    assert str(overflow(said, "f", PTO)) == (
        "kernel f: its tiles need 193 KiB of Vec as ptoas places them, and there are 192 KiB; the largest tiles: "
        "x (f, line 7) [64, 256], 64 KiB, temporary [64, 32], 4 KiB, d (f, line 8) [1, 32], 32 bytes; "
        "use smaller tiles or fewer at a time"
    )


def test_other_failures_are_not_explained() -> None:
    assert overflow(failed("error: something else"), "f", PTO) is None
