"""Kernels are built once per run, into one store that all tests share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pypto.jit.config import CacheConfig, configure_cache
from pypto.runtime.config import RunConfig
from pypto.toolchain import Toolchain

# The kernels are modules beside the tests.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def store(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of this run."""
    return tmp_path_factory.mktemp("store") / "cache"


@pytest.fixture(autouse=True)
def shared_store(store: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    configure_cache(CacheConfig(enabled=True, root=store))
    yield
    configure_cache(None)


@pytest.fixture
def checked() -> RunConfig:
    """A call in the simulator's checked mode."""
    return RunConfig(backend_type="Ascend910B", execution_mode="sim", sim_checks=True)
