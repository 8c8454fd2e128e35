"""One rank: a process that carries out its steps of every run."""

from __future__ import annotations

import mmap
import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pypto.runtime.arguments import NUMPY_DTYPES
from pypto.runtime.config import RunConfig
from pypto.runtime.distributed import wire
from pypto.runtime.distributed.collectives import COLLECTIVES
from pypto.runtime.program import CompiledProgram

_TELL, _ARRIVED, _GO = range(3)


class Mailboxes:
    """How ranks wake each other: a pipe for each, which it alone reads; a word in it names the sender and what for."""

    def __init__(self, world: int) -> None:
        self.world = world
        self._pipes = [os.pipe() for _ in range(world)]

    def of(self, rank: int) -> Mailbox:
        """This process's own, as rank ``rank``; the other ranks' reading ends are closed."""
        for other, (reader, _) in enumerate(self._pipes):
            if other != rank:
                os.close(reader)
        return Mailbox(rank, self._pipes[rank][0], [writer for _, writer in self._pipes])

    def close(self) -> None:
        """Close all ends, in a process that is no rank."""
        for reader, writer in self._pipes:
            os.close(reader)
            os.close(writer)


class Mailbox:
    """The mailboxes as one rank sees them."""

    def __init__(self, rank: int, reader: int, writers: Sequence[int]) -> None:
        self.rank = rank
        self.world = len(writers)
        self._reader = reader
        self._writers = writers
        self._unread = [[0] * self.world for _ in range(3)]

    def tell(self, other: int, kind: int = _TELL) -> None:
        """Send a word to another rank."""
        os.write(self._writers[other], bytes((kind, self.rank)))

    def hear(self, other: int, kind: int = _TELL) -> None:
        """Wait for a word of another rank."""
        while not self._unread[kind][other]:
            for word in _pairs(os.read(self._reader, 4096)):
                self._unread[word[0]][word[1]] += 1
        self._unread[kind][other] -= 1

    def meet(self) -> None:
        """Wait until all ranks are here; rank 0 counts them."""
        if self.rank:
            self.tell(0, _ARRIVED)
            self.hear(0, _GO)
            return
        others = range(1, self.world)
        for other in others:
            self.hear(other, _ARRIVED)
        for other in others:
            self.tell(other, _GO)


def _pairs(words: bytes) -> list[bytes]:
    # Writes of two bytes are never split, and reads take an even number of them.
    return [words[at : at + 2] for at in range(0, len(words), 2)]


def serve(rank: int, connection: socket.socket, mailbox: Mailbox, programs: Sequence[CompiledProgram]) -> None:
    """Carry out runs until the connection ends."""
    while True:
        try:
            order, descriptor = wire.receive(connection)
        except EOFError:
            return
        assert descriptor is not None
        with mmap.mmap(descriptor, order["size"]) as memory:
            os.close(descriptor)
            failure = _Run(rank, mailbox, programs, memory, order).steps()
        wire.send(connection, failure or {"done": True})


class _Run:
    def __init__(
        self,
        rank: int,
        mailbox: Mailbox,
        programs: Sequence[CompiledProgram],
        memory: mmap.mmap,
        order: Mapping[str, Any],
    ) -> None:
        self.rank = rank
        self.mailbox = mailbox
        self.programs = programs
        self.order = order
        self.memory = memory
        self.config = RunConfig(**order["config"])

    def steps(self) -> dict[str, Any] | None:
        """Carry out the steps; what failed, if something did."""
        status = np.frombuffer(self.memory, np.int64, 2, 16 * self.rank)
        try:
            for number, step in enumerate(self.order["steps"]):
                status[:] = number + 1, 0
                self.step(step, status)
            status[:] = 0, 0
        except Exception as error:
            places = {name: getattr(error, name, None) for name in ("task", "op", "function", "line")}
            return {"failed": str(error) or type(error).__name__, "kind": type(error).__name__, **places}
        finally:
            # The map cannot be closed while an array looks into it.
            del status
        return None

    def step(self, step: Mapping[str, Any], status: np.ndarray) -> None:
        if step["do"] != "call":
            self.collective(step, status)
            return
        status[1] = 1
        for other in step["after"]:
            self.mailbox.hear(other)
        status[1] = 0
        self.call(step)
        for other in step.get("tell", ()):
            self.mailbox.tell(other)

    def call(self, step: Mapping[str, Any]) -> None:
        arguments: list[Any] = []
        copies: list[tuple[np.ndarray, np.ndarray]] = []
        for argument in step["arguments"]:
            if "scalar" in argument:
                scalar = argument["scalar"]
                arguments.append(float.fromhex(scalar) if isinstance(scalar, str) else scalar)
                continue
            tensor = self.tensor(argument)
            if not tensor.flags.c_contiguous:
                # Chips take tensors whose elements lie side by side.
                copy = np.ascontiguousarray(tensor)
                if argument["written"]:
                    copies.append((tensor, copy))
                tensor = copy
            arguments.append(tensor)
        program = self.programs[step["chip"]]
        if self.order["folder"] is not None:
            name = f"chip-{step['chip']}-{program.config.entry}"
            program.run_directory = Path(self.order["folder"], f"rank-{self.rank}", name)
        program(*arguments, config=self.config)
        for tensor, copy in copies:
            tensor[...] = copy

    def collective(self, step: Mapping[str, Any], status: np.ndarray) -> None:
        tensors = [[self.tensor(part).reshape(-1) for part in parts] for parts in step["tensors"]]
        status[1] = 1
        self.mailbox.meet()
        status[1] = 0
        COLLECTIVES[step["do"]](self.rank, tensors, step["op"], step["root"])
        status[1] = 1
        self.mailbox.meet()
        status[1] = 0

    def tensor(self, record: Mapping[str, Any]) -> np.ndarray:
        dtype = NUMPY_DTYPES[record["dtype"]]
        strides = [stride * dtype.itemsize for stride in record["strides"]]
        return np.ndarray(record["shape"], dtype, self.memory, record["offset"], strides)
