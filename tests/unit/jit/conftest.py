"""A JIT whose build stages write stand-in files, so that the flow of requests is tested without any compiler."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from jit_command_runs import Run
from jit_stand_ins import Builds, cached, fake_toolchain, load_kernels, stand_in

import pypto
import pypto.toolchain
from pypto.jit.cli.command import main
from pypto.jit.config import configure_cache
from pypto.runtime.config import RunConfig
from pypto.toolchain import Toolchain


@pytest.fixture
def toolchain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toolchain:
    """The toolchain in force."""
    made = fake_toolchain(tmp_path / "tools")
    monkeypatch.setattr(pypto.toolchain.selection, "current", lambda: made)
    return made


@pytest.fixture
def builds(toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Builds]:
    """Stand-in build stages, in an empty working directory and with no objects of earlier tests."""
    made = Builds()
    stand_in(made, monkeypatch.setattr)
    for name in ("", "_DIR", "_READONLY", "_IDENTITY", "_EPOCH"):
        monkeypatch.delenv(f"PYPTO_CACHE{name}", raising=False)
    monkeypatch.delenv("PYPTO_BUNDLE_PATH", raising=False)
    configure_cache(None)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    made.forget_objects()
    yield made
    configure_cache(None)
    made.forget_objects()


@pytest.fixture
def kernels(tmp_path: Path) -> Iterator[ModuleType]:
    """A module of kernels."""
    module = load_kernels(tmp_path)
    yield module
    del sys.modules[module.__name__]


@pytest.fixture
def counts() -> Callable[[], dict[str, Any]]:
    """What the counters grew by since the fixture was made, without those that did not, the times and the reason."""
    before = dataclasses.asdict(pypto.cache_stats())

    def difference() -> dict[str, Any]:
        now = dataclasses.asdict(pypto.cache_stats())
        names = [n for n in now if not n.endswith("_ns") and n != "last_bypass_reason"]
        return {name: now[name] - before[name] for name in names if now[name] != before[name]}

    return difference


@pytest.fixture
def enabled(tmp_path: Path) -> RunConfig:
    """A call's settings with a persistent cache."""
    return cached(tmp_path / "cache")


@pytest.fixture
def run(builds: Any, kernels: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command as a new process would: status and parsed standard output."""

    def run(*arguments: str, status: int = 0) -> Any:
        builds.forget_objects()
        capsys.readouterr()
        assert main([*arguments, "--json"]) == status
        return json.loads(capsys.readouterr().out)

    return run


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A warmup file of two requests with a cache beside it."""
    tensors = {name: {"shape": [16, 64], "dtype": "FP32"} for name in ("x", "out")}
    document = {
        "schema_version": 1,
        "cache": {"enabled": True, "root": "cache"},
        "requests": [{"kernel": "annotated"}, {"kernel": "open_shape", "tensors": tensors}],
    }
    path = tmp_path / "warmup.json"
    path.write_text(json.dumps(document))
    return path
