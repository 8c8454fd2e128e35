"""Every test here calls kernels of the store that all tests share."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# The kernels are modules beside the tests.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def in_shared_store(shared_store: None) -> None:
    """See `shared_store`."""
