"""All kernels of these tests are compiled once, together."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pypto.toolchain import Toolchain

# The cases are modules beside the tests.
sys.path.insert(0, str(Path(__file__).parent))

from generated import Case, Library, compile_all


@pytest.fixture(scope="session")
def library(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Library:
    """The compiled kernels that the chosen tests need."""
    from test_generated_kernels import CASES, windows_of_views

    parameters = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    chosen = {p["case"].name for p in parameters if isinstance(p.get("case"), Case)}
    functions = [case.function() for case in CASES if case.name in chosen or case.name == "shapes_FP32"]
    return compile_all([*functions, windows_of_views()], toolchain, tmp_path_factory.mktemp("kernels"))
