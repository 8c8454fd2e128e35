"""Every test here runs programs of the store that all tests share, and leaves nothing of a run behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rank_processes import children, memories


@pytest.fixture(autouse=True)
def nothing_left(shared_store: None) -> Iterator[None]:
    """No process of a run outlives it, and no descriptor that would keep its memory."""
    before = children(), memories()
    yield
    assert children() <= before[0]
    assert memories() <= before[1]
