"""Every test here calls kernels of the store that all tests share."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# Kernels are a folder of the project, not of the package that is installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))


@pytest.fixture(autouse=True)
def in_shared_store(shared_store: None) -> None:
    """See `shared_store`."""
