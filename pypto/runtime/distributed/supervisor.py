"""The process between the caller and the ranks: loads the program once, forks the ranks, passes runs on, watches.

It belongs to the ranks and not to the caller's program: nothing of the caller's modules is imported, no thread is ever
started before the ranks are forked, and when the caller's end of the connection closes, for whatever reason, it ends
every rank and itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from pypto.runtime.distributed import rank, wire
from pypto.runtime.errors import DeviceUnavailable, LoadError
from pypto.runtime.prebuilt import load
from pypto.runtime.program import CompiledProgram

_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15


def main(descriptor: str) -> None:
    """Serve one caller over the socket with this number."""
    caller = socket.socket(fileno=int(descriptor))
    caller.set_inheritable(False)
    order, artifact = wire.receive(caller)
    assert artifact is not None
    try:
        programs = _load(order, artifact)
    except (LoadError, DeviceUnavailable) as error:
        wire.send(caller, {"refused": str(error)})
        return
    supervisor = _Supervisor(caller, programs, order["world"])
    try:
        supervisor.serve()
    except EOFError:
        pass
    finally:
        supervisor.end()


def _load(order: Mapping[str, Any], artifact: int) -> list[CompiledProgram]:
    """The chips' programs from the bytes behind a descriptor."""
    with open(artifact, "rb") as stream:
        chips = [{path: stream.read(size) for path, size in files} for files in order["chips"]]
    lines: Mapping[str, Sequence[Any]] = order["lines"]

    def locate(function: str, line: int) -> tuple[str, int] | None:
        found = lines.get(function)
        return None if found is None else (found[0], found[1] + line - 1)

    return [load(files, locate=locate) for files in chips]


class _Supervisor:
    def __init__(self, caller: socket.socket, programs: Sequence[CompiledProgram], world: int) -> None:
        self.caller = caller
        self.connections: list[socket.socket] = []
        self.processes: list[int] = []
        self.statuses: dict[int, int] = {}
        mailboxes = rank.Mailboxes(world)
        for number in range(world):
            self._fork(number, mailboxes, programs)
        mailboxes.close()
        wire.send(caller, {"processes": self.processes})

    def _fork(self, number: int, mailboxes: rank.Mailboxes, programs: Sequence[CompiledProgram]) -> None:
        ours, theirs = socket.socketpair()
        supervisor = os.getpid()
        process = os.fork()
        if not process:
            _run_rank(supervisor, [self.caller, ours, *self.connections], number, theirs, mailboxes, programs)
        theirs.close()
        self.connections.append(ours)
        self.processes.append(process)

    def serve(self) -> None:
        """Pass runs on until the caller is gone (EOFError) or a rank has failed."""
        while True:
            # Between runs a rank says nothing, but it can die.
            for number in self._wait([*range(len(self.connections))]):
                wire.send(self.caller, self._failure(number, None))
                return
            order, memory = wire.receive(self.caller)
            assert memory is not None
            try:
                failed = self._run(order, memory)
            finally:
                os.close(memory)
            wire.send(self.caller, failed or {"done": True})
            if failed is not None:
                return

    def _run(self, order: Mapping[str, Any], memory: int) -> dict[str, Any] | None:
        for number, connection in enumerate(self.connections):
            share = {**order, "steps": order["steps"][number]}
            try:
                wire.send(connection, share, memory)
            except OSError:
                return self._failure(number, None)
        waiting = [*range(len(self.connections))]
        while waiting:
            heard = self._wait(waiting)
            if not heard:
                # The caller speaks during a run only by going away.
                wire.receive(self.caller)
            for number in heard:
                try:
                    said, _ = wire.receive(self.connections[number])
                except EOFError:
                    said = None
                if said is None or "failed" in said:
                    return self._failure(number, said)
                waiting.remove(number)
        return None

    def _wait(self, ranks: Sequence[int]) -> list[int]:
        """The ranks that have something to say or are gone; none when it is the caller."""
        ready, _, _ = select.select([self.caller, *(self.connections[number] for number in ranks)], [], [])
        return [number for number in ranks if self.connections[number] in ready]

    def _failure(self, number: int, said: Mapping[str, Any] | None) -> dict[str, Any]:
        if said is not None:
            return {"rank": number, **said}
        # Its end of the connection closes only with the process.
        _, status = os.waitpid(self.processes[number], 0)
        self.statuses[number] = status
        return {"rank": number, "status": os.waitstatus_to_exitcode(status)}

    def end(self) -> None:
        """End every rank with all that it started, and wait for it."""
        for number, process in enumerate(self.processes):
            # A rank that has ended may have left children in its group.
            for kill in (os.killpg, os.kill) if number not in self.statuses else (os.killpg,):
                with contextlib.suppress(OSError):
                    kill(process, signal.SIGKILL)
        for number, process in enumerate(self.processes):
            if number not in self.statuses:
                os.waitpid(process, 0)


def _run_rank(
    supervisor: int,
    foreign: Sequence[socket.socket],
    number: int,
    connection: socket.socket,
    mailboxes: rank.Mailboxes,
    programs: Sequence[CompiledProgram],
) -> NoReturn:
    status = 1
    try:
        os.setpgid(0, 0)
        system = ctypes.CDLL(None)
        system.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # For people who look at the list of processes.
        system.prctl(_PR_SET_NAME, b"pypto-rank-%d" % number)
        # The supervisor may have died before this process asked to die with it.
        if os.getppid() == supervisor:
            for end in foreign:
                end.close()
            rank.serve(number, connection, mailboxes.of(number), programs)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
