"""Locks that a forked child finds free, whoever held them in its parent."""

from __future__ import annotations

import os
import threading
import weakref


class ForkSafeLock:
    """A lock for state that is complete at every moment: a child may go on with what its parent had when it forked."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _all.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_error: object) -> None:
        self._lock.release()

    def _renew(self) -> None:
        self._lock = threading.Lock()


_all: weakref.WeakSet[ForkSafeLock] = weakref.WeakSet()


def _renew_all() -> None:
    for lock in list(_all):
        lock._renew()


os.register_at_fork(after_in_child=_renew_all)
