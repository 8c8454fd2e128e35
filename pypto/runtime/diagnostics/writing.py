"""Writing the diagnostics of one run into a folder of its own below the program's run directory."""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

from pypto.runtime import abi
from pypto.runtime.config import RunConfig
from pypto.runtime.diagnostics.dependencies import dot, svg
from pypto.runtime.diagnostics.pages import Html, link, page, table
from pypto.runtime.diagnostics.scope_stats import scope_stats
from pypto.runtime.diagnostics.swimlane import chrome_trace
from pypto.runtime.diagnostics.timeline_page import timeline_page
from pypto.runtime.diagnostics.trace import RunTrace, read_trace, traced
from pypto.runtime.kernel_config import KernelConfig
from pypto.runtime.places import Locate

SWIMLANE, TIMELINE = "swimlane.json", "timeline.html"
DOT, SVG = "dependencies.dot", "dependencies.svg"
SCOPES = "scope_stats.json"
INDEX = "index.html"


class TracedRuns:
    """Makes runs that leave their diagnostics in a new folder below the run directory, also when they fail.

    ``finished`` is told the folder; a run that ended before anything was submitted has none.
    """

    def __init__(
        self,
        runs: abi.Orchestration,
        settings: RunConfig,
        config: KernelConfig,
        locate: Locate | None,
        run_directory: Path,
        finished: Callable[[Path], None],
    ) -> None:
        self._runs = runs
        self._settings = settings
        self._config = config
        self._locate = locate
        self._run_directory = run_directory
        self._finished = finished

    def run(self, arguments: ctypes.Array[abi.Argument], **how: Any) -> abi.RunResult:
        """Make a run and write what the settings ask for.

        Raises:
            OSError: the folder cannot be made or written.
        """
        result, data = traced(
            lambda flag, descriptor: self._runs.run(arguments, **how, trace=flag, trace_fd=descriptor), abi.FLAG_TRACED
        )
        trace = read_trace(data, self._config, self._locate)
        if trace is None:
            return result
        folder = new_folder(self._run_directory)
        write_diagnostics(trace, self._settings, folder)
        self._finished(folder)
        print(f"pypto: diagnostics of this run of '{trace.entry}': {folder / INDEX}", file=sys.stderr)
        return result


def new_folder(run_directory: Path) -> Path:
    """The first of ``run_0000``, ``run_0001``... that is not there yet; made, so that concurrent runs do not meet."""
    run_directory.mkdir(parents=True, exist_ok=True)
    number = len(list(run_directory.glob("run_[0-9]*")))
    while True:
        folder = run_directory / f"run_{number:04}"
        try:
            folder.mkdir()
            return folder
        except FileExistsError:
            number += 1


def write_diagnostics(trace: RunTrace, settings: RunConfig, folder: Path) -> None:
    """Write the files that ``settings`` ask for, and a page that links them."""
    rows: list[tuple[Html, str]] = []

    def write(name: str, text: str, what: str) -> None:
        (folder / name).write_text(text, encoding="utf-8")
        rows.append((link(name, name), what))

    if settings.enable_chip_swimlane:
        swimlane = chrome_trace(trace)
        write(TIMELINE, timeline_page(swimlane), "tasks on the threads that ran them")
        write(
            SWIMLANE,
            json.dumps(swimlane, indent=0) + "\n",
            "the same as a Chrome trace, for Perfetto or chrome://tracing",
        )
    if settings.enable_dep_gen:
        write(SVG, svg(trace), "the tasks and who waited for whom")
        write(DOT, dot(trace), "the same for Graphviz, with every dependency")
    stats = scope_stats(trace)
    if settings.enable_scope_stats:
        write(SCOPES, json.dumps(stats, indent=2) + "\n", "how often and how long each scope ran")
    facts = ", ".join(
        f"{name.removesuffix('_us').replace('_', ' ')} {stats[name]:,}{' µs' if name.endswith('_us') else ''}"
        for name in _FACTS
    )
    columns = ("scope", "core", "line", "tasks", "total_us", "min_us", "mean_us", "max_us", "share")
    scopes = [[scope[name] for name in columns] for scope in stats["scopes"]]
    titles = ("Scope", "Core", "Submitted at", "Tasks", "Total µs", "Least", "Mean", "Most", "Share")
    body = [
        f"<h1>A run of {escape(trace.entry)}</h1>",
        f'<p class="quiet">{escape(facts)}</p>',
        table(("File", "What it shows"), rows),
        "<h2>Scopes</h2>",
        table(titles, scopes),
    ]
    (folder / INDEX).write_text(page(f"A run of {trace.entry}", "\n".join(body)), encoding="utf-8")


_FACTS = ("tasks", "dependencies", "workers", "run_us", "submit_us", "busy_us", "critical_path_us", "parallelism")


def fallback_run_directory(entry: str) -> Path:
    """Where runs of a program that stands in no folder of its own put files; not made yet, and nobody else's."""
    return Path(os.path.abspath("build_output"), f"{entry}-run-{os.urandom(8).hex()}")
