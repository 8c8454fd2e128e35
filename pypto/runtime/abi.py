"""The C interface of an orchestration object: the structures of ``pypto/abi.h`` as ctypes, and one run through it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

from pypto.runtime.kernel_config import MAX_RANK, RUNTIME_ABI

MESSAGE_SIZE = 1024

TENSOR, SCALAR = 0, 1
DIRECTIONS = {"in": 0, "out": 1, "inout": 2}
FLAG_CHECKED, FLAG_TIMED, FLAG_TRACED, FLAG_RING = 1, 2, 4, 8
OK, BAD_REQUEST, ORCHESTRATION_FAILED, TASK_FAILED, GUARD_OVERWRITTEN, SIMULATOR_FAULT = range(6)

# INDEX values travel as INT64.
DTYPE_CODES = {
    "FP32": 1, "FP16": 2, "BF16": 3, "INT8": 4, "INT16": 5, "INT32": 6, "INT64": 7,
    "UINT8": 8, "UINT16": 9, "UINT32": 10, "UINT64": 11, "BOOL": 12, "INDEX": 7,
}  # fmt: skip


class Argument(ctypes.Structure):
    """A tensor (data, shape and strides in elements) or a scalar (its bits)."""

    _fields_ = (
        ("kind", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
        ("direction", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("data", ctypes.c_void_p),
        ("scalar", ctypes.c_uint64),
        ("shape", ctypes.c_int64 * MAX_RANK),
        ("strides", ctypes.c_int64 * MAX_RANK),
        ("name", ctypes.c_char_p),
    )


class Kernel(ctypes.Structure):
    """A kernel's function id, name and functions."""

    _fields_ = (
        ("id", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("entry", ctypes.c_void_p),
        ("begin", ctypes.c_void_p),
        ("op", ctypes.c_void_p),
        ("error", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
    )


class RunRequest(ctypes.Structure):
    """What ``pypto_run`` takes."""

    _fields_ = (
        ("struct_size", ctypes.c_uint32),
        ("abi_version", ctypes.c_uint32),
        ("argument_count", ctypes.c_uint32),
        ("kernel_count", ctypes.c_uint32),
        ("arguments", ctypes.POINTER(Argument)),
        ("kernels", ctypes.POINTER(Kernel)),
        ("threads", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("report_fd", ctypes.c_int32),
        ("trace_fd", ctypes.c_int32),
        ("ring_task_window", ctypes.c_uint32),
        ("ring_dep_pool", ctypes.c_uint32),
        ("ring_heap", ctypes.c_uint64),
    )


class RunResult(ctypes.Structure):
    """What ``pypto_run`` fills in."""

    _fields_ = (
        ("struct_size", ctypes.c_uint32),
        ("status", ctypes.c_int32),
        ("task", ctypes.c_int32),
        ("kernel_id", ctypes.c_int32),
        ("line", ctypes.c_int32),
        ("op", ctypes.c_int32),
        ("message", ctypes.c_char * MESSAGE_SIZE),
    )


class CrashReport(ctypes.Structure):
    """What a crashing checked run writes to ``report_fd``."""

    _fields_ = (
        ("struct_size", ctypes.c_uint32),
        ("signal", ctypes.c_int32),
        ("task", ctypes.c_int32),
        ("kernel_id", ctypes.c_int32),
        ("line", ctypes.c_int32),
        ("op", ctypes.c_int32),
        ("buffer", ctypes.c_int32),
        ("reserved", ctypes.c_uint32),
        ("offset", ctypes.c_int64),
        ("buffer_size", ctypes.c_int64),
    )


class TraceHeader(ctypes.Structure):
    """What a timed or traced run writes first to ``trace_fd``; times are nanoseconds."""

    _fields_ = (
        ("struct_size", ctypes.c_uint32),
        ("task_count", ctypes.c_uint32),
        ("edge_count", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("begin", ctypes.c_int64),
        ("submitted", ctypes.c_int64),
        ("end", ctypes.c_int64),
    )


class TraceTask(ctypes.Structure):
    """A task that ran: its submission index, what it ran and where, and when."""

    _fields_ = (
        ("task", ctypes.c_int32),
        ("kernel_id", ctypes.c_int32),
        ("line", ctypes.c_int32),
        ("worker", ctypes.c_int32),
        ("begin", ctypes.c_int64),
        ("end", ctypes.c_int64),
    )


class TraceEdge(ctypes.Structure):
    """Task ``target`` had to wait for task ``source``."""

    _fields_ = (("source", ctypes.c_int32), ("target", ctypes.c_int32))


STRUCTURES: tuple[type[ctypes.Structure], ...] = (
    Argument,
    Kernel,
    RunRequest,
    RunResult,
    CrashReport,
    TraceHeader,
    TraceTask,
    TraceEdge,
)


@dataclass(frozen=True)
class Ring:
    """Sizes of a run by the runtime ``tensormap_and_ringbuffer``; 0 for the default.

    Attributes:
        task_window: tasks at once.
        heap: bytes of workspaces at once.
        dep_pool: dependencies at once.
    """

    task_window: int = 0
    heap: int = 0
    dep_pool: int = 0


@dataclass(frozen=True)
class LoadedKernel:
    """A kernel whose object is loaded."""

    id: int
    name: str
    library: ctypes.CDLL


class Orchestration:
    """A loaded orchestration with its loaded kernels, ready to run.

    Attributes:
        call: ``pypto_run`` itself, with references to a `RunRequest` and a `RunResult`; returns the status.

    Raises:
        ValueError: an object lacks a function, speaks another ABI or takes another number of parameters.
    """

    def __init__(self, library: ctypes.CDLL, kernels: Sequence[LoadedKernel], parameter_count: int) -> None:
        version = _function(library, "pypto_abi_version", ctypes.c_uint32)()
        if version != RUNTIME_ABI:
            raise ValueError(f"the orchestration speaks runtime ABI {version}, this PyPTO speaks {RUNTIME_ABI}")
        declared = _function(library, "pypto_parameter_count", ctypes.c_uint32)()
        if declared != parameter_count:
            raise ValueError(f"the orchestration takes {declared} parameters, the configuration says {parameter_count}")
        self.call = _function(library, "pypto_run", ctypes.c_int32)
        self.call.argtypes = [ctypes.POINTER(RunRequest), ctypes.POINTER(RunResult)]
        # Held so that the code stays loaded as long as this object lives.
        self._libraries = (library, *(kernel.library for kernel in kernels))
        self._kernels = (Kernel * len(kernels))(
            *(
                Kernel(
                    id=kernel.id,
                    entry=_address(kernel.library, "kernel_entry"),
                    begin=_address(kernel.library, "pypto_kernel_begin"),
                    op=_address(kernel.library, "pypto_kernel_op"),
                    error=_address(kernel.library, "pypto_kernel_error"),
                    name=kernel.name.encode(),
                )
                for kernel in kernels
            )
        )

    def run(
        self,
        arguments: ctypes.Array[Argument],
        *,
        threads: int = 0,
        checked: bool = False,
        report_fd: int = -1,
        trace: int = 0,
        trace_fd: int = -1,
        ring: Ring | None = None,
    ) -> RunResult:
        """Run once, without the GIL; safe to call from several threads. ``arguments`` must outlive the call.

        Args:
            trace: `FLAG_TIMED` or `FLAG_TRACED` for a trace in ``trace_fd``.
            ring: run by ``tensormap_and_ringbuffer`` with these sizes; ``None`` for ``host_build_graph``.
        """
        request = self.request(arguments, threads=threads, ring=ring)
        request.flags |= (FLAG_CHECKED if checked else 0) | trace
        request.report_fd, request.trace_fd = report_fd, trace_fd
        result = RunResult(struct_size=ctypes.sizeof(RunResult))
        self.call(ctypes.byref(request), ctypes.byref(result))
        return result

    def request(self, arguments: ctypes.Array[Argument], *, threads: int = 0, ring: Ring | None = None) -> RunRequest:
        """What `call` takes for a plain run; it holds ``arguments`` and the kernels' table, not the code."""
        return RunRequest(
            struct_size=ctypes.sizeof(RunRequest),
            abi_version=RUNTIME_ABI,
            argument_count=len(arguments),
            kernel_count=len(self._kernels),
            arguments=arguments,
            kernels=self._kernels,
            threads=threads,
            flags=0 if ring is None else FLAG_RING,
            report_fd=-1,
            trace_fd=-1,
            ring_task_window=0 if ring is None else ring.task_window,
            ring_dep_pool=0 if ring is None else ring.dep_pool,
            ring_heap=0 if ring is None else ring.heap,
        )


def _function(library: ctypes.CDLL, name: str, result: type) -> ctypes._NamedFuncPointer:
    try:
        # By subscript: every holder gets a function object of its own.
        function = library[name]
    except AttributeError:
        raise ValueError(f"{library._name} does not export {name}") from None
    function.restype = result
    return function


def _address(library: ctypes.CDLL, name: str) -> int | None:
    return ctypes.cast(_function(library, name, ctypes.c_int32), ctypes.c_void_p).value
