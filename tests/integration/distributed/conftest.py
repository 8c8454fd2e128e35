"""The distributed programs of the tests, built once, and checks that nothing of a run is left behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

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


def children() -> set[int]:
    """Processes whose parent is this one, ended ones that nobody waited for included."""
    found = set()
    for task in os.listdir("/proc/self/task"):
        found |= {int(child) for child in Path(f"/proc/self/task/{task}/children").read_text().split()}
    return found


@pytest.fixture(autouse=True)
def nothing_left(cached: None) -> Iterator[None]:
    """No process and no shared memory of a run outlives it."""
    before = children(), set(os.listdir("/dev/shm")), set(os.listdir("/proc/self/fd"))
    yield
    assert children() <= before[0]
    assert set(os.listdir("/dev/shm")) <= before[1]
