"""Counters of this process."""

from __future__ import annotations

import dataclasses
import os
import threading

import pytest

import pypto
from pypto.jit import stats


def test_sta_02_45_a_snapshot_is_frozen_and_has_exactly_the_fields() -> None:
    snapshot = pypto.cache_stats()
    assert [field.name for field in dataclasses.fields(snapshot)] == [
        "requests",
        "object_hits",
        "ready_hits",
        "generated_hits",
        "misses",
        "invalid_entries",
        "storage_errors",
        "generation_builds",
        "binary_builds",
        "lookup_ns",
        "build_ns",
        "disabled_requests",
        "forced_rebuilds",
        "bypasses",
        "last_bypass_reason",
    ]
    with pytest.raises(dataclasses.FrozenInstanceError):
        snapshot.requests = 7  # type: ignore[misc]
    stats.count("requests")
    assert pypto.cache_stats().requests == snapshot.requests + 1


def test_sta_05_a_snapshot_resets_nothing() -> None:
    stats.count("misses", 3)
    assert pypto.cache_stats() == pypto.cache_stats()


def test_sta_01_26_a_forked_process_begins_at_nothing() -> None:
    stats.count("requests")
    stats.count_bypass("of the parent")
    before = pypto.cache_stats()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            same = pypto.cache_stats() == pypto.CacheStats()
            stats.count_bypass("of the child")
            os.write(writer, b"fresh" if same and pypto.cache_stats().bypasses == 1 else b"inherited")
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as answer:
        assert answer.read() == "fresh"
    assert pypto.cache_stats() == before


def test_sta_25_the_latest_reason_stays() -> None:
    before = pypto.cache_stats().bypasses
    stats.count_bypass("first")
    stats.count_bypass("second")
    assert pypto.cache_stats().bypasses == before + 2
    assert pypto.cache_stats().last_bypass_reason == "second"


def test_sta_03_counts_from_many_threads_are_exact() -> None:
    before = pypto.cache_stats().lookup_ns

    def work() -> None:
        for _ in range(500):
            stats.count("lookup_ns", 2)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert pypto.cache_stats().lookup_ns == before + 8000
