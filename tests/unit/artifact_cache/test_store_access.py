"""Permissions, read-only use, materializing (PRM, RO)."""

from __future__ import annotations

import fcntl
import inspect
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from artifact_samples import FILES, GENERATED, READY, Builder, modes, sample_key, snapshot, write_files

from pypto.jit.artifact_cache import (
    ArtifactDamaged,
    ArtifactKey,
    ArtifactStore,
    BuildFailure,
    BuildStatus,
    LookupStatus,
)

MARKER = "artifact_manifest.json"
KEY = sample_key()


@pytest.fixture
def umask() -> Any:
    """Sets the umask for one test."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_modes(tmp_path: Path, umask: Callable[[int], int], mask: int) -> None:
    """PRM-2 to PRM-7, PRM-9, PRM-11 to PRM-16, PRM-30 to PRM-32, PUB-10."""
    umask(mask)
    sources = {"a": 0o4700, "b": 0o2755, "c": 0o777, "d": 0o666, "e": 0o400, "f": 0o1600, "sub/g": 0o100 | 0o400}

    def build(directory: Path) -> None:
        write_files(directory)
        (directory / "sub").mkdir()
        for name, mode in sources.items():
            (directory / name).write_text(name)
            (directory / name).chmod(mode)
        os.link(directory / "a", directory / "second")

    store = ArtifactStore(tmp_path / "root")
    build_result = store.get_or_build(KEY, READY, build)
    assert build_result.handle is not None
    entry = build_result.handle.directory
    found = modes(entry)
    for name, mode in {**sources, "second": 0o700}.items():
        assert found[name] == (0o700 if mode & 0o100 else 0o600), name
    assert stat.S_IMODE(entry.stat().st_mode) == 0o700
    assert found[MARKER] == 0o666 & ~mask
    assert found["sub"] == found["prebuilt/kernels"] == 0o777 & ~mask
    for parent in list(entry.parents)[:5]:
        assert stat.S_IMODE(parent.stat().st_mode) == 0o777 & ~mask
    assert modes(store.root)[f"locks/{KEY.digest}.lock"] == 0o600
    inodes = [path.stat() for path in entry.rglob("*") if path.is_file()]
    assert {status.st_nlink for status in inodes} == {1}
    assert store.lookup(KEY, READY).status is LookupStatus.HIT


def test_there_is_no_setting_of_modes(store: ArtifactStore) -> None:
    """PRM-8, LIM-11, LIM-20: these are the store's options and operations, all of them."""
    assert list(inspect.signature(ArtifactStore).parameters) == ["root", "readonly", "private_root"]
    assert {name for name in vars(ArtifactStore) if not name.startswith("_")} == {"lookup", "get_or_build"}


def test_granting_read_access(published: Path, store: ArtifactStore, builder: Builder) -> None:
    """PRM-19, PRM-20, PRM-24 to PRM-29: the documented commands keep the entry valid."""
    root = store.root
    locks = modes(root)[f"locks/{KEY.digest}.lock"]
    subprocess.run(["chmod", "a+rx,go-w", "--", root], check=True)
    subprocess.run(["chmod", "-R", "a+rX,a-w", "--", root / "artifacts"], check=True)
    assert store.lookup(KEY, READY).status is LookupStatus.HIT
    assert stat.S_IMODE((published / "prebuilt/kernels/k.so").stat().st_mode) == 0o555
    assert modes(root)[f"locks/{KEY.digest}.lock"] == locks
    (published / "prebuilt/kernels/k.so").chmod(0o544)
    assert store.lookup(KEY, READY).status is LookupStatus.HIT
    (published / "prebuilt/kernels/k.so").chmod(0o455)
    assert store.lookup(KEY, READY).status is LookupStatus.INVALID


def test_read_only_store(published: Path, store: ArtifactStore, tmp_path: Path, builder: Builder) -> None:
    """RO-1 to RO-9, RO-34, RO-35, DIA-20."""
    before = snapshot(store.root)
    plain = ArtifactStore(store.root, readonly=True)
    assert plain.get_or_build(KEY, READY, builder).status is BuildStatus.HIT
    calls = builder.calls
    with pytest.raises(OSError, match="private_root"):
        plain.get_or_build(sample_key("d"), READY, builder)
    assert builder.calls == calls
    private = ArtifactStore(store.root, readonly=True, private_root=tmp_path / "new/deep")
    build = private.get_or_build(sample_key("d"), READY, builder)
    assert (build.status, build.failure, build.reason) == (BuildStatus.PRIVATE, None, None)
    assert build.private_directory is not None
    assert build.private_directory.parent == tmp_path / "new/deep"
    assert snapshot(store.root) == before
    (published / "extra").write_text("x")
    assert private.get_or_build(KEY, READY, builder).failure is BuildFailure.INVALID
    (published / "extra").unlink()
    assert {p: v[0::2] for p, v in snapshot(store.root).items()} == {p: v[0::2] for p, v in before.items()}


def test_read_only_takes_no_lock_and_no_temporary_place(
    published: Path, store: ArtifactStore, tmp_path: Path, builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RO-2, RO-5, RO-10."""
    monkeypatch.setattr(fcntl, "flock", lambda *a: pytest.fail("a lock was taken"))
    monkeypatch.setattr(tempfile, "gettempdir", lambda: pytest.fail("a temporary place was asked for"))
    monkeypatch.setenv("TMPDIR", str(store.root))
    opened: list[str] = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda p, *a, **k: opened.append(os.fsdecode(p)) or real(p, *a, **k))
    private = ArtifactStore(store.root, readonly=True, private_root=tmp_path / "private")
    assert private.get_or_build(KEY, READY, builder).status is BuildStatus.HIT
    assert set(opened) == {
        str(store.root), "artifacts", KEY.environment_digest, KEY.digest, READY.digest, "ready", MARKER,
        "kernel_config.json", "empty", "prebuilt", "kernels", "k.so",
    }  # fmt: skip
    assert private.get_or_build(sample_key("d"), READY, builder).status is BuildStatus.PRIVATE


def test_private_root_must_be_usable_and_outside(tmp_path: Path, builder: Builder) -> None:
    """RO-11, RO-30: directly, through a link, and when the link appears later."""
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "link").symlink_to(root)
    for inside in (root, root / "sub", tmp_path / "link/sub"):
        with pytest.raises(ValueError, match="outside"):
            ArtifactStore(root, private_root=inside)
    (tmp_path / "file").write_text("x")
    with pytest.raises(OSError):
        ArtifactStore(root, private_root=tmp_path / "file").get_or_build(KEY, READY, builder)
    late = ArtifactStore(root, readonly=True, private_root=tmp_path / "late")
    (tmp_path / "late").symlink_to(root)
    with pytest.raises(ValueError, match="outside"):
        late.get_or_build(KEY, READY, builder)
    assert list(root.rglob("*k.so")) == []


def test_materialize(published: Path, store: ArtifactStore, tmp_path: Path, key: ArtifactKey) -> None:
    """RO-15 to RO-22, RO-31, RO-32."""
    handle = store.lookup(key, READY).handle
    assert handle is not None
    for path in published.rglob("*"):
        path.chmod(0o555 if path.is_dir() or path.name == "k.so" else 0o444)
    target = handle.materialize(tmp_path / "new")
    assert {str(p.relative_to(target)): p.read_bytes() for p in target.rglob("*") if p.is_file()} == FILES
    found = modes(target)
    assert (found["empty"], found["prebuilt/kernels/k.so"]) == (0o600, 0o700)
    assert (target / "empty").stat().st_ino != (published / "empty").stat().st_ino
    (target / "empty").write_text("changed")
    assert store.lookup(key, READY).status is LookupStatus.HIT
    before = snapshot(store.root)
    (tmp_path / "link").symlink_to(store.root)
    for inside in (store.root / "x", tmp_path / "link/x", published / "x", store.root):
        with pytest.raises(ValueError, match="outside"):
            handle.materialize(inside)
    with pytest.raises(ValueError, match="empty"):
        handle.materialize(target)
    with pytest.raises(OSError):
        handle.materialize(tmp_path / "no/parent")
    assert snapshot(store.root) == before


def test_materialize_checks_again(published: Path, store: ArtifactStore, tmp_path: Path, key: ArtifactKey) -> None:
    """RO-33."""
    handle = store.lookup(key, READY, load=True).handle
    assert handle is not None
    (published / "kernel_config.json").write_bytes(b'{"a":2}')
    with pytest.raises(ArtifactDamaged, match="kernel_config"):
        handle.materialize(tmp_path / "out")


def test_ready_beside_generated(store: ArtifactStore, tmp_path: Path, builder: Builder) -> None:
    """RO-23, RO-24, MAN-5, MAN-7."""
    generated = store.get_or_build(KEY, GENERATED, builder).handle
    assert generated is not None
    before = snapshot(generated.directory)
    ready = store.get_or_build(KEY, READY, lambda d: generated.materialize(d)).handle
    assert ready is not None
    assert snapshot(generated.directory) == before
    assert ready.directory.parent.parent == generated.directory.parent.parent
    assert (generated.directory.name, ready.directory.name) == ("generated", "ready")


def test_descriptors_are_not_inherited(published: Path, store: ArtifactStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every descriptor is opened close-on-exec (and without following a link, below the root)."""
    flags: list[tuple[str, int]] = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda p, f, *a, **k: flags.append((os.fsdecode(p), f)) or real(p, f, *a, **k))
    store.lookup(KEY, READY)
    assert all(flag & os.O_CLOEXEC for _, flag in flags)
    assert all(flag & os.O_NOFOLLOW for path, flag in flags if path != str(store.root))
    assert sys.platform == "linux"
