"""Checked runs: in a child process with guarded memory, so that what would end this process becomes an exception."""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import signal as signals
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pypto
from pypto.runtime import abi, shared_objects
from pypto.runtime.arguments import BoundArguments
from pypto.runtime.config import RunConfig
from pypto.runtime.errors import LoadError, SimulatorCheckError
from pypto.runtime.kernel_config import KernelConfig
from pypto.runtime.places import Locate, Place, find_place

_ALIGNMENT = 512
_MAX_STDERR = 4000

_CHILD = "import sys; sys.path.insert(0, sys.argv[1]); from pypto.runtime.checked_child import main; main(sys.argv[2])"


def run_checked(
    config: KernelConfig,
    binaries: Mapping[str, bytes],
    bound: BoundArguments,
    settings: RunConfig,
    locate: Locate | None,
    ring: abi.Ring | None = None,
) -> abi.RunResult:
    """Run once in a child process. The caller's outputs change only if the run succeeds.

    Args:
        ring: sizes for the runtime ``tensormap_and_ringbuffer``; ``None`` for ``host_build_graph``.

    Raises:
        SimulatorCheckError: the child crashed, an assertion failed, or memory outside of a tensor was touched.
        LoadError: no child process could be started.
    """
    with contextlib.ExitStack() as stack:
        data = _Memory(stack, bound)
        objects = {path: _object_file(stack, path, content) for path, content in binaries.items()}
        result, report, stderr = (_memory_file(stack, name) for name in ("result", "report", "stderr"))
        order = {
            "orchestration": objects[config.orchestration_binary],
            "kernels": [[kernel.id, kernel.name, objects[kernel.binary]] for kernel in config.kernels],
            "arguments": data.layout,
            "data": data.descriptor,
            "size": data.size,
            "result": result,
            "report": report,
            "threads": settings.aicpu_thread_num or 0,
            "ring": ring and [ring.task_window, ring.heap, ring.dep_pool],
        }
        status = _run_child(config.entry, order, [*objects.values(), data.descriptor, result, report, stderr], stderr)
        said = os.pread(stderr, _MAX_STDERR, max(0, os.fstat(stderr).st_size - _MAX_STDERR)).decode("utf-8", "replace")
        answer = os.pread(result, ctypes.sizeof(abi.RunResult), 0)
        if status == 0 and len(answer) == ctypes.sizeof(abi.RunResult):
            outcome = abi.RunResult.from_buffer_copy(answer)
            if outcome.status == abi.OK:
                data.copy_back()
            sys.stderr.write(said)
            return outcome
        crash = os.pread(report, ctypes.sizeof(abi.CrashReport), 0)
        if len(crash) == ctypes.sizeof(abi.CrashReport):
            raise _crash(config, abi.CrashReport.from_buffer_copy(crash), said, locate)
        ended = f"was ended by {_signal_name(-status)}" if status < 0 else f"exited with status {status}"
        nowhere = find_place(config, -1, -1, 0, locate)
        message = f"{config.entry}: the checked run {ended} without a report{_quoted(said)}"
        raise _error(message, nowhere, -status if status < 0 else None)


class _Memory:
    """The arguments' tensors in memory that is shared with the child."""

    def __init__(self, stack: contextlib.ExitStack, bound: BoundArguments) -> None:
        self._bound = bound
        self.layout: list[dict[str, object]] = []
        self._offsets: list[int | None] = []
        self.size = 0
        for argument, array in zip(bound.c_arguments, bound.arrays, strict=True):
            offset = None
            if array is not None:
                offset = self.size
                self.size += (array.nbytes + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
            self._offsets.append(offset)
            self.layout.append(
                {
                    "kind": argument.kind,
                    "dtype": argument.dtype,
                    "direction": argument.direction,
                    "scalar": argument.scalar,
                    "shape": list(argument.shape[: argument.rank]),
                    "strides": list(argument.strides[: argument.rank]),
                    "name": argument.name.decode(),
                    "offset": offset,
                }
            )
        self.size = max(self.size, 1)
        self.descriptor = _memory_file(stack, "data")
        os.ftruncate(self.descriptor, self.size)
        self._map = stack.enter_context(mmap.mmap(self.descriptor, self.size))
        for array, offset in zip(bound.arrays, self._offsets, strict=True):
            if array is not None and offset is not None:
                self._map[offset : offset + array.nbytes] = array.tobytes()

    def copy_back(self) -> None:
        """Copy what the child wrote into the caller's memory."""
        for argument, array, offset in zip(self._bound.c_arguments, self._bound.arrays, self._offsets, strict=True):
            if array is not None and offset is not None and argument.direction != abi.DIRECTIONS["in"]:
                ctypes.memmove(argument.data, self._map[offset : offset + array.nbytes], array.nbytes)


def _run_child(entry: str, order: Mapping[str, object], descriptors: list[int], stderr: int) -> int:
    if not sys.executable:
        raise LoadError(f"{entry}: a checked run starts a Python interpreter, and this process does not know one")
    command = [sys.executable, "-I", "-S", "-B", "-c", _CHILD, str(Path(pypto.__file__).parents[1]), json.dumps(order)]
    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=stderr, pass_fds=descriptors)
    except (OSError, ValueError) as error:
        raise LoadError(f"{entry}: a checked run starts a child process, which failed: {error}") from None
    try:
        return child.wait()
    finally:
        if child.returncode is None:
            child.kill()
            child.wait()


def _memory_file(stack: contextlib.ExitStack, name: str) -> int:
    descriptor = os.memfd_create(name)
    stack.callback(os.close, descriptor)
    return descriptor


def _object_file(stack: contextlib.ExitStack, path: str, content: bytes) -> int:
    descriptor = shared_objects.sealed_file(content, path)
    if descriptor is None:
        raise LoadError(f"{path}: a checked run needs anonymous files (memfd), which this system does not allow")
    stack.callback(os.close, descriptor)
    return descriptor


def _crash(config: KernelConfig, crash: abi.CrashReport, said: str, locate: Locate | None) -> SimulatorCheckError:
    place = find_place(config, crash.kernel_id, crash.op, crash.line, locate)
    touched = "".join(_touched(config, crash))
    message = f"{config.entry}: {place.text} was ended by {_signal_name(crash.signal)}{touched}{_quoted(said)}"
    return _error(message, place, crash.signal)


def _error(message: str, place: Place, signal: int | None = None) -> SimulatorCheckError:
    error = SimulatorCheckError(message, task=place.task, op=place.op, function=place.function, line=place.line)
    error.signal = signal
    return error


def _touched(config: KernelConfig, crash: abi.CrashReport) -> Iterator[str]:
    if crash.buffer < 0:
        return
    count = len(config.params)
    what = (
        f"tensor '{config.params[crash.buffer].name}'" if crash.buffer < count else f"workspace {crash.buffer - count}"
    )
    if crash.offset >= crash.buffer_size:
        yield f": it touched memory {crash.offset - crash.buffer_size} bytes behind the end of {what}"
    elif crash.offset < 0:
        yield f": it touched memory {-crash.offset} bytes before the start of {what}"
    else:
        yield f": it wrote byte {crash.offset} of {what}, which is an input"


def _signal_name(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _quoted(said: str) -> str:
    return f"\n  {said.strip()}" if said.strip() else ""
