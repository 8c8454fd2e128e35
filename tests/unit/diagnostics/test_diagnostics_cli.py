"""``python -m pypto.diagnostics``: what it explains, what it refuses, and its exit codes. Nothing is compiled."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from diagnosed_traces import make_trace

from pypto.diagnostics.cli import main
from pypto.runtime.diagnostics.swimlane import chrome_trace

KERNELS = Path(__file__).with_name("diagnosed_kernels.py")


@pytest.mark.parametrize("command", [(), ("report",), ("run",), ("precision",), ("timeline",)])
def test_help_explains(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert "usage: python -m pypto.diagnostics" in text
    if not command:
        assert "FILE.py:FUNCTION" in text


def test_help_needs_no_numpy() -> None:
    code = "import sys; sys.modules['numpy'] = None; from pypto.diagnostics.cli import main; main(['--help'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_precision_of_a_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["precision", f"{KERNELS}:sized", "--size", "N=40", "--no-run"]) == 0
    assert "Precision of sized: ok" in capsys.readouterr().out
    assert main(["precision", f"{KERNELS}:loops", "--scalar", "n=7", "--no-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("precision", "kernels"),
            "a kernel is FILE.py:FUNCTION or MODULE:FUNCTION of a @pl.jit function, got 'kernels'",
        ),
        (("precision", "absent.py:f"), "there is no file absent.py"),
        (("precision", "no_such_module:f"), "no_such_module cannot be imported: ModuleNotFoundError"),
        (
            ("precision", f"{KERNELS}:join"),
            "has no @pl.jit function 'join'; it has fourfold, joined, loops, narrow, sized",
        ),
        (("precision", f"{KERNELS}:sized"), "dimension N of 'x' is dynamic: give it a size, as --size N=64"),
        (("precision", f"{KERNELS}:sized", "--size", "N"), "--size is written NAME=VALUE, got 'N'"),
        (("precision", f"{KERNELS}:sized", "--size", "N=-4"), "--size: N is a whole number of 1 or more, got '-4'"),
        (("precision", f"{KERNELS}:sized", "--size", "M=4"), "has no dynamic dimension 'M'; it has N"),
        (("precision", f"{KERNELS}:loops", "--scalar", "n=x"), "--scalar: n is a number, got 'x'"),
        (("precision", f"{KERNELS}:loops", "--scalar", "n=1.5"), "'n' is a INT32, which cannot be 1.5"),
        (("precision", f"{KERNELS}:loops", "--scalar", "n=inf"), "'n' is a INT32, which cannot be inf"),
        (("precision", f"{KERNELS}:loops", "--scalar", "m=1"), "has no scalar 'm'; it has n"),
        (("run", f"{KERNELS}:joined", "--out", "x", "--ranks", "2"), "--ranks is for distributed programs, and joined"),
        (("precision", f"{KERNELS}:joined", "--tensor", "x=FP32"), "is written DTYPE[DIM,...]"),
        (("precision", f"{KERNELS}:joined", "--tensor", "x=FP32[4,4]"), "argument 'x' of joined is FP32[32,64]"),
        (
            ("report", f"{KERNELS}:joined", "--out", "x", "--backend-type", "A5"),
            "RunConfig.backend_type is 'Ascend910B'",
        ),
        (("timeline", "absent.json"), "absent.json cannot be read: No such file or directory"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    arguments: tuple[str, ...],
    said: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("pypto: error: ")
    assert said in error


def test_a_page_of_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "swimlane.json"
    trace.write_text(json.dumps(chrome_trace(make_trace())))
    assert main(["timeline", str(trace)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'swimlane.html'}\n"
    assert "Timeline of joined" in (tmp_path / "swimlane.html").read_text()
    trace.write_text('{"traceEvents": [{"ph": "X"}]}')
    assert main(["timeline", str(trace)]) == 2
    assert "is not a Chrome trace: traceEvents[0]: pid is a number" in capsys.readouterr().err
    trace.write_text("{")
    assert main(["timeline", str(trace)]) == 2
