"""The caller's side of the ranks: starts them, hands runs over, and ends them all whatever happens."""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import pypto
from pypto.runtime.distributed import wire
from pypto.runtime.distributed.config import DistributedConfig
from pypto.runtime.distributed.plan import STATUS_BYTES, Plan
from pypto.runtime.errors import LoadError, RankError

# A process that forks must be the only thread of its program, so NumPy may start none.
_CHILD = """\
import os, sys
os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
sys.path[:0] = sys.argv[2:]
from pypto.runtime.distributed.supervisor import main
main(sys.argv[1])
"""
_PATIENCE = 10.0


class Ranks:
    """The processes of the ranks of one program, from their start until `close`. One run at a time.

    Attributes:
        processes: process number of every rank.
    """

    def __init__(
        self,
        entry: str,
        chips: Sequence[Mapping[str, bytes]],
        config: DistributedConfig,
        lines: Mapping[str, tuple[str, int]],
    ) -> None:
        """Start them.

        Args:
            chips: the READY files of every chip.
            lines: file and first line of every function that messages may name.

        Raises:
            LoadError: they cannot be started.
        """
        self._entry = entry
        self._config = config
        self._owner = os.getpid()
        self._connection, theirs = socket.socketpair()
        with theirs:
            self._supervisor = _start(entry, theirs)
        self._end = weakref.finalize(self, _end, self._connection, self._supervisor, os.getpid())
        try:
            self.processes = self._load(chips, lines)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End all of them; they leave nothing behind. Closing again does nothing."""
        self._end()

    @property
    def alive(self) -> bool:
        """Whether another run is possible."""
        return self._end.alive and self._owner == os.getpid()

    def run(
        self, plan: Plan, memory: mmap.mmap, descriptor: int, settings: Mapping[str, Any], folder: Path | None
    ) -> None:
        """Carry out a plan in the shared memory behind the descriptor; with any error, all ranks are ended.

        Args:
            settings: of the chips' calls, as plain data.
            folder: where diagnostics go.

        Raises:
            RankError: a rank failed, died or did not finish in time.
        """
        try:
            self._run(plan, memory, descriptor, settings, folder)
        except BaseException:
            self.close()
            raise

    def _load(self, chips: Sequence[Mapping[str, bytes]], lines: Mapping[str, tuple[str, int]]) -> list[int]:
        order = {
            "world": self._config.world_size,
            "lines": {function: list(place) for function, place in lines.items()},
            "chips": [[[path, len(data)] for path, data in sorted(files.items())] for files in chips],
        }
        artifact = os.memfd_create("artifact", os.MFD_CLOEXEC)
        try:
            with open(artifact, "wb", closefd=False) as stream:
                for files in chips:
                    stream.writelines(data for _, data in sorted(files.items()))
            os.lseek(artifact, 0, os.SEEK_SET)
            self._connection.settimeout(self._config.startup_timeout_s)
            wire.send(self._connection, order, artifact)
            answer, _ = wire.receive(self._connection)
        except TimeoutError:
            raise LoadError(
                f"{self._entry}: the ranks did not start within {self._config.startup_timeout_s:g} s; "
                "DistributedConfig.startup_timeout_s says how long they may take"
            ) from None
        except (EOFError, OSError):
            raise LoadError(f"{self._entry}: the ranks could not be started; stderr says why") from None
        finally:
            os.close(artifact)
        if "refused" in answer:
            raise LoadError(f"{self._entry}: the ranks cannot load the program: {answer['refused']}")
        processes: list[int] = answer["processes"]
        return processes

    def _run(
        self, plan: Plan, memory: mmap.mmap, descriptor: int, settings: Mapping[str, Any], folder: Path | None
    ) -> None:
        where = None if folder is None else os.path.abspath(folder)
        order = {"size": plan.size, "config": dict(settings), "folder": where, "steps": plan.steps}
        limit = self._config.run_timeout_s
        self._connection.settimeout(limit)
        try:
            # A rank that died since the last run was told already: that answer comes first.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                wire.send(self._connection, order, descriptor)
            answer, _ = wire.receive(self._connection)
        except TimeoutError:
            raise self._late(plan, memory, limit) from None
        except EOFError:
            status = self._supervisor.wait(_PATIENCE)
            raise LoadError(f"{self._entry}: the process that watches over the ranks {_ended(status)}") from None
        if "done" in answer:
            return
        rank = answer["rank"]
        if "failed" in answer:
            known = answer["kind"] in ("KernelRunError", "SimulatorCheckError")
            cause = answer["failed"] if known else f"{answer['kind']}: {answer['failed']}"
            places = {name: answer[name] for name in ("task", "op", "function", "line")}
            raise self._error(rank, f"failed: {cause}", cause, **places)
        cause = _ended(answer["status"])
        raise self._error(rank, cause + self._at(plan, memory, rank), cause)

    def _error(self, rank: int, message: str, cause: str, **places: Any) -> RankError:
        device = self._config.device_ids[rank]
        return RankError(
            f"{self._entry}: rank {rank} (device {device}) {message}",
            rank=rank,
            device_id=device,
            cause=cause,
            **places,
        )

    def _late(self, plan: Plan, memory: mmap.mmap, limit: float | None) -> RankError:
        """The error about the first rank that works, and does not wait for another one."""
        states = [_status(memory, rank) for rank in range(self._config.world_size)]
        busy = [rank for rank, (step, waits) in enumerate(states) if step and not waits]
        rank = busy[0] if busy else 0
        cause = f"did not finish within {limit:g} s"
        others = [str(other) for other, (_, waits) in enumerate(states) if waits and other != rank]
        waiting = f"; rank{'s' if len(others) > 1 else ''} {', '.join(others)} waited" if others else ""
        more = "; DistributedConfig.run_timeout_s says how long a run may take"
        return self._error(rank, cause + self._at(plan, memory, rank) + waiting + more, cause)

    def _at(self, plan: Plan, memory: mmap.mmap, rank: int) -> str:
        step, _ = _status(memory, rank)
        return f" in {plan.places[rank][step - 1]}" if step else ""


def _status(memory: mmap.mmap, rank: int) -> tuple[int, int]:
    """The number of the step that a rank is at (0: none), and whether it waits for another rank."""
    data = memory[rank * STATUS_BYTES : (rank + 1) * STATUS_BYTES]
    step, waits = np.frombuffer(data, np.int64)
    return int(step), int(waits)


def _ended(status: int) -> str:
    if status >= 0:
        return f"exited with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"


def _start(entry: str, connection: socket.socket) -> subprocess.Popen[bytes]:
    if not sys.executable:
        raise LoadError(f"{entry}: ranks are processes of a Python interpreter, and this process does not know one")
    # Exactly the packages of this process, and nothing that a start of Python would look for besides.
    folders = dict.fromkeys(str(Path(module.__file__ or "").parents[1]) for module in (pypto, np, ml_dtypes))
    command = [sys.executable, "-I", "-S", "-B", "-c", _CHILD, str(connection.fileno()), *folders]
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            pass_fds=[connection.fileno()],
            # Ctrl-C is for the caller, who ends the ranks.
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise LoadError(f"{entry}: the ranks could not be started: {error}") from None


def _end(connection: socket.socket, supervisor: subprocess.Popen[bytes], owner: int) -> None:
    connection.close()
    if os.getpid() != owner:
        # A forked child shares the connection; the ranks are its parent's.
        return
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            supervisor.wait(max(0.0, deadline - time.monotonic()))
            return
        except subprocess.TimeoutExpired:
            supervisor.kill()
            deadline = time.monotonic() + _PATIENCE
        except BaseException:
            supervisor.kill()
            supervisor.wait()
            raise
