#!/usr/bin/env python3
"""What hits and publications of the artifact store cost, beside their floors in the same run.

  python tests/benchmarks/store_hit.py [--entries 100000] [--processes 64] [--json]

The entry is about as large as a small kernel's READY stage: 6 files, 100 KiB. Floors: for a hit, open, read and SHA-256
of the same files; for a publication, writing the same files and syncing each of them and their folders. `diskcache` and
`joblib`, where they are installed, keep the same bytes in their own way; neither checks a digest.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
for place in (HERE.parent / "fault", HERE.parent / "unit/artifact_cache", HERE.parent / "unit/bundle", HERE.parents[1]):
    sys.path.insert(0, str(place))

from artifact_samples import sample_key  # noqa: E402

from pypto.jit.artifact_cache import (  # noqa: E402
    ArtifactKey,
    ArtifactSpec,
    ArtifactState,
    ArtifactStore,
    BuildKind,
    LookupStatus,
)

SIZES = {
    "kernel_config.json": 2500,
    "binary_manifest.json": 2000,
    "orchestration/decode.cpp": 4000,
    "ptoas/qk.cpp": 8000,
    "prebuilt/kernels/qk.so": 56_000,
    "prebuilt/orchestration/decode.so": 30_000,
}
SPEC = ArtifactSpec(ArtifactState.BINARY_READY, BuildKind.SINGLE_CHIP, tuple(SIZES))
KEY = sample_key()
PAYLOAD = {name: hashlib.shake_256(name.encode()).digest(size) for name, size in SIZES.items()}


def build(directory: Path) -> None:
    for name, data in PAYLOAD.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o755 if name.endswith(".so") else 0o644)


def key_number(number: int) -> ArtifactKey:
    return ArtifactKey(KEY.environment, f"{number:064x}", "c" * 64)


def median_us(action: Callable[[], object], repeats: int) -> float:
    """Median time of one call, in microseconds."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter_ns()
        action()
        times.append(time.perf_counter_ns() - began)
    return statistics.median(times) / 1000


def read_and_hash(files: list[str]) -> None:
    for file in files:
        with open(file, "rb", buffering=0) as stream:
            hashlib.sha256(stream.read()).hexdigest()


def files_of(root: Path) -> list[str]:
    return [str(path) for path in root.rglob("*") if path.is_file() and path.suffix != ".lock"]


# Hits


def measure_steady(root: Path) -> dict[str, float]:
    store = ArtifactStore(root)
    files = files_of(root)
    assert store.lookup(KEY, SPEC).status is LookupStatus.HIT
    # Taken in turns, so that a machine that changes its speed changes both.
    hits, floors = [], []
    for _ in range(20):
        hits.append(median_us(lambda: store.lookup(KEY, SPEC, load=True), 50))
        floors.append(median_us(lambda: read_and_hash(files), 50))
    return {"hit": statistics.median(hits), "floor": statistics.median(floors)}


_FIRST = """
import sys, time, json
sys.path[:0] = json.loads(sys.argv[1])
import store_hit as bench
from pathlib import Path
root = Path(sys.argv[2])
if sys.argv[3] == "hit":
    store = bench.ArtifactStore(root)
    key = bench.sample_key()
    assert key.digest and key.environment_digest and bench.SPEC.digest and bench.SPEC.encoded_files
    began = time.perf_counter_ns()
    assert store.lookup(key, bench.SPEC, load=True).handle is not None
else:
    files = bench.files_of(root)
    began = time.perf_counter_ns()
    bench.read_and_hash(files)
print((time.perf_counter_ns() - began) / 1000)
"""


def measure_first(root: Path, processes: int) -> dict[str, float]:
    """The first hit of fresh processes; imports and the making of the key, which every request needs, are left out."""
    places = [str(HERE), *sys.path]
    found: dict[str, list[float]] = {"hit": [], "floor": []}
    for _ in range(processes):
        for what, times in found.items():
            command = [sys.executable, "-c", _FIRST, json.dumps(places), str(root), what]
            times.append(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    return {what: statistics.median(times) for what, times in found.items()}


# Publication


def copy_and_sync(target: Path) -> None:
    target.mkdir()
    for name, data in PAYLOAD.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
        os.write(descriptor, data)
        os.fsync(descriptor)
        os.close(descriptor)
    for folder in (*(path for path in target.rglob("*") if path.is_dir()), target, target.parent):
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def measure_publish(folder: Path, count: int) -> dict[str, float]:
    store = ArtifactStore(folder / "publish", private_root=folder / "private")
    times: dict[str, list[float]] = {"publish": [], "floor": []}
    (folder / "copies").mkdir()
    for number in range(count):
        began = time.perf_counter_ns()
        copy_and_sync(folder / f"copies/{number}")
        times["floor"].append((time.perf_counter_ns() - began) / 1000)
        built: list[int] = []

        def timed(directory: Path, built: list[int] = built) -> None:
            started = time.perf_counter_ns()
            build(directory)
            built.append(time.perf_counter_ns() - started)

        began = time.perf_counter_ns()
        result = store.get_or_build(key_number(number), SPEC, timed)
        assert result.handle is not None
        times["publish"].append((time.perf_counter_ns() - began - built[0]) / 1000)
    return {what: statistics.median(values) for what, values in times.items()}


# Scale


def measure_scale(folder: Path, counts: list[int]) -> dict[str, float]:
    """Lookup of a hit and of a miss with so many other keys in the root."""
    root = folder / "scale"
    store = ArtifactStore(root)
    assert store.get_or_build(KEY, SPEC, build).handle is not None
    environment = root / "artifacts" / KEY.environment_digest
    found = {}
    present = 1
    for count in counts:
        for number in range(present, count):
            # Only the names matter to a lookup of another key.
            os.mkdir(environment / f"{number:064x}")
            (root / "locks" / f"{number:064x}.lock").touch()
        present = count
        found[f"hit, {count} keys"] = median_us(lambda: store.lookup(KEY, SPEC), 300)
        found[f"miss, {count} keys"] = median_us(lambda: store.lookup(key_number(10**9), SPEC), 300)
    return found


# Peers


def measure_peers(folder: Path) -> dict[str, float]:
    found: dict[str, float] = {}
    try:
        diskcache = importlib.import_module("diskcache")
    except ImportError:
        pass
    else:
        with diskcache.Cache(str(folder / "diskcache")) as cache:
            cache.set("key", PAYLOAD)
            assert cache.get("key") == PAYLOAD
            found["diskcache get"] = median_us(lambda: cache.get("key"), 300)
            numbers = iter(range(10**6))
            found["diskcache set"] = median_us(lambda: cache.set(f"key {next(numbers)}", PAYLOAD), 50)
    try:
        joblib = importlib.import_module("joblib")
    except ImportError:
        pass
    else:
        memory = joblib.Memory(folder / "joblib", verbose=0)
        cached = memory.cache(_payload)
        assert cached(0) == PAYLOAD
        found["joblib hit"] = median_us(lambda: cached(0), 300)
        numbers = iter(range(1, 10**6))
        found["joblib miss and store"] = median_us(lambda: cached(next(numbers)), 50)
    return found


def _payload(number: int) -> dict[str, bytes]:
    return PAYLOAD


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    import races

    folder = Path(tempfile.mkdtemp(dir=arguments.folder))
    try:
        root = folder / "root"
        assert ArtifactStore(root).get_or_build(KEY, SPEC, build).handle is not None
        counts = [count for count in (1, 1000, 100_000) if count <= arguments.entries]
        (folder / "race").mkdir()
        return {
            "python": platform.python_version(),
            "hit, steady": measure_steady(root),
            "hit, first in a process": measure_first(root, 9),
            "publication": measure_publish(folder, 40),
            "lookup by number of keys": measure_scale(folder, counts),
            "peers": measure_peers(folder),
            "race": races.many_keys(folder / "race", arguments.processes),
        }
    finally:
        shutil.rmtree(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=100_000, help="most keys in the root")
    parser.add_argument("--processes", type=int, default=64, help="processes that race")
    parser.add_argument("--folder", help="where to measure (default: the folder for temporary files)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    results = measure(parser.parse_args())
    if "--json" in sys.argv:
        print(json.dumps(results, indent=2))
        return
    for name, values in results.items():
        print(name if isinstance(values, dict) else f"{name}: {values}")
        if isinstance(values, dict):
            floor = values.get("floor")
            for what, value in values.items():
                ratio = f"  {value / floor:5.2f} x floor" if floor else ""
                unit = "" if name == "race" else " us"
                print(f"  {what:<28}{value:>12.1f}{unit}{ratio}")


if __name__ == "__main__":
    main()
