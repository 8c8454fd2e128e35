"""Publication: its order, and what happens when a step of it fails (PUB, DIA)."""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from artifact_samples import FILES, READY, Builder, fail_with, sample_key, snapshot

from pypto.jit.artifact_cache import (
    ArtifactStore,
    BuildFailure,
    BuildStatus,
    LookupStatus,
    publish,
    write,
)

MARKER = "artifact_manifest.json"
KEY = sample_key()


def test_failures_keep_the_private_build(
    tmp_path: Path, store: ArtifactStore, builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PUB-11, PUB-18 to PUB-21, PUB-36, DIA-16 to DIA-24, DIA-27: what fails, and under which name."""
    real_write, real_marker = publish.write_file, publish.write_marker

    def corrupting(directory: int, relative: str, data: bytes, **options: Any) -> None:
        real_write(directory, relative, data + b"x", **options)

    cases: list[tuple[Any, str, Any, BuildFailure]] = [
        (publish, "write_file", fail_with(errno.ENOSPC), BuildFailure.PUBLICATION),
        (publish, "write_marker", fail_with(errno.EDQUOT), BuildFailure.PUBLICATION),
        (publish, "sync_tree", fail_with(errno.EIO), BuildFailure.PUBLICATION),
        (publish, "rename_noreplace", fail_with(errno.ENOSYS), BuildFailure.PUBLICATION),
        (publish, "rename_noreplace", fail_with(errno.EINVAL), BuildFailure.PUBLICATION),
        (publish, "write_file", corrupting, BuildFailure.PUBLICATION),
        (publish, "write_marker", lambda d, n, data: real_marker(d, n, data[:-1]), BuildFailure.PUBLICATION),
        (publish, "MARKER_LIMIT", 10, BuildFailure.PUBLICATION),
        (fcntl, "flock", fail_with(errno.ENOLCK), BuildFailure.LOCK),
    ]
    for module, name, replacement, failure in cases:
        with monkeypatch.context() as patch:
            patch.setattr(module, name, replacement)
            build = store.get_or_build(KEY, READY, builder)
        assert (build.status, build.failure) == (BuildStatus.PRIVATE, failure), name
        assert build.reason
        assert build.handle is None
        assert build.value == {"call": builder.calls}
        assert build.private_directory is not None
        assert (build.private_directory / "empty").exists()
        assert not [path for path in snapshot(store.root) if ".tmp." in path], name
        assert store.lookup(KEY, READY).status is LookupStatus.MISS, name
    assert store.get_or_build(KEY, READY, builder).status is BuildStatus.PUBLISHED


def test_short_writes_and_reads_are_continued(
    tmp_path: Path, store: ArtifactStore, builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A system that moves one byte at a time: the entry is whole, and read whole."""
    real_write, real_read = os.write, os.read
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, data: real_write(descriptor, data[:1]))
        patch.setattr(os, "read", lambda descriptor, size: real_read(descriptor, min(size, 1)))
        build = store.get_or_build(KEY, READY, builder, load=True)
        assert build.status is BuildStatus.PUBLISHED
        found = store.lookup(KEY, READY, load=True)
        assert found.handle is not None
        assert found.handle.payload == FILES
        found.handle.materialize(tmp_path / "copy")
    assert store.lookup(KEY, READY).status is LookupStatus.HIT
    assert (tmp_path / "copy/prebuilt/kernels/k.so").read_bytes() == FILES["prebuilt/kernels/k.so"]


def test_memory_that_runs_out_keeps_the_build(
    store: ArtifactStore, builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PUB-18: whatever ends the copying."""

    def failing(*arguments: Any, **options: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(publish, "write_file", failing)
    build = store.get_or_build(KEY, READY, builder)
    assert (build.status, build.failure) == (BuildStatus.PRIVATE, BuildFailure.PUBLICATION)
    assert build.reason == "MemoryError"


def test_no_plain_rename_is_tried(store: ArtifactStore, builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    """PUB-36."""
    monkeypatch.setattr(publish, "rename_noreplace", fail_with(errno.ENOSYS))
    for name in ("rename", "replace", "link"):
        monkeypatch.setattr(os, name, lambda *a, **k: pytest.fail("another way to publish was tried"))
    assert store.get_or_build(KEY, READY, builder).failure is BuildFailure.PUBLICATION


def test_staging_that_cannot_be_removed(
    store: ArtifactStore, builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MAN-4, PUB-21, PUB-22, PUB-45: it stays beside the entry, never hits, and is not touched later."""
    with monkeypatch.context() as patch:
        patch.setattr(publish, "rename_noreplace", fail_with(errno.EIO))
        patch.setattr(publish.shutil, "rmtree", fail_with(errno.EIO))
        assert store.get_or_build(KEY, READY, builder).status is BuildStatus.PRIVATE
    slot = store.root / "artifacts" / KEY.environment_digest / KEY.digest / READY.digest
    (left,) = slot.iterdir()
    assert left.name.startswith(".tmp.")
    assert store.lookup(KEY, READY).status is LookupStatus.MISS
    assert store.get_or_build(KEY, READY, builder).status is BuildStatus.PUBLISHED
    assert left.exists()


def test_an_existing_target_is_never_replaced(
    store: ArtifactStore, builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PUB-17, PUB-44: not even an empty directory."""
    real = publish.rename_noreplace

    def racing(directory: int, old: str, new: str) -> None:
        os.mkdir(new, dir_fd=directory)
        real(directory, old, new)

    monkeypatch.setattr(publish, "rename_noreplace", racing)
    build = store.get_or_build(KEY, READY, builder)
    assert (build.status, build.failure) == (BuildStatus.PRIVATE, BuildFailure.PUBLICATION)
    slot = store.root / "artifacts" / KEY.environment_digest / KEY.digest / READY.digest
    assert [path.name for path in slot.iterdir()] == ["ready"]
    assert list((slot / "ready").iterdir()) == []


def test_a_failed_last_sync(store: ArtifactStore, builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    """PUB-34, PUB-35, PUB-40, PUB-47."""
    renamed = []
    real_rename, real_sync = publish.rename_noreplace, os.fsync

    def sync(descriptor: int) -> None:
        if renamed:
            raise OSError(errno.EIO, "late")
        real_sync(descriptor)

    monkeypatch.setattr(publish, "rename_noreplace", lambda *a: (real_rename(*a), renamed.append(1)))
    monkeypatch.setattr(os, "fsync", sync)
    build = store.get_or_build(KEY, READY, builder)
    assert (build.status, build.failure) == (BuildStatus.PRIVATE, BuildFailure.PUBLICATION)
    assert build.private_directory is not None and build.private_directory.exists()
    assert store.lookup(KEY, READY).status is LookupStatus.HIT


def test_unusable_places(tmp_path: Path, builder: Builder) -> None:
    """STO-54, PUB-19, PUB-37, DIA-23: root is a file; `locks` is a file or a link; `artifacts` is a link."""
    private = tmp_path / "private"
    (tmp_path / "file").write_text("x")
    build = ArtifactStore(tmp_path / "file", private_root=private).get_or_build(KEY, READY, builder)
    assert (build.status, build.failure) == (BuildStatus.PRIVATE, BuildFailure.STORAGE)
    for name, make, failure in (
        ("locks", lambda p: p.write_text("x"), BuildFailure.LOCK),
        ("locks", lambda p: p.symlink_to(tmp_path), BuildFailure.LOCK),
        ("artifacts", lambda p: p.symlink_to(tmp_path), BuildFailure.INVALID),
        (f"locks/{KEY.digest}.lock", lambda p: (p.parent.mkdir(), os.mkfifo(p)), BuildFailure.LOCK),
    ):
        root = Path(tempfile.mkdtemp(dir=tmp_path))
        make(root / name)
        build = ArtifactStore(root, private_root=private).get_or_build(KEY, READY, builder)
        assert (build.status, build.failure) == (BuildStatus.PRIVATE, failure), name
        assert build.reason


def test_invalid_entry_with_an_unusable_lock(
    published: Path, store: ArtifactStore, builder: Builder, monkeypatch: Any
) -> None:
    """DIA-23: what blocks publication gives the name."""
    (published / "extra").write_text("x")
    monkeypatch.setattr(fcntl, "flock", fail_with(errno.ENOLCK))
    assert store.get_or_build(KEY, READY, builder).failure is BuildFailure.INVALID


def test_errors_of_a_builder_do_not_speak_of_the_lock(store: ArtifactStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """STO-12: a lock that cannot be taken is no context of what the builder raises."""

    def failing(directory: Path) -> None:
        raise ValueError("line 3: the kernel is wrong")

    monkeypatch.setattr(fcntl, "flock", fail_with(errno.ENOLCK))
    with pytest.raises(ValueError, match="line 3") as caught:
        store.get_or_build(KEY, READY, failing)
    assert caught.value.__context__ is None


def test_order_of_a_publication(store: ArtifactStore, builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    """PUB-9, PUB-12 to PUB-16, PUB-46, PUB-47: sync files, sync folders, marker last, rename, sync the slot."""
    events: list[str] = []
    paths = lambda fd: os.path.basename(os.readlink(f"/proc/self/fd/{fd}"))  # noqa: E731
    real_sync, real_rename, real_flock, real_close = os.fsync, publish.rename_noreplace, fcntl.flock, os.close

    def close(descriptor: int) -> None:
        if paths(descriptor).endswith(".lock"):
            events.append("unlock")
        real_close(descriptor)

    monkeypatch.setattr(os, "fsync", lambda fd: (events.append(f"sync {paths(fd)}"), real_sync(fd)))
    monkeypatch.setattr(
        publish, "rename_noreplace", lambda d, o, n: (events.append(f"rename {o}"), real_rename(d, o, n))
    )
    monkeypatch.setattr(fcntl, "flock", lambda fd, how: (events.append(f"lock {how}"), real_flock(fd, how)))
    monkeypatch.setattr(os, "close", close)
    store.get_or_build(KEY, READY, builder)
    staging = next(event.split()[1] for event in events if event.startswith("rename"))
    order = [
        f"lock {fcntl.LOCK_EX}", "sync empty", "sync kernel_config.json", "sync k.so", "sync kernels", "sync prebuilt",
        f"sync {MARKER}", f"rename {staging}", f"sync {READY.digest}", "unlock",
    ]  # fmt: skip
    assert [event for event in events if event in order][-len(order) :] == order
    assert events.index(f"sync {staging}") < events.index(f"sync {MARKER}")
    assert events.index(f"rename {staging}") - events.index(f"sync {MARKER}") == 2


def test_rename_without_replacing(tmp_path: Path) -> None:
    """PUB-16, PUB-17 at the system call."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(OSError) as caught:
            write.rename_noreplace(descriptor, "one", "two")
        assert caught.value.errno == errno.EEXIST
        write.rename_noreplace(descriptor, "one", "three")
    finally:
        os.close(descriptor)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["three", "two"]
