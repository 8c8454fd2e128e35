"""Requests whose result stays with this process, and why: no cache, bypasses, forced builds."""

from __future__ import annotations

import dataclasses
import os
import stat
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from jit_stand_ins import Counts, cached, two_tensors

import pypto
import pypto.toolchain
from pypto.build.errors import BuildError
from pypto.jit import flow
from pypto.jit.request import IdentityUnavailable
from pypto.runtime.compiled import Origin
from pypto.runtime.config import RunConfig
from pypto.toolchain import ToolchainNotInstalled


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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((flag, True) for flag in ("dump_passes", "dump_ptoas_passes", "compile_profiling", "save_kernels")),
        ("save_kernels_dir", "kept"),
    ],
)
def test_req_56_each_option_whose_point_is_side_output_forces_a_compile(
    kernels: ModuleType, builds: Any, counts: Counts, enabled: RunConfig, name: str, value: Any
) -> None:
    kernels.annotated.compile(config=enabled)
    made = kernels.annotated.compile(config=dataclasses.replace(enabled, **{name: value}))
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
