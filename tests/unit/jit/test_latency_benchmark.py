"""What the latency benchmark times, and which processes it refuses to count."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from jit_stand_ins import in_child

import pypto.runtime.prebuilt
from pypto.jit import flow
from pypto.jit.function import JITFunction
from pypto.runtime.compiled import CompiledKernel

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import jit_cache_latency

    return jit_cache_latency


@pytest.fixture
def counters() -> dict[str, int]:
    """Those of a process that hit."""
    return {"requests": 1, "ready_hits": 1, "generation_builds": 0, "binary_builds": 0, "misses": 0, "bypasses": 0}


def test_ben_05_06_where_the_children_find_the_package(benchmark: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """BEN-05, BEN-06: the package that is installed or on the path, else this checkout's, behind what is given."""
    assert benchmark.package_path() == {}
    monkeypatch.setattr(benchmark, "find_spec", lambda _: None)
    root = str(BENCHMARKS.parents[1])
    for given, expected in (("python", f"python:{root}"), ("", root)):
        monkeypatch.setenv("PYTHONPATH", given)
        assert benchmark.package_path() == {"PYTHONPATH": expected}


def test_ben_08_19_20_a_run_after_the_filling_process(
    benchmark: Any, counters: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """BEN-08, BEN-19, BEN-20: the first child is not counted, every other one is, however slow it was."""
    spawned: list[tuple[str, ...]] = []

    def spawn(arguments: tuple[str, ...], *_others: Any, **_environment: str) -> tuple[str, Any]:
        spawned.append(tuple(arguments))
        if "--floor" in arguments:
            return "5", benchmark.Spent(10**7, 10**7)
        first = len(spawned) == 1
        names = ("latency", "warmup", "load", "lookup", "import_pypto", "import_kernel", "import_to_callable", "work")
        times = {f"{name}_ns": 10**9 for name in names}
        found = {**counters, **({"ready_hits": 0, "generation_builds": 1, "binary_builds": 1} if first else {})}
        return json.dumps({**times, "directory": "x", "counters": found}), benchmark.Spent(10**7, 10**7)

    monkeypatch.setattr(benchmark, "_spawn", spawn)
    report = benchmark.measure("root", 5, None)
    children = [arguments for arguments in spawned if arguments[0] == benchmark._CHILD]
    assert (len(children), len(report["measurements"])) == (6, 5)
    assert report["summary"]["latency_ms"] == 1000


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"ready_hits": 0, "generated_hits": 1}, "did not hit a READY entry"),
        ({"generation_builds": 1}, "built or bypassed"),
        ({"binary_builds": 1}, "built or bypassed"),
        ({"bypasses": 1}, "built or bypassed"),
    ],
)
def test_ben_09_10_11_a_process_that_did_not_simply_hit_is_refused(
    benchmark: Any,
    counters: dict[str, int],
    monkeypatch: pytest.MonkeyPatch,
    changed: dict[str, int],
    message: str,
) -> None:
    answer = json.dumps({"counters": {**counters, **changed}})
    monkeypatch.setattr(benchmark, "_spawn", lambda *_a, **_k: (answer, benchmark.Spent(1, 1)))
    with pytest.raises(SystemExit, match=message):
        benchmark._measured("root", False)


@pytest.fixture
def child_in_slow_motion(builds: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Runs the measured child under a clock that only moves where this fixture moves it."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import latency_child

    now = 0

    def advance(by: int) -> None:
        nonlocal now
        now += by

    def clock() -> int:
        advance(1)
        return now

    def slow(owner: Any, name: str, by: int) -> None:
        real = getattr(owner, name)

        def slower(*arguments: Any, **options: Any) -> Any:
            advance(by)
            return real(*arguments, **options)

        monkeypatch.setattr(owner, name, slower)

    class SlowImport(importlib.abc.MetaPathFinder):
        def find_spec(self, name: str, *_arguments: Any) -> importlib.machinery.ModuleSpec | None:
            if name == "latency_kernel":
                advance(10**15)
            return None

    def run() -> dict[str, Any]:
        sys.modules.pop("latency_kernel", None)
        sys.meta_path.insert(0, SlowImport())
        time.perf_counter_ns = clock
        found: dict[str, Any] = latency_child.child(str(tmp_path / "cache"), False)
        return found

    slow(flow, "environment_identity", 10**12)
    slow(JITFunction, "warmup", 10**13)
    monkeypatch.setattr(pypto.runtime.prebuilt, "load", lambda *_a, **_k: advance(10**14) or object())
    monkeypatch.setattr(CompiledKernel, "__call__", lambda *_a, **_k: pytest.fail("something ran"))
    yield lambda: in_child(run)


def test_ben_12_to_18_what_the_time_includes(child_in_slow_motion: Any) -> None:
    """BEN-12 to BEN-18: the identity, the warm-up and the restored callable; no import before, no tensor, no run."""
    filling = child_in_slow_motion()
    assert filling["counters"]["binary_builds"] == 1
    measured = child_in_slow_motion()
    assert (measured["counters"]["ready_hits"], measured["counters"]["binary_builds"]) == (1, 0)
    assert measured["latency_ns"] // 10**12 == 111
    assert measured["import_kernel_ns"] // 10**12 == 1000
    assert measured["import_to_callable_ns"] // 10**12 == 1111
