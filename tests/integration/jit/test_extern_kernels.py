"""Kernels in C++, compiled and run by the real tools."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).resolve().parents[3]

KERNELS = """
import pypto.language as pl

@pl.jit.extern(core_type="aiv", source="cpp/add.cpp", include_dirs=["inc"])
def add(x: pl.Tensor[[16, 64], pl.FP32], n: int, out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    ...

@pl.jit
def extern_entry(x: pl.Tensor[[16, 64], pl.FP32], n: int, out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    between = pl.create_tensor([16, 64], dtype=pl.FP32)
    add(x, n, between)
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(between, [0, 0], [16, 64]) * 2.0, [0, 0], out)
    return out
"""

CODE = """\
#include <step.h>
extern "C" void kernel_entry(__gm__ int64_t* args) {
  const auto* x = reinterpret_cast<__gm__ float*>(args[0]);
  auto* out = reinterpret_cast<__gm__ float*>(args[2]);
  for (int i = 0; i < 16 * 64; ++i) out[i] = x[i] + step() * args[1];
}
"""

RUN = """\
from extern_kernels import extern_entry
import numpy as np
x = np.arange(16 * 64, dtype=np.float32).reshape(16, 64)
out = np.zeros_like(x)
extern_entry(x, 3, out)
assert np.array_equal(out, (x + 3 * STEP) * 2), out
"""


DUAL = """
import numpy as np
import pypto.language as pl

@pl.jit.extern(core_type="mixed", aic_source="cpp/nothing.cpp", aiv_source="cpp/half.cpp", dual_aiv_dispatch=True)
def halves(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    ...

@pl.jit
def dual_entry(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    halves(x, out)
    return out
"""

HALF = """\
extern "C" void kernel_entry(__gm__ int64_t* args) {
  const auto* x = reinterpret_cast<__gm__ float*>(args[0]);
  auto* out = reinterpret_cast<__gm__ float*>(args[1]);
  const int rows = 16 / get_subblockdim();
  for (int i = get_subblockid() * rows * 64; i < (get_subblockid() + 1) * rows * 64; ++i)
    out[i] = out[i] * 10 + x[i] + 1000 * get_subblockid();
}
"""


@pytest.fixture(scope="module")
def sources(world: Any) -> Path:
    folder: Path = world.folder
    (folder / "cpp").mkdir()
    (folder / "inc").mkdir()
    (folder / "extern_kernels.py").write_text(KERNELS)
    (folder / "cpp/add.cpp").write_text(CODE)
    (folder / "inc/step.h").write_text("inline float step() { return 1; }\n")
    return folder


@pytest.fixture(scope="module")
def filled(world: Any, sources: Path) -> dict[str, Any]:
    counts: dict[str, Any] = world.counts("STEP = 1\n" + RUN, PYPTO_CACHE="1", PYPTO_CACHE_DIR="extern_cache")
    return counts


def test_ext_35_36_a_hand_written_kernel_runs_and_is_a_hit_in_a_moved_cache(
    world: Any, sources: Path, filled: dict[str, Any]
) -> None:
    assert filled == {"requests": 1, "misses": 1, "generation_builds": 1, "binary_builds": 1}
    shutil.copytree(sources / "extern_cache", sources / "moved_cache")
    counts = world.counts("STEP = 1\n" + RUN, PYPTO_CACHE="1", PYPTO_CACHE_DIR="moved_cache")
    assert counts == {"requests": 1, "ready_hits": 1}


def test_two_vector_cores_write_a_half_each(world: Any, sources: Path) -> None:
    (sources / "dual_kernels.py").write_text(DUAL)
    (sources / "cpp/half.cpp").write_text(HALF)
    (sources / "cpp/nothing.cpp").write_text('extern "C" void kernel_entry(__gm__ int64_t* args) {}\n')
    code = """
import numpy as np
from dual_kernels import dual_entry
x = np.arange(16 * 64, dtype=np.float32).reshape(16, 64)
for _ in range(2):
    out = np.ones_like(x)
    dual_entry(x, out)
    assert np.array_equal(out[:8], x[:8] + 10) and np.array_equal(out[8:], x[8:] + 1010), out
"""
    environment = {"PYPTO_CACHE": "1", "PYPTO_CACHE_DIR": "dual_cache"}
    assert world.counts(code, **environment)["binary_builds"] == 1
    assert world.counts(code, **environment) == {"requests": 2, "ready_hits": 1, "object_hits": 1}


def test_what_cannot_be_packed_runs_privately(world: Any, sources: Path, filled: dict[str, Any]) -> None:
    (sources / "cpp/add.cpp").write_text("#define HEADER <step.h>\n" + CODE.replace("<step.h>", "HEADER"))
    try:
        counts = world.counts("STEP = 1\n" + RUN, PYPTO_CACHE="1", PYPTO_CACHE_DIR="extern_cache")
    finally:
        (sources / "cpp/add.cpp").write_text(CODE)
    reason = counts.pop("last_bypass_reason")
    assert counts == {"requests": 1, "misses": 1, "bypasses": 1, "generation_builds": 1, "binary_builds": 1}
    assert reason.endswith("add.cpp:2: the file of #include HEADER is decided by a macro")


def test_steps_that_get_links_write_the_same_artifact(
    sources: Path, filled: dict[str, Any], tmp_path: Path, same_files: Any
) -> None:
    linked = tmp_path / "linked"
    for name in ("extern_kernels.py", "cpp/add.cpp", "inc/step.h"):
        (linked / name).parent.mkdir(parents=True, exist_ok=True)
        (linked / name).symlink_to(sources / name)
    arguments = ["--module", "extern_kernels", "--entry", "extern_entry", "--import-root", str(linked)]
    target = ["--backend-type", "Ascend910B", "--execution-mode", "sim", "--out", "gen", "--request", "request.json"]
    done = subprocess.run(
        [sys.executable, "-m", "pypto.build", "generate", *arguments, *target],
        cwd=tmp_path,
        env={"PATH": "/nonexistent", "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (stored,) = (sources / "extern_cache").rglob("generated")
    shutil.copytree(stored, tmp_path / "stored", ignore=shutil.ignore_patterns("artifact_manifest.json"))
    same_files(tmp_path / "gen", tmp_path / "stored")


def test_a_c_error_names_the_users_file(world: Any, sources: Path, filled: dict[str, Any]) -> None:
    (sources / "cpp/add.cpp").write_text(CODE.replace("step()", "stop()"))
    try:
        done = world.process("STEP = 1\n" + RUN)
    finally:
        (sources / "cpp/add.cpp").write_text(CODE)
    assert done.returncode == 1
    first = done.stderr.partition("ToolError: ")[2].splitlines()[1]
    assert first.startswith(f"  {sources}/cpp/add.cpp:5:") and "error: 'stop' was not declared" in first
