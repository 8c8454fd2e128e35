"""The kernels of all chosen test modules are compiled once, together."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pypto.toolchain import Toolchain

_TESTS = Path(__file__).resolve().parents[2]
# The kernels stand beside the tests; texts and compilation are shared with other parts.
sys.path[:0] = [str(Path(__file__).parent), str(_TESTS / "integration/codegen"), str(_TESTS / "unit/language")]

from generated import Library, compile_all  # noqa: E402
from op_kernels import OpKernel  # noqa: E402


@pytest.fixture(scope="session")
def operations(
    toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Library:
    """The compiled kernels that the chosen tests name by their parameter ``kernel``."""
    parameters = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    chosen = [p["kernel"] for p in parameters if isinstance(p.get("kernel"), OpKernel)]
    unique = {kernel.name: kernel for kernel in chosen}
    return compile_all([k.function() for k in unique.values()], toolchain, tmp_path_factory.mktemp("operations"))
