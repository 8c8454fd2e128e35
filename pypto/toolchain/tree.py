"""Writing the folder of one tool set: regular files only, fixed modes, one digest over all of it.

Links are left out on purpose: sandboxes, caches and remote machines turn them into copies, and what a tool finds would
depend on who copied.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

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
        return _digest((path, run, sha) for path, (run, sha, _) in self._listing.items())


def measure(root: Path) -> tuple[str, int, int]:
    """Digest, number of files and bytes of a tree on disk, read anew; the set's own record is left out.

    Follows links, as a sandbox makes them. The executable bit is the owner's.
    """
    entries = []
    size = 0
    for base, folders, names in os.walk(root, followlinks=True):
        folders.sort()
        for name in names:
            full = Path(base, name)
            path = full.relative_to(root).as_posix()
            if path == SET_FILE:
                continue
            data = full.read_bytes()
            size += len(data)
            entries.append((path, bool(full.stat().st_mode & 0o100), hashlib.sha256(data).hexdigest()))
    return _digest(entries), len(entries), size


def _digest(entries: Iterable[tuple[str, bool, str]]) -> str:
    return digest_record([list(entry) for entry in sorted(entries)])
