"""Asking programs about themselves: short runs without input, all of a group at once."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Answer:
    """What a program printed. `status` is None when it could not be started or ran out of time."""

    status: int | None
    stdout: bytes = b""
    stderr: bytes = b""


class Probes(Protocol):
    """Runs several commands at once and returns their answers in order."""

    def __call__(self, commands: Sequence[Sequence[str]]) -> list[Answer]: ...


class ProcessProbes:
    """Probes as child processes.

    Args:
        variables: the whole environment of the programs.
        folder: their working directory, where the build runs its tools.
        limit: seconds for all commands of one call.
    """

    def __init__(self, variables: Mapping[str, str], folder: str, limit: float = 20.0) -> None:
        self._variables = dict(variables)
        self._folder = folder
        self._limit = limit

    def __call__(self, commands: Sequence[Sequence[str]]) -> list[Answer]:
        deadline = time.monotonic() + self._limit
        children = [self._start(command) for command in commands]
        return [Answer(None) if child is None else _finish(child, deadline) for child in children]

    def _start(self, command: Sequence[str]) -> subprocess.Popen[bytes] | None:
        try:
            return subprocess.Popen(
                list(command),
                cwd=self._folder,
                env=self._variables,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError):
            return None


def _finish(child: subprocess.Popen[bytes], deadline: float) -> Answer:
    try:
        stdout, stderr = child.communicate(timeout=max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        # A script's own children are in its session's group.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return Answer(None)
    return Answer(child.returncode, stdout, stderr)
