"""A program directory that is completed in place, with the real tools."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import pypto.language as pl
from pypto.build.complete import complete
from pypto.build.generate import generate
from pypto.build.options import coerce_options
from pypto.build.specialize import specialize
from pypto.language.source import collect
from pypto.runtime import CompiledProgram
from pypto.toolchain import Toolchain, ToolchainDescriptor, tools

ORCHESTRATION = "prebuilt/orchestration/double.so"


@pl.jit
def double(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        tile = pl.load(x, [0, 0], [16, 64])
        pl.store(tile + tile, [0, 0], out)
    return out


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The stages that tools were run for."""
    seen: list[str] = []
    real: Callable[..., str] = tools.run_tool

    def record(root: tools.PrivateRoot, command: tools.Command, stage: str, *, timeout: float | None = None) -> str:
        seen.append(stage)
        return real(root, command, stage, timeout=timeout)

    monkeypatch.setattr(tools, "run_tool", record)
    return seen


def test_completing_in_place(toolchain: Toolchain, tmp_path: Path, calls: list[str]) -> None:
    """BIN-04, BIN-05, BIN-07, BIN-24, KC-39: only what is not valid is built, and the sources stay as they were."""
    specialization = specialize(double.qualname, double.signature.params, {}, coerce_options({}))
    generate(collect(double), specialization, tmp_path / "p")
    sources = {path: path.read_bytes() for path in (tmp_path / "p").rglob("*") if path.is_file()}
    built = complete(tmp_path / "p", toolchain)
    (kernel,) = (path for path in built if path.startswith("prebuilt/kernels/"))
    name = Path(kernel).stem
    assert sorted(built) == sorted((kernel, ORCHESTRATION, f"ptoas/{name}.cpp"))
    assert sorted(calls) == sorted([f"assemble {name}", f"compile {name}", "compile orchestration double"])
    x = np.arange(16 * 64, dtype=np.float32).reshape(16, 64)
    out = np.zeros_like(x)
    CompiledProgram.from_dir(tmp_path / "p")(x, out)
    np.testing.assert_array_equal(out, x + x)

    calls.clear()
    assert complete(tmp_path / "p", toolchain) == () and calls == []
    whole = (tmp_path / "p" / kernel).read_bytes()
    (tmp_path / "p" / kernel).write_bytes(whole[:-1])
    assert complete(tmp_path / "p", toolchain) == (kernel,)
    assert (tmp_path / "p" / kernel).read_bytes() == whole
    assert calls == [f"assemble {name}", f"compile {name}"]

    calls.clear()
    sets = dict(toolchain.descriptor.sets)
    sets["ptoas"] = dataclasses.replace(sets["ptoas"], version="another")
    other = Toolchain(ToolchainDescriptor(sets), toolchain.bindings)
    assert len(complete(tmp_path / "p", other)) == 3 and len(calls) == 3
    assert {path: path.read_bytes() for path in sources} == sources
    assert sorted(os.listdir(tmp_path)) == ["p"]
