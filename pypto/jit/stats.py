"""Counters of JIT requests in this process; a forked one begins at nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Literal

from pypto.runtime.forks import ForkSafeLock


@dataclass(frozen=True)
class CacheStats:
    """Immutable snapshot. Counters only grow; subtract two snapshots for an interval.

    Attributes:
        requests: requests for a compiled object.
        object_hits: answered by an object of this process.
        ready_hits: answered by complete binaries of a sealed bundle or of the persistent cache.
        generated_hits: answered by generated sources of the persistent cache.
        misses: lookups that found nothing usable.
        invalid_entries: entries that were refused.
        storage_errors: failures of the storage.
        generation_builds: generation stages that ran.
        binary_builds: binary transactions that ran.
        lookup_ns: time spent looking up, in nanoseconds.
        build_ns: time spent building, in nanoseconds.
        disabled_requests: requests made with the persistent cache off.
        forced_rebuilds: requests whose diagnostics or explicit output forced a compile.
        bypasses: fall-backs with the persistent cache on: identity or packaging unavailable, sources changed.
        last_bypass_reason: why the latest bypass happened; ``None`` as long as there was none.
    """

    requests: int = 0
    object_hits: int = 0
    ready_hits: int = 0
    generated_hits: int = 0
    misses: int = 0
    invalid_entries: int = 0
    storage_errors: int = 0
    generation_builds: int = 0
    binary_builds: int = 0
    lookup_ns: int = 0
    build_ns: int = 0
    disabled_requests: int = 0
    forced_rebuilds: int = 0
    bypasses: int = 0
    last_bypass_reason: str | None = None


Counter = Literal[
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
]

_lock = ForkSafeLock()
_counters: dict[str, int] = {field.name: 0 for field in fields(CacheStats) if field.name != "last_bypass_reason"}
_reason: str | None = None


def _begin_process() -> None:
    global _reason
    for name in _counters:
        _counters[name] = 0
    _reason = None


# What its parent counted is not what a forked process did.
os.register_at_fork(after_in_child=_begin_process)


def cache_stats() -> CacheStats:
    """Snapshot of this process's counters; touches no disk and resets nothing."""
    with _lock:
        return CacheStats(**_counters, last_bypass_reason=_reason)


def count(counter: Counter, by: int = 1) -> None:
    """Add to one counter."""
    with _lock:
        _counters[counter] += by


def count_object_hit(*, disabled: bool) -> None:
    """Record a request that an object of this process answered."""
    with _lock:
        _counters["requests"] += 1
        _counters["object_hits"] += 1
        if disabled:
            _counters["disabled_requests"] += 1


def count_bypass(reason: str) -> None:
    """Record one bypass and its reason."""
    global _reason
    with _lock:
        _counters["bypasses"] += 1
        _reason = reason


@contextmanager
def timing(counter: Literal["lookup_ns", "build_ns"]) -> Iterator[None]:
    """Add the time that a block takes, also when it fails."""
    start = time.perf_counter_ns()
    try:
        yield
    finally:
        count(counter, time.perf_counter_ns() - start)
