"""The examples of the guide's pages about operations run as they stand there; they check their own numbers."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from pypto.toolchain import Toolchain

_GUIDE = Path(__file__).resolve().parents[3] / "docs/guide"


def examples(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (_GUIDE / f"{page}.md").read_text(encoding="utf-8"), re.S)


@pytest.mark.parametrize(("page", "number"), [("operations", 0), ("moving-elements", 0), ("moving-elements", 1)])
def test_the_example_runs(
    page: str, number: int, toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"example_{page.replace('-', '_')}_{number}.py"
    path.write_text(examples(page)[number])
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, module)
    spec.loader.exec_module(module)
    # The assertions in it saw numbers that the kernel made.
    arrays = [value for value in vars(module).values() if isinstance(value, np.ndarray)]
    assert len(arrays) > 1 and all(array.any() for array in arrays)


def test_every_example_is_run() -> None:
    assert [len(examples(page)) for page in ("operations", "moving-elements")] == [1, 2]
