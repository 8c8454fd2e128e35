"""Files of a bundle as they lie on the disk: links are followed, modes ignored, nothing is written."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pypto.jit.artifact_cache.spec import check_relative_path
from pypto.jit.artifact_cache.tree import read_exactly

_MAX_DEPTH = 64


def list_files(directory: str | os.PathLike[str]) -> list[str]:
    """Relative paths of all regular files below a directory, sorted.

    Raises:
        ValueError: a special file, a link that leads nowhere or in a circle, or a name that no artifact has.
        OSError: a folder cannot be read.
    """
    found: list[str] = []
    _list(os.fspath(directory), "", found, 0)
    return sorted(found)


def read_file(directory: str | os.PathLike[str], relative: str, limit: int | None = None) -> bytes:
    """Bytes of one file, `limit` + 1 of them at most.

    Raises:
        ValueError: no regular file.
        OSError: absent or not readable.
    """
    path = Path(directory, relative)
    # O_NONBLOCK: a FIFO must not block the reader.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"{path} is not a regular file")
        return read_exactly(descriptor, (status.st_size if limit is None else limit) + 1)
    finally:
        os.close(descriptor)


def _list(directory: str, prefix: str, found: list[str], depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise ValueError(f"{directory} is nested deeper than {_MAX_DEPTH} folders, or contains itself by a link")
    for name in os.listdir(directory):
        path = os.path.join(directory, name)
        relative = check_relative_path(prefix + name)
        try:
            mode = os.stat(path).st_mode
        except FileNotFoundError:
            raise ValueError(f"{path} is a link that leads nowhere") from None
        if stat.S_ISDIR(mode):
            _list(path, relative + "/", found, depth + 1)
        elif stat.S_ISREG(mode):
            found.append(relative)
        else:
            raise ValueError(f"{path} is a special file; only files and folders are allowed")
