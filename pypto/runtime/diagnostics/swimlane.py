"""A run as a Chrome trace, which Perfetto and chrome://tracing read: tasks on the threads that ran them.

The format is the Trace Event Format: times are microseconds, a lane is a thread of a process, flows join slices.
"""

from __future__ import annotations

from typing import Any

from pypto.runtime.diagnostics.trace import RunTrace, TracedTask

_PROCESS = 1
ORCHESTRATION = 0
"""The lane on which the orchestration submits tasks; worker ``n`` has lane ``n + 1``."""


def chrome_trace(trace: RunTrace) -> dict[str, Any]:
    """The run as a JSON object."""
    events: list[dict[str, Any]] = [
        _named("process_name", ORCHESTRATION, f"{trace.entry} ({trace.runtime}, simulated)"),
        _named("thread_name", ORCHESTRATION, "orchestration"),
    ]
    workers = sorted({task.worker for task in trace.tasks})
    for worker in workers:
        caller = " (calling thread)" if worker == 0 else ""
        events.append(_named("thread_name", worker + 1, f"worker {worker}{caller}"))
    events.append(_slice("submit tasks", "orchestration", ORCHESTRATION, 0, trace.submitted, {}))
    by_number = {task.number: task for task in trace.tasks}
    for task in trace.tasks:
        arguments = {"task": task.number, "kernel": task.kernel, "core": task.core.upper(), "line": task.line}
        events.append(_slice(task.kernel, task.core, task.worker + 1, task.begin, task.end, arguments))
    for number, (source, target) in enumerate(trace.edges):
        if source in by_number and target in by_number:
            events += _flow(number, by_number[source], by_number[target])
    critical, _ = trace.critical_path()
    return {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {
            "entry": trace.entry,
            "runtime": trace.runtime,
            "tasks": str(len(trace.tasks)),
            "dependencies": str(len(trace.edges)),
            "run_us": str(_us(trace.end)),
            "critical_path_us": str(_us(critical)),
        },
    }


def _us(nanoseconds: int) -> float:
    return round(nanoseconds / 1000, 3)


def _named(what: str, lane: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": _PROCESS, "tid": lane, "args": {"name": name}}


def _slice(name: str, category: str, lane: int, begin: int, end: int, arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "cat": category,
        "ph": "X",
        "ts": _us(begin),
        # A viewer does not show slices without a length, and flows do not find them.
        "dur": _us(max(end - begin, 1)),
        "pid": _PROCESS,
        "tid": lane,
        "args": arguments,
    }


def _flow(number: int, source: TracedTask, target: TracedTask) -> list[dict[str, Any]]:
    flow = {"name": "dependency", "cat": "dependency", "id": number, "pid": _PROCESS}
    # The start of a flow has to lie inside its slice, whose end does not belong to it.
    leaves = max(source.begin, source.end - 1)
    return [
        {**flow, "ph": "s", "ts": _us(leaves), "tid": source.worker + 1},
        {**flow, "ph": "f", "bp": "e", "ts": _us(target.begin), "tid": target.worker + 1},
    ]
