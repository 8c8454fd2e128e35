"""How often and how long the scopes of a run ran."""

from __future__ import annotations

from typing import Any

from pypto.runtime.diagnostics.trace import RunTrace, TracedTask


def scope_stats(trace: RunTrace) -> dict[str, Any]:
    """Statistics of the run and, longest first, of each scope: a kernel at one place of the entry."""
    scopes: dict[tuple[str, str, str], list[TracedTask]] = {}
    for task in trace.tasks:
        scopes.setdefault((task.kernel, task.core, task.line), []).append(task)
    busy = sum(task.end - task.begin for task in trace.tasks)
    critical, _ = trace.critical_path()
    rows = [_scope(*name, [task.end - task.begin for task in tasks], busy) for name, tasks in scopes.items()]
    return {
        "schema": 1,
        "entry": trace.entry,
        "runtime": trace.runtime,
        "tasks": len(trace.tasks),
        "dependencies": len(trace.edges),
        "workers": trace.workers,
        "run_us": _us(trace.end),
        "submit_us": _us(trace.submitted),
        "busy_us": _us(busy),
        "critical_path_us": _us(critical),
        "parallelism": round(busy / trace.end, 3) if trace.end else 0.0,
        "scopes": sorted(rows, key=lambda row: (-row["total_us"], row["scope"], row["line"])),
    }


def _scope(name: str, core: str, line: str, times: list[int], busy: int) -> dict[str, Any]:
    return {
        "scope": name,
        "core": core.upper(),
        "line": line,
        "tasks": len(times),
        "total_us": _us(sum(times)),
        "min_us": _us(min(times)),
        "mean_us": _us(sum(times) / len(times)),
        "max_us": _us(max(times)),
        "share": round(sum(times) / busy, 4) if busy else 0.0,
    }


def _us(nanoseconds: float) -> float:
    return round(nanoseconds / 1000, 3)
