"""The steps of a request in their order, the bounded search, races, and what each path counts."""

from __future__ import annotations

import gc
import os
import shutil
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import pypto
import pypto.runtime.prebuilt
from pypto.build.specs import GENERATED_SPEC, ready_spec
from pypto.jit import building, flow, request, stats
from pypto.jit.artifact_cache import ArtifactSpec, ArtifactState, ArtifactStore, BuildKind
from pypto.jit.artifact_cache import store as store_module
from pypto.jit.config import CacheConfig, configure_cache
from pypto.jit.lookup import StoredEntries
from pypto.jit.repeated import RepeatedCalls
from pypto.runtime.compiled import Origin
from pypto.runtime.config import RunConfig


class Array:
    """What calls are made with."""

    shape = (16, 64)
    dtype = "float32"


ARRAY: Any = Array()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def enabled(root: Path) -> RunConfig:
    return RunConfig(cache_config=CacheConfig(enabled=True, root=root))


@pytest.fixture
def events(builds: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the steps as they begin."""
    seen: list[str] = []

    def note(owner: Any, name: str, event: str) -> None:
        real = getattr(owner, name)

        def noted(*arguments: Any, **options: Any) -> Any:
            seen.append(event)
            return real(*arguments, **options)

        monkeypatch.setattr(owner, name, noted)

    note(request, "capture_policy", "capture")
    note(request, "environment_identity", "identity")
    note(flow, "environment_identity", "identity")
    note(flow, "_known", "object")
    note(StoredEntries, "ready", "ready")
    note(StoredEntries, "generated", "generated")
    note(building, "generate", "generate")
    note(pypto.build.generate, "pack_sources", "pack")
    note(request.Request, "sources_changed", "recheck")
    note(store_module, "publish", "publish")
    note(pypto.build.binaries, "compile_", "compile")
    return seen


def test_req_09_18_23_25_27_the_order_of_a_miss_and_of_a_hit(
    kernels: ModuleType, builds: Any, enabled: RunConfig, events: list[str]
) -> None:
    kernels.annotated.warmup(config=enabled)
    miss = ["capture", "identity", "object", "ready", "generated"]
    assert events == [*miss, "generate", "pack", "recheck", "publish", "compile", "publish"]
    events.clear()
    kernels.annotated.warmup(config=enabled)
    assert events == ["capture", "identity", "object"]
    events.clear()
    builds.forget_objects()
    kernels.annotated.warmup(config=enabled)
    assert events == ["capture", "identity", "object", "ready"]


def test_req_17_jit_10_15_16_generated_is_restored_and_completed(
    kernels: ModuleType, builds: Any, enabled: RunConfig, root: Path, counts: Any
) -> None:
    first = kernels.annotated.warmup(config=enabled)
    assert first.program is not None
    shutil.rmtree(first.binary_dir)
    builds.forget_objects()
    restored = kernels.annotated.compile(config=enabled)
    assert (restored.state, restored.program) == ("GENERATED", None)
    assert counts()["generated_hits"] == 1
    restored.ensure_ready()
    assert (restored.state, restored.origin) == ("READY", Origin.SHARED)
    assert builds.generated == ["annotated"]


def test_req_42_sta_31_a_hit_is_validated_once(
    kernels: ModuleType, builds: Any, enabled: RunConfig, monkeypatch: pytest.MonkeyPatch, counts: Any
) -> None:
    kernels.annotated.warmup(config=enabled)
    builds.forget_objects()
    validated: list[int] = []
    real = store_module._validate

    def noted(*arguments: Any) -> Any:
        validated.append(1)
        return real(*arguments)

    monkeypatch.setattr(store_module, "_validate", noted)
    kernels.annotated.warmup(config=enabled)
    assert len(validated) == 1
    assert counts() == {"requests": 2, "misses": 1, "ready_hits": 1, "generation_builds": 1, "binary_builds": 1}


def test_jit_17_sta_32_the_loser_of_a_race_has_no_program(
    kernels: ModuleType, builds: Any, enabled: RunConfig, counts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    winner = kernels.annotated.compile(config=enabled)
    assert winner.program is not None
    builds.forget_objects()
    # What a process sees that looked before the winner published.
    monkeypatch.setattr(StoredEntries, "ready", lambda *_: None)
    monkeypatch.setattr(StoredEntries, "generated", lambda *_: None)
    loser = kernels.annotated.compile(config=enabled)
    assert (loser.program, loser.origin) == (None, Origin.SHARED)
    assert counts() == {"requests": 2, "misses": 2, "generation_builds": 1}


def test_req_19_22_nothing_partial_is_ever_visible(
    kernels: ModuleType, builds: Any, enabled: RunConfig, root: Path
) -> None:
    seen: list[list[str]] = []
    builds.while_generating = builds.while_compiling = lambda: seen.append(
        sorted(path.parent.name for path in root.rglob("artifact_manifest.json"))
    )
    kernels.annotated.warmup(config=enabled)
    assert seen == [[], ["generated"]]
    (marker,) = root.rglob("generated/artifact_manifest.json")
    before = marker.stat()
    builds.forget_objects()
    kernels.annotated.warmup(config=enabled)
    assert marker.stat() == before


def test_req_32_39_a_readonly_miss_is_built_by_everyone(
    kernels: ModuleType, builds: Any, root: Path, counts: Any
) -> None:
    readonly = RunConfig(cache_config=CacheConfig(enabled=True, root=root, readonly=True))
    first = kernels.annotated.warmup(config=readonly)
    builds.forget_objects()
    second = kernels.annotated.warmup(config=readonly)
    assert first.output_dir != second.output_dir
    assert counts() == {"requests": 2, "misses": 2, "generation_builds": 2, "binary_builds": 2}
    assert not root.exists()


@pytest.mark.parametrize("damage", ["manifest", "payload", "extra", "missing", "mode"])
def test_req_39_sta_34_every_kind_of_damage(
    kernels: ModuleType, builds: Any, enabled: RunConfig, root: Path, counts: Any, damage: str
) -> None:
    made = kernels.annotated.warmup(config=enabled)
    ready = made.binary_dir
    assert ready is not None
    binary, marker = ready / "prebuilt/orchestration/main.so", ready / "artifact_manifest.json"
    if damage == "manifest":
        marker.write_bytes(marker.read_bytes() + b" ")
    elif damage == "payload":
        binary.write_bytes(b"Binary")
    elif damage == "extra":
        (ready / "extra").write_text("")
    elif damage == "missing":
        binary.unlink()
    else:
        binary.chmod(0o600)
    builds.forget_objects()
    again = kernels.annotated.warmup(config=enabled)
    assert again.origin is Origin.PRIVATE
    found = counts()
    assert (found["invalid_entries"], found["generated_hits"], "ready_hits" in found) == (1, 1, False)


def test_req_40_every_entry_has_its_configuration(
    kernels: ModuleType, builds: Any, enabled: RunConfig, root: Path
) -> None:
    kernels.annotated.warmup(config=enabled)
    assert len(list(root.rglob("artifact_manifest.json"))) == len(list(root.rglob("kernel_config.json"))) == 2


def test_req_41_61_an_entry_without_json_is_not_ready_and_no_python_runs(
    kernels: ModuleType, builds: Any, enabled: RunConfig, root: Path, tmp_path: Path, counts: Any
) -> None:
    ran = tmp_path / "ran"
    key = flow.artifact_key(request.capture(kernels.annotated, (), {}, enabled), flow.current_toolchain())
    spec = ArtifactSpec(ArtifactState.BINARY_READY, BuildKind.SINGLE_CHIP, ("kernel_config.py",))
    code = f"open({str(ran)!r}, 'w')"
    ArtifactStore(root).get_or_build(key, spec, lambda d: (d / "kernel_config.py").write_text(code))
    kernels.annotated.compile(config=enabled)
    assert not ran.exists()
    assert counts()["misses"] == 1


def test_req_54_55_folders_stay_as_long_as_the_object(kernels: ModuleType, builds: Any) -> None:
    made = kernels.annotated.warmup()
    builds.forget_objects()
    gc.collect()
    assert made.output_dir is not None and (made.output_dir / "kernel_config.json").is_file()


def test_jit_01_to_09_compile_and_warmup_load_nothing(
    kernels: ModuleType, builds: Any, enabled: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pypto.runtime.prebuilt, "load", lambda *_a, **_k: pytest.fail("something was loaded"))
    compiled = kernels.annotated.compile(config=enabled)
    assert (compiled.state, builds.compiled) == ("GENERATED", [])
    prepared = kernels.annotated.warmup(config=enabled)
    assert prepared is compiled
    assert (prepared.state, builds.compiled) == ("READY", ["annotated"])


def test_jit_03_samples_are_the_same_for_both(kernels: ModuleType, builds: Any, enabled: RunConfig) -> None:
    compiled = kernels.annotated.compile(ARRAY, 3, out=ARRAY, config=enabled)
    assert kernels.annotated.warmup(x=ARRAY, count=4, out=ARRAY, config=enabled) is compiled


@pytest.mark.parametrize("case", ["bypass", "readonly", "changed"])
def test_jit_21_24_req_08_private_results_keep_their_program(
    kernels: ModuleType, builds: Any, root: Path, tmp_path: Path, case: str
) -> None:
    fields: dict[str, Any] = {"enabled": True, "root": root}
    if case == "bypass":
        fields["extra_source_paths"] = (tmp_path / "none",)
    elif case == "readonly":
        fields["readonly"] = True
    else:
        watched = tmp_path / "watched.py"
        watched.write_text("1")
        fields["extra_source_paths"] = (watched,)
        builds.while_generating = lambda: watched.write_text("2")
    made = kernels.annotated.compile(config=RunConfig(cache_config=CacheConfig(**fields)))
    assert made.origin is Origin.PRIVATE
    assert made.program is not None


def test_jit_18_a_readonly_warmup_publishes_nothing(kernels: ModuleType, builds: Any, root: Path) -> None:
    root.mkdir()
    made = kernels.annotated.warmup(config=RunConfig(cache_config=CacheConfig(enabled=True, root=root, readonly=True)))
    assert (made.state, made.origin) == ("READY", Origin.PRIVATE)
    assert list(root.iterdir()) == []


def test_jit_23_the_winner_keeps_its_program(kernels: ModuleType, builds: Any, enabled: RunConfig) -> None:
    made = kernels.annotated.warmup(config=enabled)
    assert kernels.annotated.compile(config=enabled) is made
    assert made.program is not None


def test_req_56_sta_19_20_21_27_28_43_every_forcing_option(
    kernels: ModuleType, builds: Any, enabled: RunConfig, root: Path, tmp_path: Path, counts: Any
) -> None:
    cache = enabled.cache_config
    for options in ({"dump_passes": True}, {"save_kernels": True, "save_kernels_dir": tmp_path / "kept"}):
        kernels.annotated.compile(config=RunConfig(**options, cache_config=cache))
    assert counts() == {"requests": 2, "forced_rebuilds": 2, "generation_builds": 2}
    assert not root.exists()


def test_sta_15_16_38_jit_10_times_grow_and_hold_no_runs(
    kernels: ModuleType, builds: Any, enabled: RunConfig, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """STA-15, STA-16, STA-38, JIT-10: by a clock that a run moves far ahead; the call itself publishes."""
    ran = 10**15
    now = 0

    def clock() -> int:
        nonlocal now
        now += 1
        return now

    class Slow:
        def __call__(self, *_arguments: Any, **_options: Any) -> str:
            nonlocal now
            now += ran
            return "ran"

    monkeypatch.setattr(stats.time, "perf_counter_ns", clock)
    monkeypatch.setattr(pypto.runtime.prebuilt, "load", lambda *_a, **_k: Slow())
    monkeypatch.setattr(RepeatedCalls, "remember", lambda *_a: None)
    before = pypto.cache_stats()
    kernels.annotated.compile(config=enabled)
    assert not list(root.rglob("ready"))
    assert kernels.annotated(ARRAY, 1, ARRAY, config=enabled) == "ran"
    after = pypto.cache_stats()
    assert now > ran
    assert 0 < after.lookup_ns - before.lookup_ns < 1000
    assert 0 < after.build_ns - before.build_ns < 1000
    assert list(root.rglob("ready"))


def test_sta_35_36_storage_errors_are_told_by_their_kind(
    kernels: ModuleType, builds: Any, enabled: RunConfig, counts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: Any, **_options: Any) -> Any:
        raise store_module.PublicationFailed("whatever the text")

    monkeypatch.setattr(store_module, "publish", broken)
    made = kernels.annotated.warmup(config=enabled)
    assert made.origin is Origin.PRIVATE
    assert counts() == {
        "requests": 1,
        "misses": 1,
        "storage_errors": 1,
        "generation_builds": 1,
        "binary_builds": 1,
    }


def test_sta_42_one_binary_transaction_counts_once(
    kernels: ModuleType, builds: Any, enabled: RunConfig, counts: Any
) -> None:
    made = kernels.annotated.compile(config=enabled)
    for _ in range(3):
        made.ensure_ready()
    assert counts()["binary_builds"] == 1


def test_sixteen_threads_that_call_first_build_once(
    kernels: ModuleType, builds: Any, enabled: RunConfig, counts: Any
) -> None:
    barrier = threading.Barrier(16)
    made: list[Any] = []

    def work() -> None:
        barrier.wait(10)
        made.append(kernels.annotated.warmup(config=enabled))

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(set(map(id, made))) == 1
    found = counts()
    assert (found["requests"], found["generation_builds"], found["binary_builds"]) == (16, 1, 1)
    assert found["misses"] + found["object_hits"] == 16


@pytest.mark.parametrize("stage", ["while_generating", "while_compiling"])
def test_a_child_forked_during_a_build_ends(
    kernels: ModuleType, builds: Any, enabled: RunConfig, root: Path, stage: str
) -> None:
    """The child asks for what a thread of its parent is building; it has no such thread, and no lock of it."""
    building_now, release = threading.Event(), threading.Event()
    parent = os.getpid()

    def hold() -> None:
        if os.getpid() == parent:
            building_now.set()
            release.wait(20)

    setattr(builds, stage, hold)
    thread = threading.Thread(target=lambda: kernels.annotated.warmup(config=enabled))
    thread.start()
    assert building_now.wait(10)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            configure_cache(CacheConfig(enabled=True, root=root, readonly=True))
            pypto.cache_stats()
            made = kernels.annotated.warmup()
            status = 0 if made.state == "READY" else 2
        finally:
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    release.set()
    thread.join(20)
    assert os.waitstatus_to_exitcode(ended) == 0
    assert len(list(root.rglob("artifact_manifest.json"))) == 2


def test_a_spec_that_names_all_files(kernels: ModuleType, builds: Any, enabled: RunConfig, root: Path) -> None:
    made = kernels.annotated.warmup(config=enabled)
    assert made.binary_dir is not None
    names = {str(p.relative_to(made.binary_dir)) for p in made.binary_dir.rglob("*") if p.is_file()}
    from pypto.build.layout import read_config

    assert names - {"artifact_manifest.json"} == set(ready_spec(read_config(made.binary_dir)).required_files)
    assert GENERATED_SPEC.required_files == ("kernel_config.json",)


def test_sta_01_04_06_to_14_26_29_41_44_one_process_step_by_step(
    kernels: ModuleType, builds: Any, enabled: RunConfig, root: Path, counts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels.annotated.compile()
    kernels.annotated.compile()
    assert counts() == {"requests": 2, "disabled_requests": 2, "object_hits": 1, "generation_builds": 1}
    kernels.annotated.warmup(config=enabled)
    builds.forget_objects()
    kernels.annotated.warmup(config=enabled)
    shutil.rmtree(next(root.rglob("ready")))
    builds.forget_objects()
    kernels.annotated.compile(config=enabled)
    found = counts()
    assert (found["ready_hits"], found["generated_hits"], found["misses"]) == (1, 1, 1)
    assert (found["requests"], found["generation_builds"], found["binary_builds"]) == (5, 2, 1)
    shutil.rmtree(root)
    monkeypatch.setattr(os, "open", lambda *_a, **_k: pytest.fail("the disk was looked at"))
    pypto.cache_stats()


def test_req_03_an_option_selects(kernels: ModuleType, builds: Any, enabled: RunConfig) -> None:
    other = RunConfig(backend_type="Ascend950", cache_config=enabled.cache_config)
    assert kernels.annotated.compile(config=enabled).key != kernels.annotated.compile(config=other).key


def test_req_04_38_cfg_44_a_policy_is_captured_before_an_object_is_chosen(
    kernels: ModuleType, builds: Any, enabled: RunConfig, root: Path
) -> None:
    shared = kernels.annotated.warmup(config=enabled)
    off = kernels.annotated.warmup(config=RunConfig(cache_config=CacheConfig(enabled=False)))
    readonly = kernels.annotated.warmup(
        config=RunConfig(cache_config=CacheConfig(enabled=True, root=root, readonly=True))
    )
    assert len({id(shared), id(off), id(readonly)}) == 3
    assert (shared.program is not None, off.program is not None, readonly.program) == (True, True, None)
