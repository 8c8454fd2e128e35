"""One kernel, compiled and run once with everything that can be kept; browsers look at it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pypto.runtime import RunConfig
from pypto.toolchain import Toolchain

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "unit/diagnostics"))

from chromium import Browser, find_browser
from diagnosed_kernels import joined
from kept_kernels import Kept, arrays


@pytest.fixture(scope="session")
def kept(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Kept:
    folder = tmp_path_factory.mktemp("kept") / "out"
    config = RunConfig(
        save_kernels=True,
        save_kernels_dir=folder,
        dump_passes=True,
        dump_ptoas_passes=True,
        compile_profiling=True,
        enable_chip_swimlane=1,
        enable_dep_gen=True,
        enable_scope_stats=True,
    )
    compiled = joined.compile(config=config)
    x, expected, out = arrays()
    compiled(x, 3.0, out, config=config)
    np.testing.assert_allclose(out, expected, rtol=1e-6)
    assert compiled.latest_diagnostics is not None
    return Kept(folder, compiled, compiled.latest_diagnostics)


@pytest.fixture(scope="session")
def shared_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find_browser()
    if program is None:
        missing = "no Chromium on this machine (`apt-get install chromium`): pages cannot be looked at"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    with Browser(program, tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def browser(shared_browser: Browser) -> Iterator[Browser]:
    """The browser, which must find nothing to complain about and ask for nothing but files."""
    shared_browser.complaints.clear()
    shared_browser.requests.clear()
    yield shared_browser
    assert shared_browser.complaints == []
    assert [url for url in shared_browser.requests if not url.startswith(("file:", "data:", "about:"))] == []
