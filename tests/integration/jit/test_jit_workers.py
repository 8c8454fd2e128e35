"""Forks, spawned workers and signals around real builds: each ends, and in one build."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).resolve().parents[3]

WORKER = """\
import dataclasses, json, multiprocessing, os, sys
import numpy as np
import pypto
from sample_kernels import scaled


def call(factor):
    x = np.arange(16 * 64, dtype=np.float32).reshape(16, 64)
    out = np.zeros_like(x)
    assert scaled(x, factor, out) is out
    assert np.array_equal(out, x * np.float32(factor)), out
    return {"pid": os.getpid(), **dataclasses.asdict(pypto.cache_stats())}


if __name__ == "__main__":
    method, parent_calls = sys.argv[1], len(sys.argv) > 2
    if parent_calls:
        call(2.0)
    with multiprocessing.get_context(method).Pool(3) as pool:
        counts = pool.map(call, [2.0, -1.0, 0.5], chunksize=1)
    print(json.dumps({"workers": counts, "parent": call(3.0)}))
"""


def environment(world: Any, root: Path) -> dict[str, str]:
    return {
        "PATH": "/nonexistent",
        "HOME": str(world.folder),
        "PYTHONPATH": f"{PROJECT}{os.pathsep}{world.folder}",
        "PYPTO_CACHE": "1",
        "PYPTO_CACHE_DIR": str(root),
        **world.environment,
    }


def workers(world: Any, root: Path, *arguments: str) -> dict[str, Any]:
    script = world.folder / "worker.py"
    script.write_text(WORKER)
    done = subprocess.run(
        [sys.executable, str(script), *arguments],
        cwd=world.folder,
        env=environment(world, root),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_workers_forked_from_a_process_that_called(world: Any, cache: Path) -> None:
    """CFG-04, CFG-17, STA-01, DIA-14: the kernel and its threads were in the parent; children compute with them.

    Bytecode is written where Python likes to, and none of it into the cache.
    """
    found = workers(world, cache, "fork", "parent calls")
    assert found["parent"]["ready_hits"] == 1
    for counts in found["workers"]:
        assert (counts["ready_hits"], counts["misses"], counts["generation_builds"]) == (0, 0, 0)
        assert counts["object_hits"] == counts["requests"] >= 1
    assert list(world.folder.rglob("*.pyc"))
    assert not [path for path in cache.rglob("*") if "pyc" in path.name]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_that_call_first_build_once(world: Any, tmp_path: Path, method: str) -> None:
    """REQ-28: three workers, no entry; one generates, one compiles, all compute."""
    found = workers(world, tmp_path / "cache", method)
    # A worker that took two tasks reported twice; the later report holds the earlier one.
    last = {counts["pid"]: counts for counts in sorted(found["workers"], key=lambda counts: counts["requests"])}
    for stage in ("generation_builds", "binary_builds"):
        assert sum(counts[stage] for counts in last.values()) == 1
    assert (found["parent"]["ready_hits"], found["parent"]["generation_builds"]) == (1, 0)
    assert len(list((tmp_path / "cache").rglob("artifact_manifest.json"))) == 2


IN_MAIN = "print('begun', flush=True)\nsample_kernels.scaled.warmup()\n"
IN_THREADS = """\
import threading
threads = [threading.Thread(target=sample_kernels.scaled.warmup) for _ in range(3)]
print("begun", flush=True)
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, IN_MAIN), (signal.SIGTERM, IN_MAIN), (signal.SIGTERM, IN_THREADS), (signal.SIGKILL, IN_MAIN)],
    ids=["interrupt", "terminate", "terminate with threads", "kill"],
)
def test_a_build_that_a_signal_ends_leaves_nothing_that_another_waits_for(
    world: Any, tmp_path: Path, number: signal.Signals, code: str
) -> None:
    """REQ-19, REQ-34, BIN-12: the next process goes on from the generated entry and publishes."""
    root = tmp_path / "cache"
    process = subprocess.Popen(
        [sys.executable, "-c", "import sample_kernels\n" + code],
        cwd=world.folder,
        env=environment(world, root),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    # Interrupt the binary stage, which takes seconds: the generated entry is its beginning.
    deadline = time.monotonic() + 60
    while not list(root.rglob("generated/artifact_manifest.json")) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.3)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == -number
    assert not list(root.rglob("ready"))
    counts = world.counts("FACTOR = 2.0\nscaled.warmup()\n", PYPTO_CACHE="1", PYPTO_CACHE_DIR=root)
    assert counts == {"requests": 1, "generated_hits": 1, "binary_builds": 1}
