"""The trace of one run as plain values: which task ran where and when, and which task waited for which."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pypto.runtime import abi
from pypto.runtime.kernel_config import KernelConfig, KernelEntry
from pypto.runtime.places import Locate


@dataclass(frozen=True)
class TracedTask:
    """A task that ran.

    Attributes:
        number: how many tasks were submitted before it.
        kernel: its kernel's name.
        core: ``aic`` or ``aiv``.
        line: where it was submitted, as ``file:line``, or ``function:line`` counted from the function's first line
            where the source is not at hand; empty when unknown.
        worker: thread of the simulator that ran it; 0 is the one that made the call.
        begin, end: nanoseconds since the run began.
    """

    number: int
    kernel: str
    core: str
    line: str
    worker: int
    begin: int
    end: int

    @property
    def label(self) -> str:
        """Its name for people, unique in the run."""
        return f"{self.kernel} #{self.number}"


@dataclass(frozen=True)
class RunTrace:
    """The trace of one run.

    Attributes:
        entry: name of the program's entry.
        runtime: which runtime ran it.
        tasks: those that ran, in order of submission.
        edges: (number of a task, number of one that had to wait for it).
        submitted, end: nanoseconds since the run began: when the last task was submitted, when the run was over.
    """

    entry: str
    runtime: str
    tasks: tuple[TracedTask, ...]
    edges: tuple[tuple[int, int], ...]
    submitted: int
    end: int

    @property
    def workers(self) -> int:
        """Number of threads that ran something."""
        return len({task.worker for task in self.tasks})

    def critical_path(self) -> tuple[int, tuple[int, ...]]:
        """The chain of dependent tasks that took longest: its nanoseconds, and the tasks' numbers."""
        length = {task.number: task.end - task.begin for task in self.tasks}
        before: dict[int, list[int]] = {}
        for source, target in self.edges:
            if source in length and target in length:
                before.setdefault(target, []).append(source)
        total: dict[int, int] = {}
        previous: dict[int, int | None] = {}
        # A task only waits for tasks that were submitted before it.
        for number in sorted(length):
            best = max(before.get(number, ()), key=lambda source: total[source], default=None)
            previous[number] = best
            total[number] = length[number] + (0 if best is None else total[best])
        at = max(total, key=lambda number: total[number], default=None)
        longest, path = (0 if at is None else total[at]), []
        while at is not None:
            path.append(at)
            at = previous[at]
        return longest, tuple(reversed(path))


def traced(run: Callable[[int, int], abi.RunResult], flag: int) -> tuple[abi.RunResult, bytes]:
    """Call ``run`` with ``flag`` and a file for the trace; its result and what the file holds then."""
    descriptor = os.memfd_create("trace")
    try:
        result = run(flag, descriptor)
        with open(os.dup(descriptor), "rb") as file:
            file.seek(0)
            return result, file.read()
    finally:
        os.close(descriptor)


class TimedRuns:
    """Makes runs that tell how long they took, one at a time; a context, since it holds a file."""

    def __init__(self, runs: abi.Orchestration) -> None:
        self._runs = runs
        self._descriptor = os.memfd_create("trace")

    def __enter__(self) -> TimedRuns:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def run(self, arguments: ctypes.Array[abi.Argument], **how: Any) -> abi.RunResult:
        """Make a run."""
        return self._runs.run(arguments, **how, trace=abi.FLAG_TIMED, trace_fd=self._descriptor)

    def nanoseconds(self) -> int:
        """How long the latest run took; 0 when it ended before anything was submitted."""
        header = read_header(os.pread(self._descriptor, ctypes.sizeof(abi.TraceHeader), 0))
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        os.ftruncate(self._descriptor, 0)
        return 0 if header is None else header.end - header.begin


def read_header(data: bytes) -> abi.TraceHeader | None:
    """The header of a trace; ``None`` when the run ended before it could write one."""
    if len(data) < ctypes.sizeof(abi.TraceHeader):
        return None
    return abi.TraceHeader.from_buffer_copy(data)


def read_trace(data: bytes, config: KernelConfig, locate: Locate | None) -> RunTrace | None:
    """The trace that a run with `abi.FLAG_TRACED` wrote; ``None`` when it could not write all of it."""
    header = read_header(data)
    if header is None:
        return None
    at = ctypes.sizeof(abi.TraceHeader)
    edges_at = at + header.task_count * ctypes.sizeof(abi.TraceTask)
    if len(data) < edges_at + header.edge_count * ctypes.sizeof(abi.TraceEdge):
        return None
    tasks = (abi.TraceTask * header.task_count).from_buffer_copy(data, at)
    edges = (abi.TraceEdge * header.edge_count).from_buffer_copy(data, edges_at)
    kernels = {kernel.id: kernel for kernel in config.kernels}
    read = (_task(task, kernels[task.kernel_id], config.entry, locate, header.begin) for task in tasks)
    return RunTrace(
        config.entry,
        config.runtime,
        tuple(sorted(read, key=lambda task: task.number)),
        tuple(sorted((edge.source, edge.target) for edge in edges)),
        header.submitted - header.begin,
        header.end - header.begin,
    )


def _task(task: abi.TraceTask, kernel: KernelEntry, entry: str, locate: Locate | None, start: int) -> TracedTask:
    line = ""
    if task.line:
        found = locate(entry, task.line) if locate else None
        line = f"{found[0]}:{found[1]}" if found else f"{entry}:{task.line}"
    return TracedTask(task.task, kernel.name, kernel.core, line, task.worker, task.begin - start, task.end - start)
