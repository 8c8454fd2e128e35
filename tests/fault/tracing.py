"""Running an action in a forked child under strace: watch its system calls, make one of them fail, or kill it there."""

from __future__ import annotations

import gc
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STRACE = shutil.which("strace")
# Calls that change and learn nothing outside the process, and those of the harness itself.
_INTERNAL = frozenset(
    ("brk", "mmap", "munmap", "mprotect", "mremap", "madvise", "futex", "rt_sigprocmask", "rt_sigaction",
     "rt_sigreturn", "getpid", "gettid", "clock_gettime", "set_robust_list", "sched_yield", "exit", "exit_group",
     "restart_syscall", "access", "poll", "ppoll", "sendto", "recvfrom")
)  # fmt: skip
_MARK = "/pypto-mark/"
_LINE = re.compile(r"^\d+ +([a-z0-9_]+)\((.*)$")


@dataclass(frozen=True)
class Call:
    """One system call: its name, how often that name was called before (from 1), the phase it stands in, its text."""

    name: str
    nth: int
    phase: str
    text: str


@dataclass(frozen=True)
class Outcome:
    """What a traced child reported (None when it was killed), and the lines of strace."""

    report: dict[str, Any] | None
    killed: bool
    lines: list[str]

    @property
    def injected(self) -> bool:
        return self.killed or any(line.endswith("(INJECTED)") for line in self.lines)


def mark(phase: str) -> None:
    """Note in the trace that the child has come to `phase`."""
    os.access(_MARK + phase, os.F_OK)


def run_traced(
    action: Callable[[], dict[str, Any]], options: Sequence[str] = (), *, user: int | None = None
) -> Outcome:
    """The outcome of `action` in a child that strace watches with `options`, perhaps as another user.

    The child is attached before it starts, so that counts of calls do not depend on how Python begins.
    """
    assert STRACE is not None
    ours, theirs = socket.socketpair()
    with ours, theirs, tempfile.NamedTemporaryFile() as log:
        child = os.fork()
        if child == 0:
            _run_child(action, theirs, user)
        theirs.close()
        with subprocess.Popen(
            [STRACE, "-f", "-o", log.name, *options, "-p", str(child)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as strace:
            assert strace.stderr is not None
            said = strace.stderr.readline()
            ours.sendall(b"x")
            _, status = os.waitpid(child, 0)
            strace.wait(timeout=60)
        assert b"attached" in said, said
        answer = b"".join(iter(lambda: ours.recv(1 << 16), b""))
        lines = Path(log.name).read_text(errors="surrogateescape").splitlines()
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    assert killed or answer, f"the child ended without a report, status {status}: {lines[-3:]}"
    return Outcome(None if killed else json.loads(answer), killed, lines)


def _run_child(action: Callable[[], dict[str, Any]], link: socket.socket, user: int | None) -> None:
    try:
        if user is not None:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
        gc.disable()
        signal.alarm(60)  # one that hangs ends here
        waiting = select.poll()
        waiting.register(link.fileno(), select.POLLIN)
        waiting.poll()
        link.recv(1)
        mark("begin")
        try:
            report = action()
        except BaseException as error:
            names = [kind.__name__ for kind in type(error).__mro__]
            report = {"raised": names, "text": str(error)}
        mark("end")
        link.send(json.dumps(report).encode())
    finally:
        os._exit(0)


def line_of(lines: Sequence[str], phase: str) -> int:
    """Index of the line that marks a phase."""
    return next(number for number, line in enumerate(lines) if f'{_MARK}{phase}"' in line)


def calls_of(outcome: Outcome) -> list[Call]:
    """The calls between begin and end, without those that concern only the process itself."""
    counts: dict[str, int] = {}
    phase = ""
    calls = []
    for line in outcome.lines:
        found = _LINE.match(line)
        if found is None:
            continue
        name, text = found.groups()
        counts[name] = counts.get(name, 0) + 1
        if name == "access" and _MARK in text:
            phase = text.split(_MARK)[1].split('"')[0]
        elif phase not in ("", "end") and name not in _INTERNAL:
            calls.append(Call(name, counts[name], phase, text))
    return calls


def fail_option(call: Call, how: str, *, persistent: bool = False) -> list[str]:
    """Options that make strace fail `call` with an error name or return value, alone or with all later ones."""
    return [
        "-e",
        f"trace={call.name}",
        "-e",
        f"inject={call.name}:{how}:when={call.nth}{'+' if persistent else ''}",
    ]


def fast_folder() -> Path:
    """A new folder in memory where the machine has such a place, since syncing a disk takes most of the time."""
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else None))
