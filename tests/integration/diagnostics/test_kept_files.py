"""What a compilation and its runs keep, with the real tools."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import diagnosed_kernels as kernels
import numpy as np
import pytest
from kept_kernels import Kept, arrays

from pypto.diagnostics import check_precision
from pypto.diagnostics.precision import KERNEL
from pypto.diagnostics.trace_format import problems
from pypto.jit.config import CacheConfig
from pypto.runtime import CompiledProgram, RunConfig, SimulatorCheckError
from pypto.toolchain import Toolchain


def test_the_timeline_is_of_this_run(kept: Kept) -> None:
    trace = json.loads((kept.run / "swimlane.json").read_text())
    assert problems(trace) == []
    tasks = {e["args"]["task"]: e for e in trace["traceEvents"] if e["ph"] == "X" and "task" in e["args"]}
    assert [tasks[n]["name"] for n in sorted(tasks)] == ["scale", "square", "join"]
    assert all(task["args"]["core"] == "AIV" for task in tasks.values())
    text = Path(kernels.__file__).read_text().splitlines()
    for number, name in enumerate(("scale", "square", "join")):
        file, _, line = tasks[number]["args"]["line"].rpartition(":")
        assert file == kernels.__file__
        assert f'name_hint="{name}"' in text[int(line) - 1]
    assert tasks[2]["ts"] >= max(tasks[n]["ts"] + tasks[n]["dur"] for n in (0, 1)) - 0.002


def test_dia_9_10_11_the_run_directory_has_it_all(kept: Kept) -> None:
    assert kept.run.parent == kept.compiled.run_directory == kept.folder / "run"
    assert {path.name for path in kept.run.iterdir()} == {
        "index.html", "timeline.html", "swimlane.json", "dependencies.dot", "dependencies.svg", "scope_stats.json",
    }  # fmt: skip
    assert re.findall(r"t(\d) -> t(\d)", (kept.run / "dependencies.dot").read_text()) == [("0", "2"), ("1", "2")]
    stats = json.loads((kept.run / "scope_stats.json").read_text())
    assert (stats["tasks"], stats["dependencies"]) == (3, 2)
    assert {scope["scope"] for scope in stats["scopes"]} == {"scale", "square", "join"}
    assert 0 < stats["critical_path_us"] <= stats["busy_us"]
    assert stats["submit_us"] <= stats["run_us"]


def test_dia_13_names_are_those_of_the_binaries(kept: Kept) -> None:
    manifest = json.loads((kept.folder / "binary_manifest.json").read_text())
    named = {binary["name"] for binary in manifest["binaries"] if binary["kind"] != "orchestration"}
    stats = json.loads((kept.run / "scope_stats.json").read_text())
    assert {scope["scope"] for scope in stats["scopes"]} == named


def test_ptoas_step_by_step(kept: Kept) -> None:
    for name in ("scale", "square", "join"):
        folder = kept.folder / "ptoas_dump" / name
        assert (folder / "00_input.pto").read_bytes() == (kept.folder / f"ptoas/{name}.pto").read_bytes()
        names = [path.name for path in sorted(folder.iterdir())]
        assert [each.partition("_")[0] for each in names] == [f"{number:02}" for number in range(len(names))]
        assert [each.partition("_")[2] for each in names[:5]] == [
            "input.pto", "read.mlir", "before_InferMemScope.mlir", "after_InferMemScope.mlir", "after_PlanMem.mlir",
        ]  # fmt: skip
        assert names[-1].endswith("_repaired.cpp")
        assert (folder / names[-1]).read_bytes() == (kept.folder / f"ptoas/{name}.cpp").read_bytes()
        unplaced, planned = ((folder / f).read_text() for f in names[3:5])
        assert "memref.alloc" in unplaced and "pto.pointer_cast" not in unplaced
        assert "pto.pointer_cast" in planned
        (final,) = (each for each in names if each.endswith("InsertSync_FinalResult.txt"))
        assert "pto.set_flag" in (folder / final).read_text()


def test_the_addresses_that_tiles_have(kept: Kept) -> None:
    report = json.loads((kept.folder / "report/memory.json").read_text())
    size = kernels.R * kernels.C * 4
    for kernel in report["kernels"]:
        code = (kept.folder / f"ptoas/{kernel['kernel']}.cpp").read_text()
        assert len(kernel["placed"]) == code.count("TASSIGN(") > 0
        (memory,) = kernel["memories"]
        for tile in kernel["placed"]:
            assert (tile["memory"], tile["dtype"], tile["shape"]) == ("Vec", "float", [kernels.R, kernels.C])
            assert tile["bytes"] == size
            assert 0 <= tile["address"] <= memory["limit"] - size
    joined = report["kernels"][2]["placed"]
    # What is added lies at two places.
    assert len({tile["address"] for tile in joined}) >= 2


def test_the_time_of_each_stage(kept: Kept) -> None:
    times = json.loads((kept.folder / "report/compile.json").read_text())
    stages = {(each["stage"], each["name"]) for each in times["stages"]}
    assert {("ptoas", name) for name in ("scale", "square", "join")} <= stages
    assert {("c++", f"prebuilt/kernels/{name}.so") for name in ("scale", "square", "join")} <= stages
    assert ("c++", "prebuilt/orchestration/joined.so") in stages
    assert all(each["ms"] >= 0 for each in times["stages"])
    assert set(times["sums_ms"]) == {"pass", "codegen", "ptoas", "c++"}


def test_only_what_changed_is_built_again(kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pypto.build import complete as module

    asked: list[str] = []
    real = module.compile_binaries

    def noted(config: object, paths: list[str], *rest: object, **how: object) -> object:
        asked.extend(paths)
        return real(config, paths, *rest, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "compile_binaries", noted)
    folder = tmp_path / "out"
    shutil.copytree(kept.folder, folder)
    config = RunConfig(save_kernels=True, save_kernels_dir=folder)
    mark = json.loads((folder / "binary_context.json").read_text())
    assert mark["schema"] == 2
    kernels.joined.compile(config=config).ensure_ready()
    assert asked == []
    # What an earlier compilation left for people is not of this one.
    assert not (folder / "ptoas_dump").exists()
    assert not (folder / "report/compile.json").exists()
    assert list((folder / "passes_dump").iterdir()) == []
    (folder / "prebuilt/kernels/square.so").write_bytes(b"changed")
    again = kernels.joined.compile(config=config)
    again.ensure_ready()
    assert asked == ["prebuilt/kernels/square.so"]
    x, expected, out = arrays()
    again(x, 3.0, out)
    np.testing.assert_allclose(out, expected, rtol=1e-6)


def test_dia_8_a_program_of_the_directory_keeps_diagnostics_in_it(kept: Kept) -> None:
    program = CompiledProgram.from_dir(kept.folder)
    x, expected, out = arrays()
    program(x, 3.0, out, config=RunConfig(enable_scope_stats=True))
    assert program.latest_diagnostics is not None
    assert program.latest_diagnostics.parent == kept.folder / "run"
    stats = json.loads((program.latest_diagnostics / "scope_stats.json").read_text())
    # Without the source at hand, lines count from the first line of the entry.
    assert {scope["line"].partition(":")[0] for scope in stats["scopes"]} == {"joined"}
    np.testing.assert_allclose(out, expected, rtol=1e-6)


def test_dia_9_a_run_of_a_stored_kernel_writes_nothing_into_the_store(
    toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also: the two runtimes tell the same tasks and dependencies, and a plain run leaves nothing."""
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "cache"
    cache = CacheConfig(enabled=True, root=root)
    x = arrays()[0]
    for runtime in ("host_build_graph", "tensormap_and_ringbuffer"):
        plain = RunConfig(cache_config=cache, runtime=runtime)
        compiled = kernels.fourfold.compile(config=plain)
        compiled(x, np.zeros_like(x))
        assert compiled.run_directory is not None
        assert not compiled.run_directory.exists()
        before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
        out = np.zeros_like(x)
        kernels.fourfold(x, out, config=RunConfig(cache_config=cache, runtime=runtime, enable_dep_gen=True))
        assert kernels.fourfold.compile(config=plain) is compiled
        assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before
        assert compiled.latest_diagnostics is not None
        assert compiled.latest_diagnostics.parent == compiled.run_directory
        dot = (compiled.latest_diagnostics / "dependencies.dot").read_text()
        assert re.findall(r'label="([^"]*)"', dot) == ["doubled #0", "doubled #1"]
        assert re.findall(r"t(\d) -> t(\d)", dot) == [("0", "1")]
        np.testing.assert_array_equal(out, x * 4)


def test_the_precision_of_the_compiled_kernel(kept: Kept, tmp_path: Path) -> None:
    shutil.copytree(kept.folder, tmp_path / "out")
    report = check_precision(kernels.joined, config=RunConfig(save_kernels=True, save_kernels_dir=tmp_path / "out"))
    assert report.ok, str(report)
    (difference,) = report.checks[-1].differences
    assert report.checks[-1].name == KERNEL
    assert difference.relative < 1e-6


def test_a_run_that_fails_leaves_what_ran(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    from pypto.runtime import abi

    real = abi.Orchestration.run

    def fails(self: abi.Orchestration, *args: object, **how: object) -> abi.RunResult:
        result = real(self, *args, **how)  # type: ignore[arg-type]
        result.status, result.task, result.kernel_id = abi.SIMULATOR_FAULT, 1, 1
        return result

    monkeypatch.setattr(abi.Orchestration, "run", fails)
    x, _, out = arrays()
    before = kept.compiled.latest_diagnostics
    with pytest.raises(SimulatorCheckError):
        kept.compiled(x, 3.0, out, config=RunConfig(enable_scope_stats=True))
    assert kept.compiled.latest_diagnostics not in (None, before)
