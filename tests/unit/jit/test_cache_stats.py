"""Counters of this process."""

from __future__ import annotations

import dataclasses
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
