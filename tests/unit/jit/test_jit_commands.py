"""``python -m pypto.jit``: what each command prints, returns and leaves alone."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from jit_command_runs import Run, change, explain, tree, warm

import pypto
from pypto.__main__ import main as overview
from pypto._identity import hermetic, package
from pypto.build.errors import BuildError
from pypto.jit import request
from pypto.jit.cli import output
from pypto.jit.cli.command import main
from pypto.jit.cli.warmup_file import TENSOR_DTYPES
from pypto.toolchain import ToolchainError


def test_cli_01_05_27_warm_publishes_and_then_hits(run: Run, config: Path, builds: Any) -> None:
    first = warm(run, config)
    assert [(r["kernel"], r["result"], r["how"]) for r in first] == [
        ("annotated", "shared", "built"),
        ("open_shape", "shared", "built"),
    ]
    assert [(r["result"], r["how"]) for r in warm(run, config)] == [("shared", "ready hit")] * 2
    assert builds.compiled == ["annotated", "open_shape"]


def test_cli_11_15_17_to_24_26_every_dtype_any_size_and_nothing_that_is_not_listed(
    run: Run, config: Path, builds: Any
) -> None:
    """CLI-11, CLI-15, CLI-17 to CLI-24, CLI-26: no data is made, and values of scalars are no other kernel."""

    def request(dtype: str) -> dict[str, Any]:
        return {"kernel": "open_shape", "tensors": {n: {"shape": [1 << 40, 64], "dtype": dtype} for n in ("x", "out")}}

    document = json.loads(config.read_text())
    document["requests"] = [request(dtype) for dtype in TENSOR_DTYPES]
    config.write_text(json.dumps(document))
    results = warm(run, config)
    assert [(r["result"], r["how"]) for r in results] == [("shared", "built")] * 8
    assert len({r["key"] for r in results}) == 8
    assert set(builds.compiled) == {"open_shape"}
    tensors = {name: {"shape": [16, 64], "dtype": "FP32"} for name in ("x", "out")}
    document["requests"] = [
        {"kernel": "annotated", "tensors": tensors, "scalars": {"count": count}} for count in (1, 2.5, True)
    ]
    config.write_text(json.dumps(document))
    assert [r["how"] for r in warm(run, config)] == ["built", "object hit", "object hit"]


def test_cli_27_53_a_private_result_says_why_and_is_no_failure(run: Run, config: Path, tmp_path: Path) -> None:
    change(config, readonly=True)
    assert {(r["result"], r["reason"]) for r in warm(run, config)} == {("private", "the cache is read-only")}
    change(config, readonly=False, extra_source_paths=["none"])
    assert all(r["result"] == "private" and "none" in r["reason"] for r in warm(run, config))
    change(config, enabled=False)
    assert {r["reason"] for r in warm(run, config)} == {"the persistent cache is off"}
    assert not (tmp_path / "cache").exists()


def test_cli_43_56_a_failing_request_does_not_stop_the_others(run: Run, config: Path, builds: Any) -> None:
    for error, reason in ((BuildError("no disk"), "no disk"), (KeyError("x"), "KeyError: 'x'")):
        failures = iter([error])

        def fail(failures: Iterator[Exception] = failures) -> None:
            for failure in failures:
                raise failure

        builds.while_compiling = fail
        results = warm(run, config, status=1)
        assert [(r["result"], r["reason"]) for r in results] == [("failed", reason), ("shared", None)]


def test_an_interrupted_warm_goes_on_where_it_was(
    run: Run, config: Path, builds: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt() -> None:
        if builds.compiled == ["annotated", "open_shape"]:
            raise KeyboardInterrupt

    builds.while_compiling = interrupt
    assert main(["warm", "--module", "sample_kernels", "--config", str(config)]) == 130
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.endswith("pypto: interrupted; what was published stays, run the command again to go on\n")
    assert [(r["result"], r["how"]) for r in warm(run, config)] == [
        ("shared", "ready hit"),
        ("shared", "generated hit"),
    ]
    assert [path.name for path in (Path.cwd() / "build_output").iterdir()] == []


def test_cli_13_43_a_wrong_file_is_status_2(run: Run, config: Path, builds: Any, capsys: Any) -> None:
    config.write_text("{")
    assert main(["warm", "--module", "sample_kernels", "--config", str(config)]) == 2
    assert "is not JSON" in capsys.readouterr().err
    config.write_text(json.dumps({"schema_version": 1, "requests": [{"kernel": "annotated"}, {"kernel": "none"}]}))
    assert main(["warm", "--module", "sample_kernels", "--config", str(config)]) == 2
    assert "requests[1]: module sample_kernels has no 'none'" in capsys.readouterr().err
    assert builds.generated == []


def test_cli_54_the_table(run: Run, config: Path, builds: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["warm", "--module", "sample_kernels", "--config", str(config)]) == 0
    captured = capsys.readouterr()
    lines = [line.split() for line in captured.out.splitlines()]
    assert lines[0] == ["KERNEL", "RESULT", "HOW", "TIME", "REASON"]
    assert [line[:3] for line in lines[1:]] == [["annotated", "shared", "built"], ["open_shape", "shared", "built"]]
    assert captured.err.splitlines() == ["[1/2] annotated for Ascend910B, sim", "[2/2] open_shape for Ascend910B, sim"]


@pytest.mark.parametrize("installed", [True, False])
def test_the_table_on_a_terminal(
    run: Run, config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    """Drawn by rich where it is installed."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    if not installed:
        monkeypatch.setattr(output, "find_spec", lambda _name: None)
    assert main(["warm", "--module", "sample_kernels", "--config", str(config)]) == 0
    captured = capsys.readouterr()
    assert ("│" in captured.out) == installed
    assert all(word in captured.out for word in ("KERNEL", "annotated", "open_shape", "shared", "built"))
    assert installed or captured.err.startswith("[1/2] annotated for Ascend910B, sim\n")


def test_without_root_the_configured_cache_is_looked_at(
    run: Run, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = (result["key"] for result in warm(run, config))
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(tmp_path / "cache"))
    assert (run("stat")["entries"], run("verify")["valid"]) == (4, 4)
    assert run("explain", one, other, status=1)["before"] == one
    monkeypatch.delenv("PYPTO_CACHE_DIR")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert run("stat")["root"] == str(tmp_path / "home/.cache/pypto/jit")
    for name, value, message in (("PYPTO_CACHE", "yes", "PYPTO_CACHE is 0 or 1, got 'yes'"),):
        monkeypatch.setenv(name, value)
        assert main(["stat"]) == 2
        assert message in capsys.readouterr().err


def test_explain_says_what_a_forced_request_does(run: Run, config: Path) -> None:
    warm(run, config)
    document = json.loads(config.read_text())
    document["requests"][0]["run_config"] = {"save_kernels": True}
    config.write_text(json.dumps(document))
    found = explain(run, config, status=1)
    assert [each["verdict"] for each in found] == ["forced", "ready hit"]
    assert found[0]["reason"] == "diagnostics or an explicit output directory force a build"


def test_explain_names_the_field_that_differs(
    run: Run, config: Path, kernels: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    warm(run, config)
    before = tree(tmp_path / "cache")
    assert [found["verdict"] for found in explain(run, config)] == ["ready hit", "ready hit"]
    monkeypatch.setattr(kernels, "FACTOR", 3.0)
    for found in explain(run, config, status=1):
        assert found["verdict"] == "miss"
        (difference,) = found["differences"]
        assert difference["field"] == "source.functions.scale.values.FACTOR"
        assert "0x1.8" in str(difference["after"])
    monkeypatch.setattr(kernels, "FACTOR", 2.0)
    monkeypatch.setenv("PYPTO_CACHE_EPOCH", "7")
    (difference,) = explain(run, config, status=1)[0]["differences"]
    assert (difference["field"], difference["before"], difference["after"]) == ("settings.epoch", None, "7")
    assert tree(tmp_path / "cache") == before


def test_explain_names_the_files_of_pypto_that_changed(
    run: Run, config: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A change inside this package is told by file; of very many files, by their number and some names."""
    copy = tmp_path / "pypto"
    shutil.copytree(Path(pypto.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(hermetic, "default_package_root", lambda: copy)

    def look_again() -> None:
        package._read_package.cache_clear()
        hermetic._identities.clear()
        monkeypatch.setattr(request, "_environments", request._Environments())

    def found() -> list[dict[str, Any]]:
        look_again()
        return explain(run, config, status=1)[0]["differences"]  # type: ignore[no-any-return]

    look_again()
    warm(run, config)
    (copy / "codegen/new.py").write_text("x = 1\n")
    with (copy / "runtime/native/include/pypto/kernel.h").open("a") as header:
        header.write("\n")
    (copy / "jit/stats.py").unlink()
    assert [(d["field"], d["before"] is None, d["after"] is None) for d in found()] == [
        ("runtime.content.runtime/native/include/pypto/kernel.h", False, False),
        ("pypto.content.codegen/new.py", True, False),
        ("pypto.content.jit/stats.py", False, True),
    ]
    assert run("prune", "--root", str(tmp_path / "cache"), "--max-bytes", "1T")["removed"] == []
    assert len(found()) == 3
    for path in (copy / "jit").rglob("*.py"):
        path.write_text("")
    (content,) = [d for d in found() if d["field"].startswith("pypto")]
    assert content["field"] == "pypto.content"
    assert "files differ, such as codegen/new.py, jit/" in content["meaning"]


def test_explain_without_records_names_digests(
    run: Run, config: Path, kernels: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    warm(run, config)
    for path in (tmp_path / "cache" / "records").iterdir():
        path.unlink()
    assert [found["verdict"] for found in explain(run, config)] == ["ready hit", "ready hit"]
    monkeypatch.setattr(kernels, "FACTOR", 3.0)
    (difference,) = explain(run, config, status=1)[0]["differences"]
    assert difference["field"] == "source"
    assert difference["meaning"] == "digest; its record is not known"


def test_explain_of_requests_that_reach_no_cache(run: Run, config: Path) -> None:
    change(config, extra_source_paths=["none"])
    found = explain(run, config, status=1)[0]
    assert (found["verdict"], found["key"]) == ("bypass", None)
    assert "none" in found["reason"]
    change(config, enabled=False, extra_source_paths=[])
    assert explain(run, config, status=1)[0]["verdict"] == "off"


def test_explain_of_requests_that_fail(run: Run, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request would raise this; the others are still explained."""

    def broken() -> Any:
        raise ToolchainError("the descriptor is damaged")

    warm(run, config)
    with monkeypatch.context() as patch:
        patch.setenv("PYPTO_BUNDLE_PATH", str(tmp_path / "absent.bundle"))
        found = explain(run, config, status=1)
        assert {each["verdict"] for each in found} == {"failed"}
        assert "absent.bundle is no bundle: there is no such directory" in found[0]["reason"]
        assert {r["result"] for r in warm(run, config, status=1)} == {"failed"}
    monkeypatch.setattr(pypto.toolchain.selection, "current", broken)
    found = explain(run, config, status=1)
    assert {(each["verdict"], each["reason"]) for each in found} == {("failed", "the descriptor is damaged")}


def test_explain_two_keys(run: Run, config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = (result["key"] for result in warm(run, config))
    root = str(tmp_path / "cache")
    found = run("explain", "--root", root, one[:12], other[:12], status=1)
    assert (found["before"], found["after"]) == (one, other)
    assert {d["field"].split(".")[0] for d in found["differences"]} == {"source", "specialization"}
    assert run("explain", "--root", root, one, one)["differences"] == []
    assert main(["explain", "--root", root, "ffff", one]) == 1
    assert "the beginning of no key" in capsys.readouterr().err
    with pytest.raises(SystemExit) as wrong:
        main(["explain", "--root", root, one])
    assert wrong.value.code == 2


@pytest.mark.parametrize("command", ["", "warm", "explain", "stat", "verify", "prune"])
def test_help_of_every_command(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([*([command] if command else []), "--help"])
    assert stopped.value.code == 0
    assert "python -m pypto.jit" in capsys.readouterr().out


def test_the_package_itself_says_where_the_commands_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert overview([]) == overview(["--help"]) == 0
    text = capsys.readouterr().out
    package = Path(pypto.__file__).parent
    assert set(re.findall(r"python -m pypto\.(\w+)", text)) == {
        path.parent.name for path in package.glob("*/__main__.py")
    }
    for wrong, message in ((["jit", "stat"], "see python -m pypto.jit --help"), (["x"], "see python -m pypto --help")):
        with pytest.raises(SystemExit) as stopped:
            overview(wrong)
        assert stopped.value.code == 2
        assert message in capsys.readouterr().err
