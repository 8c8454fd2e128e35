"""What a process has started and keeps open."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def children() -> set[int]:
    """Processes whose parent is this one, ended ones that nobody waited for included."""
    found = set()
    for task in os.listdir("/proc/self/task"):
        found |= {int(child) for child in Path(f"/proc/self/task/{task}/children").read_text().split()}
    return found


def memories(process: int | str = "self") -> set[str]:
    """Descriptors of a process for memory that has no name, or one in a folder."""
    found = set()
    for descriptor in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(OSError):
            target = os.readlink(descriptor)
            if target.startswith(("/memfd:", "/dev/shm")):
                found.add(f"{descriptor.name} {target}")
    return found
