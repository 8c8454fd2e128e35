"""What a build leaves behind when its process ends: nothing, whichever way it ends.

Private roots and tools are known here while they exist. SIGTERM ends the tools and removes what was made for the build
before it ends the process; where only other threads than the main one build, a watcher does that. Roots of a process
that had no chance (SIGKILL, power) are removed by the next one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Protocol, TypeVar

from pypto.toolchain.watcher import watcher


class _HasPid(Protocol):
    pid: int


Process = TypeVar("Process", bound=_HasPid)

PREFIX = "pypto-build-"
"""What the names of all private roots begin with."""

# A younger folder may be one that its process has not locked yet.
_STALE_AGE = 60.0

# Changed and read without a lock, because a signal handler reads them: each operation on them is atomic.
# The groups are those of tools, with the private root of each.
_roots: set[Path] = set()
_groups: dict[int, Path] = {}
_swept: set[str] = set()
_local = threading.local()


def _forget() -> None:
    # A forked child is not the builder, and must not end what its parent runs.
    _roots.clear()
    _groups.clear()
    if signal.getsignal(signal.SIGTERM) is _unwind:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


os.register_at_fork(after_in_child=_forget)


class RunningTools:
    """The tools that some threads run, so that another thread can end them. Each such thread calls `enter` first."""

    def __init__(self) -> None:
        self._groups: set[int] = set()
        self.ended = False

    def enter(self) -> None:
        """From here on, tools that the calling thread starts are among these."""
        _local.tools = self

    def end(self) -> None:
        """Kill all of them, and those that are started later."""
        self.ended = True
        for group in list(self._groups):
            _kill(group)

    @contextlib.contextmanager
    def _holding(self, group: int) -> Iterator[None]:
        self._groups.add(group)
        try:
            if self.ended:
                _kill(group)
            yield
        finally:
            self._groups.discard(group)


def start_tool(start: Callable[[], Process], root: Path) -> Process:
    """Start a process, the leader of a group of its own, that belongs to a private root.

    Whatever signals arrive meanwhile, the process is known from the moment that it exists: what ends the root's block
    ends the process too.
    """

    def started() -> Process:
        process = start()
        _groups[process.pid] = root
        watcher.has("g", str(process.pid))
        return process

    if threading.current_thread() is not threading.main_thread():
        return started()
    # Only the main thread runs handlers of signals, so that in another nothing comes between the start and the note.
    with ThreadPoolExecutor(1) as pool:
        try:
            future = pool.submit(started)
        except RuntimeError:
            return started()  # the interpreter is about to end and makes no threads any more
        return future.result()


@contextlib.contextmanager
def running(group: int) -> Iterator[None]:
    """A process that `start_tool` returned, for the time of the block; it has ended afterwards."""
    tools: RunningTools | None = getattr(_local, "tools", None)
    try:
        with tools._holding(group) if tools is not None else contextlib.nullcontext():
            yield
    finally:
        _lose(group)


def temporary_folders() -> list[str]:
    """Where temporary files may go, best first, with links resolved.

    `tempfile` would find the first that can be written by making a file in each.
    """
    named = os.environ.get("TMPDIR")
    return [os.path.realpath(folder) for folder in (*([named] if named else []), "/tmp", "/var/tmp")]


@contextlib.contextmanager
def private_folder(parent: str | os.PathLike[str] | None) -> Iterator[Path]:
    """A new folder, removed at the end of the block whatever happens in it.

    Args:
        parent: the folder to make it in; default the system's for temporary files.

    Raises:
        OSError: it cannot be made.
    """
    folders = temporary_folders() if parent is None else [os.path.abspath(parent)]
    where = next((folder for folder in folders if os.access(folder, os.W_OK | os.X_OK)), folders[0])
    if where not in _swept:
        _swept.add(where)
        _sweep(where)
    with ended_by_sigterm():
        path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=where))
        _roots.add(path)
        # The default is still in force where this is not the main thread and that one builds nothing.
        watcher.has("r", str(path), start=signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)
        try:
            with _locked(path):
                yield path
        finally:
            for group, root in list(_groups.items()):
                if root == path:
                    _kill(group)
                    _lose(group)
            shutil.rmtree(path, ignore_errors=True)
            _roots.discard(path)
            watcher.lost("r", str(path))


def _lose(group: int) -> None:
    if _groups.pop(group, None) is not None:
        watcher.lost("g", str(group))


class _Terminated(BaseException):
    """SIGTERM arrived; unwinds to the outermost `ended_by_sigterm`."""


_asked = False


@contextlib.contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """For the time of the block, SIGTERM unwinds it, and then ends the process as it would have without.

    So whatever the block made for itself is removed. A second SIGTERM does not wait for that. Has an effect in the main
    thread only, and only where the program has not decided itself what SIGTERM does.
    """
    global _asked
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    _asked = False
    signal.signal(signal.SIGTERM, _unwind)
    try:
        with contextlib.suppress(_Terminated):
            yield
    finally:
        # Also when the exception got lost on its way, as it does where Python ignores exceptions.
        if _asked:
            _end()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _unwind(number: int, frame: FrameType | None) -> None:
    global _asked
    if _asked:
        _end()
    _asked = True
    raise _Terminated


def _end() -> None:
    for group in list(_groups):
        _kill(group)
    for root in list(_roots):
        # A tool that was just killed may still be making files.
        for _ in range(50):
            shutil.rmtree(root, ignore_errors=True)
            if not root.exists():
                break
            time.sleep(0.01)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Where the file system has no locks, nobody sweeps either.
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _sweep(parent: str) -> None:
    """Remove the private roots of processes that are gone."""
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(parent)):
            if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    _remove_if_stale(entry)


def _remove_if_stale(entry: os.DirEntry[str]) -> None:
    status = entry.stat(follow_symlinks=False)
    if status.st_uid != os.geteuid() or time.time() - status.st_mtime < _STALE_AGE:
        return
    descriptor = os.open(entry.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its process lives
        shutil.rmtree(entry.path, ignore_errors=True)
    finally:
        os.close(descriptor)
