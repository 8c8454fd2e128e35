"""Self-contained HTML pages: one style, data inside, nothing fetched."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

_ASSETS = Path(__file__).with_name("assets")


def asset(name: str) -> str:
    """A file that pages are made of."""
    return (_ASSETS / name).read_text(encoding="utf-8")


def page(title: str, body: str, *, script: str = "", style: str = "") -> str:
    """A whole document; ``body`` is HTML."""
    run = f"<script>\n{script}</script>\n" if script else ""
    # An icon of nothing keeps browsers from asking for one.
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width">\n<link rel="icon" href="data:,">\n'
        f"<style>\n{asset('page.css')}{style}</style>\n</head>\n<body>\n{body}\n{run}</body>\n</html>\n"
    )


def embedded(identifier: str, data: Any) -> str:
    """Plain data for a script to read from the element ``identifier``."""
    # Inside a script element only "</" and "<!" mean something.
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="{identifier}">{text}</script>'


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, caption: str = "") -> str:
    """A table; numbers stand to the right, and cells that are `Html` are taken as they are."""
    numeric = [bool(rows) and all(isinstance(row[at], (int, float)) for row in rows) for at in range(len(columns))]
    mark = [' class="number"' if number else "" for number in numeric]
    head = "".join(f"<th{mark[at]}>{escape(name)}</th>" for at, name in enumerate(columns))
    lines = [
        f"<table>{f'<caption>{escape(caption)}</caption>' if caption else ''}<thead><tr>{head}</tr></thead><tbody>"
    ]
    for row in rows:
        lines.append("<tr>" + "".join(f"<td{mark[at]}>{_cell(cell)}</td>" for at, cell in enumerate(row)) + "</tr>")
    return "\n".join([*lines, "</tbody></table>"])


class Html(str):
    """Text that is HTML already."""


def link(target: str, text: str) -> Html:
    """A link to a file beside the page."""
    return Html(f'<a href="{escape(target)}">{escape(text)}</a>')


def _cell(cell: object) -> str:
    if isinstance(cell, Html):
        return cell
    return f"{cell:,}" if isinstance(cell, (int, float)) and not isinstance(cell, bool) else escape(str(cell))
