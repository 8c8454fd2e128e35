"""What a compilation keeps for people; no tools are needed until the binaries are built."""

from __future__ import annotations

import json
import re
from pathlib import Path

import diagnosed_kernels as kernels
import pytest

from pypto.build.errors import BuildError
from pypto.build.profile import CompileProfile, active, profiling, stage
from pypto.build.ptoas_prints import sections
from pypto.build.report.memory_page import _offsets, memory_page
from pypto.build.report.placement import placements
from pypto.codegen.memory_report import memory_report
from pypto.ir.passes import pipeline
from pypto.language.errors import CompileError
from pypto.runtime import RunConfig


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_an_output_directory_has_code_passes_and_report(tmp_path: Path) -> None:
    out = tmp_path / "out"
    config = RunConfig(save_kernels=True, save_kernels_dir=out, dump_passes=True, compile_profiling=True)
    compiled = kernels.joined.compile(config=config)
    assert (compiled.output_dir, compiled.run_directory, compiled.state) == (out, out / "run", "GENERATED")
    names = ("Parse", *(name for name, _ in pipeline.PASSES))
    assert files(out) == {
        "kernel_config.json",
        "orchestration/joined.cpp",
        *(f"ptoas/{name}.pto" for name in ("scale", "square", "join")),
        *(f"kernels/aiv/{name}.cpp" for name in ("scale", "square", "join")),
        *(f"passes_dump/{number:02}_after_{name}.py" for number, name in enumerate(names)),
        *(f"report/{name}" for name in ("index.html", "memory.html", "memory.json", "compile.json")),
    }
    times = json.loads((out / "report/compile.json").read_text())
    assert [(s["stage"], s["name"]) for s in times["stages"]] == [
        *(("pass", name) for name in names),
        ("codegen", "generate"),
    ]
    page = (out / "report/index.html").read_text()
    for target in re.findall(r'href="([^"]+)"', page):
        assert target.startswith("data:") or (out / "report" / target).is_file(), target
    assert not list((tmp_path / "build_output").glob("*/*"))


def test_an_earlier_compilation_leaves_nothing_behind(tmp_path: Path) -> None:
    out = tmp_path / "out"
    kernels.joined.compile(config=RunConfig(save_kernels=True, save_kernels_dir=out, dump_passes=True))
    (out / "passes_dump/99_after_Nothing.py").write_text("")
    (out / "passes_dump/mine.py").write_text("")
    (out / "notes.txt").write_text("")
    kernels.narrow.compile(config=RunConfig(save_kernels=True, save_kernels_dir=out, dump_passes=True))
    kept = files(out)
    assert {"notes.txt", "passes_dump/mine.py", "ptoas/total.pto"} <= kept
    assert not {"passes_dump/99_after_Nothing.py", "ptoas/scale.pto", "orchestration/joined.cpp"} & kept


def test_the_report_is_the_same_every_time(tmp_path: Path) -> None:
    found = []
    for name in ("one", "two"):
        config = RunConfig(save_kernels=True, save_kernels_dir=tmp_path / name, dump_passes=True)
        kernels.loops.compile(config=config)
        found.append({path: (tmp_path / name / path).read_bytes() for path in files(tmp_path / name)})
    assert found[0] == found[1]


def test_without_a_place_the_directory_is_a_new_one(tmp_path: Path) -> None:
    one = kernels.joined.compile(config=RunConfig(dump_passes=True))
    two = kernels.joined.compile(config=RunConfig(save_kernels=True))
    assert one.output_dir is not None and two.output_dir is not None
    assert one.output_dir != two.output_dir
    assert one.output_dir.parent == two.output_dir.parent == tmp_path / "build_output"
    assert (one.output_dir / "passes_dump/00_after_Parse.py").is_file()
    assert not (two.output_dir / "passes_dump").exists()
    assert (two.output_dir / "report/memory.html").is_file()


def test_a_pass_that_fails_leaves_those_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pypto.ir.errors import IRError

    def fails(program: object, _backend_type: str) -> None:
        raise IRError("it does not fit")

    monkeypatch.setattr(pipeline, "PASSES", (pipeline.PASSES[0], ("Fail", fails)))
    with pytest.raises(CompileError, match="it does not fit"):
        kernels.joined.compile(config=RunConfig(save_kernels=True, save_kernels_dir=tmp_path / "out", dump_passes=True))
    assert files(tmp_path / "out") == {"passes_dump/00_after_Parse.py", "passes_dump/01_after_RemoveUnused.py"}
    with pytest.raises(CompileError):
        kernels.joined.compile(config=RunConfig(save_kernels=True))
    assert list((tmp_path / "build_output").iterdir()) == []


def test_a_place_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BuildError, match=r"output directory .*/file/out cannot be made: Not a directory"):
        kernels.joined.compile(config=RunConfig(save_kernels=True, save_kernels_dir=tmp_path / "file/out"))


def test_memory_of_a_kernel() -> None:
    report = memory_report(kernels.joined.lower(), "Ascend910B")
    assert [(k["kernel"], k["core"]) for k in report["kernels"]] == [
        ("scale", "aiv"),
        ("square", "aiv"),
        ("join", "aiv"),
    ]
    (memory,) = report["kernels"][2]["memories"]
    size = kernels.R * kernels.C * 4
    assert [(b["name"], b["bytes"], b["shape"], b["dtype"]) for b in memory["buffers"]] == [
        ("v", size, [32, 64], "FP32"),
        ("v", size, [32, 64], "FP32"),
        ("v", size, [32, 64], "FP32"),
    ] or memory["peak"] == 3 * size
    assert memory["limit"] == 192 * 1024
    assert memory["peak"] == max(
        sum(b["bytes"] for b in memory["buffers"] if b["first"] <= at <= b["last"])
        for at in range(report["kernels"][2]["steps"] + 1)
    )


def test_tiles_that_live_at_the_same_time_are_drawn_apart() -> None:
    report = memory_report(kernels.loops.lower(), "Ascend910B")
    for kernel in report["kernels"]:
        for memory in kernel["memories"]:
            buffers = memory["buffers"]
            places = list(zip(_offsets(buffers), buffers, strict=True))
            for at, (offset, buffer) in enumerate(places):
                for other, each in places[:at]:
                    if buffer["first"] <= each["last"] and each["first"] <= buffer["last"]:
                        assert offset + buffer["bytes"] <= other or other + each["bytes"] <= offset
    page = memory_page(report)
    tiles = sum(len(memory["buffers"]) for kernel in report["kernels"] for memory in kernel["memories"])
    assert page.count('class="tile"') == tiles > 0


def test_addresses_are_read_from_the_code() -> None:
    code = """
  int64_t v1 = 8192;
  unsigned v2 = 0;
  Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, 16, 64, SLayout::NoneBox, 512, PadValue::Null> v3;
  TASSIGN(v3, v1);
  Tile<TileType::Mat, bfloat16_t, 32, 64, BLayout::ColMajor, -1, 64, SLayout::RowMajor, 512, PadValue::Null> v4(v9);
  TASSIGN(v4, v2);
  Tile<TileType::Vec, int8_t, 1, 64, BLayout::RowMajor, 1, 64, SLayout::NoneBox, 512, PadValue::Null> v5;
  TASSIGN(v5, v77);
"""
    assert placements(code) == [
        {"memory": "Vec", "dtype": "float", "shape": [16, 64], "address": 8192, "bytes": 4096},
        {"memory": "Mat", "dtype": "bfloat16_t", "shape": [32, 64], "address": 0, "bytes": 4096},
    ]


def test_what_ptoas_prints_is_taken_apart() -> None:
    module = "module {\n  x\n}\n"
    text = (
        f"{module}Hello PTO Infer Mem Scope!\n{module}end PTO plan Mem!\n{module}\n"
        "// === [PTOInsertSync] Start === //\nnote\n\n// === [PTOInsertSync Debug] After Analysis === //\nNode 0\n"
    )
    found = sections(text)
    assert [name for name, _ in found] == [
        "read.mlir",
        "before_InferMemScope.mlir",
        "after_PlanMem.mlir",
        "InsertSync_Start.txt",
        "InsertSync_AfterAnalysis.txt",
    ]
    assert [body for name, body in found if name.endswith(".mlir")] == [module] * 3
    assert found[3][1] == "// === [PTOInsertSync] Start === //\nnote\n\n"
    assert sections("warning: x\n") == [("notes.txt", "warning: x\n")]
    assert sections("") == []


def test_a_profile_costs_nothing_when_nobody_asked() -> None:
    assert active() is None
    with stage("c++", "x"):
        assert active() is None
    profile = CompileProfile()
    with profiling(profile), stage("c++", "x"), pytest.raises(ZeroDivisionError), stage("ptoas", "y"):
        1 / 0  # noqa: B018
    assert [(s.stage, s.name) for s in profile.stages] == [("ptoas", "y"), ("c++", "x")]
    assert set(profile.record()["sums_ms"]) == {"ptoas", "c++"}
    assert active() is None


def test_what_is_kept_for_people_never_selects_what_is_compiled() -> None:
    from pypto.jit.request import capture

    plain = capture(kernels.joined, (), {}, RunConfig())
    asked = capture(
        kernels.joined,
        (),
        {},
        RunConfig(
            dump_passes=True,
            dump_ptoas_passes=True,
            compile_profiling=True,
            save_kernels=True,
            enable_chip_swimlane=1,
            enable_dep_gen=True,
            enable_scope_stats=True,
        ),
    )
    assert asked.specialization_digest == plain.specialization_digest
    assert asked.source_digest == plain.source_digest
    # What a run leaves behind does not even force a compilation.
    assert not capture(kernels.joined, (), {}, RunConfig(enable_chip_swimlane=1, enable_dep_gen=True)).forced
