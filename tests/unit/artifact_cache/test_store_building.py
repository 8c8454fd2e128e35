"""get_or_build: results, errors of builders, locks (STO, PUB)."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from artifact_samples import FILES, GENERATED, READY, Builder, sample_key, snapshot, write_files

from pypto.jit.artifact_cache import (
    ArtifactBuild,
    ArtifactStore,
    BuildOutputError,
    BuildStatus,
    LookupStatus,
)

MARKER = "artifact_manifest.json"
KEY = sample_key()


def test_publish_then_hit(store: ArtifactStore, builder: Builder) -> None:
    """STO-7 to STO-10, STO-17 to STO-25, STO-50, STO-52, DIA-21."""
    first = store.get_or_build(KEY, READY, builder)
    assert (first.status, first.value, first.failure, first.reason) == (BuildStatus.PUBLISHED, {"call": 1}, None, None)
    assert first.private_directory == builder.directories[0]
    assert {p.name for p in builder.directories[0].iterdir()} == {"kernel_config.json", "prebuilt", "empty"}
    assert first.handle is not None
    assert {file.path: first.handle.read(file.path) for file in first.handle.files()} == FILES
    second = store.get_or_build(KEY, READY, builder)
    assert second == ArtifactBuild(BuildStatus.HIT, first.handle)
    assert builder.calls == 1


def test_private_directory_is_outside_the_root(tmp_path: Path, builder: Builder) -> None:
    """PUB-7, PUB-41: with and without a private root."""
    ArtifactStore(tmp_path / "a/root").get_or_build(KEY, READY, builder)
    ArtifactStore(tmp_path / "b/root", private_root=tmp_path / "x/y").get_or_build(KEY, READY, builder)
    assert builder.directories[0].parent == tmp_path / "a"
    assert builder.directories[1].parent == tmp_path / "x/y"
    assert all(stat.S_IMODE(directory.stat().st_mode) == 0o700 for directory in builder.directories)


def test_private_directory_of_odd_roots(tmp_path: Path, builder: Builder) -> None:
    """PUB-41, STO-29: a root whose name is as long as names get, and a private root above a link."""
    ArtifactStore(tmp_path / ("r" * 255)).get_or_build(KEY, READY, builder)
    (tmp_path / "elsewhere/deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to("elsewhere/deep")
    ArtifactStore(tmp_path / ("é" * 127), private_root=tmp_path / "link/../x").get_or_build(KEY, READY, builder)
    assert [directory.parent for directory in builder.directories] == [tmp_path, tmp_path / "elsewhere/x"]


@pytest.mark.parametrize("error", [RuntimeError("compile"), OSError(errno.ENOSPC, "x"), KeyboardInterrupt()])
def test_errors_of_the_builder_reach_the_caller(store: ArtifactStore, error: BaseException, builder: Builder) -> None:
    """STO-12, STO-13, STO-44, STO-55: the very same error, and the next call builds."""

    def failing(directory: Path) -> None:
        write_files(directory)
        raise error

    with pytest.raises(type(error)) as caught:
        store.get_or_build(KEY, READY, failing)
    assert caught.value is error
    assert store.lookup(KEY, READY).status is LookupStatus.MISS
    assert store.get_or_build(KEY, READY, builder).status is BuildStatus.PUBLISHED


def _bad_link(directory: Path) -> None:
    write_files(directory)
    (directory / "alias").symlink_to("empty")


def _bad_fifo(directory: Path) -> None:
    write_files(directory)
    os.mkfifo(directory / "pipe")


def _missing(directory: Path) -> None:
    write_files(directory)
    (directory / "prebuilt/kernels/k.so").unlink()


def _marker(directory: Path) -> None:
    write_files(directory)
    (directory / MARKER).write_bytes(b"{}")


@pytest.mark.parametrize(
    ("bad", "named"),
    [(_bad_link, "alias"), (_bad_fifo, "pipe"), (_missing, "prebuilt/kernels/k.so"), (_marker, MARKER)],
)
def test_bad_build_output(store: ArtifactStore, bad: Callable[[Path], None], named: str) -> None:
    """STO-14, STO-15, STO-51, PUB-8."""
    with pytest.raises(BuildOutputError, match=named):
        store.get_or_build(KEY, READY, bad)
    assert not (store.root / "artifacts").exists()
    assert not issubclass(BuildOutputError, OSError)


def test_a_builder_that_asks_for_itself(store: ArtifactStore, builder: Builder) -> None:
    """STO-16, STO-53: the same artifact, and another stage of the same key."""
    for spec in (READY, GENERATED):
        with pytest.raises(RuntimeError, match="must not ask"):
            store.get_or_build(KEY, READY, lambda _, s=spec: store.get_or_build(KEY, s, builder))
    other = store.get_or_build(
        KEY, READY, lambda d: (write_files(d), store.get_or_build(sample_key("d"), READY, builder))
    )
    assert other.status is BuildStatus.PUBLISHED


@pytest.mark.parametrize("state", ["miss", "invalid", "storage_error"])
def test_every_state_but_a_hit_takes_the_lock(
    store: ArtifactStore, builder: Builder, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    """PUB-2, PUB-3, PUB-31: the lock is held while the builder runs; a hit takes none."""
    if state == "invalid":
        (store.root / "artifacts" / KEY.environment_digest / KEY.digest / READY.digest / "ready").mkdir(parents=True)
    elif state == "storage_error":
        store.root.mkdir()
        real = os.open

        def failing(path: Any, *arguments: Any, **options: Any) -> int:
            if path == "artifacts" and builder.calls == 0:
                raise OSError(errno.EIO, "injected")
            return real(path, *arguments, **options)

        monkeypatch.setattr(os, "open", failing)

    def build(directory: Path) -> None:
        builder(directory)
        with (store.root / "locks" / f"{KEY.digest}.lock").open() as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)

    assert store.lookup(KEY, READY).status is LookupStatus(state)
    result = store.get_or_build(KEY, READY, build)
    assert builder.calls == 1
    assert result.status is (BuildStatus.PUBLISHED if state == "miss" else BuildStatus.PRIVATE)
    if state == "miss":
        monkeypatch.setattr(fcntl, "flock", lambda *a: pytest.fail("a hit took the lock"))
        assert store.get_or_build(KEY, READY, builder).status is BuildStatus.HIT


def test_lock_files_stay(store: ArtifactStore, builder: Builder) -> None:
    """PUB-25, PUB-26."""
    inodes = set()
    for spec in (READY, GENERATED, READY):
        store.get_or_build(KEY, spec, builder)
        inodes.add((store.root / "locks" / f"{KEY.digest}.lock").stat().st_ino)
    assert len(inodes) == 1


def test_lookup_and_hit_write_nothing(store: ArtifactStore, builder: Builder) -> None:
    """PUB-1, RO-12, RO-13."""
    store.lookup(KEY, READY)
    assert not store.root.exists()

    def with_python(directory: Path) -> None:
        write_files(directory)
        (directory / "trap.py").write_text("raise SystemExit('the store ran what it holds')")

    store.get_or_build(KEY, READY, with_python)
    before = snapshot(store.root)
    store.lookup(KEY, READY)
    store.get_or_build(KEY, READY, builder)
    assert snapshot(store.root) == before


def test_descriptors_are_closed(store: ArtifactStore, builder: Builder, published: Path) -> None:
    """No call leaks a descriptor, failing ones included."""

    def count() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = count()
    for _ in range(3):
        store.get_or_build(KEY, READY, builder)
        (published / "link").symlink_to("empty")
        store.get_or_build(KEY, READY, builder)
        (published / "link").unlink()
        with pytest.raises(BuildOutputError):
            store.get_or_build(sample_key("d"), READY, _missing)
    assert count() == before
