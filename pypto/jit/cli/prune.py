"""``prune``: remove entries of a cache that no process uses."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pypto.jit.cli.entries import Contents, StoredEntry, existing_root
from pypto.jit.cli.errors import CommandError
from pypto.jit.cli.inspect_root import invalid_entries
from pypto.jit.cli.output import counted, print_json, size_text
from pypto.jit.records import RECORDS, record_names


@dataclass(frozen=True)
class Selection:
    """Which entries to remove: all that any of the criteria names.

    Attributes:
        older_than: age in seconds since publication.
        max_bytes: remove the oldest keys until the rest fits.
        environments: beginnings of environment digests.
        invalid: entries whose manifest or bytes are wrong, links and files in place of folders, and what processes
            that died left over.
    """

    older_than: float | None = None
    max_bytes: int | None = None
    environments: tuple[str, ...] = ()
    invalid: bool = False

    @property
    def empty(self) -> bool:
        """Whether no criterion was given."""
        return self == Selection()


def prune(root: Path, selection: Selection, *, dry_run: bool, remove_locks: bool, as_json: bool) -> int:
    """Remove what the selection names; returns the exit status.

    Raises:
        CommandError: there is no such root, nothing is selected, a lock is held, or the root cannot be changed.
    """
    if selection.empty and not remove_locks:
        raise CommandError("name what to remove: --older-than, --max-bytes, --environment, --invalid or --remove-locks")
    with _all_locks(root) as locks:
        contents = existing_root(root)
        selected = _selected(contents, selection)
        leftovers = (*contents.leftovers, *contents.blocked) if selection.invalid else ()
        left = [entry for entry in contents.entries if entry not in selected]
        unused = [name for name in locks if name.removesuffix(".lock") not in {entry.key for entry in left}]
        removed_locks = unused if remove_locks else []
        if not dry_run:
            try:
                _remove(root, selected, leftovers, removed_locks)
                _drop_records(root, left)
            except OSError as error:
                refused = isinstance(error, PermissionError)
                hint = f"; a cache that was made read-only for sharing needs chmod -R u+w {root}" if refused else ""
                raise CommandError(f"{error.filename} cannot be removed: {error.strerror}{hint}") from None
    if as_json:
        print_json(
            {
                "schema_version": 1,
                "root": str(root),
                "dry_run": dry_run,
                "removed": [entry.path for entry in selected],
                "removed_bytes": sum(entry.size for entry in selected),
                "leftovers": list(leftovers),
                "locks": removed_locks,
                "left": len(left),
                "left_bytes": sum(entry.size for entry in left),
            }
        )
        return 0
    verb = "would remove" if dry_run else "removed"
    for entry in selected:
        print(f"{verb} {entry.path} ({size_text(entry.size)})")
    for path in leftovers:
        print(f"{verb} {path}")
    for name in removed_locks:
        print(f"{verb} locks/{name}")
    number = counted(len(selected), "entry", "entries")
    size = size_text(sum(entry.size for entry in selected))
    print(f"{root}: {verb} {number}, {size}; {counted(len(left), 'entry stays', 'entries stay')}")
    return 0


@contextmanager
def _all_locks(root: Path) -> Iterator[list[str]]:
    """Hold every lock of a root, so that nobody who takes locks is at work; gives the names of the lock files.

    Raises:
        CommandError: one is held, or cannot be taken.
    """
    folder = root / "locks"
    descriptors: list[int] = []
    names = sorted(os.listdir(folder)) if folder.is_dir() and not folder.is_symlink() else []
    try:
        for name in names:
            try:
                descriptor = os.open(folder / name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError as error:
                raise CommandError(f"the lock {folder / name} cannot be opened: {error.strerror}") from None
            descriptors.append(descriptor)
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise CommandError(f"{folder / name} is no lock file")
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise CommandError(
                    f"a process holds the lock {folder / name}: stop every process that uses the cache, then prune"
                ) from None
        yield names
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _selected(contents: Contents, selection: Selection) -> list[StoredEntry]:
    chosen: set[str] = set()
    now = time.time()
    for entry in contents.entries:
        old = selection.older_than is not None and now - entry.published > selection.older_than
        if old or any(entry.environment.startswith(prefix) for prefix in selection.environments):
            chosen.add(entry.path)
    if selection.invalid:
        chosen.update(entry.path for entry in invalid_entries(contents.root, contents.entries))
    if selection.max_bytes is not None:
        chosen.update(_over(contents.entries, chosen, selection.max_bytes))
    return [entry for entry in contents.entries if entry.path in chosen]


def _over(entries: Iterable[StoredEntry], chosen: set[str], limit: int) -> set[str]:
    """Paths of the oldest keys whose removal brings what is left down to the limit; a key goes as a whole."""
    keys: dict[str, list[StoredEntry]] = {}
    for entry in entries:
        if entry.path not in chosen:
            keys.setdefault(entry.key, []).append(entry)
    size = sum(entry.size for found in keys.values() for entry in found)
    more: set[str] = set()
    for found in sorted(keys.values(), key=lambda of: (max(e.published for e in of), of[0].key)):
        if size <= limit:
            break
        more.update(entry.path for entry in found)
        size -= sum(entry.size for entry in found)
    return more


def _remove(root: Path, entries: Iterable[StoredEntry], leftovers: Iterable[str], locks: Iterable[str]) -> None:
    for entry in entries:
        _remove_folder(root, entry.path)
    for path in leftovers:
        _remove_folder(root, path)
    # Last, and only those whose key has nothing left: a lock file of a key in use is where its builders meet.
    for name in locks:
        (root / "locks" / name).unlink()


def _remove_folder(root: Path, path: str) -> None:
    folder = root / path
    if not stat.S_ISDIR(folder.lstat().st_mode):
        # Never through a link: what it leads to is not ours.
        folder.unlink()
        return
    # First out of the way in one step, so that an interrupted removal leaves no damaged entry.
    aside = folder.with_name(f".tmp.removed-{folder.name.removeprefix('.tmp.')}-{os.getpid()}")
    os.chmod(folder, 0o700)
    os.rename(folder, aside)
    for directory, folders, _ in os.walk(aside):
        for name in folders:
            below = Path(directory, name)
            if not below.is_symlink():
                below.chmod(0o700)
    shutil.rmtree(aside)
    for parent in folder.parents[:3]:
        with contextlib.suppress(OSError):
            parent.rmdir()


def _drop_records(root: Path, left: Iterable[StoredEntry]) -> None:
    manifests = [entry.manifest for entry in left]
    if None in manifests:
        return
    used = record_names(root, [manifest.key for manifest in manifests if manifest is not None])
    folder = root / RECORDS
    for name in sorted(os.listdir(folder)) if folder.is_dir() else []:
        if name.removesuffix(".json") not in used:
            (folder / name).unlink()
