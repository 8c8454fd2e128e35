"""Progress on standard error: one line that rewrites itself on a terminal, now and then a line otherwise."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

_PLAIN_INTERVAL = 5.0


def say(message: str) -> None:
    """Print one line of progress."""
    print(f"pypto: {message}", file=sys.stderr, flush=True)


def megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


class Progress:
    """Counts bytes of one piece of work, such as "downloading gcc"."""

    def __init__(self, label: str, total: int) -> None:
        self._label = label
        self._total = total
        self._start = self._shown = time.monotonic()
        self._tty = sys.stderr.isatty()

    def __enter__(self) -> Progress:
        if not self._tty:
            say(f"{self._label}, {megabytes(self._total)}")
        self.update(0)
        return self

    def update(self, done: int) -> None:
        now = time.monotonic()
        # For a moment a package client holds what it fetched twice.
        done = min(done, self._total)
        if self._tty:
            percent = done * 100 // max(1, self._total)
            text = f"pypto: {self._label}: {megabytes(done)} of {megabytes(self._total)} ({percent}%)"
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        elif now - self._shown >= _PLAIN_INTERVAL:
            self._shown = now
            say(f"{self._label}: {megabytes(done)} of {megabytes(self._total)}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._tty:
            print("\r\x1b[K", end="", file=sys.stderr)
        if kind is None:
            say(f"{self._label}: done, {megabytes(self._total)} in {time.monotonic() - self._start:.1f} s")


def folder_size(folders: Iterable[Path]) -> int:
    """Bytes of all files below the folders, while another process may be changing them."""
    total = 0
    for folder in folders:
        for base, _, names in os.walk(folder):
            for name in names:
                with contextlib.suppress(OSError):
                    total += os.lstat(os.path.join(base, name)).st_size
    return total
