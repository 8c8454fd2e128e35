"""The commands and the benchmark, each in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy

PROJECT = Path(__file__).resolve().parents[3]

WARMUP = {
    "schema_version": 1,
    "cache": {"enabled": True, "root": "command_cache"},
    "requests": [{"kernel": "scaled", "run_config": {"platform": "a2a3sim"}, "scalars": {"factor": 2}}],
}


def environment(world: Any) -> dict[str, str]:
    return {
        "PATH": "/nonexistent",
        "HOME": str(world.folder),
        "PYTHONPATH": f"{PROJECT}{os.pathsep}{world.folder}",
        **world.environment,
    }


def command(world: Any, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pypto.jit", *arguments],
        cwd=cwd or world.folder,
        env=environment(world),
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_cli_01_02_10_14_57_warm_explain_and_stat(world: Any, tmp_path: Path) -> None:
    file = world.folder / "warmup.json"
    file.write_text(json.dumps(WARMUP))
    done = command(world, "warm", "--module", "sample_kernels", "--config", str(file), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "[1/1] scaled for Ascend910B, sim\n"), done.stderr
    assert done.stdout.splitlines()[1].split()[:3] == ["scaled", "shared", "built"]
    explained = command(world, "explain", "--module", "sample_kernels", "--config", "warmup.json")
    assert explained.stdout.startswith("scaled: READY HIT\n")
    stat = command(world, "stat", "--root", "command_cache", "--json")
    assert json.loads(stat.stdout)["entries"] == 2
    assert command(world, "verify", "--root", "command_cache").returncode == 0


def test_cli_43_a_failing_kernel_is_status_1(world: Any) -> None:
    file = world.folder / "wrong.json"
    file.write_text(json.dumps({**WARMUP, "requests": [{"kernel": "wrong"}]}))
    done = command(world, "warm", "--module", "sample_kernels", "--config", str(file), "--json")
    assert done.returncode == 1
    (result,) = json.loads(done.stdout)["results"]
    assert result["result"] == "failed"
    assert "sample_kernels.py" in result["reason"]


def test_the_benchmark_from_source_and_installed(world: Any, installed: Path, tmp_path: Path) -> None:
    """BEN-01 to BEN-08, BEN-20 to BEN-22: from source, then with what a wheel installed, on the root that is filled."""
    script = PROJECT / "tests/benchmarks/jit_cache_latency.py"
    root, output = tmp_path / "cache", tmp_path / "build/latency.json"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    (packages,) = (tmp_path / "venv/lib").glob("python*/site-packages")
    (packages / "all.pth").write_text(f"{installed}\n{Path(numpy.__file__).parents[1]}\n")
    source = environment(world)
    alone = {name: value for name, value in source.items() if name != "PYTHONPATH"}
    for python, variables, runs in ((Path(sys.executable), source, 2), (tmp_path / "venv/bin/python", alone, 1)):
        arguments = ["--cache-root", str(root), "--runs", str(runs), "--output", str(output)]
        done = subprocess.run(
            [python, script, *arguments], cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        report = json.loads(output.read_text())
        assert report["runs"] == len(report["measurements"]) == runs
        assert len({each["pid"] for each in report["measurements"]}) == runs
        for each in report["measurements"]:
            assert each["latency_ns"] == each["warmup_ns"] + each["load_ns"]
            assert each["counters"]["ready_hits"] == 1
            assert Path(each["directory"]).is_relative_to(root)
        assert report["summary"]["latency_ms"] > 0
        assert len(list(root.rglob("artifact_manifest.json"))) == 2


def test_import_pypto_loads_what_a_hit_needs_and_no_more(world: Any) -> None:
    code = "import sys, pypto\nprint(sorted(name for name in sys.modules if name.startswith('pypto')))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(world), capture_output=True, text=True, check=True
    )
    assert done.stdout == "['pypto']\n"
