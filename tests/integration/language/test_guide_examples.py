"""The examples of the guides about writing kernels run as they stand there; they check their own numbers."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

GUIDES = Path(__file__).resolve().parents[3] / "docs/guide"


@pytest.mark.parametrize("guide", ["moving-elements", "operations", "tasks"])
def test_the_examples_run(guide: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (GUIDES / f"{guide}.md").read_text(encoding="utf-8"), re.S)
    assert blocks and all("assert" in block for block in blocks)
    path = tmp_path / f"guide_{guide.replace('-', '_')}.py"
    path.write_text("\n\n".join(blocks))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, module)
    spec.loader.exec_module(module)
    # What the examples checked is what kernels wrote.
    assert module.out.any()
