"""What the commands print: JSON, tables, progress. Colours and moving lines only on a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from io import TextIOWrapper
from typing import Any, TextIO


def print_anything() -> None:
    """From now on, what a stream's encoding cannot say, such as a path that is no text, is printed as an escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def print_json(document: Any) -> None:
    """One JSON document on standard output."""
    try:
        text = json.dumps(document, indent=2, ensure_ascii=False)
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        text = json.dumps(document, indent=2)
    print(text)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on standard output: drawn by rich on a terminal, aligned plain text otherwise."""
    if _drawn_by_rich(sys.stdout):
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(*columns)
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        Console().print(table)
        return
    widths = [max(len(row[i]) for row in [columns, *rows]) for i in range(len(columns))]
    for row in [columns, *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _drawn_by_rich(stream: TextIO) -> bool:
    # A checkout may be used where nothing is installed: then plain text has to do.
    return stream.isatty() and find_spec("rich") is not None


class Progress:
    """Says on standard error what is being worked on; `lines`: also where that is no terminal."""

    def __init__(self, total: int, *, lines: bool = True) -> None:
        self._total = total
        self._lines = lines
        self._number = 0

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """One of the steps: a spinner while it runs on a terminal, one line otherwise."""
        self._number += 1
        text = f"[{self._number}/{self._total}] {what}"
        if not _drawn_by_rich(sys.stderr):
            if self._lines:
                print(text, file=sys.stderr, flush=True)
            yield
            return
        from rich.console import Console
        from rich.markup import escape

        with Console(stderr=True).status(escape(text)):
            yield


def size_text(size: int) -> str:
    """A size in bytes for people, such as ``1.4 MB``."""
    if size < 1000:
        return f"{size} B"
    value = float(size)
    for unit in ("kB", "MB", "GB"):
        value /= 1000
        if value < 999.95:
            return f"{value:.1f} {unit}"
    return f"{value / 1000:.1f} TB"


def counted(number: int, singular: str, plural: str) -> str:
    """A number and what is counted, such as ``1 key``."""
    return f"{number} {singular if number == 1 else plural}"


def age_text(seconds: float) -> str:
    """An age for people, such as ``3 h``."""
    for limit, unit, text in ((120, 1, "s"), (7200, 60, "min"), (172800, 3600, "h")):
        if seconds < limit:
            return f"{max(0, int(seconds // unit))} {text}"
    return f"{int(seconds // 86400)} d"
