"""One process of `jit_cache_latency.py`: what it takes, step by step. Imports nothing before it looks at the clock."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

_CALLS = 2000


def child(cache_root: str, calls: bool) -> dict[str, Any]:
    """One process: what it took, step by step, in nanoseconds."""
    clock = time.perf_counter_ns
    began = clock()
    import pypto

    imported = clock()
    import latency_kernel

    from pypto.runtime import RunConfig

    config = RunConfig(cache_config=pypto.CacheConfig(enabled=True, root=cache_root))
    ready = clock()
    kernel = latency_kernel.scaled.warmup(config=config)
    warm = clock()
    program = kernel.load()
    done = clock()
    stats = pypto.cache_stats()
    record = {
        "pid": os.getpid(),
        "latency_ns": done - ready,
        "warmup_ns": warm - ready,
        "load_ns": done - warm,
        "lookup_ns": stats.lookup_ns,
        "import_pypto_ns": imported - began,
        "import_kernel_ns": ready - imported,
        "import_to_callable_ns": done - began,
        "directory": str(kernel.binary_dir),
        "counters": {
            name: getattr(stats, name)
            for name in ("requests", "ready_hits", "misses", "generation_builds", "binary_builds", "bypasses")
        },
    }
    if calls:
        # Again in the same process, with nothing left to import: the work alone.
        times = []
        for _ in range(10):
            again = clock()
            _forget()
            latency_kernel.scaled.warmup(config=config).load()
            times.append(clock() - again)
        record["work_ns"] = min(times)
        record["calls"] = _calls(latency_kernel.scaled, program, config)
    return record


def _forget() -> None:
    """What a new process would not know: objects, keys, digests, the identity and the content of the package."""
    import latency_kernel

    from pypto._identity import hermetic, package
    from pypto._identity.installation import InstallationIdentityCache
    from pypto.jit import flow, request
    from pypto.toolchain import selection

    flow._objects.clear()
    flow._keys.clear()
    request._environments._latest = None
    latency_kernel.scaled.latest_digest = None
    latency_kernel.scaled.specializations.clear()
    latency_kernel.scaled.repeated = None
    hermetic._identities.clear()
    hermetic._cache = InstallationIdentityCache()
    package._read_package.cache_clear()
    selection._loaded = None


def _calls(function: Any, program: Any, config: Any) -> dict[str, float]:
    """Nanoseconds of one repeated call: of the JIT function, of the loaded program, and of the C function alone."""
    import ctypes

    import numpy as np

    from pypto.runtime import abi
    from pypto.runtime.arguments import bind

    x = np.ones((16, 64), np.float32)
    out = np.zeros_like(x)
    bound = bind(program.config.entry, program.config.params, (x, 2.0, out))
    orchestration = program.loaded()
    request = ctypes.byref(orchestration.request(bound.c_arguments))
    result = ctypes.byref(abi.RunResult(struct_size=ctypes.sizeof(abi.RunResult)))

    def best(call: Any) -> float:
        times = []
        for _ in range(_CALLS):
            at = time.perf_counter_ns()
            call()
            times.append(time.perf_counter_ns() - at)
        return min(times)

    found = {
        "jit_ns": best(lambda: function(x, 2.0, out, config=config)),
        "program_ns": best(lambda: program(x, 2.0, out)),
        "bare_ns": best(lambda: orchestration.call(request, result)),
    }
    return {**found, "jit_above_bare_ns": found["jit_ns"] - found["bare_ns"]}


if __name__ == "__main__":
    measured = child(sys.argv[1], "calls" in sys.argv[2:])
    import json

    print(json.dumps(measured))
