"""get_or_build, publication, permissions, read-only use (STO, PUB, PRM, RO, DIA)."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import gc
import inspect
import os
import stat
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from artifact_samples import FILES, GENERATED, READY, Builder, sample_key, snapshot, write_files

from pypto.jit.artifact_cache import (
    ArtifactBuild,
    ArtifactDamaged,
    ArtifactKey,
    ArtifactStore,
    BuildFailure,
    BuildOutputError,
    BuildStatus,
    LookupStatus,
    publish,
    write,
)
from pypto.jit.artifact_cache import store as store_module

MARKER = "artifact_manifest.json"
KEY = sample_key()


def modes(root: Path) -> dict[str, int]:
    return {path: stat.S_IMODE(mode) for path, (mode, _, _) in snapshot(root).items()}


@pytest.fixture
def umask() -> Any:
    """Sets the umask for one test."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def fail_with(code: int) -> Callable[..., Any]:
    def failing(*arguments: Any, **options: Any) -> Any:
        raise OSError(code, os.strerror(code))

    return failing


# Results


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


# Failures of storage


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


def test_there_is_no_setting_of_modes(store: ArtifactStore) -> None:
    """PRM-8, LIM-11, LIM-20: these are the store's options and operations, all of them."""
    assert list(inspect.signature(ArtifactStore).parameters) == ["root", "readonly", "private_root"]
    assert {name for name in vars(ArtifactStore) if not name.startswith("_")} == {"lookup", "get_or_build"}


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


# Sharing inside a process


def together(count: int, call: Callable[[int], Any]) -> list[Any]:
    """Results (or errors) of overlapping calls; the builder of the first is held until the others have joined."""

    def guarded(index: int) -> Any:
        try:
            return call(index)
        except BaseException as error:
            return error

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(guarded, range(count)))


class Held:
    """A builder that waits until `count` callers are in the operation it serves."""

    def __init__(self, count: int, then: Callable[[Path], Any] = write_files) -> None:
        self.count = count
        self.then = then
        self.calls = 0
        self.value = object()

    def __call__(self, directory: Path) -> object:
        self.calls += 1
        # The leader and every waiter hold the flight's event; joining is visible as a waiter on it.
        (flight,) = store_module._operations._flights.values()
        deadline = threading.Event()
        while len(flight.done._cond._waiters) < self.count - 1:  # type: ignore[attr-defined]
            deadline.wait(0.001)
        self.then(directory)
        return self.value


@pytest.mark.parametrize("case", ["publish", "invalid", "storage", "readonly", "lock", "publication"])
def test_overlapping_calls_share_one_operation(tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """STO-29 to STO-37, STO-43, STO-48: from different store objects, in every state."""
    root = tmp_path / "root"
    if case == "invalid":
        entry = root / "artifacts" / KEY.environment_digest / KEY.digest / READY.digest / "ready"
        entry.mkdir(parents=True)
    elif case == "storage":
        root.write_text("x")
    elif case == "lock":
        monkeypatch.setattr(fcntl, "flock", fail_with(errno.ENOLCK))
    elif case == "publication":
        monkeypatch.setattr(publish, "rename_noreplace", fail_with(errno.EIO))
    held = Held(4)
    stores = [ArtifactStore(root, readonly=case == "readonly", private_root=tmp_path / "private") for _ in range(4)]
    results = together(4, lambda i: stores[i].get_or_build(KEY, READY, held))
    assert held.calls == 1
    assert all(result is results[0] for result in results)
    assert results[0].status is (BuildStatus.PUBLISHED if case == "publish" else BuildStatus.PRIVATE)
    assert results[0].value is held.value
    assert store_module._operations.pending() == 0


@pytest.mark.parametrize("error", [RuntimeError("compile"), KeyboardInterrupt(), asyncio.CancelledError()])
def test_errors_wake_every_waiter(store: ArtifactStore, error: BaseException, builder: Builder) -> None:
    """STO-40 to STO-42, STO-44."""

    def failing(directory: Path) -> None:
        raise error

    held = Held(4, failing)
    results = together(4, lambda i: store.get_or_build(KEY, READY, held))
    assert results == [error] * 4
    assert store.get_or_build(KEY, READY, builder).status is BuildStatus.PUBLISHED


def test_different_requests_do_not_share(tmp_path: Path) -> None:
    """STO-47, PUB-6: all four builders are inside at once."""
    barrier = threading.Barrier(4, timeout=20)

    def meet(directory: Path) -> None:
        barrier.wait()
        write_files(directory)

    requests = [
        (ArtifactStore(tmp_path / "one", private_root=tmp_path / "p"), KEY),
        (ArtifactStore(tmp_path / "two", private_root=tmp_path / "p"), KEY),
        (ArtifactStore(tmp_path / "one", private_root=tmp_path / "p"), sample_key("d")),
        (ArtifactStore(tmp_path / "three", readonly=True, private_root=tmp_path / "p"), KEY),
    ]
    results = together(4, lambda i: requests[i][0].get_or_build(requests[i][1], READY, meet))
    assert [r.status for r in results] == [BuildStatus.PUBLISHED] * 3 + [BuildStatus.PRIVATE]


def test_one_key_builds_one_spec_at_a_time(store: ArtifactStore) -> None:
    """PUB-4, PUB-5: stages of one key wait for each other, threads included."""
    inside = []
    overlaps = []

    def build(directory: Path) -> None:
        inside.append(1)
        overlaps.append(len(inside))
        threading.Event().wait(0.02)
        write_files(directory)
        inside.pop()

    results = together(2, lambda i: store.get_or_build(KEY, (READY, GENERATED)[i], build))
    assert [result.status for result in results] == [BuildStatus.PUBLISHED] * 2
    assert overlaps == [1, 1]


def test_nothing_private_is_kept(tmp_path: Path) -> None:
    """STO-45, STO-46."""

    class Value:
        pass

    def build(directory: Path) -> Value:
        write_files(directory)
        return Value()

    store = ArtifactStore(tmp_path / "root", readonly=True, private_root=tmp_path / "private")
    first = store.get_or_build(KEY, READY, build)
    second = store.get_or_build(KEY, READY, build)
    assert first.private_directory != second.private_directory
    alive = weakref.ref(first.value)
    del first
    gc.collect()
    assert alive() is None


# Permissions


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


# Read-only use and materializing


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


def test_descriptors_are_not_inherited(published: Path, store: ArtifactStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every descriptor is opened close-on-exec (and without following a link, below the root)."""
    flags: list[tuple[str, int]] = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda p, f, *a, **k: flags.append((os.fsdecode(p), f)) or real(p, f, *a, **k))
    store.lookup(KEY, READY)
    assert all(flag & os.O_CLOEXEC for _, flag in flags)
    assert all(flag & os.O_NOFOLLOW for path, flag in flags if path != str(store.root))
    assert sys.platform == "linux"
