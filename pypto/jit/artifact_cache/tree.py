"""Reading directory trees through descriptors: links are never followed, every byte is hashed once.

A tree is enumerated as it stands on the disk; no path that a file claims is ever opened. Names are UTF-8 whatever the
process's locale says.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter

from pypto.jit.artifact_cache.manifest import FileRecord

_CHUNK = 1 << 20
_MAX_DEPTH = 64
_NAME = attrgetter("name")
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# O_NONBLOCK: a FIFO that took the file's place must not block the reader.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_Sizes = Callable[[], Mapping[str, int]]


class TreeError(ValueError):
    """A tree has a form that no artifact has; the message names the path."""


@dataclass(frozen=True)
class Tree:
    """Files of a directory, sorted by path, and their bytes when asked for."""

    files: tuple[FileRecord, ...]
    payload: Mapping[str, bytes] | None


def close(descriptor: int) -> None:
    """Close what was read, or synced before; an error of closing says nothing about it and is not raised."""
    try:  # noqa: SIM105 - a hit closes a dozen descriptors, and contextlib.suppress costs more than closing
        os.close(descriptor)
    except OSError:
        pass


def open_directory(path: str | os.PathLike[str]) -> int:
    """Descriptor of a directory by its path."""
    return os.open(path, _DIRECTORY)


def open_child(parent: int, name: str | bytes) -> int:
    """Descriptor of a directory inside another.

    Raises:
        TreeError: a link, or no directory.
        OSError: absent or not readable.
    """
    try:
        return os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise TreeError(f"{os.fsdecode(name)}: not a directory (links are not followed)") from None
        raise


def descend(directory: int, names: Sequence[str | bytes]) -> int:
    """Descriptor of the directory that `names` lead to, and `directory` is closed; raises as `open_child`."""
    try:
        for name in names:
            child = open_child(directory, name)
            close(directory)
            directory = child
    except BaseException:
        close(directory)
        raise
    return directory


@contextmanager
def directory_below(path: str | os.PathLike[str], parts: Sequence[str]) -> Iterator[int]:
    """Descriptor of `path`/`parts`, where no part may be a link; raises as `open_child`."""
    descriptor = descend(open_directory(path), parts)
    try:
        yield descriptor
    finally:
        close(descriptor)


@contextmanager
def file_below(directory: int, relative: str) -> Iterator[tuple[int, os.stat_result]]:
    """Descriptor and status of a regular file inside a directory; neither it nor a folder above may be a link.

    Raises:
        TreeError: something else than a regular file, or a link on the way.
        OSError: absent or not readable.
    """
    *folders, name = relative.encode("utf-8").split(b"/")
    if folders:
        opened = descend(os.dup(directory), folders)
        try:
            descriptor = _open_file(opened, name, relative)
        finally:
            close(opened)
    else:
        descriptor = _open_file(directory, name, relative)
    try:
        yield descriptor, _regular(descriptor, relative)
    finally:
        close(descriptor)


def scan_tree(directory: int, *, skip: str | None = None, keep: bool = False, expected: _Sizes | None = None) -> Tree:
    """Read and hash every file below a directory.

    Args:
        skip: name at the top level that is not part of the tree.
        keep: whether to keep the bytes that were hashed.
        expected: sizes by path. Asked for only when there is a large file, which is not read if its size is another.

    Raises:
        TreeError: a link, a special file, an unsafe name, too deep nesting, or a file that changed while it was read.
        OSError: something cannot be read.
    """
    scan = _Scan({} if keep else None, expected)
    scan.folder(directory, "", skip, 0)
    scan.files.sort(key=lambda file: file.path)
    return Tree(tuple(scan.files), scan.payload)


def read_bounded(directory: int, name: str, limit: int) -> bytes:
    """Bytes of a small file at the top of a directory; at most `limit` + 1 of them are read."""
    with file_below(directory, name) as (descriptor, status):
        return read_exactly(descriptor, min(status.st_size, limit) + 1)


def read_exactly(descriptor: int, limit: int) -> bytes:
    """At most `limit` bytes from the start of a file's remaining content."""
    parts = []
    while limit > 0 and (chunk := os.read(descriptor, min(limit, _CHUNK))):
        parts.append(chunk)
        limit -= len(chunk)
    return parts[0] if len(parts) == 1 else b"".join(parts)


class _Scan:
    """What one scan has found so far."""

    def __init__(self, payload: dict[str, bytes] | None, expected: _Sizes | None) -> None:
        self.files: list[FileRecord] = []
        self.payload = payload
        self.expected = expected

    def folder(self, directory: int, prefix: str, skip: str | None, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise TreeError(f"{prefix}: nested deeper than {_MAX_DEPTH} folders")
        with os.scandir(directory) as listing:
            entries = sorted(listing, key=_NAME)
        for entry in entries:
            if entry.name == skip:
                continue
            # ASCII names are the same bytes in every locale.
            name = entry.name if entry.name.isascii() else os.fsencode(entry.name)
            relative = prefix + _checked_name(name, prefix)
            if entry.is_file(follow_symlinks=False):
                self.file(directory, name, relative)
            elif entry.is_dir(follow_symlinks=False):
                child = open_child(directory, name)
                try:
                    self.folder(child, relative + "/", None, depth + 1)
                finally:
                    close(child)
            else:
                kind = "a symbolic link" if entry.is_symlink() else "a special file"
                raise TreeError(f"{relative}: {kind}; only regular files and directories are allowed")

    def file(self, directory: int, name: str | bytes, relative: str) -> None:
        descriptor = _open_file(directory, name, relative)
        try:
            status = _regular(descriptor, relative)
            size = status.st_size
            if size > _CHUNK:
                digest, data = self.large(descriptor, size, relative)
            else:
                # One byte more than the size: a short read is the end of the file, and no second call is needed.
                data = os.read(descriptor, size + 1)
                if len(data) != size:
                    data += read_exactly(descriptor, size + 1 - len(data))
                if len(data) != size:
                    raise _changed(relative)
                digest = hashlib.sha256(data).hexdigest()
        finally:
            close(descriptor)
        if self.payload is not None:
            self.payload[relative] = data
        self.files.append(FileRecord(relative, size, digest, bool(status.st_mode & stat.S_IXUSR)))

    def large(self, descriptor: int, size: int, relative: str) -> tuple[str, bytes]:
        """Digest and, when they are kept, bytes of a file that is hashed in pieces."""
        if self.expected is not None:
            stated = self.expected().get(relative)
            if stated != size:
                raise TreeError(f"{relative}: {size} bytes, the manifest says {stated}")
        digest = hashlib.sha256()
        parts = []
        left = size + 1
        while left > 0 and (chunk := os.read(descriptor, min(left, _CHUNK))):
            digest.update(chunk)
            left -= len(chunk)
            if self.payload is not None:
                parts.append(chunk)
        if left != 1:
            raise _changed(relative)
        return digest.hexdigest(), b"".join(parts)


def _changed(relative: str) -> TreeError:
    return TreeError(f"{relative}: the file changed while it was being read")


def _checked_name(name: str | bytes, prefix: str) -> str:
    try:
        text = name if isinstance(name, str) else name.decode("utf-8")
    except UnicodeDecodeError:
        raise TreeError(f"{prefix}{name!r}: an artifact's paths must be UTF-8") from None
    if "\\" in text:
        raise TreeError(f"{prefix}{text}: backslashes are not allowed in an artifact's paths")
    return text


def _regular(descriptor: int, relative: str) -> os.stat_result:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise TreeError(f"{relative}: not a regular file")
    return status


def _open_file(directory: int, name: str | bytes, relative: str) -> int:
    try:
        return os.open(name, _FILE, dir_fd=directory)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise TreeError(f"{relative}: not a regular file (links are not followed)") from None
        raise
