"""Numbers from memory in random loops and branches, against Python; ``-m long`` for many."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_numbers import kernel_text, meaning

from pypto.runtime.config import RunConfig

ROWS = 6


def loaded(text: str, folder: Path, name: str) -> Any:
    """The module with this text."""
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def agree(seed: int, folder: Path, config: RunConfig) -> None:
    text = kernel_text(seed, ROWS)
    module, rng = loaded(text, folder, f"random_numbers_{seed}"), np.random.default_rng(seed)
    for n in (0, 3, 11):
        table = rng.integers(0, 17, (1, 16)).astype(np.int32)
        out = rng.integers(0, 17, (2 * ROWS, 16)).astype(np.int32)
        expected = meaning(text, table.tolist(), n, out.tolist())
        module.main(table, n, out, config=config)
        assert out.tolist() == expected, f"seed {seed}, n = {n}\n{text}"


@pytest.mark.parametrize("seed", [1])
def test_random_kernels_do_what_python_does(seed: int, tmp_path: Path, checked: RunConfig) -> None:
    agree(seed, tmp_path, checked)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_random_kernels_do_what_python_does(seed: int, tmp_path: Path, checked: RunConfig) -> None:
    agree(seed, tmp_path, checked)
