"""The flow of requests: what answers a request, what is counted, and what is written where."""

from __future__ import annotations

import dataclasses
import fcntl
import os
import shutil
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import pypto
import pypto.toolchain
from pypto.build.errors import BuildError
from pypto.jit import flow
from pypto.jit.config import CacheConfig, configure_cache
from pypto.jit.request import IdentityUnavailable
from pypto.runtime.compiled import Origin
from pypto.runtime.config import RunConfig
from pypto.toolchain import ToolchainNotInstalled

Counts = Callable[[], dict[str, Any]]


@pytest.fixture
def enabled(tmp_path: Path) -> RunConfig:
    """A call's settings with a persistent cache."""
    return cached(tmp_path / "cache")


def cached(root: Path, **fields: Any) -> RunConfig:
    return RunConfig(cache_config=CacheConfig(enabled=True, root=root, **fields))


def tree(root: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file below a folder with mode, time and content; folders with mode and time."""
    found = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(root))] = (status.st_mode, status.st_mtime_ns, content)
    return found


def test_cfg_01_sta_17_18_disabled_requests(
    kernels: ModuleType, builds: Any, counts: Counts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    first = kernels.annotated.compile()
    second = kernels.annotated.compile()
    assert first is second
    assert counts() == {"requests": 2, "disabled_requests": 2, "object_hits": 1, "generation_builds": 1}
    assert first.origin is Origin.PRIVATE
    assert first.program is not None
    assert first.key is None
    assert not (tmp_path / "home").exists()


def test_cfg_47_private_output_stands_in_build_output(kernels: ModuleType, builds: Any) -> None:
    made = kernels.annotated.warmup()
    assert made.state == "READY"
    assert made.output_dir is not None
    assert made.output_dir.is_relative_to(Path.cwd() / "build_output")
    assert stat.S_IMODE(made.output_dir.parent.stat().st_mode) == 0o700
    assert (made.output_dir / "prebuilt/orchestration/main.so").read_bytes() == b"binary"


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_cfg_48_49_54_private_output_never_lies_in_the_root(
    kernels: ModuleType, builds: Any, umask: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    parents = set()
    for _ in range(2):
        builds.forget_objects()
        before = os.umask(umask)
        try:
            made = kernels.annotated.compile(config=cached(Path.cwd(), readonly=True))
        finally:
            os.umask(before)
        assert made.output_dir is not None
        parent = next(p for p in made.output_dir.parents if p.parent == tmp_path / "scratch")
        assert stat.S_IMODE(parent.stat().st_mode) == 0o700
        parents.add(parent)
    assert len(parents) == 2
    assert not (Path.cwd() / "build_output").exists()


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


@pytest.mark.parametrize("blocked", ["file", "folder"])
def test_req_30_31_an_unusable_root_builds_privately(
    kernels: ModuleType, builds: Any, counts: Counts, tmp_path: Path, blocked: str
) -> None:
    root = tmp_path / "cache"
    if blocked == "file":
        root.write_text("not a folder")
    else:
        root.mkdir()
        (root / "artifacts").write_text("not a folder")
    made = kernels.annotated.warmup(config=cached(root))
    assert (made.state, made.origin) == ("READY", Origin.PRIVATE)
    assert made.program is not None
    assert counts()["storage_errors" if blocked == "file" else "invalid_entries"] >= 1


def two_tensors(rows: int) -> tuple[Any, Any]:
    class Meta:
        shape = (rows, 64)
        dtype = "float32"

    return Meta(), Meta()


def test_req_01_shapes_select_but_sizes_of_dynamic_dimensions_and_scalars_do_not(
    kernels: ModuleType, builds: Any, counts: Counts, enabled: RunConfig
) -> None:
    small, large = two_tensors(16), two_tensors(32)
    a = kernels.annotated.compile(small[0], 1, small[1], config=enabled)
    b = kernels.annotated.compile(large[0], count=2, out=large[1], config=enabled)
    assert a is b
    c = kernels.open_shape.compile(*small, config=enabled)
    d = kernels.open_shape.compile(*large, config=enabled)
    assert len({a.key, c.key, d.key}) == 3
    assert counts()["generation_builds"] == 3


def test_req_02_a_changed_global_is_another_kernel(
    kernels: ModuleType, builds: Any, enabled: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = kernels.annotated.compile(config=enabled)
    monkeypatch.setattr(kernels, "FACTOR", 3.0)
    second = kernels.annotated.compile(config=enabled)
    monkeypatch.setattr(kernels, "FACTOR", 2.0)
    third = kernels.annotated.compile(config=enabled)
    assert first.key != second.key
    assert third is first


def test_req_07_other_tools_are_another_key(
    kernels: ModuleType, builds: Any, enabled: RunConfig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = kernels.annotated.compile(config=enabled)
    other = builds.make_toolchain(tmp_path / "others", version="2")
    monkeypatch.setattr(pypto.toolchain.selection, "current", lambda: other)
    assert kernels.annotated.compile(config=enabled).key != first.key


def test_req_10_11_an_object_belongs_to_its_root_and_readonly_policy(
    kernels: ModuleType, builds: Any, counts: Counts, tmp_path: Path
) -> None:
    a = kernels.annotated.compile(config=cached(tmp_path / "a"))
    b = kernels.annotated.compile(config=cached(tmp_path / "b"))
    again = kernels.annotated.compile(config=cached(tmp_path / "a", readonly=True))
    assert len({id(a), id(b), id(again)}) == 3
    assert counts() == {"requests": 3, "misses": 2, "generated_hits": 1, "generation_builds": 2}


def test_cfg_21_22_25_application_inputs_enter_the_key(kernels: ModuleType, builds: Any, tmp_path: Path) -> None:
    """CFG-21, CFG-22, CFG-25, IDB-17: by content, at every request, in folders of any depth."""
    (tmp_path / "sources/deep").mkdir(parents=True)
    source, single = tmp_path / "sources/deep/a.py", tmp_path / "table.bin"
    source.write_text("1")
    single.write_bytes(b"1")
    fields: dict[str, Any] = {"extra_source_paths": (tmp_path / "sources", single), "extra_fingerprint": "v1"}

    def key(**others: Any) -> str | None:
        return kernels.annotated.compile(config=cached(tmp_path / "cache", **{**fields, **others})).key

    def rewrite(path: Path, text: str) -> None:
        times = path.stat()
        path.write_text(text)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    seen = [kernels.annotated.compile(config=cached(tmp_path / "cache")).key, key()]
    assert key() == seen[-1]
    for path in (source, single):
        rewrite(path, "2")
        seen.append(key())
    (tmp_path / "sources/note.txt").write_text("not Python")
    assert key() == seen[-1]
    (tmp_path / "sources/b.py").write_text("")
    seen.append(key())
    seen.append(key(extra_fingerprint="v2"))
    assert len(set(seen)) == len(seen)
    (tmp_path / "sources/b.py").unlink()
    assert key() == seen[3]


def test_cfg_55_57_58_epoch_and_identity_policy_are_namespaces(
    kernels: ModuleType, builds: Any, counts: Counts, enabled: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    default = kernels.annotated.compile(config=enabled)
    monkeypatch.setenv("PYPTO_CACHE_IDENTITY", "build")
    assert kernels.annotated.compile(config=enabled) is default
    monkeypatch.setenv("PYPTO_CACHE_IDENTITY", "content")
    content = kernels.annotated.compile(config=enabled)
    monkeypatch.setenv("PYPTO_CACHE_EPOCH", "2")
    epoch = kernels.annotated.compile(config=enabled)
    assert len({default.key, content.key, epoch.key}) == 3
    monkeypatch.delenv("PYPTO_CACHE_IDENTITY")
    monkeypatch.delenv("PYPTO_CACHE_EPOCH")
    assert kernels.annotated.compile(config=enabled) is default
    assert counts()["misses"] == 3


def test_cfg_68_an_unknown_identity_policy_is_refused(
    kernels: ModuleType, builds: Any, enabled: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYPTO_CACHE_IDENTITY", "foo")
    with pytest.raises(ValueError, match="PYPTO_CACHE_IDENTITY is build or content, got 'foo'"):
        kernels.annotated.compile(config=enabled)


def test_cfg_23_req_08_a_missing_input_bypasses(
    kernels: ModuleType, builds: Any, counts: Counts, tmp_path: Path
) -> None:
    root = tmp_path / "cache"
    made = kernels.annotated.warmup(config=cached(root, extra_source_paths=(tmp_path / "absent",)))
    assert (made.state, made.origin) == ("READY", Origin.PRIVATE)
    assert made.program is not None
    assert not root.exists()
    assert counts() == {"requests": 1, "bypasses": 1, "generation_builds": 1, "binary_builds": 1}
    assert "absent" in str(pypto.cache_stats().last_bypass_reason)


def test_sta_22_25_tools_without_an_identity_bypass_the_cache_and_not_the_objects(
    kernels: ModuleType, builds: Any, counts: Counts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REQ-09, STA-22, STA-25: every request is a bypass with its reason; what it built answers the next one."""

    def unknown(*_arguments: Any) -> Any:
        raise IdentityUnavailable("the compiler is a script")

    monkeypatch.setattr(flow, "environment_identity", unknown)
    config = cached(tmp_path / "cache", extra_fingerprint="v1")
    made = kernels.annotated.warmup(config=config)
    assert kernels.annotated.warmup(config=config) is made
    assert (made.state, made.origin, made.key) == ("READY", Origin.PRIVATE, None)
    assert counts() == {"requests": 2, "bypasses": 2, "object_hits": 1, "generation_builds": 1, "binary_builds": 1}
    assert pypto.cache_stats().last_bypass_reason == "the compiler is a script"
    others = [
        kernels.annotated.compile(config=cached(tmp_path / "cache", extra_fingerprint="v2")),
        kernels.annotated.compile(config=RunConfig()),
    ]
    missing = cached(tmp_path / "cache", extra_source_paths=(tmp_path / "absent",))
    others += [kernels.annotated.compile(config=missing) for _ in range(2)]
    assert len({id(each) for each in (made, *others)}) == 5
    assert not (tmp_path / "cache").exists()


def test_req_21_36_sta_24_sources_that_change_during_the_build_stay_private(
    kernels: ModuleType, builds: Any, counts: Counts, enabled: RunConfig, tmp_path: Path
) -> None:
    def change() -> None:
        kernels.FACTOR = 5.0

    builds.while_generating = change
    made = kernels.annotated.compile(config=enabled)
    assert (made.origin, made.program is not None) == (Origin.PRIVATE, True)
    assert list((tmp_path / "cache").rglob("artifact_manifest.json")) == []
    assert counts() == {"requests": 1, "misses": 1, "bypasses": 1, "generation_builds": 1}
    assert pypto.cache_stats().last_bypass_reason == "sources changed while the kernel was being built"
    kernels.FACTOR = 2.0
    builds.while_generating = lambda: None
    assert kernels.annotated.compile(config=enabled) is not made
    made.ensure_ready()
    assert made.state == "READY"


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


def test_req_05_06_57_forced_rebuilds(
    kernels: ModuleType, builds: Any, counts: Counts, enabled: RunConfig, tmp_path: Path
) -> None:
    ordinary = kernels.annotated.warmup(config=enabled)
    saved = dataclasses.replace(enabled, save_kernels=True, save_kernels_dir=str(tmp_path / "saved"))
    forced = kernels.annotated.warmup(config=saved)
    assert forced is not ordinary
    assert forced.output_dir == tmp_path / "saved"
    assert (tmp_path / "saved/prebuilt/orchestration/main.so").read_bytes() == b"binary"
    assert kernels.annotated.compile(config=enabled) is ordinary
    assert counts() == {
        "requests": 3,
        "misses": 1,
        "object_hits": 1,
        "forced_rebuilds": 1,
        "generation_builds": 2,
        "binary_builds": 2,
    }


@pytest.mark.parametrize("name", ["dump_passes", "dump_ptoas_passes", "compile_profiling", "save_kernels"])
def test_req_56_each_option_whose_point_is_side_output_forces_a_compile(
    kernels: ModuleType, builds: Any, counts: Counts, enabled: RunConfig, name: str
) -> None:
    kernels.annotated.compile(config=enabled)
    made = kernels.annotated.compile(config=dataclasses.replace(enabled, **{name: True}))
    assert made.origin is Origin.PRIVATE
    assert counts()["forced_rebuilds"] == 1
    assert counts()["generation_builds"] == 2


def test_codegen_only_makes_no_binaries(kernels: ModuleType, builds: Any) -> None:
    only = RunConfig(codegen_only=True)
    assert kernels.annotated.compile(config=only).state == "GENERATED"
    x, out = two_tensors(16)
    for act in (kernels.annotated.warmup, kernels.annotated):
        with pytest.raises(BuildError, match=r"RunConfig\.codegen_only makes no binaries: use f\.compile"):
            act(x, 1, out, config=only)
    assert builds.compiled == []


def test_sta_30_a_forced_rebuild_with_the_cache_off(kernels: ModuleType, builds: Any, counts: Counts) -> None:
    kernels.annotated.compile(config=RunConfig(save_kernels=True))
    assert counts() == {"requests": 1, "disabled_requests": 1, "forced_rebuilds": 1, "generation_builds": 1}


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


def test_jit_07_without_tools_a_build_names_the_command_that_installs_them(
    kernels: ModuleType, builds: Any, counts: Counts, enabled: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise ToolchainNotInstalled("no toolchain: python -m pypto.toolchain install")

    monkeypatch.setattr(pypto.toolchain.selection, "current", missing)
    for config in (None, enabled):
        with pytest.raises(ToolchainNotInstalled, match=r"python -m pypto\.toolchain install"):
            kernels.annotated.warmup(config=config)
    assert counts()["bypasses"] == 1
    assert "no toolchain is installed" in str(pypto.cache_stats().last_bypass_reason)


def test_sta_22_a_file_that_no_identity_covers_keeps_the_binaries_private(
    kernels: ModuleType, builds: Any, counts: Counts, enabled: RunConfig, tmp_path: Path
) -> None:
    builds.uncovered = ("/usr/include/strange.h",)
    made = kernels.annotated.warmup(config=enabled)
    assert (made.state, made.origin) == ("READY", Origin.PRIVATE)
    assert counts()["bypasses"] == 1
    reason = pypto.cache_stats().last_bypass_reason
    assert reason == "a compiler read /usr/include/strange.h, which no identity covers"
    assert not list((tmp_path / "cache").rglob("ready"))
    assert made.output_dir is not None and made.output_dir.is_dir()
