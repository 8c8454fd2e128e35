"""All kernels of these tests are compiled once, together."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pypto.toolchain import Toolchain

# The cases are modules beside the tests.
sys.path.insert(0, str(Path(__file__).parent))

from generated import Library, compile_all


@pytest.fixture(scope="session")
def library(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Library:
    """The compiled kernels."""
    from test_generated_kernels import CASES, windows_of_views

    functions = [*(case.function() for case in CASES), windows_of_views()]
    return compile_all(functions, toolchain, tmp_path_factory.mktemp("kernels"))
