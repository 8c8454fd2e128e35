"""What is written of a run's trace, from traces made by hand."""

from __future__ import annotations

import ctypes
import json
import re
import threading
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from diagnosed_traces import make_trace

from pypto.diagnostics.trace_format import problems
from pypto.runtime import RunConfig, abi
from pypto.runtime.diagnostics import dependencies, writing
from pypto.runtime.diagnostics.pages import Html, embedded, page, table
from pypto.runtime.diagnostics.scope_stats import scope_stats
from pypto.runtime.diagnostics.swimlane import chrome_trace
from pypto.runtime.diagnostics.timeline_page import timeline_page
from pypto.runtime.diagnostics.trace import RunTrace, read_trace

SVG = "{http://www.w3.org/2000/svg}"


def test_the_chrome_trace_has_each_task_on_its_lane(trace: RunTrace) -> None:
    made = chrome_trace(trace)
    assert problems(made) == []
    assert problems(json.loads(json.dumps(made))) == []
    slices = [event for event in made["traceEvents"] if event["ph"] == "X" and event["cat"] != "orchestration"]
    assert [(e["name"], e["tid"], e["ts"], e["dur"], e["args"]["core"]) for e in slices] == [
        ("scale", 1, 0.0, 0.5, "AIV"),
        ("square", 2, 1.0, 0.5, "AIC"),
        ("join", 1, 2.0, 0.5, "AIV"),
    ]
    assert slices[2]["args"]["line"] == "k.py:2"
    names = {event["tid"]: event["args"]["name"] for event in made["traceEvents"] if event["name"] == "thread_name"}
    assert names == {0: "orchestration", 1: "worker 0 (calling thread)", 2: "worker 1"}
    flows = [(e["ph"], e["id"], e["tid"], e["ts"]) for e in made["traceEvents"] if e["ph"] in "sf"]
    assert flows == [("s", 0, 1, 0.499), ("f", 0, 1, 2.0), ("s", 1, 2, 1.499), ("f", 1, 1, 2.0)]


def test_a_task_without_a_length_can_be_seen(trace: RunTrace) -> None:
    task = trace.tasks[0]
    made = chrome_trace(RunTrace("e", "r", (type(task)(0, "k", "aiv", "", 0, 70, 70),), (), 10, 80))
    assert problems(made) == []
    assert made["traceEvents"][-1]["dur"] == 0.001


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.pop("traceEvents"), "a trace is an object with the list traceEvents"),
        (lambda t: t["traceEvents"][4].pop("dur"), "traceEvents[4]: dur is a time"),
        (lambda t: t["traceEvents"][4].update(ts=-1), "traceEvents[4]: ts is a time of 0 or more"),
        (lambda t: t["traceEvents"][4].update(ph="?"), "traceEvents[4]: ph is the letter of a phase, got '?'"),
        (lambda t: t["traceEvents"][4].update(tid="one"), "traceEvents[4]: tid is a number"),
        (lambda t: t["traceEvents"][0].update(args={}), "traceEvents[0]: a name of a process"),
        (lambda t: t["traceEvents"].pop(), "flow 1 begins and never ends"),
        (lambda t: t["traceEvents"][-1].update(ts=9000), "flow 1 touches no slice at 9000"),
        (lambda t: t["traceEvents"][-1].update(ts=0.2), "flow 1 ends before it begins"),
    ],
)
def test_what_is_no_trace_is_told(trace: RunTrace, change: Any, said: str) -> None:
    made = chrome_trace(trace)
    change(made)
    found = problems(made)
    assert found
    assert found[0].startswith(said)


def test_dia_13_dot_has_every_task_and_dependency() -> None:
    text = dependencies.dot(make_trace(((0, 1), (0, 2), (1, 2))))
    assert re.findall(r't\d \[label="([^"]*)"', text) == ["scale #0", "square #1", "join #2"]
    assert re.findall(r"t(\d) -> t(\d);", text) == [("0", "1"), ("0", "2"), ("1", "2")]


def test_the_drawing_has_the_tasks_in_layers_and_no_implied_dependency() -> None:
    root = ElementTree.fromstring(dependencies.svg(make_trace(((0, 1), (0, 2), (1, 2)))))
    nodes = root.findall(f".//{SVG}g[@data-node]")
    assert [node.get("data-label") for node in nodes] == ["scale #0", "square #1", "join #2"]
    assert nodes[1].find(f"{SVG}title").text == "square #1 (AIC) k.py:1"  # type: ignore[union-attr]
    edges = [(path.get("data-from"), path.get("data-to")) for path in root.findall(f".//{SVG}path[@data-from]")]
    assert edges == [("0", "1"), ("1", "2")]
    heights = [float(node.find(f"{SVG}rect").get("y")) for node in nodes]  # type: ignore[union-attr,arg-type]
    assert heights == sorted(set(heights))


def test_independent_tasks_stand_side_by_side(trace: RunTrace) -> None:
    root = ElementTree.fromstring(dependencies.svg(trace))
    first, second, _ = (node.find(f"{SVG}rect") for node in root.findall(f".//{SVG}g[@data-node]"))
    assert first is not None and second is not None
    assert first.get("y") == second.get("y")
    assert float(first.get("x", 0)) + float(first.get("width", 0)) < float(second.get("x", 0))


def test_too_many_tasks_are_drawn_by_kernel() -> None:
    count = dependencies.MOST_NODES + 3
    task = make_trace().tasks[0]
    tasks = tuple(type(task)(n, "ab"[n % 2], "aiv", "", 0, n, n + 1) for n in range(count))
    edges = tuple((n, n + 1) for n in range(count - 1))
    root = ElementTree.fromstring(dependencies.svg(RunTrace("many", "r", tasks, edges, 0, count)))
    labels = [node.get("data-label") for node in root.findall(f".//{SVG}g[@data-node]")]
    assert labels == ["a ×302", "b ×301"]


def test_the_same_trace_gives_the_same_bytes(trace: RunTrace) -> None:
    assert dependencies.svg(trace) == dependencies.svg(make_trace())
    assert timeline_page(chrome_trace(trace)) == timeline_page(chrome_trace(make_trace()))


def test_statistics_of_scopes(trace: RunTrace) -> None:
    stats = scope_stats(make_trace(((0, 3), (3, 4)), 6))
    assert (stats["tasks"], stats["dependencies"], stats["workers"]) == (6, 2, 2)
    assert (stats["run_us"], stats["submit_us"], stats["busy_us"], stats["critical_path_us"]) == (6.0, 0.3, 3.0, 1.5)
    assert stats["parallelism"] == 0.5
    assert len(stats["scopes"]) == 6
    once = scope_stats(RunTrace("e", "r", (*trace.tasks[:1], *trace.tasks[:1]), (), 0, 1000))
    assert once["scopes"] == [
        {
            "scope": "scale", "core": "AIV", "line": "k.py:0", "tasks": 2,
            "total_us": 1.0, "min_us": 0.5, "mean_us": 0.5, "max_us": 0.5, "share": 1.0,
        }
    ]  # fmt: skip


def test_a_run_without_tasks_has_statistics_too() -> None:
    empty = RunTrace("e", "r", (), (), 0, 0)
    assert scope_stats(empty)["scopes"] == []
    assert problems(chrome_trace(empty)) == []
    assert ElementTree.fromstring(dependencies.svg(empty)).tag == f"{SVG}svg"


def test_a_trace_is_read_from_what_the_runtime_wrote() -> None:
    header = abi.TraceHeader(struct_size=ctypes.sizeof(abi.TraceHeader), task_count=2, edge_count=1)
    header.begin, header.submitted, header.end = 1000, 1010, 1100
    tasks = (abi.TraceTask * 2)(abi.TraceTask(1, 7, 4, 1, 1050, 1060), abi.TraceTask(0, 7, 0, 0, 1020, 1040))
    edges = (abi.TraceEdge * 1)(abi.TraceEdge(0, 1))
    data = bytes(header) + bytes(tasks) + bytes(edges)
    kernel = SimpleNamespace(id=7, name="k", core="aiv")
    config: Any = SimpleNamespace(kernels=(kernel,), entry="e", runtime="r")
    found = read_trace(data, config, None)
    assert found is not None
    assert [(t.number, t.worker, t.begin, t.end, t.line) for t in found.tasks] == [
        (0, 0, 20, 40, ""),
        (1, 1, 50, 60, "e:4"),
    ]
    assert (found.edges, found.submitted, found.end) == (((0, 1),), 10, 100)
    placed = read_trace(data, config, lambda function, line: (f"/{function}.py", line + 10))
    assert placed is not None
    assert placed.tasks[1].line == "/e.py:14"
    for cut in (0, 10, len(data) - 1):
        assert read_trace(data[:cut], config, None) is None


def test_only_what_was_asked_for_is_written(trace: RunTrace, tmp_path: Path) -> None:
    def written(**settings: Any) -> set[str]:
        folder = writing.new_folder(tmp_path)
        writing.write_diagnostics(trace, RunConfig(**settings), folder)
        return {path.name for path in folder.iterdir()} - {writing.INDEX}

    assert written(enable_chip_swimlane=1) == {"swimlane.json", "timeline.html"}
    assert written(enable_dep_gen=True) == {"dependencies.dot", "dependencies.svg"}
    assert written(enable_scope_stats=True) == {"scope_stats.json"}


def test_dia_12_25_runs_at_the_same_time_have_folders_of_their_own(tmp_path: Path) -> None:
    made: list[Path] = []
    threads = [
        threading.Thread(target=lambda: made.extend(writing.new_folder(tmp_path / "absent/run") for _ in range(20)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 80
    assert all(folder.is_dir() for folder in made)


def test_names_cannot_break_out_of_a_page() -> None:
    hostile = '</script><script>alert("x")</script>'
    assert "</script><script>" not in embedded("data", {"name": hostile})
    assert json.loads(embedded("d", [hostile]).removeprefix('<script type="application/json" id="d">')[:-9]) == [
        hostile
    ]
    shown = page(hostile, table(("a",), [[hostile]], caption=hostile))
    assert shown.count("<script") == 0
    assert table(("a",), [[Html("<b>x</b>")]]).count("<b>x</b>") == 1
