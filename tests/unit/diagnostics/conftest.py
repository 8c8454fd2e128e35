"""The kernels are a module beside the tests; nothing is compiled."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pypto.runtime.diagnostics.trace import RunTrace

sys.path.insert(0, str(Path(__file__).parent))

from diagnosed_traces import make_trace


@pytest.fixture
def trace() -> RunTrace:
    return make_trace()
