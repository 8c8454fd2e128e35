"""Fixtures of the toolchain's tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from toolchain_stand_ins import Packages, make_packages


@pytest.fixture
def packages(tmp_path: Path) -> Packages:
    folder = tmp_path / "packages"
    folder.mkdir()
    return make_packages(folder)
