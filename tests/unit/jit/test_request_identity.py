"""What of a request, its process and its tools selects what answers it."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from jit_stand_ins import Counts, cached, two_tensors

import pypto
import pypto.toolchain
from pypto.runtime.config import RunConfig


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
