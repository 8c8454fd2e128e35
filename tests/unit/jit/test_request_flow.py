"""The flow of requests: what answers a request, what is counted, and what is written where."""

from __future__ import annotations

import fcntl
import os
import shutil
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from jit_stand_ins import Counts, cached, tree, two_tensors

from pypto.jit.config import CacheConfig, configure_cache
from pypto.runtime.compiled import Origin
from pypto.runtime.config import RunConfig


def test_req_24_25_a_miss_publishes_both_states(
    kernels: ModuleType, builds: Any, counts: Counts, enabled: RunConfig, tmp_path: Path
) -> None:
    made = kernels.annotated.warmup(config=enabled)
    assert counts() == {"requests": 1, "misses": 1, "generation_builds": 1, "binary_builds": 1}
    assert (made.state, made.origin) == ("READY", Origin.SHARED)
    assert made.program is not None
    states = {path.parent.name for path in (tmp_path / "cache").rglob("artifact_manifest.json")}
    assert states == {"generated", "ready"}
    assert list((Path.cwd() / "build_output").iterdir()) == []


def test_cfg_03_jit_16_ready_hit_of_another_process(
    kernels: ModuleType, builds: Any, counts: Counts, enabled: RunConfig
) -> None:
    kernels.annotated.warmup(config=enabled)
    builds.forget_objects()
    restored = kernels.annotated.warmup(config=enabled)
    assert counts() == {"requests": 2, "misses": 1, "ready_hits": 1, "generation_builds": 1, "binary_builds": 1}
    assert restored.program is None
    assert restored.origin is Origin.SHARED


def test_sta_37_generated_hit_then_promotion(
    kernels: ModuleType, builds: Any, counts: Counts, enabled: RunConfig
) -> None:
    kernels.annotated.compile(config=enabled)
    builds.forget_objects()
    restored = kernels.annotated.compile(config=enabled)
    assert restored.state == "GENERATED"
    assert restored.program is None
    restored.ensure_ready()
    assert counts() == {
        "requests": 2,
        "misses": 1,
        "generated_hits": 1,
        "generation_builds": 1,
        "binary_builds": 1,
    }


def test_promotion_needs_no_entry_that_was_removed_meanwhile(
    kernels: ModuleType, builds: Any, enabled: RunConfig, tmp_path: Path
) -> None:
    made = kernels.annotated.compile(config=enabled)
    shutil.rmtree(tmp_path / "cache")
    assert kernels.annotated.warmup(config=enabled) is made
    assert (made.state, made.origin) == ("READY", Origin.SHARED)


def test_req_15_16_ready_is_found_without_a_usable_hint(
    kernels: ModuleType, builds: Any, counts: Counts, enabled: RunConfig, tmp_path: Path
) -> None:
    kernels.annotated.warmup(config=enabled)
    (hint,) = (tmp_path / "cache").rglob("generated/kernel_config.json")
    hint.write_bytes(b"{")
    builds.forget_objects()
    kernels.annotated.compile(config=enabled)
    shutil.rmtree(hint.parent)
    builds.forget_objects()
    kernels.annotated.compile(config=enabled)
    assert counts()["ready_hits"] == 2
    assert builds.generated == ["annotated"]


def test_req_14_60_bin_16_a_damaged_entry_is_counted_and_built_privately(
    kernels: ModuleType, builds: Any, counts: Counts, enabled: RunConfig, tmp_path: Path
) -> None:
    kernels.annotated.warmup(config=enabled)
    (binary,) = (tmp_path / "cache").rglob("ready/prebuilt/orchestration/main.so")
    binary.write_bytes(b"Binary")
    builds.forget_objects()
    made = kernels.annotated.warmup(config=enabled)
    assert made.origin is Origin.PRIVATE
    assert counts() == {
        "requests": 2,
        "misses": 1,
        "generated_hits": 1,
        "invalid_entries": 1,
        "generation_builds": 1,
        "binary_builds": 2,
    }


def test_cfg_15_16_req_37_readonly_writes_nothing(
    kernels: ModuleType, builds: Any, counts: Counts, tmp_path: Path
) -> None:
    root = tmp_path / "cache"
    kernels.open_shape.warmup(*two_tensors(16), config=cached(root))
    before = tree(root)
    held = [os.open(lock, os.O_RDWR) for lock in (root / "locks").iterdir()]
    for descriptor in held:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    builds.forget_objects()
    readonly = cached(root, readonly=True)
    kernels.open_shape.warmup(*two_tensors(16), config=readonly)
    missed = kernels.open_shape.warmup(*two_tensors(32), config=readonly)
    assert tree(root) == before
    assert len(held) == 1
    os.close(held[0])
    assert (missed.state, missed.origin) == ("READY", Origin.PRIVATE)
    assert counts() == {"requests": 3, "misses": 2, "ready_hits": 1, "generation_builds": 2, "binary_builds": 2}


def test_req_10_11_an_object_belongs_to_its_root_and_readonly_policy(
    kernels: ModuleType, builds: Any, counts: Counts, tmp_path: Path
) -> None:
    a = kernels.annotated.compile(config=cached(tmp_path / "a"))
    b = kernels.annotated.compile(config=cached(tmp_path / "b"))
    again = kernels.annotated.compile(config=cached(tmp_path / "a", readonly=True))
    assert len({id(a), id(b), id(again)}) == 3
    assert counts() == {"requests": 3, "misses": 2, "generated_hits": 1, "generation_builds": 2}


def test_req_33_34_errors_propagate_and_can_be_retried(
    kernels: ModuleType, builds: Any, counts: Counts, enabled: RunConfig
) -> None:
    def fail() -> None:
        raise RuntimeError("broken")

    for stage in ("while_generating", "while_compiling"):
        setattr(builds, stage, fail)
        with pytest.raises(RuntimeError, match="broken"):
            kernels.annotated.warmup(config=enabled)
        setattr(builds, stage, lambda: None)
    assert kernels.annotated.warmup(config=enabled).origin is Origin.SHARED
    assert counts() == {
        "requests": 3,
        "misses": 2,
        "object_hits": 1,
        "generation_builds": 2,
        "binary_builds": 2,
    }


def test_req_29_overlapping_requests_share_one_build(
    kernels: ModuleType, builds: Any, counts: Counts, tmp_path: Path
) -> None:
    inside = threading.Event()
    release = threading.Event()

    def wait() -> None:
        inside.set()
        assert release.wait(10)

    builds.while_generating = wait
    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.append(kernels.annotated.compile())) for _ in range(4)]
    threads[0].start()
    assert inside.wait(10)
    for thread in threads[1:]:
        thread.start()
    release.set()
    for thread in threads:
        thread.join(10)
    assert len(results) == 4
    assert len({id(result) for result in results}) == 1
    assert counts() == {"requests": 4, "disabled_requests": 4, "object_hits": 3, "generation_builds": 1}


def test_cfg_38_a_request_keeps_the_policy_it_captured(kernels: ModuleType, builds: Any, tmp_path: Path) -> None:
    configure_cache(CacheConfig(enabled=True, root=tmp_path / "a"))
    builds.while_generating = lambda: configure_cache(CacheConfig(enabled=True, root=tmp_path / "b"))
    kernels.annotated.warmup()
    assert len(list((tmp_path / "a").rglob("artifact_manifest.json"))) == 2
    assert not (tmp_path / "b").exists()


def test_jit_11_12_switching_the_cache_off_gives_an_object_with_ir(
    kernels: ModuleType, builds: Any, enabled: RunConfig
) -> None:
    kernels.annotated.warmup(config=enabled)
    builds.forget_objects()
    restored = kernels.annotated.compile(config=enabled)
    private = kernels.annotated.compile(config=RunConfig(cache_config=CacheConfig(enabled=False)))
    assert restored.program is None
    assert private.program is not None
    assert private is not restored
