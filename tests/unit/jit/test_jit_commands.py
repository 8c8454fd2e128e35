"""``python -m pypto.jit``: what each command prints, returns and leaves alone."""

from __future__ import annotations

import fcntl
import io
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import pypto
from pypto.__main__ import main as overview
from pypto.build.errors import BuildError
from pypto.jit.cli import output
from pypto.jit.cli.command import main
from pypto.jit.cli.warmup_file import TENSOR_DTYPES
from pypto.toolchain import ToolchainError

Run = Callable[..., Any]


@pytest.fixture
def run(builds: Any, kernels: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command as a new process would: status and parsed standard output."""

    def run(*arguments: str, status: int = 0) -> Any:
        builds.forget_objects()
        capsys.readouterr()
        assert main([*arguments, "--json"]) == status
        return json.loads(capsys.readouterr().out)

    return run


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A warmup file of two requests with a cache beside it."""
    tensors = {name: {"shape": [16, 64], "dtype": "FP32"} for name in ("x", "out")}
    document = {
        "schema_version": 1,
        "cache": {"enabled": True, "root": "cache"},
        "requests": [{"kernel": "annotated"}, {"kernel": "open_shape", "tensors": tensors}],
    }
    path = tmp_path / "warmup.json"
    path.write_text(json.dumps(document))
    return path


def change(path: Path, **cache: Any) -> None:
    document = json.loads(path.read_text())
    document["cache"].update(cache)
    path.write_text(json.dumps(document))


def warm(run: Run, config: Path, status: int = 0) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = run("warm", "--module", "sample_kernels", "--config", str(config), status=status)[
        "results"
    ]
    return results


def explain(run: Run, config: Path, status: int = 0) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run("explain", "--module", "sample_kernels", "--config", str(config), status=status)[
        "requests"
    ]
    return found


def tree(root: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.lstat().st_mtime_ns, path.lstat().st_mode) for path in sorted(root.rglob("*"))}


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


def test_cli_02_44_45_46_47_stat_reads_manifests_only(run: Run, config: Path, tmp_path: Path) -> None:
    root = tmp_path / "cache"
    results = warm(run, config)
    (ready,) = root.glob(f"artifacts/*/{results[0]['key']}/*/ready")
    (ready / "kernel_config.py").write_text("raise SystemExit('cached code ran')")
    # Wrong bytes of the right size: whoever read them would notice.
    for path in root.rglob("main.*"):
        path.write_bytes(bytes(path.stat().st_size))
    (broken,) = root.rglob(f"{results[1]['key']}/*/generated/artifact_manifest.json")
    broken.write_bytes(b"{}")
    (root / "artifacts" / "junk").mkdir()
    before = tree(root)
    lock = os.open(next((root / "locks").iterdir()), os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    opened: list[str] = []
    real = os.open

    def watching(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        if not flags & os.O_DIRECTORY:
            opened.append(os.fsdecode(path))
        return real(path, flags, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", watching)
        found = run("stat", "--root", str(root), "--entries")
    os.close(lock)
    assert opened == ["artifact_manifest.json"] * 4
    assert tree(root) == before
    assert (found["entries"], found["keys"], found["locks"]) == (4, 2, 2)
    (ready / "kernel_config.py").unlink()
    assert found["states"]["ready"]["bytes"] == sum(
        path.stat().st_size for path in root.rglob("ready/**/*") if path.is_file() and path.suffix != ".json"
    ) + sum(p.stat().st_size for n in ("kernel_config", "binary_manifest") for p in root.rglob(f"ready/{n}.json"))
    assert [item["path"] for item in found["invalid"]] == [str(broken.parent.relative_to(root))]
    assert found["strange"] == ["artifacts/junk"]
    assert {entry["key"] for entry in found["listed"]} == {result["key"] for result in results}


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_names_that_the_output_cannot_say(tmp_path: Path, encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "cache"
    (root / "artifacts").mkdir(parents=True)
    names = ["\udcff.txt", "\u4e2d\u6587", "\U0001f600"]
    for name in names:
        (root / "artifacts" / name).write_text("")
    for arguments in (["--json"], []):
        stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        monkeypatch.setattr(sys, "stdout", stream)
        assert main(["stat", "--root", str(root), *arguments]) == 0
        stream.flush()
        printed = stream.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]
        if arguments:
            assert sorted(json.loads(printed)["strange"]) == sorted(f"artifacts/{name}" for name in names)
        else:
            assert "artifacts/\\udcff.txt" in printed


def test_cli_55_a_missing_root_is_empty_and_stays_missing(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """CLI-55: for `stat`; a check, a clean-up or a comparison of nothing is a mistake in the command line."""
    root = str(tmp_path / "none")
    assert run("stat", "--root", root)["entries"] == 0
    assert main(["stat", "--root", root]) == 0
    assert "there is no such directory yet" in capsys.readouterr().out
    for command in (["verify"], ["prune", "--invalid"], ["explain", "a" * 64, "b" * 64]):
        assert main([*command, "--root", root]) == 2
        assert capsys.readouterr() == ("", f"pypto: error: there is no cache {root}: no such directory\n")
    assert not (tmp_path / "none").exists()
    (tmp_path / "file").write_text("x")
    for command in ("stat", "verify"):
        assert main([command, "--root", str(tmp_path / "file")]) == 2
        assert "file is not a directory" in capsys.readouterr().err


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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_cli_46_looking_at_a_root_that_belongs_to_somebody_else(run: Run, config: Path, tmp_path: Path) -> None:
    """CLI-46: stat, verify and explain as a user who may read the root and write nothing."""
    warm(run, config)
    root = tmp_path / "cache"
    for folder in (*tmp_path.parents[:2], tmp_path, root, *root.rglob("*")):
        folder.chmod(folder.stat().st_mode | (0o755 if folder.is_dir() else 0o444))
    for lock in (root / "locks").iterdir():
        lock.chmod(0o000)
    before = tree(root)
    requests = ["--module", "sample_kernels", "--config", str(config)]
    commands = (["stat", "--root", str(root)], ["verify", "--root", str(root)], ["explain", *requests])
    # Another user may be unable to read what Python would still have to import.
    assert [main(command) for command in commands] == [0, 0, 0]
    for command in commands:
        child = os.fork()
        if child == 0:
            status = 9
            try:
                os.setgid(65534)
                os.setuid(65534)
                status = main(command)
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, command
    assert tree(root) == before


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


def test_verify_reads_every_byte(run: Run, config: Path, tmp_path: Path) -> None:
    warm(run, config)
    root = str(tmp_path / "cache")
    assert run("verify", "--root", root)["valid"] == 4
    binary = next((tmp_path / "cache").rglob("main.so"))
    binary.write_bytes(b"Binary")
    before = tree(tmp_path / "cache")
    found = run("verify", "--root", root, status=1)
    assert found["valid"] == 3
    assert "main.so differs from the manifest in sha256" in found["invalid"][0]["reason"]
    assert tree(tmp_path / "cache") == before


def test_prune_needs_a_criterion_and_free_locks(
    run: Run, config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warm(run, config)
    root = tmp_path / "cache"
    before = tree(root)
    assert main(["prune", "--root", str(root)]) == 1
    assert "name what to remove" in capsys.readouterr().err
    held = next((root / "locks").iterdir())
    descriptor = os.open(held, os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    assert main(["prune", "--root", str(root), "--max-bytes", "0"]) == 1
    assert f"a process holds the lock {held}" in capsys.readouterr().err
    os.close(descriptor)
    assert len(run("prune", "--root", str(root), "--max-bytes", "0", "--dry-run")["removed"]) == 4
    assert tree(root) == before


def test_prune_by_age_size_and_environment(run: Run, config: Path, tmp_path: Path) -> None:
    old, new = (result["key"] for result in warm(run, config))
    root = tmp_path / "cache"
    for marker in root.rglob(f"{old}/*/*/artifact_manifest.json"):
        os.utime(marker, (0, time.time() - 7200))
    found = run("stat", "--root", str(root), "--entries")
    size = sum(entry["bytes"] for entry in found["listed"] if entry["key"] == new)
    by_age = run("prune", "--root", str(root), "--older-than", "1h", "--dry-run")
    by_size = run("prune", "--root", str(root), "--max-bytes", str(size), "--dry-run")
    assert by_age["removed"] == by_size["removed"]
    assert {path.split("/")[2] for path in by_age["removed"]} == {old}
    removed = run("prune", "--root", str(root), "--older-than", "1h")
    assert (removed["left"], removed["left_bytes"], removed["locks"]) == (2, size, [])
    assert len(list((root / "locks").iterdir())) == 2
    assert [found["verdict"] for found in explain(run, config, status=1)] == ["miss", "ready hit"]
    (environment,) = found["environments"]
    assert len(run("prune", "--root", str(root), "--environment", environment[:8], "--remove-locks")["locks"]) == 2
    assert [path for path in root.rglob("*") if path.is_file()] == []
    assert [result["how"] for result in warm(run, config)] == ["built", "built"]


def test_prune_of_damaged_entries_and_leftovers(run: Run, config: Path, tmp_path: Path) -> None:
    warm(run, config)
    root = tmp_path / "cache"
    binary = next(root.rglob("main.so"))
    binary.write_bytes(b"Binary")
    entry = binary.parents[2]
    (entry.parent / ".tmp.dead").mkdir()
    assert [result["result"] for result in warm(run, config)].count("private") == 1
    removed = run("prune", "--root", str(root), "--invalid")
    assert removed["removed"] == [str(entry.relative_to(root))]
    assert removed["leftovers"] == [str((entry.parent / ".tmp.dead").relative_to(root))]
    assert {result["result"] for result in warm(run, config)} == {"shared"}
    assert run("verify", "--root", str(root))["valid"] == 4


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
