"""One lock per key, held across processes while a key is built and published.

A lock belongs to the process that took it. A child that a builder forks gives up its copy at once, so it neither keeps
the lock when its parent dies nor frees it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pypto.jit.artifact_cache.tree import TreeError, close
from pypto.jit.artifact_cache.write import make_directory, make_root

_held = threading.local()
_descriptors: set[int] = set()
# Held while a descriptor is open and not yet in the set, so that no fork falls in between.
_opening = threading.Lock()


class LockUnavailable(Exception):
    """The key's lock cannot be opened or taken; the message says why."""


@contextmanager
def key_lock(root: Path, key_digest: str) -> Iterator[None]:
    """Hold the exclusive lock of one key; waits as long as another holder needs. The lock file is never removed.

    Raises:
        LockUnavailable: the lock file cannot be made, opened or locked.
        RuntimeError: this thread holds the lock already, so waiting would never end.
    """
    held: set[tuple[str, str]] = _held.__dict__.setdefault("keys", set())
    name = (str(root), key_digest)
    if name in held:
        raise RuntimeError(f"a builder must not ask for its own key again: {key_digest}")
    try:
        descriptor = _take(root, key_digest)
    except (OSError, TreeError) as error:
        raise LockUnavailable(f"{root}/locks/{key_digest}.lock: {error}") from None
    held.add(name)
    owner = os.getpid()
    try:
        yield
    finally:
        if os.getpid() == owner:
            held.discard(name)
            _release(descriptor)


def _take(root: Path, key_digest: str) -> int:
    parent = make_root(root)
    try:
        locks = make_directory(parent, "locks")
    finally:
        close(parent)
    name = f"{key_digest}.lock"
    try:
        while True:
            descriptor = _open(name, locks)
            try:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise TreeError("not a regular file")
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if _is_current(descriptor, name, locks):
                    return descriptor
            except BaseException:
                _release(descriptor)
                raise
            # Offline cleaning removed the file while we waited: everyone else now meets at the new one.
            _release(descriptor)
    finally:
        close(locks)


def _open(name: str, locks: int) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with _opening:
        descriptor = os.open(name, flags, 0o600, dir_fd=locks)
        _descriptors.add(descriptor)
    return descriptor


def _release(descriptor: int) -> None:
    # Unlocked by name: a copy in a process that was forked without Python's knowledge would outlive closing.
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    with _opening:
        _descriptors.discard(descriptor)
        close(descriptor)


def _is_current(descriptor: int, name: str, directory: int) -> bool:
    try:
        present = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(present, os.fstat(descriptor))


def _give_up_in_child() -> None:
    global _opening
    _opening = threading.Lock()
    _held.__dict__.clear()
    for descriptor in _descriptors:
        close(descriptor)
    _descriptors.clear()


os.register_at_fork(
    before=lambda: _opening.acquire(), after_in_parent=lambda: _opening.release(), after_in_child=_give_up_in_child
)
