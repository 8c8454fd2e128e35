"""What ``python -m pypto.diagnostics run`` keeps of a distributed program."""

from __future__ import annotations

from pathlib import Path

import pytest

from pypto.diagnostics.cli import main

KERNEL = f"{Path(__file__).parent / 'rank_programs.py'}:around_the_ring"


def test_every_rank_has_a_page_for_each_of_its_calls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    for ranks, calls in ((2, 5), (4, 9)):
        assert main(["run", KERNEL, "--out", str(out), "--scalar", "laps=2", "--ranks", str(ranks)]) == 0
        told = [Path(line) for line in capsys.readouterr().out.splitlines()]
        assert len(set(told)) == calls
        assert {page.relative_to(out / "run").parts[0] for page in told} == {f"rank-{rank}" for rank in range(ranks)}
        for page in told:
            assert (page.parent / "timeline.html").is_file()


def test_a_program_that_does_not_fit_its_ranks_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", KERNEL, "--out", str(tmp_path / "out"), "--ranks", "0"]) == 2
    assert "DistributedConfig.device_ids names 1 to 64 devices, got 0" in capsys.readouterr().err
