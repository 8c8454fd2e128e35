"""``stat``, ``verify`` and ``prune``: what a root holds, whether it is whole, and cleaning it."""

from __future__ import annotations

import errno
import fcntl
import io
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from jit_command_runs import Run, explain, tree, warm

from pypto.jit.cli.command import main


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


@pytest.mark.parametrize("level", ["artifacts", "environment", "key", "spec", "state", "locks"])
@pytest.mark.parametrize("kind", ["link", "file"])
def test_man_37_links_and_files_in_place_of_folders(
    run: Run, config: Path, tmp_path: Path, level: str, kind: str
) -> None:
    """MAN-37, MAN-48: what makes requests build privately is what `verify` finds and `prune` removes."""
    warm(run, config)
    root, outside = tmp_path / "cache", tmp_path / "outside"
    ready = next(root.rglob("ready"))
    levels = {"artifacts": root / "artifacts", "locks": root / "locks", "state": ready, "spec": ready.parent}
    place = levels.get(level) or ready.parents[{"key": 1, "environment": 2}[level]]
    place.rename(outside)
    place.symlink_to(outside) if kind == "link" else place.write_text("x")
    before = tree(outside)
    found = run("verify", "--root", str(root), status=1)
    path = str(place.relative_to(root))
    assert found["invalid"] == [{"path": path, "reason": "a link or a file where a folder must be"}]
    assert run("stat", "--root", str(root))["invalid"] == found["invalid"]
    assert "private" in {result["result"] for result in warm(run, config)} or level == "locks"
    assert path in run("prune", "--root", str(root), "--invalid")["leftovers"]
    assert not place.is_symlink() and not place.is_file()
    assert tree(outside) == before
    assert {result["result"] for result in warm(run, config)} == {"shared"}


def test_prune_of_a_cache_that_was_made_read_only(
    run: Run, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    warm(run, config)
    root = tmp_path / "cache"

    def refused(old: Path, new: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(old))

    monkeypatch.setattr(os, "rename", refused)
    assert main(["prune", "--root", str(root), "--max-bytes", "0"]) == 1
    said = (
        f"cannot be removed: Permission denied; a cache that was made read-only for sharing needs chmod -R u+w {root}"
    )
    assert said in capsys.readouterr().err
    assert run("verify", "--root", str(root))["valid"] == 4


def test_prune_leaves_what_links_lead_to(run: Run, config: Path, tmp_path: Path) -> None:
    """A damaged entry goes away with its links, and nothing outside the root changes."""
    warm(run, config)
    root, outside = tmp_path / "cache", tmp_path / "outside"
    outside.mkdir(mode=0o755)
    (outside / "file").write_text("x")
    entry = next(root.rglob("ready"))
    (entry / "link").symlink_to(outside)
    (entry.parent / ".tmp.link").symlink_to(outside)
    before = tree(tmp_path / "outside"), outside.stat().st_mode
    assert run("prune", "--root", str(root), "--invalid")["removed"] == [str(entry.relative_to(root))]
    assert not (entry.parent / ".tmp.link").is_symlink()
    assert (tree(outside), outside.stat().st_mode) == before
