"""Traces of runs made by hand."""

from __future__ import annotations

from pypto.runtime.diagnostics.trace import RunTrace, TracedTask


def make_trace(edges: tuple[tuple[int, int], ...] = ((0, 2), (1, 2)), count: int = 3) -> RunTrace:
    """Task ``n`` runs on worker ``n % 2`` from ``n`` to ``n + 0.5`` microseconds."""
    tasks = tuple(
        TracedTask(
            n, ("scale", "square", "join")[n % 3], "aic" if n % 3 == 1 else "aiv", f"k.py:{n}", n % 2,
            1000 * n, 1000 * n + 500,
        )
        for n in range(count)
    )  # fmt: skip
    return RunTrace("joined", "host_build_graph", tasks, edges, 300, 1000 * count)
