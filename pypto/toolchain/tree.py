"""Writing the folder of one tool set: regular files only, fixed modes, one digest over all of it.

Links are left out on purpose: sandboxes, caches and remote machines turn them into copies, and what a tool finds would
depend on who copied.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pypto._identity.records import digest_record
from pypto.toolchain import elf
from pypto.toolchain.descriptor import SET_FILE, ToolFile
from pypto.toolchain.errors import UnpackError


class Tree:
    """Files written below `root`, with their evidence."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._listing: dict[str, tuple[bool, str, int]] = {}
        self._build_ids: dict[str, str | None] = {}

    def add(self, path: str, data: bytes, executable: bool = False) -> None:
        """Write one file; `path` is relative with forward slashes."""
        if path in self._listing:
            raise UnpackError(f"two files want to be {path}")
        target = self._root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(target, "xb") as file:
            file.write(data)
            os.fchmod(file.fileno(), 0o755 if executable else 0o644)
        self._listing[path] = (executable, hashlib.sha256(data).hexdigest(), len(data))
        if elf.is_elf(data) and executable:
            self._build_ids[path] = elf.build_id(data)

    def __contains__(self, path: object) -> bool:
        return path in self._listing

    def tool(self, path: str) -> ToolFile:
        """Evidence of one program of the tree.

        Raises:
            UnpackError: the tree holds no such file.
        """
        if path not in self._listing:
            raise UnpackError(f"the set lacks {path}")
        return ToolFile(path, self._listing[path][1], self._build_ids.get(path))

    def sha256(self, path: str) -> str:
        return self._listing[path][1]

    @property
    def files(self) -> int:
        return len(self._listing)

    @property
    def size(self) -> int:
        return sum(size for _, _, size in self._listing.values())

    @property
    def digest(self) -> str:
        return listing_digest((path, run, sha) for path, (run, sha, _) in self._listing.items())


def measure(root: Path) -> tuple[str, int, int]:
    """Digest, number of files and bytes of a tree on disk, read anew; the set's own record is left out.

    Follows links, as a sandbox makes them. The executable bit is the owner's.

    Raises:
        OSError: a file or folder cannot be read.
        UnpackError: something that is neither a file nor a folder, or a folder that contains itself by a link.
    """
    found = list(_read(root))
    return listing_digest((f.path, f.executable, f.sha256) for f in found), len(found), sum(f.size for f in found)


def content_digest(root: Path) -> str:
    """Digest of the paths and bytes of a tree on disk, read anew; raises as `measure`.

    Modes do not count: a remote machine marks every file as executable.
    """
    return digest_record([[f.path, f.sha256] for f in _read(root)])


class _File(NamedTuple):
    path: str
    executable: bool
    sha256: str
    size: int


def _read(root: Path) -> Iterator[_File]:
    """All files but the set's record, sorted by path."""
    names = sorted(name for name in _walk(os.fspath(root), "", ()) if name != SET_FILE)
    # Imported here, since a request that reads no tools needs no threads.
    from concurrent.futures import ThreadPoolExecutor

    # Hashing leaves the interpreter's lock, so a few threads share it.
    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        yield from pool.map(lambda name: _hash(root, name), names)


def _hash(root: Path, name: str) -> _File:
    # Not blocking, should a FIFO have taken the file's place.
    descriptor = os.open(os.path.join(root, name), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(descriptor, "rb", buffering=0) as file:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            raise UnpackError(f"{os.path.join(root, name)} is not a regular file")
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        after = os.fstat(descriptor)
    if _state(before) != _state(after):
        raise UnpackError(f"{os.path.join(root, name)} changed while it was being read")
    return _File(name, bool(after.st_mode & 0o100), digest, after.st_size)


def _state(at: os.stat_result) -> tuple[int, int, int]:
    return at.st_size, at.st_mtime_ns, at.st_ctime_ns


def _walk(folder: str, relative: str, parents: tuple[tuple[int, int], ...]) -> Iterator[str]:
    at = os.stat(folder)
    if (at.st_dev, at.st_ino) in parents:
        raise UnpackError(f"{folder} contains itself by a link")
    with os.scandir(folder) as entries:
        for entry in entries:
            below = f"{relative}/{entry.name}" if relative else entry.name
            if entry.is_dir():
                yield from _walk(entry.path, below, (*parents, (at.st_dev, at.st_ino)))
            else:
                yield below


def listing_digest(entries: Iterable[tuple[str, bool, str]]) -> str:
    """Digest of files given as path, executable bit and SHA-256, in any order."""
    return digest_record([list(entry) for entry in sorted(entries)])
