"""Whether JSON is a Chrome trace that viewers read: the Trace Event Format, as far as this package writes it."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Mapping
from typing import Any

_PHASES = frozenset("BEXiIsftPNODMCbneRcvV")


def problems(trace: object) -> list[str]:
    """What is wrong with a trace, one line for each thing; none if a viewer shows all of it."""
    if not isinstance(trace, dict) or not isinstance(trace.get("traceEvents"), list):
        return ["a trace is an object with the list traceEvents"]
    found = []
    for number, event in enumerate(trace["traceEvents"]):
        found += [f"traceEvents[{number}]: {problem}" for problem in _event(event)]
    return found or list(_flows(trace["traceEvents"]))


def _event(event: object) -> Iterator[str]:
    if not isinstance(event, dict):
        yield "an event is an object"
        return
    phase = event.get("ph")
    if not isinstance(phase, str) or phase not in _PHASES:
        yield f"ph is the letter of a phase, got {phase!r}"
        return
    for name in ("pid", "tid"):
        if not isinstance(event.get(name), int):
            yield f"{name} is a number, got {event.get(name)!r}"
    if not isinstance(event.get("name"), str):
        yield f"name is text, got {event.get('name')!r}"
    if phase == "M":
        if not isinstance(event.get("args"), dict) or not isinstance(event["args"].get("name"), str):
            yield "a name of a process or thread stands in args.name"
        return
    if not _is_time(event.get("ts")):
        yield f"ts is a time of 0 or more in microseconds, got {event.get('ts')!r}"
    if phase == "X" and not _is_time(event.get("dur")):
        yield f"dur is a time of 0 or more in microseconds, got {event.get('dur')!r}"
    if phase in "stf" and not isinstance(event.get("id"), (int, str)):
        yield f"a flow has an id, got {event.get('id')!r}"


def _is_time(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0


def _flows(events: list[Mapping[str, Any]]) -> Iterator[str]:
    """Each flow has a start and an end inside slices, in this order."""
    slices: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in events:
        if event["ph"] == "X":
            slices.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
    for lane in slices.values():
        lane.sort()
    started: dict[object, float] = {}
    for event in events:
        if event["ph"] not in "sf":
            continue
        flow, at = event["id"], event["ts"]
        lane = slices.get((event["pid"], event["tid"]), [])
        # Slices of a lane follow each other: only the last one that has begun can hold it.
        latest = bisect.bisect_right(lane, (at, math.inf)) - 1
        if latest < 0 or lane[latest][1] < at:
            yield f"flow {flow} touches no slice at {at}"
        if event["ph"] == "s":
            started[flow] = at
        elif flow not in started:
            yield f"flow {flow} ends and never began"
        elif at < started.pop(flow):
            yield f"flow {flow} ends before it begins"
    for flow in started:
        yield f"flow {flow} begins and never ends"
