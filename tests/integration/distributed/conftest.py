"""The distributed programs of the tests, built once, and checks that nothing of a run is left behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from rank_processes import children, memories

import pypto
from pypto.toolchain import Toolchain


@pytest.fixture(scope="session")
def cache_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("distributed") / "cache"


@pytest.fixture(autouse=True)
def cached(toolchain: Toolchain, cache_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The persistent cache of this session, in a working directory of its own."""
    monkeypatch.chdir(tmp_path)
    pypto.configure_cache(pypto.CacheConfig(enabled=True, root=cache_root))
    yield
    pypto.configure_cache(None)


@pytest.fixture(autouse=True)
def nothing_left(cached: None) -> Iterator[None]:
    """No process of a run outlives it, and no descriptor that would keep its memory."""
    before = children(), memories()
    yield
    assert children() <= before[0]
    assert memories() <= before[1]
