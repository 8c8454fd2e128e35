"""Tasks on different parts of one tensor do not wait for each other."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import part_kernels
import pytest

from pypto.runtime.config import RunConfig


@pytest.mark.parametrize("runtime", ["host_build_graph", "tensormap_and_ringbuffer"])
def test_only_tasks_that_share_elements_are_ordered(runtime: str, tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((64, 128)).astype(np.float32)
    out = np.full_like(x, np.nan)
    config = RunConfig(runtime=runtime, enable_dep_gen=True)
    part_kernels.relay(x, out, config=config)
    expected = x * 2 + 1
    expected[48:64] = x[8:24] * 2
    np.testing.assert_array_equal(out, expected)
    directory = part_kernels.relay.compile(config=config).latest_diagnostics
    assert directory is not None
    dot = (directory / "dependencies.dot").read_text()
    edges = {(int(a), int(b)) for a, b in re.findall(r"t(\d+) -> t(\d+)", dot)}
    assert edges == {(0, 4), (1, 5), (2, 6), (3, 7), (0, 8), (1, 8), (7, 8)}
