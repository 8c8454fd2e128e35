"""Errors of loading and running compiled programs. Bad arguments of a call are ``TypeError`` or ``ValueError``."""

from __future__ import annotations


class LoadError(Exception):
    """A compiled program cannot be loaded: a file is missing or damaged, or does not fit this process."""


class DeviceUnavailable(Exception):
    """The program is for an NPU, and there is no device or no driver to run it."""


class _PlacedError(Exception):
    def __init__(
        self,
        message: str,
        *,
        task: str | None = None,
        op: str | None = None,
        function: str | None = None,
        line: int | None = None,
    ) -> None:
        super().__init__(message)
        self.task = task
        self.op = op
        self.function = function
        self.line = line


class KernelRunError(_PlacedError):
    """A run ended with an error that the orchestration or a task reported.

    Attributes:
        task: name of the kernel that failed; ``None`` when the orchestration itself did.
        op: name of the operation that failed, such as ``tile.load``; ``None`` when unknown.
        function: function that ``line`` counts from; ``None`` when the line is unknown.
        line: line of the operation, else of the task's call; 1 is the function's first line. ``None`` when unknown.
    """


class SimulatorCheckError(_PlacedError):
    """The simulator found a fault of a kernel: a failed assertion, or a load or store outside of its task's tensors.

    In a checked run (``RunConfig(sim_checks=True)``) also a crash, and any write outside of a tensor.

    Attributes:
        task, op, function, line: as in `KernelRunError`.
        signal: number of the signal that ended the run; ``None`` when there was none.
    """

    signal: int | None = None


class HostProgramError(_PlacedError):
    """The HOST entry of a distributed program cannot be run with these arguments on these ranks; no rank was started.

    Attributes:
        task, op: always ``None``.
        function, line: where in the entry, as in `KernelRunError`.
    """


class RankError(_PlacedError):
    """A rank of a distributed run failed, died or did not finish; the other ranks were stopped.

    Attributes:
        rank: number of the rank.
        device_id: its device.
        cause: what happened to it, in words.
        task, op, function, line: as in `KernelRunError`, where a task of the rank failed.
    """

    def __init__(
        self,
        message: str,
        *,
        rank: int,
        device_id: int,
        cause: str,
        task: str | None = None,
        op: str | None = None,
        function: str | None = None,
        line: int | None = None,
    ) -> None:
        super().__init__(message, task=task, op=op, function=function, line=line)
        self.rank = rank
        self.device_id = device_id
        self.cause = cause


class UnsupportedArtifactInput(ValueError):
    """A source needs something that cannot be packed into an artifact; it can only be compiled where it stands."""


RUN_ERRORS = (DeviceUnavailable, HostProgramError, KernelRunError, LoadError, RankError, SimulatorCheckError)
"""What loading and running a program with good arguments may end with: the message is for whoever runs it."""
