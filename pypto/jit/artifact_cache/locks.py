"""One lock per key, held across processes while a key is built and published."""

from __future__ import annotations

import fcntl
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pypto.jit.artifact_cache.tree import TreeError, open_directory
from pypto.jit.artifact_cache.write import make_directory

_held = threading.local()


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
    try:
        yield
    finally:
        held.discard(name)
        # Closing the only descriptor of this open file releases the lock.
        os.close(descriptor)


def _take(root: Path, key_digest: str) -> int:
    os.makedirs(root, exist_ok=True)
    parent = open_directory(root)
    try:
        locks = make_directory(parent, "locks")
    finally:
        os.close(parent)
    name = f"{key_digest}.lock"
    try:
        while True:
            descriptor = os.open(
                name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600, dir_fd=locks
            )
            try:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise TreeError("not a regular file")
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if _is_current(descriptor, name, locks):
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            # Offline cleaning removed the file while we waited: everyone else now meets at the new one.
            os.close(descriptor)
    finally:
        os.close(locks)


def _is_current(descriptor: int, name: str, directory: int) -> bool:
    try:
        present = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(present, os.fstat(descriptor))
