"""Reading directory trees through descriptors: links are never followed, every byte is hashed once.

A tree is enumerated as it stands on the disk; no path that a file claims is ever opened.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pypto.jit.artifact_cache.manifest import FileRecord
from pypto.jit.artifact_cache.spec import check_relative_path

_CHUNK = 1 << 20
_MAX_DEPTH = 64


class TreeError(ValueError):
    """A tree has a form that no artifact has; the message names the path."""


@dataclass(frozen=True)
class Tree:
    """Files of a directory, sorted by path, and their bytes when asked for."""

    files: tuple[FileRecord, ...]
    payload: Mapping[str, bytes] | None


def open_directory(path: str | os.PathLike[str]) -> int:
    """Descriptor of a directory by its path."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def open_child(parent: int, name: str) -> int:
    """Descriptor of a directory inside another.

    Raises:
        TreeError: a link, or no directory.
        OSError: absent or not readable.
    """
    try:
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise TreeError(f"{name}: not a directory (links are not followed)") from None
        raise


@contextmanager
def directory_below(path: str | os.PathLike[str], parts: Sequence[str]) -> Iterator[int]:
    """Descriptor of `path`/`parts`, where no part may be a link; raises as `open_child`."""
    descriptor = open_directory(path)
    try:
        for part in parts:
            child = open_child(descriptor, part)
            os.close(descriptor)
            descriptor = child
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def file_below(directory: int, relative: str) -> Iterator[tuple[int, os.stat_result]]:
    """Descriptor and status of a regular file inside a directory; neither it nor a folder above may be a link."""
    *folders, name = relative.split("/")
    opened = os.dup(directory)
    try:
        for folder in folders:
            child = open_child(opened, folder)
            os.close(opened)
            opened = child
        descriptor = _open_file(opened, name, relative)
    finally:
        os.close(opened)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise TreeError(f"{relative}: not a regular file")
        yield descriptor, status
    finally:
        os.close(descriptor)


def scan_tree(directory: int, *, skip: str | None = None, keep: bool = False) -> Tree:
    """Read and hash every file below a directory.

    Args:
        skip: name at the top level that is not part of the tree.
        keep: whether to keep the bytes that were hashed.

    Raises:
        TreeError: a link, a special file, an unsafe name, too deep nesting, or a file that changed while it was read.
        OSError: something cannot be read.
    """
    files: list[FileRecord] = []
    payload: dict[str, bytes] | None = {} if keep else None
    _scan(directory, "", skip, files, payload, 0)
    return Tree(tuple(sorted(files, key=lambda file: file.path)), payload)


def read_bounded(directory: int, name: str, limit: int) -> bytes:
    """Bytes of a small file at the top of a directory; at most `limit` + 1 of them are read."""
    with file_below(directory, name) as (descriptor, _):
        return read_exactly(descriptor, limit + 1)


def read_exactly(descriptor: int, limit: int) -> bytes:
    """At most `limit` bytes from the start of a file's remaining content."""
    parts = []
    while limit > 0 and (chunk := os.read(descriptor, min(limit, _CHUNK))):
        parts.append(chunk)
        limit -= len(chunk)
    return b"".join(parts)


def _scan(
    directory: int,
    prefix: str,
    skip: str | None,
    files: list[FileRecord],
    payload: dict[str, bytes] | None,
    depth: int,
) -> None:
    if depth > _MAX_DEPTH:
        raise TreeError(f"{prefix}: nested deeper than {_MAX_DEPTH} folders")
    for name in sorted(os.listdir(directory)):
        if name == skip:
            continue
        relative = prefix + name
        try:
            check_relative_path(relative)
        except ValueError as error:
            raise TreeError(str(error)) from None
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            child = open_child(directory, name)
            try:
                _scan(child, relative + "/", None, files, payload, depth + 1)
            finally:
                os.close(child)
        elif stat.S_ISREG(mode):
            files.append(_read_file(directory, name, relative, payload))
        else:
            kind = "a symbolic link" if stat.S_ISLNK(mode) else "a special file"
            raise TreeError(f"{relative}: {kind}; only regular files and directories are allowed")


def _read_file(directory: int, name: str, relative: str, payload: dict[str, bytes] | None) -> FileRecord:
    with file_below(directory, name) as (descriptor, before):
        digest = hashlib.sha256()
        size = 0
        parts = []
        while chunk := os.read(descriptor, _CHUNK):
            digest.update(chunk)
            size += len(chunk)
            if payload is not None:
                parts.append(chunk)
        after = os.fstat(descriptor)
    if size != before.st_size or (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise TreeError(f"{relative}: the file changed while it was being read")
    if payload is not None:
        payload[relative] = parts[0] if len(parts) == 1 else b"".join(parts)
    return FileRecord(relative, size, digest.hexdigest(), bool(before.st_mode & stat.S_IXUSR))


def _open_file(directory: int, name: str, relative: str) -> int:
    # O_NONBLOCK: a FIFO that took the file's place must not block the reader.
    try:
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise TreeError(f"{relative}: not a regular file (links are not followed)") from None
        raise
