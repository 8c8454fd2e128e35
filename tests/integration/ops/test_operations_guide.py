"""The example of docs/guide/operations.md runs as it stands there; it checks its own numbers."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from pypto.toolchain import Toolchain

_GUIDE = Path(__file__).resolve().parents[3] / "docs/guide/operations.md"


def test_the_example_runs(toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", _GUIDE.read_text(encoding="utf-8"), re.S)
    path = tmp_path / "operations_example.py"
    path.write_text(block)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, module)
    spec.loader.exec_module(module)
    # The assertion in it saw numbers that the kernel made.
    assert module.out.any()
