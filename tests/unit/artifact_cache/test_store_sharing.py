"""Overlapping calls of one process share one operation (STO)."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import gc
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from artifact_samples import GENERATED, READY, Builder, fail_with, sample_key, write_files

from pypto.jit.artifact_cache import (
    ArtifactStore,
    BuildStatus,
    publish,
)
from pypto.jit.artifact_cache import store as store_module

MARKER = "artifact_manifest.json"
KEY = sample_key()


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
