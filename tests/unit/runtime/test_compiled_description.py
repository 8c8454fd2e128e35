"""A compiled kernel tells what it takes and returns before any binary is built."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import pytest

from pypto.runtime import BackendType, CompiledProgram, ExecutionMode, RunConfig
from pypto.runtime.compiled import CompiledKernel, Origin

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "diagnostics"))

import diagnosed_kernels as kernels

NAMES = (
    "platform", "backend_type", "execution_mode", "param_names", "output_indices", "has_return", "orchestration_names",
)  # fmt: skip


def test_a_generated_kernel_describes_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    compiled = kernels.joined.compile(config=RunConfig(backend_type="Ascend950"))
    assert compiled.state == "GENERATED"
    assert (compiled.platform, compiled.backend_type) == ("a5sim", BackendType.Ascend950)
    assert compiled.execution_mode is ExecutionMode.SIM
    assert (compiled.param_names, compiled.output_indices) == (("x", "factor", "out"), (2,))
    assert (compiled.has_return, compiled.orchestration_names) == (True, ("joined",))
    device = kernels.joined.compile(config=RunConfig(execution_mode="device"))
    assert device.platform == "a2a3"
    assert compiled.state == "GENERATED"


def test_programs_and_kernels_have_the_same_names() -> None:
    documented = inspect.getdoc(CompiledProgram) or ""
    for name in NAMES:
        assert f"{name}: " in documented
        assert isinstance(getattr(CompiledKernel, name), property)


def test_a_kernel_without_files_says_so() -> None:
    nothing = CompiledKernel(None, origin=Origin.PRIVATE, directory=None)
    with pytest.raises(RuntimeError, match="has no files"):
        _ = nothing.platform
