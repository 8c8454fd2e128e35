"""The commands with the real tools, on a directory whose binaries are there."""

from __future__ import annotations

import shutil
from pathlib import Path

import diagnosed_kernels as kernels
import pytest
from kept_kernels import Kept

from pypto.diagnostics.cli import main


def test_report_and_run(kept: Kept, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    shutil.copytree(kept.folder, out)
    shutil.rmtree(out / "run")
    kernel = f"{kernels.__file__}:joined"
    assert main(["report", kernel, "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}/report/index.html\n"
    assert "READY" in (out / "report/index.html").read_text()
    assert (out / "passes_dump/00_after_Parse.py").is_file()
    assert main(["run", kernel, "--out", str(out), "--scalar", "factor=2", "--threads", "2"]) == 0
    page = out / "run/run_0000/index.html"
    said = capsys.readouterr()
    assert said.out == f"{page}\n"
    assert said.err == f"pypto: diagnostics of this run of 'joined': {page}\n"
    assert {path.name for path in page.parent.iterdir()} >= {"timeline.html", "dependencies.svg", "scope_stats.json"}
