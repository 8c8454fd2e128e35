"""The settings of identities in the flow of a request: `PYPTO_CACHE_IDENTITY`, `_STRICT` and `_EPOCH`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import pypto
from pypto._identity.policy import IdentitySettings
from pypto.jit import request
from pypto.jit.config import CacheConfig, capture_policy
from pypto.runtime.config import RunConfig
from pypto.toolchain import Toolchain, measured


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("IDENTITY", "STRICT", "EPOCH"):
        monkeypatch.delenv(f"PYPTO_CACHE_{name}", raising=False)
    forget()
    yield
    forget()


def forget() -> None:
    """What a new process does not know."""
    measured._digests.clear()
    request._environments._latest = None


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    return RunConfig(cache_config=CacheConfig(enabled=True, root=tmp_path / "cache"))


def settings() -> IdentitySettings:
    return capture_policy(CacheConfig(enabled=True)).identity


def test_cfg_55_56_58_values(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings() == IdentitySettings("build", False, None)
    monkeypatch.setenv("PYPTO_CACHE_IDENTITY", "content")
    monkeypatch.setenv("PYPTO_CACHE_STRICT", "1")
    monkeypatch.setenv("PYPTO_CACHE_EPOCH", "2026-11")
    assert settings() == IdentitySettings("content", True, "2026-11")
    monkeypatch.setenv("PYPTO_CACHE_STRICT", "0")
    monkeypatch.setenv("PYPTO_CACHE_EPOCH", "")
    assert settings() == IdentitySettings("content", False, None)


@pytest.mark.parametrize(
    ("name", "value", "takes"),
    [("IDENTITY", "foo", "build or content"), ("IDENTITY", "", "build or content"),
     ("IDENTITY", "Build", "build or content"), ("STRICT", "yes", "0 or 1"),
     ("STRICT", "", "0 or 1"), ("STRICT", "2", "0 or 1")],
)  # fmt: skip
def test_cfg_63_64_68_illegal_values(monkeypatch: pytest.MonkeyPatch, name: str, value: str, takes: str) -> None:
    """They are errors where a cache is used, and nothing where none is."""
    monkeypatch.setenv(f"PYPTO_CACHE_{name}", value)
    with pytest.raises(ValueError, match=f"PYPTO_CACHE_{name} is {takes}, got {value!r}"):
        settings()
    assert capture_policy(CacheConfig(enabled=False)).identity == IdentitySettings()


def test_settings_of_other_types_are_refused() -> None:
    with pytest.raises(ValueError, match="build or content"):
        IdentitySettings("other")
    for wrong in ({"strict": 1}, {"epoch": 7}):
        with pytest.raises(TypeError):
            IdentitySettings(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "value"), [("IDENTITY", "content"), ("STRICT", "1")])
def test_cfg_57_a_changed_byte_of_a_tool_is_a_miss(
    kernels: ModuleType, builds: Any, toolchain: Toolchain, config: RunConfig, monkeypatch: pytest.MonkeyPatch,
    name: str, value: str,
) -> None:  # fmt: skip
    """And a hit again when the byte is the old one; `build` does not see it."""
    tool = toolchain.root("gcc") / "tool"
    tool.write_bytes(b"one")

    def key() -> str | None:
        forget()
        builds.forget_objects()
        return kernels.annotated.compile(config=config).key

    plain = key()
    monkeypatch.setenv(f"PYPTO_CACHE_{name}", value)
    first = key()
    before = pypto.cache_stats()
    assert key() == first
    tool.write_bytes(b"onf")
    second = key()
    assert len({plain, first, second}) == 3
    after = pypto.cache_stats()
    assert (after.misses - before.misses, after.generated_hits + after.ready_hits) == (
        1, before.generated_hits + before.ready_hits + 1,
    )  # fmt: skip
    monkeypatch.delenv(f"PYPTO_CACHE_{name}")
    assert key() == plain


def test_idb_14_idc_16_tools_that_cannot_be_read_bypass(
    kernels: ModuleType, builds: Any, toolchain: Toolchain, config: RunConfig, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """INS-24: nothing is published, and the reason says which set."""
    (toolchain.root("isa") / "link").symlink_to("nowhere")
    monkeypatch.setenv("PYPTO_CACHE_IDENTITY", "content")
    before = pypto.cache_stats().bypasses
    assert kernels.annotated.compile(config=config).key is None
    assert pypto.cache_stats().bypasses == before + 1
    assert "the tool set 'isa' cannot be read" in str(pypto.cache_stats().last_bypass_reason)
    assert not (tmp_path / "cache/artifacts").exists()


def test_settings_are_captured_with_the_request(
    kernels: ModuleType, builds: Any, config: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable that changes while a kernel is being built acts on the next request."""
    builds.while_generating = lambda: monkeypatch.setenv("PYPTO_CACHE_EPOCH", "later")
    first = kernels.annotated.compile(config=config).key
    builds.while_generating = lambda: None
    assert kernels.annotated.compile(config=config).key != first
    monkeypatch.delenv("PYPTO_CACHE_EPOCH")
    assert kernels.annotated.compile(config=config).key == first


def test_env_04_05_a_value_that_is_in_force_anyway_changes_nothing(
    kernels: ModuleType, builds: Any, config: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """INS-28: `build` is the default."""
    first = kernels.annotated.compile(config=config)
    for name, value in (("IDENTITY", "build"), ("STRICT", "0"), ("EPOCH", "")):
        monkeypatch.setenv(f"PYPTO_CACHE_{name}", value)
        assert kernels.annotated.compile(config=config) is first


def test_idb_02_15_an_epoch_is_a_miss_and_a_hit_when_it_comes_back(
    kernels: ModuleType, builds: Any, config: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def misses() -> int:
        before = pypto.cache_stats().misses
        builds.forget_objects()
        kernels.annotated.compile(config=config)
        return pypto.cache_stats().misses - before

    assert misses() == 1
    monkeypatch.setenv("PYPTO_CACHE_EPOCH", "2")
    assert (misses(), misses()) == (1, 0)
    monkeypatch.delenv("PYPTO_CACHE_EPOCH")
    assert misses() == 0


def test_cnt_35_36_ins_21_an_applications_fingerprint_replaces_nothing(
    kernels: ModuleType, builds: Any, toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ENV-40: neither a missing source nor tools that cannot be read; nothing is stored."""

    def reason(**fields: Any) -> str:
        cache = CacheConfig(enabled=True, root=tmp_path / "cache", extra_fingerprint="all is well", **fields)
        before = pypto.cache_stats().bypasses
        assert kernels.annotated.compile(config=RunConfig(cache_config=cache)).key is None
        assert pypto.cache_stats().bypasses == before + 1
        return str(pypto.cache_stats().last_bypass_reason)

    assert "absent.py" in reason(extra_source_paths=(tmp_path / "absent.py",))
    (toolchain.root("isa") / "link").symlink_to("nowhere")
    monkeypatch.setenv("PYPTO_CACHE_STRICT", "1")
    assert "isa" in reason()
    assert not (tmp_path / "cache/artifacts").exists()


def test_mem_07_idb_17_application_sources_are_read_at_every_request(
    kernels: ModuleType, builds: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CNT-33: under every policy, with size and times as before."""
    source = tmp_path / "extra.py"
    source.write_text("1")
    times = source.stat()
    cache = CacheConfig(enabled=True, root=tmp_path / "cache", extra_source_paths=(source,))
    for policy in ("build", "content"):
        monkeypatch.setenv("PYPTO_CACHE_IDENTITY", policy)
        keys = []
        for text in ("1", "2", "1"):
            source.write_text(text)
            os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
            keys.append(kernels.annotated.compile(config=RunConfig(cache_config=cache)).key)
        assert keys[0] == keys[2] != keys[1]


def test_cnt_31_an_application_source_that_changes_during_the_build(
    kernels: ModuleType, builds: Any, tmp_path: Path
) -> None:
    """Nothing is stored, the caller gets a result of its own, and the next request is a new one."""
    source = tmp_path / "extra.py"
    source.write_text("1")
    cache = CacheConfig(enabled=True, root=tmp_path / "cache", extra_source_paths=(source,))
    builds.while_generating = lambda: source.write_text("2")
    made = kernels.annotated.compile(config=RunConfig(cache_config=cache))
    assert pypto.cache_stats().last_bypass_reason == "sources changed while the kernel was being built"
    assert list((tmp_path / "cache").rglob("artifact_manifest.json")) == []
    builds.while_generating = lambda: None
    assert kernels.annotated.compile(config=RunConfig(cache_config=cache)) is not made
    assert len(list((tmp_path / "cache").rglob("artifact_manifest.json"))) == 1
