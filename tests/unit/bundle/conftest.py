"""Bundles without a compiler: the shared objects in them are stand-ins that nothing loads."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "artifact_cache"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from bundle_samples import make_bundle


@pytest.fixture
def bundle_path(tmp_path: Path) -> Path:
    """A bundle with two specializations of `add` and one of `mul`."""
    return make_bundle(tmp_path / "sample.bundle", tmp_path / "inputs")
