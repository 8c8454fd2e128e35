"""The examples of docs/guide/distributed.md run as they stand there; the first one checks its own numbers."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs/guide/distributed.md").read_text(), re.DOTALL)

AROUND = """
@pl.jit
def chip(
    x: pl.Tensor[[1, 256], pl.FP32],
    y: pl.Out[pl.Tensor[[1, 256], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[1, 256], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    sum_of_ranks(x, y, data, signal)
    return y


@pl.jit.host
def all_sums(x: pl.Tensor[[NR, 1, 256], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, 256], pl.FP32]]):
    world = pld.world_size()
    data = pld.window(pld.alloc_window_buffer([1, 256], dtype=pl.FP32), [1, 256], dtype=pl.FP32)
    signal = pld.window(pld.alloc_window_buffer([world, 1], dtype=pl.INT32), [world, 1], dtype=pl.INT32)
    for r in pl.range(world):
        chip(x[r], y[r], data, signal, device=r)
    return y
"""


def test_the_kernel_is_the_one_in_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = (ROOT / "kernels/tensor_parallel.py").read_text()
    for line in BLOCKS[0].splitlines():
        code = line.partition("  #")[0].rstrip()
        assert code in kernel, code


def test_the_run_and_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    names: dict[str, Any] = {}
    exec(BLOCKS[1], names)
    first = names["y"].copy()
    names["y"][:] = 0
    exec(BLOCKS[-1], names)
    assert np.array_equal(names["y"], first)


def test_cores_that_talk(tmp_path: Path) -> None:
    file = tmp_path / "talking_cores.py"
    header = 'import pypto.language as pl\nimport pypto.language.distributed as pld\n\nNR = pl.dynamic("NR")\n\n\n'
    file.write_text(header + BLOCKS[2] + "\n" + AROUND)
    spec = importlib.util.spec_from_file_location("talking_cores", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert len(module.all_sums.lower().chips) == 1
