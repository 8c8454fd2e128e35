"""Digests of files and directories: raw bytes with the paths they stand at.

Metadata (times, modes, owners) never enters; it only shows that a file changed while it was being read. Whatever cannot
be read completely has no digest but a reason: never an empty file, never an omitted one.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pypto._identity.records import digest_record

_CONTENT_SCHEMA = 1
_CHUNK = 1 << 20
_EXCLUDED_NAMES = frozenset({".git", "__pycache__"})
_EXCLUDED_SUFFIXES = (".pyc", ".pyo")


@dataclass(frozen=True)
class ContentRoot:
    """A file or directory, by its absolute path at the time of construction. `..` is kept for the file system."""

    path: str

    def __init__(self, path: str | os.PathLike[str]) -> None:
        text = os.fspath(path)
        if not text:
            raise ValueError("a content root needs a path")
        object.__setattr__(self, "path", text if os.path.isabs(text) else os.path.join(os.getcwd(), text))


@dataclass(frozen=True)
class Fingerprint:
    """A digest, or the reason why there is none: exactly one of the two."""

    digest: str | None
    reason: str | None = None

    def __post_init__(self) -> None:
        if (self.digest is None) == (self.reason is None):
            raise ValueError("a fingerprint has either a digest or a reason")


class _Unavailable(Exception):
    """An input cannot be read completely; the message names it."""


def fingerprint_content(sources: Iterable[ContentRoot | str | os.PathLike[str]]) -> Fingerprint:
    """Fingerprint of files and whole directories of an installation, in the order given.

    Excluded inside directories: `.git`, `__pycache__`, `.pyc` and `.pyo`. An empty list or an empty root directory has
    no digest: an installation's list of inputs must not be empty.
    """
    roots = _roots(sources)
    if not roots:
        return Fingerprint(None, "the list of inputs is empty")
    return _fingerprint(roots, "content", None, True)


def fingerprint_extra_sources(sources: Iterable[ContentRoot | str | os.PathLike[str]]) -> Fingerprint:
    """Fingerprint of an application's own sources, read anew at every call.

    A file counts whatever it is called; of a directory only the Python sources (`.py`) count. May be empty.
    """
    return _fingerprint(_roots(sources), "extra-sources", _is_python_source, False)


def _roots(sources: Iterable[ContentRoot | str | os.PathLike[str]]) -> tuple[ContentRoot, ...]:
    return tuple(item if isinstance(item, ContentRoot) else ContentRoot(item) for item in sources)


def _is_python_source(name: str) -> bool:
    return name.endswith(".py")


def _fingerprint(
    roots: tuple[ContentRoot, ...], kind: str, wanted: Callable[[str], bool] | None, required: bool
) -> Fingerprint:
    try:
        records = []
        for root in roots:
            entries: list[Any] = []
            _add(root.path, "", entries, (), wanted)
            if required and len(entries) == 1 and entries[0][0] == "directory":
                raise _Unavailable(f"{root.path}: the directory is empty")
            records.append([root.path, entries])
        return Fingerprint(digest_record({"schema": _CONTENT_SCHEMA, "kind": kind, "roots": records}))
    except _Unavailable as error:
        return Fingerprint(None, str(error))
    except (OSError, RecursionError) as error:
        return Fingerprint(None, f"cannot be read: {error}")


def _add(
    path: str,
    relative: str,
    entries: list[Any],
    parents: tuple[tuple[int, int], ...],
    wanted: Callable[[str], bool] | None,
) -> None:
    status = os.lstat(path)
    target: str | None = None
    if stat.S_ISLNK(status.st_mode):
        try:
            target = os.path.realpath(path, strict=True)
            status = os.stat(path)
        except OSError as error:
            raise _Unavailable(f"{path}: the link cannot be followed: {error.strerror}") from None
    if stat.S_ISDIR(status.st_mode):
        # Of an application's sources only files count, so that a new empty folder is no new source.
        if wanted is None or target is not None or not relative:
            entries.append(["directory", relative, target])
        _add_directory(path, relative, entries, parents, (status.st_dev, status.st_ino), wanted)
    elif wanted is not None and relative and not wanted(os.path.basename(relative)):
        return
    elif stat.S_ISREG(status.st_mode):
        entries.append(["file", relative, target, _hash_file(path, status)])
    else:
        raise _Unavailable(f"{path}: neither a regular file nor a directory")


def _add_directory(
    path: str,
    relative: str,
    entries: list[Any],
    parents: tuple[tuple[int, int], ...],
    identity: tuple[int, int],
    wanted: Callable[[str], bool] | None,
) -> None:
    if identity in parents:
        raise _Unavailable(f"{path}: the directory contains itself by a link")
    names = sorted(os.listdir(path))
    for name in names:
        if name in _EXCLUDED_NAMES or name.endswith(_EXCLUDED_SUFFIXES):
            continue
        below = f"{relative}/{name}" if relative else name
        _add(os.path.join(path, name), below, entries, (*parents, identity), wanted)
    if sorted(os.listdir(path)) != names:
        raise _Unavailable(f"{path}: the directory changed while it was being read")


def _hash_file(path: str, expected: os.stat_result) -> str:
    # Not blocking: a FIFO may have taken the file's place since it was examined.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        before = os.fstat(descriptor)
        digest = hashlib.sha256()
        size = 0
        while chunk := os.read(descriptor, _CHUNK):
            digest.update(chunk)
            size += len(chunk)
        after = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    states = {_state(expected), _state(before), _state(after), _state(os.stat(path))}
    if len(states) != 1 or size != after.st_size:
        raise _Unavailable(f"{path}: the file changed while it was being read")
    return digest.hexdigest()


def _state(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
