"""A process that removes what this one leaves when it is ended while other threads than the main one build.

Only the main thread can handle SIGTERM, and nobody can handle SIGKILL. The watcher reads what exists from a pipe, whose
end tells it that this process is gone; then it ends the tools that still run and removes the private roots.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading

# Standard library only: the process knows nothing of this package. Names are in hexadecimal, one line for each.
_PROGRAM = """
import os, shutil, signal, sys, time
groups, roots = set(), set()
for line in sys.stdin.buffer:
    kind, sign, name = line[:1], line[1:2], bytes.fromhex(line[2:].decode())
    left = groups if kind == b"g" else roots
    left.add(name) if sign == b"+" else left.discard(name)
for group in groups:
    try:
        os.killpg(int(group), signal.SIGKILL)
    except OSError:
        pass
for root in roots:
    for _ in range(50):
        shutil.rmtree(root, ignore_errors=True)
        if not os.path.lexists(root):
            break
        time.sleep(0.01)
"""


class Watcher:
    """Starts the process when there is something to watch, and ends it when nothing is left.

    Starting it may fail: then what a killed process leaves is removed by the next build.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: tuple[int, int] | None = None  # its id, and the end of the pipe to write to
        self._left: set[str] = set()
        os.register_at_fork(after_in_child=self._forget)

    def has(self, kind: str, name: str, *, start: bool = False) -> None:
        """There is a process group (``g``) or a private root (``r``) from now on.

        Args:
            start: watch it even if nothing is watched yet.
        """
        with self._lock, contextlib.suppress(OSError):
            if self._process is None and start and _knows_itself():
                self._process = _spawn()
            if self._process is not None:
                self._left.add(f"{kind}{name}")
                self._tell(f"{kind}+", name)

    def lost(self, kind: str, name: str) -> None:
        """It is gone."""
        with self._lock, contextlib.suppress(OSError):
            if f"{kind}{name}" not in self._left:
                return
            self._left.discard(f"{kind}{name}")
            self._tell(f"{kind}-", name)
            if not self._left and self._process is not None:
                process, pipe = self._process
                self._process = None
                os.close(pipe)
                os.waitpid(process, 0)

    def _tell(self, what: str, name: str) -> None:
        assert self._process is not None
        os.write(self._process[1], f"{what}{os.fsencode(name).hex()}\n".encode())

    def _forget(self) -> None:
        # The child is not the builder, and the pipe must end with its parent.
        if self._process is not None:
            os.close(self._process[1])
        self._lock = threading.Lock()
        self._process = None
        self._left = set()


def _knows_itself() -> bool:
    """Whether `sys.executable` is an interpreter; in a program that embeds Python it may be that program."""
    return os.path.basename(sys.executable or "").startswith(("python", "pypy"))


def _spawn() -> tuple[int, int]:
    reading, writing = os.pipe()
    try:
        with open(os.devnull, "wb") as nothing:
            process = os.posix_spawn(
                sys.executable,
                [sys.executable, "-I", "-S", "-c", _PROGRAM],
                {"PATH": os.defpath},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, reading, 0),
                    (os.POSIX_SPAWN_DUP2, nothing.fileno(), 1),
                    (os.POSIX_SPAWN_DUP2, nothing.fileno(), 2),
                ],
                # Signals for this process's terminal or group are not for the watcher.
                setsid=True,
            )
    except BaseException:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    return process, writing


watcher = Watcher()
