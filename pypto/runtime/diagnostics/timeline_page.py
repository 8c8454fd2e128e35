"""A page that shows a Chrome trace, offline: lanes that can be zoomed and searched, tasks that can be selected."""

from __future__ import annotations

from html import escape
from typing import Any

from pypto.runtime.diagnostics.pages import asset, embedded, page


def timeline_page(trace: dict[str, Any]) -> str:
    """The page for a trace such as `pypto.runtime.diagnostics.swimlane.chrome_trace` makes.

    ``#task=N`` behind its address selects a task.
    """
    about = trace.get("otherData", {})
    entry = str(about.get("entry", "trace"))
    facts = ", ".join(_fact(name, about[name]) for name in about if name not in ("entry", "runtime"))
    head = f'<h1>Timeline of {escape(entry)}</h1>\n<p class="quiet" id="facts">{escape(facts)}</p>'
    body = head + asset("timeline.html") + embedded("trace", trace)
    return page(f"Timeline of {entry}", body, script=asset("timeline.js"), style=asset("timeline.css"))


def _fact(name: str, value: object) -> str:
    unit = " µs" if name.endswith("_us") else ""
    return f"{name.removesuffix('_us').replace('_', ' ')} {value}{unit}"
