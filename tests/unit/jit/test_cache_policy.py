"""Which cache policy a request follows, and what each policy may touch."""

from __future__ import annotations

import os
import tempfile
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import pypto
from pypto.jit.config import CacheConfig, capture_policy
from pypto.runtime import RunConfig
from pypto.runtime.compiled import Origin
from pypto.toolchain.cleanup import private_folder


def calling(**fields: Any) -> RunConfig:
    return RunConfig(cache_config=CacheConfig(**fields))


def entries(root: Path) -> int:
    return len(list(root.rglob("artifact_manifest.json")))


def test_cfg_04_06_13_all_fields_are_keywords(tmp_path: Path) -> None:
    config = CacheConfig(
        enabled=True, root=Path("cache"), readonly=True, extra_source_paths=(tmp_path,), extra_fingerprint="v"
    )
    assert (config.enabled, config.root, config.readonly) == (True, Path("cache"), True)
    assert (config.extra_source_paths, config.extra_fingerprint) == ((tmp_path,), "v")


def test_cfg_11_12_13_where_a_root_lies_is_settled_when_the_request_is_made(
    kernels: ModuleType, builds: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    kernels.annotated.compile(config=calling(enabled=True))
    assert entries(tmp_path / "home/.cache/pypto/jit") == 1
    config = calling(enabled=True, root=Path("kernel-cache"))
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "one")
    builds.while_generating = lambda: os.chdir(tmp_path / "two")
    kernels.annotated.warmup(config=config)
    assert Path.cwd() == tmp_path / "two"
    assert (entries(tmp_path / "one/kernel-cache"), entries(tmp_path / "two")) == (2, 0)


def test_cfg_09_27_28_31_32_43_69_the_call_wins_over_the_process(
    kernels: ModuleType, builds: Any, tmp_path: Path
) -> None:
    process, call = tmp_path / "process", tmp_path / "call"
    pypto.configure_cache(CacheConfig(enabled=True, root=process))
    kernels.annotated.compile(config=calling(enabled=True, root=call))
    assert (entries(process), entries(call)) == (0, 1)
    before = pypto.cache_stats()
    kernels.annotated.compile(config=calling(enabled=False))
    assert pypto.cache_stats().disabled_requests - before.disabled_requests == 1
    assert RunConfig().cache_config is None
    kernels.annotated.compile(config=RunConfig())
    assert entries(process) == 1
    pypto.configure_cache(None)
    assert kernels.annotated.compile().key is None


def test_cfg_29_33_34_35_the_environment_is_the_last_level(
    kernels: ModuleType, builds: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = tmp_path / "environment"
    monkeypatch.setenv("PYPTO_CACHE", "1")
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(environment))
    monkeypatch.setenv("PYPTO_CACHE_READONLY", "1")
    assert kernels.annotated.compile().origin is Origin.PRIVATE
    assert not environment.exists()
    monkeypatch.setenv("PYPTO_CACHE_READONLY", "0")
    kernels.annotated.compile()
    assert entries(environment) == 1
    pypto.configure_cache(CacheConfig(enabled=True, root=tmp_path / "process"))
    builds.forget_objects()
    kernels.annotated.compile()
    assert (entries(environment), entries(tmp_path / "process")) == (1, 1)
    monkeypatch.setenv("PYPTO_CACHE", "0")
    pypto.configure_cache(None)
    assert kernels.annotated.compile().key is None


def test_cfg_66_a_relative_folder_of_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYPTO_CACHE", "1")
    monkeypatch.setenv("PYPTO_CACHE_DIR", "here")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        assert capture_policy().root == tmp_path / name / "here"


def test_cfg_70_the_environment_has_no_application_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPTO_CACHE", "1")
    monkeypatch.setenv("PYPTO_CACHE_EXTRA_SOURCE_PATHS", "x")
    policy = capture_policy()
    assert (policy.extra_source_paths, policy.extra_fingerprint) == ((), None)


def test_cfg_39_40_sta_39_40_changing_the_configuration_resets_and_deletes_nothing(
    kernels: ModuleType, builds: Any, tmp_path: Path
) -> None:
    pypto.configure_cache(CacheConfig(enabled=True, root=tmp_path / "one", extra_source_paths=(tmp_path / "none",)))
    kernels.annotated.compile()
    stats = pypto.cache_stats()
    assert stats.last_bypass_reason is not None
    pypto.configure_cache(CacheConfig(enabled=True, root=tmp_path / "two"))
    kernels.annotated.compile()
    after = pypto.cache_stats()
    assert (after.requests - stats.requests, after.misses - stats.misses) == (1, 1)
    assert after.last_bypass_reason == stats.last_bypass_reason
    pypto.configure_cache(None)
    assert pypto.cache_stats() == after
    assert entries(tmp_path / "two") == 1


def test_cfg_41_42_jit_19_application_inputs_are_repeated_when_the_policy_is_switched(
    kernels: ModuleType, builds: Any, tmp_path: Path
) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app/model.py").write_text("SIZE = 1\n")
    inputs = {"extra_source_paths": (tmp_path / "app",), "extra_fingerprint": "model-config-v1"}
    root = tmp_path / "kernel-cache"
    pypto.configure_cache(CacheConfig(enabled=True, root=root, **inputs))
    kernels.annotated.warmup(config=RunConfig())
    builds.forget_objects()
    repeated = kernels.annotated.compile(config=calling(enabled=True, root=root, readonly=True, **inputs))
    assert (repeated.state, repeated.origin, repeated.program) == ("READY", Origin.SHARED, None)
    without = kernels.annotated.compile(config=calling(enabled=True, root=root, readonly=True))
    assert without.origin is Origin.PRIVATE


def test_cfg_26_a_fingerprint_does_not_replace_tools(
    kernels: ModuleType, builds: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pypto.jit.flow, "current_toolchain", lambda: None)
    before = pypto.cache_stats()
    kernels.annotated.compile(config=calling(enabled=True, root=tmp_path / "cache", extra_fingerprint="v1"))
    after = pypto.cache_stats()
    assert after.bypasses - before.bypasses == 1
    assert after.last_bypass_reason is not None and "no toolchain is installed" in after.last_bypass_reason


def test_cfg_71_any_file_may_be_named_and_folders_hold_python(kernels: ModuleType, builds: Any, tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    for name in ("named.json", "app/inside.json", "app/code.py"):
        (tmp_path / name).write_text("1")
    config = calling(enabled=True, root=tmp_path / "c", extra_source_paths=(tmp_path / "named.json", tmp_path / "app"))

    def key() -> str | None:
        return kernels.annotated.compile(config=config).key

    first = key()
    (tmp_path / "app/inside.json").write_text("2")
    assert key() == first
    (tmp_path / "named.json").write_text("2")
    second = key()
    assert second != first
    (tmp_path / "app/code.py").write_text("2")
    assert key() not in (first, second)


def test_cfg_17_18_19_51_run_and_build_folders_stand_outside_the_root(
    kernels: ModuleType, builds: Any, tmp_path: Path
) -> None:
    root = tmp_path / "cache"
    kernels.annotated.warmup(config=calling(enabled=True, root=root))
    builds.forget_objects()
    hit = kernels.annotated.warmup(config=calling(enabled=True, root=root, readonly=True))
    assert hit.run_directory is not None
    assert not hit.run_directory.is_relative_to(root)
    assert not hit.run_directory.exists()
    assert not [path for path in root.rglob("*") if path.name == "__pycache__" or path.suffix == ".pyc"]


def test_cfg_48_50_52_53_54_a_hit_with_the_working_folder_in_the_root(
    kernels: ModuleType, builds: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    config = calling(enabled=True, root=Path.cwd())
    kernels.annotated.warmup(config=config)
    builds.forget_objects()
    hit = kernels.annotated.warmup(config=config)
    assert hit.run_directory is not None
    assert hit.run_directory.parent.parent == scratch
    assert oct(hit.run_directory.parent.stat().st_mode & 0o777) == "0o700"
    parents = set(scratch.iterdir())
    del hit
    assert set(scratch.iterdir()) == parents
    assert all(path.name.startswith("pypto-private-") for path in parents)


def test_cfg_72_an_explicit_folder_in_the_root_is_honoured(kernels: ModuleType, builds: Any, tmp_path: Path) -> None:
    root = tmp_path / "cache"
    config = RunConfig(
        save_kernels=True, save_kernels_dir=root / "kept", cache_config=CacheConfig(enabled=True, root=root)
    )
    made = kernels.annotated.compile(config=config)
    assert made.output_dir == root / "kept"
    assert (root / "kept/kernel_config.json").is_file()


def test_cfg_59_60_61_62_platform_is_a_deprecated_spelling() -> None:
    with pytest.warns(DeprecationWarning, match="write RunConfig"):
        legacy = RunConfig(platform="a2a3")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert RunConfig(backend_type="Ascend910B", execution_mode="device") == legacy


def test_cfg_52_nothing_is_probed_in_tmpdir(
    kernels: ModuleType, builds: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    opened: list[str] = []
    real = os.open

    def watching(path: Any, *arguments: Any, **options: Any) -> int:
        opened.append(os.fspath(path) if not isinstance(path, int) else "")
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "open", watching)
    kernels.annotated.compile(config=calling(enabled=True, root=tmp_path / "cache", readonly=True))
    assert not [path for path in opened if str(path).startswith(str(scratch))]
    assert list(scratch.iterdir()) == []
    # Nor by the roots of the tools, which are made there, nor by a build that has to go there.
    monkeypatch.setattr(tempfile, "tempdir", None)
    with private_folder(None) as folder:
        assert folder.parent == scratch
    builds.forget_objects()
    kernels.annotated.compile(config=calling(enabled=True, root=Path.cwd(), readonly=True))
    made = [path.relative_to(scratch).parts[0] for path in map(Path, opened) if path.is_relative_to(scratch)]
    assert made and all(name.startswith(("pypto-build-", "pypto-private-")) for name in made)
    assert tempfile.tempdir is None
