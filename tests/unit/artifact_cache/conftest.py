"""Fixtures of the store's tests."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from artifact_samples import READY, Builder, sample_key

from pypto.jit.artifact_cache import ArtifactKey, ArtifactSpec, ArtifactStore


@pytest.fixture
def key() -> ArtifactKey:
    return sample_key()


@pytest.fixture
def spec() -> ArtifactSpec:
    return READY


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "root", private_root=tmp_path / "private")


@pytest.fixture
def builder() -> Builder:
    return Builder()


@pytest.fixture
def published(store: ArtifactStore, key: ArtifactKey, spec: ArtifactSpec, builder: Callable[[Path], object]) -> Path:
    """Directory of an entry that was published in `store`."""
    handle = store.get_or_build(key, spec, builder).handle
    assert handle is not None
    return handle.directory
