"""Fixtures of the host identity's tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from host_world import World

# The frame of the truth table is shared by both worlds.
sys.path.insert(0, str(Path(__file__).parents[1] / "identity"))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "host")
