"""What a file of an artifact is, by its name alone."""

from __future__ import annotations


def is_executable(path: str) -> bool:
    """The executable bit that a file has by its role, whatever the umask: shared objects, nothing else."""
    return path.endswith(".so")
