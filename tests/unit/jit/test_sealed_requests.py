"""Sealed bundles as the first source of READY artifacts."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import pypto
import pypto.toolchain
from pypto.bundle.errors import BundleDamaged
from pypto.jit import sealed
from pypto.jit.config import CacheConfig
from pypto.jit.request import capture
from pypto.runtime.compiled import Origin
from pypto.runtime.config import RunConfig
from pypto.toolchain import ToolchainNotInstalled


@pytest.fixture(autouse=True)
def no_bundles(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sealed, "_open", {})
    yield
    pypto.use_bundles(None)


@pytest.fixture
def bundle(kernels: ModuleType, builds: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bundle with one kernel; afterwards this process has no tools."""
    path: Path = builds.seal(tmp_path / "sealed", "9", capture(kernels.annotated, (), {}, None))

    def missing() -> None:
        raise ToolchainNotInstalled("no toolchain: python -m pypto.toolchain install")

    monkeypatch.setattr(pypto.toolchain.selection, "current", missing)
    return path


def grown(before: Any) -> dict[str, int]:
    now, then = dataclasses.asdict(pypto.cache_stats()), dataclasses.asdict(before)
    names = [name for name in now if not name.endswith("_ns") and name != "last_bypass_reason"]
    return {name: now[name] - then[name] for name in names if now[name] != then[name]}


def test_a_bundle_answers_without_tools_and_with_the_cache_off(kernels: ModuleType, builds: Any, bundle: Path) -> None:
    before = pypto.cache_stats()
    pypto.use_bundles([bundle])
    made = kernels.annotated.warmup()
    assert kernels.annotated.compile() is made
    assert grown(before) == {"requests": 2, "disabled_requests": 2, "ready_hits": 1, "object_hits": 1}
    assert (made.state, made.origin, made.program) == ("READY", Origin.BUNDLE, None)
    assert made.bundle_digest == pypto.import_bundle(bundle).digest
    assert made.output_dir is not None
    assert made.output_dir.is_relative_to(bundle)
    assert builds.compiled == []
    assert list(Path.cwd().iterdir()) == []


def test_the_environment_names_bundles_and_the_first_match_counts(
    kernels: ModuleType, builds: Any, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = builds.seal(tmp_path / "other", "8", capture(kernels.annotated, (), {}, None))
    monkeypatch.setenv("PYPTO_BUNDLE_PATH", os.pathsep.join([str(other), "", str(bundle)]))
    assert kernels.annotated.compile().bundle_digest == pypto.import_bundle(other).digest
    pypto.use_bundles([bundle])
    assert kernels.annotated.compile().bundle_digest == pypto.import_bundle(bundle).digest
    pypto.use_bundles(None)
    assert kernels.annotated.compile().bundle_digest == pypto.import_bundle(other).digest


def test_a_bundle_is_looked_at_before_the_persistent_cache(
    kernels: ModuleType, builds: Any, bundle: Path, tmp_path: Path
) -> None:
    before = pypto.cache_stats()
    pypto.use_bundles([bundle])
    config = RunConfig(cache_config=CacheConfig(enabled=True, root=tmp_path / "cache"))
    assert kernels.annotated.warmup(config=config).origin is Origin.BUNDLE
    assert grown(before) == {"requests": 1, "ready_hits": 1}
    assert not (tmp_path / "cache").exists()


def test_another_source_or_target_is_not_in_the_bundle(kernels: ModuleType, builds: Any, bundle: Path) -> None:
    pypto.use_bundles([bundle])
    assert kernels.annotated.compile(config=RunConfig(backend_type="Ascend950")).origin is Origin.PRIVATE
    kernels.FACTOR = 2.5
    assert kernels.annotated.compile().origin is Origin.PRIVATE


def test_a_path_that_is_no_bundle_is_an_error(
    kernels: ModuleType, builds: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BundleDamaged, match="there is no such directory"):
        pypto.use_bundles([tmp_path / "absent"])
    with pytest.raises(TypeError, match="use_bundles takes a list of paths, got one path 'x'"):
        pypto.use_bundles("x")
    monkeypatch.setenv("PYPTO_BUNDLE_PATH", str(tmp_path / "absent"))
    with pytest.raises(BundleDamaged, match="there is no such directory"):
        kernels.annotated.compile()
