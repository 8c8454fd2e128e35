"""What the integration tests share: the real tools, installed once into the user's cache folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import pypto.toolchain
from pypto.jit.config import CacheConfig, configure_cache
from pypto.runtime.config import RunConfig
from pypto.toolchain import Toolchain
from pypto.toolchain.install import install
from pypto.toolchain.lock import load_lock
from pypto.toolchain.selection import default_prefix


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    """The packaged toolchain, in force for this process; fetched if this machine does not have it yet."""
    install(load_lock(), default_prefix())
    return pypto.toolchain.current()


@pytest.fixture(scope="session")
def store(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One store for the run: a kernel is built once, whichever tests call it."""
    return tmp_path_factory.mktemp("store") / "cache"


@pytest.fixture
def shared_store(store: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """The store as this process's persistent cache, and a working directory of the test's own."""
    monkeypatch.chdir(tmp_path)
    configure_cache(CacheConfig(enabled=True, root=store))
    yield
    configure_cache(None)


@pytest.fixture
def checked() -> RunConfig:
    """A call in the simulator's checked mode."""
    return RunConfig(backend_type="Ascend910B", execution_mode="sim", sim_checks=True)
