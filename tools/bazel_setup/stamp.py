"""Is the private prefix there, and is it the one this version of the recipe writes?"""

from __future__ import annotations

import json
import os
from typing import Any

RECIPE = 9
"""Counts layouts of the prefix. It is part of the folder's name, so that checkouts of different age, which
share the cache, do not replace one another's Bazel."""
SUITE = "forky"
"""The Debian suite that carries a Bazel 7.7. Packages of a newer suite than the machine's are fine: they are
unpacked with their own C library, never installed."""


def default_prefix(cache: str) -> str:
    return os.path.join(cache, f"debian-{SUITE}-{RECIPE}")


def read(folder: str) -> dict[str, Any] | None:
    """The record of a finished prefix, or None. It is written last, so its presence means complete."""
    try:
        with open(os.path.join(folder, "complete.json"), encoding="utf-8") as file:
            record = json.load(file)
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) else None


def is_complete(folder: str, suite: str | None = None) -> bool:
    """Is there a finished prefix (from that suite, if one is named)?

    The folder must be the one it was written for: programs in it hold its absolute path.
    """
    record = read(folder)
    return (
        record is not None
        and record.get("recipe") == RECIPE
        and record.get("prefix") == folder
        and suite in (None, record.get("suite"))
    )
