"""A store and a binary stage of stand-ins."""

from __future__ import annotations

from pathlib import Path

import pytest
from adapter_stand_ins import Builds

from pypto.jit.artifact_cache import ArtifactStore


@pytest.fixture
def builds() -> Builds:
    return Builds()


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "root", private_root=tmp_path / "private")
