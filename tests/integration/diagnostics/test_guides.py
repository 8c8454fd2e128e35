"""The examples of the guides run as they stand there."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pypto.jit.config import CacheConfig, configure_cache
from pypto.toolchain import Toolchain

GUIDES = Path(__file__).resolve().parents[3] / "docs/guide"


@pytest.fixture
def cache(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Both guides have the same kernel: it is built once."""
    root = tmp_path_factory.getbasetemp() / "guides"
    configure_cache(CacheConfig(enabled=True, root=root))
    yield
    configure_cache(None)


@pytest.mark.parametrize("guide", ["workers", "diagnostics"])
def test_the_examples_run(
    guide: str, cache: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (GUIDES / f"{guide}.md").read_text(), re.S)
    assert len(blocks) >= 2
    path = tmp_path / f"{guide}_example.py"
    path.write_text("\n".join(blocks))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, module)
    spec.loader.exec_module(module)
    said = capsys.readouterr().out
    if guide == "workers":
        assert "scale, 20 rounds" in said
        return
    assert "Precision of scale: ok" in said
    table = re.findall(r"^\| `([^|]*)` \|", (GUIDES / "diagnostics.md").read_text(), re.M)
    named = [name for cell in table for name in re.split(r"`, `", cell)]
    for name in named:
        assert list((tmp_path / "out").glob(re.sub(r"<\w+>|N+", "*", name).rstrip("/"))) or name == ".json", name
