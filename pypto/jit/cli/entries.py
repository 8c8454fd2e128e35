"""All entries of a cache root, from their manifests alone: nothing is imported, locked, written or repaired."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pypto._identity.records import is_digest
from pypto.jit.artifact_cache.handle import entry_parts
from pypto.jit.artifact_cache.manifest import MARKER_LIMIT, MARKER_NAME, Manifest
from pypto.jit.artifact_cache.spec import ArtifactState
from pypto.jit.artifact_cache.tree import directory_below, read_bounded
from pypto.jit.cli.errors import CommandError, InputError

_STATES = frozenset(state.value for state in ArtifactState)


@dataclass(frozen=True)
class StoredEntry:
    """One entry, or what stands where an entry should be.

    Attributes:
        path: its directory, relative to the root.
        manifest: what it says it is; ``None`` when that cannot be read or belongs elsewhere.
        problem: why there is no manifest.
        published: when its marker was written, in seconds of the epoch; 0 without a marker.
    """

    path: str
    manifest: Manifest | None
    problem: str | None
    published: float

    @property
    def environment(self) -> str:
        """Digest of its environment."""
        return self.path.split("/")[1]

    @property
    def key(self) -> str:
        """Digest of its key."""
        return self.path.split("/")[2]

    @property
    def state(self) -> str:
        """``generated`` or ``ready``."""
        return self.path.split("/")[4]

    @cached_property
    def size(self) -> int:
        """Bytes of its files as its manifest says."""
        return 0 if self.manifest is None else sum(file.size for file in self.manifest.files)


@dataclass(frozen=True)
class Contents:
    """What a root holds.

    Attributes:
        entries: sorted by path.
        leftovers: staging folders of processes that died, relative to the root.
        strange: paths that are no part of a cache.
        blocked: links and files where a cache has folders, which make every lookup there invalid.
        locks: names of the lock files.
    """

    root: Path
    entries: tuple[StoredEntry, ...]
    leftovers: tuple[str, ...]
    strange: tuple[str, ...]
    blocked: tuple[str, ...]
    locks: tuple[str, ...]

    @property
    def problems(self) -> list[tuple[str, str]]:
        """(path, reason) of what its manifest or its form shows to be invalid."""
        found = [(entry.path, entry.problem) for entry in self.entries if entry.problem is not None]
        return sorted([*found, *((path, "a link or a file where a folder must be") for path in self.blocked)])


def existing_root(root: Path) -> Contents:
    """As `read_root`, for commands that are about what a root holds.

    Raises:
        InputError: there is no such directory.
    """
    contents = read_root(root)
    if not root.exists():
        raise InputError(f"there is no cache {root}: no such directory")
    return contents


def read_root(root: Path) -> Contents:
    """Read the manifests below a root. A root that does not exist is empty.

    Raises:
        CommandError: it is no directory (InputError), or cannot be read.
    """
    entries: list[StoredEntry] = []
    leftovers: list[str] = []
    strange: list[str] = []
    blocked: list[str] = []
    try:
        if root.exists() and not root.is_dir():
            raise InputError(f"{root} is not a directory")
        top = [name for name in ("artifacts", "locks") if _is_folder(root, name, blocked)]
        for slot in _slots(root, top, strange, blocked):
            for name, is_directory in _children(root / slot):
                path = f"{slot}/{name}"
                if name in _STATES and is_directory:
                    entries.append(_entry(root, path))
                elif name in _STATES:
                    blocked.append(path)
                else:
                    (leftovers if name.startswith(".tmp.") else strange).append(path)
        names = _children(root / "locks") if "locks" in top else []
        locks = tuple(name for name, _ in names if name.endswith(".lock"))
    except PermissionError as error:
        raise CommandError(f"{error.filename} cannot be read: {error.strerror}") from None
    return Contents(root, tuple(entries), tuple(leftovers), tuple(strange), tuple(blocked), locks)


def _is_folder(root: Path, name: str, blocked: list[str]) -> bool:
    try:
        if stat.S_ISDIR((root / name).lstat().st_mode):
            return True
    except (FileNotFoundError, NotADirectoryError):
        return False
    blocked.append(name)
    return False


def _slots(root: Path, top: list[str], strange: list[str], blocked: list[str]) -> Iterator[str]:
    level = ["artifacts"] if "artifacts" in top else []
    for _ in range(3):
        below: list[str] = []
        for folder in level:
            for name, is_directory in _children(root / folder):
                found = strange if not is_digest(name) else below if is_directory else blocked
                found.append(f"{folder}/{name}")
        level = below
    yield from level


def _children(folder: Path) -> list[tuple[str, bool]]:
    """Names in a folder, sorted, and whether each is a directory; links are not."""
    try:
        with os.scandir(folder) as found:
            return sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in found)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _entry(root: Path, path: str) -> StoredEntry:
    published = 0.0
    try:
        with directory_below(root, tuple(path.split("/"))) as directory:
            published = os.stat(MARKER_NAME, dir_fd=directory, follow_symlinks=False).st_mtime
            manifest = Manifest.decode(read_bounded(directory, MARKER_NAME, MARKER_LIMIT))
    except FileNotFoundError:
        return StoredEntry(path, None, f"{MARKER_NAME} is missing", published)
    except (OSError, ValueError) as error:
        return StoredEntry(path, None, str(error), published)
    if "/".join(entry_parts(manifest.key, manifest.spec)) != path:
        return StoredEntry(path, None, f"{MARKER_NAME} is that of another entry", published)
    return StoredEntry(path, manifest, None, published)
