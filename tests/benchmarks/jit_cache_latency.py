#!/usr/bin/env python3
"""How long a fresh process takes from a filled persistent cache to a kernel that can be called.

    python tests/benchmarks/jit_cache_latency.py --cache-root DIR [--runs N] [--output FILE] [--peers FOLDER]

The first child process fills the cache and is not measured. Every further child is a measurement: it must hit a READY
entry, build nothing and bypass nothing, or the benchmark fails. `latency` is the time of the first warmup and load:
capture, identity, lookup, restore, and what they import (`first_imports`; `work` is the rest); not the start of Python,
imports before it, tensors or runs. Beside it, in the same run and taking turns with it: the floor (reading and hashing
the same files, starting Python, importing NumPy), what the process takes from `import pypto` to the callable, repeated
calls above the bare C call, and two peers. Peers (JAX's persistent compilation cache and numba's `cache=True`) are
measured when `--peers` names a virtual environment that has them; with `--install-peers` it is made. 100 ms is a target
and nothing fails for being slow. `load_average` is that of the machine when the run began.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

_HERE = Path(__file__).resolve().parent
_CHILD = str(_HERE / "latency_child.py")

_PEERS = {
    "jax": """
import os, time
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_compilation_cache_dir", os.environ["PEER_CACHE"])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
x = np.zeros((16, 64), np.float32)
started = time.perf_counter_ns()
f = jax.jit(lambda x, factor: x * factor).lower(x, 2.0).compile()
took = time.perf_counter_ns() - started
""",
    "numba": """
import time
import numba, numpy as np
@numba.njit(["void(float32[:,::1], float32, float32[:,::1])"], cache=True)
def scaled(x, factor, out):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * factor
""",
}
# numba compiles, or loads, when the decorator runs; what it takes is the time of that statement.
_PEERS["numba"] = _PEERS["numba"].replace("@numba", "started = time.perf_counter_ns()\n@numba") + (
    "took = time.perf_counter_ns() - started\n"
)


def floor(directory: str) -> int:
    """Nanoseconds of reading and hashing every file of an entry."""
    started = time.perf_counter_ns()
    for folder, _, names in os.walk(directory):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                hashlib.sha256(file.read()).hexdigest()
    return time.perf_counter_ns() - started


class Spent(NamedTuple):
    """What a child process took with its start and end, in nanoseconds: on the clock, and of the processors."""

    clock: int
    cpu: int


def _spawn(arguments: Sequence[str], python: str = sys.executable, **environment: str) -> tuple[str, Spent]:
    """Standard output of a child, and what it took."""
    # Without bytecode every process would compile all of its imports again.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    cpu, started = _cpu(), time.perf_counter_ns()
    done = subprocess.run(
        [python, *arguments], env={**inherited, **environment}, capture_output=True, text=True, check=False
    )
    took = Spent(time.perf_counter_ns() - started, _cpu() - cpu)
    if done.returncode != 0:
        raise SystemExit(f"a child process failed:\n{done.stderr}")
    return done.stdout, took


def _cpu() -> int:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return int((used.ru_utime + used.ru_stime) * 1e9)


def package_path() -> dict[str, str]:
    """What a child's environment needs to import pypto: nothing where it can already, else this checkout."""
    if find_spec("pypto") is not None:
        return {}
    given = os.environ.get("PYTHONPATH", "")
    return {"PYTHONPATH": os.pathsep.join([*([given] if given else []), str(Path(__file__).resolve().parents[2])])}


def _measured(cache_root: str, calls: bool) -> dict[str, Any]:
    text, took = _spawn([_CHILD, cache_root, *(["calls"] if calls else [])], **package_path())
    record: dict[str, Any] = json.loads(text)
    record["process_ns"], record["process_cpu_ns"] = took
    counters = record["counters"]
    if counters["ready_hits"] != 1:
        raise SystemExit(f"a measuring process did not hit a READY entry: {counters}")
    if counters["generation_builds"] or counters["binary_builds"] or counters["bypasses"]:
        raise SystemExit(f"a measuring process built or bypassed: {counters}")
    return record


def _peer(name: str, python: str, cache: Path) -> dict[str, int]:
    """One process of a peer: compile or load alone, and with its imports."""
    (cache / name).mkdir(parents=True, exist_ok=True)
    script = cache / f"{name}_peer.py"
    code = f"import time\nbegan = time.perf_counter_ns()\n{_PEERS[name]}\nprint(took, time.perf_counter_ns() - began)\n"
    if not script.exists():
        # numba keys its cache on the file's time.
        script.write_text(code)
    text, process = _spawn([str(script)], python, PEER_CACHE=str(cache / name), NUMBA_CACHE_DIR=str(cache / name))
    latency, with_imports = map(int, text.split())
    return {
        "latency_ns": latency,
        "import_to_callable_ns": with_imports,
        "process_ns": process.clock,
        "process_cpu_ns": process.cpu,
    }


def _install_peers(folder: Path) -> str:
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    subprocess.run([str(python), "-m", "pip", "install", "-q", "jax", "numba"], check=True)
    return str(python)


def measure(cache_root: str, runs: int, peers: str | None) -> dict[str, Any]:
    """Everything, the kinds taking turns."""
    load = round(os.getloadavg()[0], 2)
    _spawn([_CHILD, cache_root], **package_path())
    measurements: list[dict[str, Any]] = []
    floors: dict[str, list[int]] = {"read_and_hash_ns": []}
    peer_times: dict[str, list[dict[str, int]]] = {name: [] for name in _PEERS} if peers else {}
    cache = Path(cache_root).absolute().with_name(f"{Path(cache_root).name}-peers")
    for name in peer_times:
        _peer(name, str(peers), cache)
    for number in range(runs):
        measurements.append(_measured(cache_root, number == 0))
        text, _ = _spawn([__file__, "--floor", measurements[-1]["directory"], "--cache-root", cache_root])
        floors["read_and_hash_ns"].append(int(text))
        for what, code in (("python", "pass"), ("python_numpy", "import numpy")):
            spent = _spawn(["-c", code])[1]
            floors.setdefault(f"{what}_ns", []).append(spent.clock)
            floors.setdefault(f"{what}_cpu_ns", []).append(spent.cpu)
        for name, times in peer_times.items():
            times.append(_peer(name, str(peers), cache))
    return {
        "schema_version": 1,
        "runs": runs,
        "load_average": load,
        "measurements": measurements,
        "floor": floors,
        "peers": peer_times,
        "summary": summary(measurements, floors, peer_times),
    }


def summary(
    measurements: Sequence[Mapping[str, Any]],
    floors: Mapping[str, Sequence[int]],
    peers: Mapping[str, Sequence[Mapping[str, int]]],
) -> dict[str, float]:
    """The smallest of each figure, in milliseconds: what the machine can do when nothing disturbs it."""

    def least(values: Sequence[float]) -> float:
        return round(min(values) / 1e6, 3)

    names = ("latency", "warmup", "load", "lookup", "import_pypto", "import_kernel", "import_to_callable")
    found = {
        f"{name}_ms": least([m[f"{name}_ns"] for m in measurements]) for name in (*names, "process", "process_cpu")
    }
    found.update({name.replace("_ns", "_ms"): least(values) for name, values in floors.items()})
    for kind in ("", "_cpu"):
        found[f"process{kind}_over_numpy"] = round(found[f"process{kind}_ms"] / found[f"python_numpy{kind}_ms"], 2)
    # The same again in one process: what is left when nothing has to be imported.
    found["work_ms"] = least([measurements[0]["work_ns"]])
    found["first_imports_ms"] = round(found["latency_ms"] - found["work_ms"], 3)
    calls = measurements[0].get("calls", {})
    found.update({name.replace("_ns", "_us"): round(value / 1e3, 2) for name, value in calls.items()})
    for name, times in peers.items():
        for figure in ("latency", "import_to_callable", "process", "process_cpu"):
            found[f"{name}_{figure}_ms"] = least([each[f"{figure}_ns"] for each in times])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache-root", required=True, metavar="DIR", help="cache to fill and to hit")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="measuring processes (default 5)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="JSON file to write; default: standard output")
    parser.add_argument("--peers", type=Path, metavar="FOLDER", help="virtual environment with jax and numba")
    parser.add_argument("--install-peers", action="store_true", help="install the peers into --peers first")
    parser.add_argument("--floor", metavar="DIR", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.floor:
        print(floor(options.floor))
        return 0
    if options.runs < 1:
        parser.error("--runs is 1 or more")
    peers = None
    if options.peers is not None:
        peers = _install_peers(options.peers) if options.install_peers else str(options.peers / "bin" / "python")
    report = measure(os.path.abspath(options.cache_root), options.runs, peers)
    if options.output is None:
        print(json.dumps(report, indent=2))
    else:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(report, indent=2) + "\n")
        print(f"{'load_average':32} {report['load_average']}")
        for name, value in report["summary"].items():
            print(f"{name:32} {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
