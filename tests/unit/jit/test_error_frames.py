"""What a kernel author sees above an error: the own lines, not the compiler's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

KERNEL = """
import pypto.language as pl

@pl.jit
def twice(a: pl.Tensor[[8, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = a + missing
    return out

twice.lower()
"""


@pytest.mark.parametrize(("options", "frames"), [((), 2), (("-X", "dev"), 6)])
def test_only_the_call_stands_above_a_mistake(tmp_path: Path, options: tuple[str, ...], frames: int) -> None:
    script = tmp_path / "script.py"
    script.write_text(KERNEL)
    root = str(Path(__file__).resolve().parents[3])
    done = subprocess.run(
        [sys.executable, *options, str(script)],
        env={"PYTHONPATH": root},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    shown = [line for line in done.stderr.splitlines() if line.startswith("  File ")]
    assert f'"{script}", line 10' in shown[0]
    assert len(shown) == frames if frames == 2 else len(shown) >= frames
    assert f"{script}:7:22: error: missing is not defined (in twice)" in done.stderr
