"""Fixtures of the host identity's tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from host_world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "host")
