"""A distributed program through store, warm-up, explain, build steps and sealed bundle: one set of bytes everywhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pypto.toolchain import Toolchain
from pypto.toolchain.selection import default_prefix

HERE = Path(__file__).parent
PROJECT = HERE.parents[2]

RUN = """\
import numpy as np
from pypto.runtime import DistributedConfig, RunConfig
x, y = np.zeros((4, 8), np.float32), np.zeros((4, 8), np.float32)
config = RunConfig(distributed_config=DistributedConfig([0, 1]))
assert KERNEL(x, y, 2, config=config) is y
assert (y == 5).all(), y
print("ran once")
"""
COUNT = """
import dataclasses, json, pypto
counts = dataclasses.asdict(pypto.cache_stats())
print(json.dumps({name: value for name, value in counts.items() if value and not name.endswith("_ns")}))
"""
PROGRAM = "from rank_programs import around_the_ring\n"


class World:
    """A folder with a cache, and processes that use it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.descriptor = default_prefix() / "descriptor.json"

    def run(self, *command: str | Path, **environment: str | Path) -> str:
        done = subprocess.run(
            [sys.executable, *command],
            cwd=self.folder,
            env={
                "PATH": "/nonexistent",
                "HOME": str(self.folder),
                "PYTHONPATH": os.pathsep.join([str(PROJECT), str(HERE)]),
                "PYPTO_TOOLCHAIN_DESCRIPTOR": str(self.descriptor),
                **{name: str(value) for name, value in environment.items()},
            },
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def counts(self, code: str, **environment: str | Path) -> dict[str, Any]:
        cache = {"PYPTO_CACHE": "1", "PYPTO_CACHE_DIR": str(self.folder / "cache")}
        said = self.run("-c", PROGRAM + code + COUNT, **{**cache, **environment})
        counts: dict[str, Any] = json.loads(said.splitlines()[-1])
        return counts


@pytest.fixture(scope="module")
def world(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("doors"))


@pytest.fixture(scope="module")
def stages(world: World) -> list[dict[str, Any]]:
    """What three processes counted that compile, warm up, and call."""
    return [
        world.counts("kernel = around_the_ring.compile()\nassert kernel.state == 'GENERATED'\n"),
        world.counts("kernel = around_the_ring.warmup()\nassert kernel.state == 'READY'\n"),
        world.counts(RUN.replace("KERNEL", "around_the_ring"), PYPTO_CACHE_READONLY="1"),
    ]


@pytest.fixture(scope="module")
def bundle(world: World) -> Path:
    """The program as a bundle, made by the steps that Bazel's actions run."""
    tools = ("--descriptor", world.descriptor, "--bindings", world.descriptor.with_name("bindings.json"))
    entry = ("--module", "rank_programs", "--entry", "around_the_ring", "--import-root", HERE)
    target = ("--backend-type", "Ascend910B", "--execution-mode", "sim")
    steps: list[tuple[str | Path, ...]] = [
        ("generate", *entry, *target, "--out", "gen", "--request", "request.json"),
        ("assemble", "--generated", "gen", *tools, "--out", "asm"),
        ("compile", "--generated", "gen", "--assembled", "asm", *tools, "--out", "ready"),
        (
            *("seal", "--request", "request.json", "--generated", "gen", "--ready", "ready"),
            *("--descriptor", world.descriptor, "--out", "ring.bundle"),
        ),
    ]
    for step in steps:
        world.run("-m", "pypto.build", *step, PYTHONPATH=PROJECT)
    return world.folder / "ring.bundle"


def test_rt_33_sta_06_37_every_stage_is_stored_and_found(world: World, stages: list[dict[str, Any]]) -> None:
    compiled, warmed, called = stages
    assert compiled == {"requests": 1, "misses": 1, "generation_builds": 1}
    assert warmed == {"requests": 1, "generated_hits": 1, "binary_builds": 1}
    assert called == {"requests": 1, "ready_hits": 1}


def test_rt_97_one_configuration_of_the_parent_and_one_directory_for_each_chip(
    world: World, stages: list[dict[str, Any]]
) -> None:
    (marker,) = world.folder.glob("cache/artifacts/*/*/*/ready/binary_manifest.json")
    ready = marker.parent
    config = json.loads((ready / "kernel_config.json").read_bytes())
    # Called from four places with equal types: one program of a chip.
    assert (config["build_kind"], config["chips"]) == ("distributed", ["chips/0"])
    assert [chip["path"] for chip in json.loads(marker.read_bytes())["chips"]] == ["chips/0"]
    chip = json.loads((ready / "chips/0/kernel_config.json").read_bytes())
    assert (chip["entry"], chip["build_kind"]) == ("add_one", "single_chip")
    assert (ready / "chips/0" / chip["orchestration"]["binary"]).is_file()


def test_explain_and_warm_know_it(world: World, stages: list[dict[str, Any]]) -> None:
    distributed = {"device_ids": [0, 1], "num_sub_workers": 0, "runtime": "host_build_graph", "aicpu_thread_num": 2}
    document = {
        "schema_version": 1,
        "cache": {"enabled": True, "root": "cache", "readonly": True},
        "requests": [{"kernel": "around_the_ring", "run_config": {"distributed_config": distributed}}],
    }
    (world.folder / "warm.json").write_text(json.dumps(document))
    named = ("--module", "rank_programs", "--config", "warm.json")
    (told,) = json.loads(world.run("-m", "pypto.jit", "explain", *named, "--json"))["requests"]
    assert (told["kernel"], told["verdict"]) == ("around_the_ring", "ready hit")
    row = world.run("-m", "pypto.jit", "warm", *named).splitlines()[1].split()
    assert row[:4] == ["around_the_ring", "shared", "ready", "hit"]


def test_the_steps_and_jit_write_equal_artifacts(world: World, stages: list[dict[str, Any]], bundle: Path) -> None:
    sealed = {
        path.relative_to(bundle): path.read_bytes() for path in (bundle / "artifacts").rglob("*") if path.is_file()
    }
    root = world.folder / "cache"
    stored = {path.relative_to(root): path.read_bytes() for path in (root / "artifacts").rglob("*") if path.is_file()}
    assert sorted(map(str, sealed)) == sorted(map(str, stored))
    assert [str(name) for name in sealed if sealed[name] != stored[name]] == []


def test_a_bundle_serves_without_tools_and_starts_no_program_of_the_caller_twice(world: World, bundle: Path) -> None:
    caller = world.folder / "caller.py"
    caller.write_text(
        "print('started')\nimport pypto\n"
        f"kernel = pypto.import_bundle({str(bundle)!r}).load('around_the_ring')\n" + RUN.replace("KERNEL", "kernel")
    )
    absent = world.folder / "absent.json"
    assert world.run(caller, PYPTO_TOOLCHAIN_DESCRIPTOR=absent).splitlines() == ["started", "ran once"]


def test_a_bundle_answers_the_jit(world: World, bundle: Path) -> None:
    counts = world.counts(
        RUN.replace("KERNEL", "around_the_ring"),
        PYPTO_BUNDLE_PATH=bundle,
        PYPTO_CACHE="0",
        PYPTO_TOOLCHAIN_DESCRIPTOR=world.folder / "absent.json",
    )
    assert counts == {"requests": 1, "disabled_requests": 1, "ready_hits": 1}


def test_a_bundle_is_imported_into_a_store(world: World, bundle: Path) -> None:
    said = world.run("-m", "pypto.bundle", "import", bundle, "--root", world.folder / "imported")
    assert "2" in said
    counts = world.counts(RUN.replace("KERNEL", "around_the_ring"), PYPTO_CACHE_DIR=world.folder / "imported")
    assert counts == {"requests": 1, "ready_hits": 1}
