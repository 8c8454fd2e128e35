"""Workers: programs and tensors that stay with one device, or with the simulator in its place."""

from __future__ import annotations

import math
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from pypto.runtime import dlpack
from pypto.runtime.arguments import MAX_ELEMENTS, NUMPY_DTYPES, scalar_bits
from pypto.runtime.compiled import CompiledKernel
from pypto.runtime.config import ExecutionMode, RunConfig
from pypto.runtime.device_tensor import DeviceTensor
from pypto.runtime.errors import DeviceUnavailable
from pypto.runtime.kernel_config import Parameter
from pypto.runtime.program import CompiledProgram
from pypto.runtime.specs import whole_lengths

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

Program = CompiledKernel | CompiledProgram
"""What a worker runs: a compiled kernel, or its loaded program."""


class RegisteredProgram:
    """A program that a worker holds; calling it runs it there.

    Attributes:
        program: its loaded binaries. They stay loaded whatever happens to the files that they came from.
        worker: where it runs.
    """

    def __init__(self, worker: ChipWorker, program: CompiledProgram) -> None:
        self.worker = worker
        self.program = program

    def __call__(self, *args: object, config: RunConfig | None = None) -> object:
        """Run with these arguments; as `ChipWorker.run`."""
        return self.worker.run(self, *args, config=config)

    def __repr__(self) -> str:
        return f"<RegisteredProgram {self.program.config.entry} of {self.worker!r}>"


class ChipWorker:
    """One device, or the simulator in its place, with the programs and tensors that stay on it.

    A context manager, at whose end everything on the device is given back. Safe to use from several threads: calls run
    at the same time, and closing waits for them.

    Args:
        config: target, device and threads of the calls; default the simulator of ``Ascend910B``.

    Raises:
        DeviceUnavailable: ``config`` asks for an NPU, and this machine has none.
    """

    def __init__(self, config: RunConfig | None = None) -> None:
        if config is None:
            config = RunConfig()
        elif not isinstance(config, RunConfig):
            raise TypeError(f"config is a pypto.runtime.RunConfig, got {config!r}")
        if config.execution_mode is ExecutionMode.DEVICE:
            raise DeviceUnavailable(
                f"a worker for {config.platform_name} needs an NPU and its driver, and this machine has none; "
                "execution_mode='sim' makes one for the simulator"
            )
        self.config = config
        plain = RunConfig(backend_type=config.backend_type, execution_mode=config.execution_mode)
        self._settings = None if config == plain else config
        self._registered: dict[Program, RegisteredProgram] = {}
        self._tensors: set[DeviceTensor] = set()
        self._closed = False
        self._renew()
        _workers.add(self)

    def __enter__(self) -> ChipWorker:
        with self._changed:
            self._refuse_if_closed()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def register(self, compiled: Program) -> RegisteredProgram:
        """Load a program and keep it until the worker is closed; the same program has one handle.

        Raises:
            ValueError: it was built for another target.
            TypeError: it is not a compiled kernel or program.
            RuntimeError: the worker is closed.
            ToolchainNotInstalled, ToolError, LoadError: its binaries are missing and cannot be built, or not be loaded.
        """
        with self._changed:
            self._refuse_if_closed()
            known = self._registered.get(_checked(compiled))
        if known is not None:
            return known
        made = RegisteredProgram(self, self._fitting(compiled))
        with self._changed:
            self._refuse_if_closed()
            return self._registered.setdefault(compiled, made)

    def run(self, compiled: Program | RegisteredProgram, *args: object, config: RunConfig | None = None) -> object:
        """Run a program once and return the entry's returned outputs.

        Args:
            compiled: the program; `register` keeps one that is run again and again.
            args: one per parameter: arrays of the host, scalars, and tensors of this worker.
            config: settings of this call; default the worker's.

        Raises:
            ValueError: it was built for another target, or a tensor belongs to another worker.
            RuntimeError: the worker is closed, or a tensor was freed.
            Whatever a call of the program raises.
        """
        self._begin()
        try:
            program = self._program(compiled)
            settings = self._settings if config is None else config
            if not any(isinstance(value, DeviceTensor) for value in args):
                return program(*args, config=settings)
            # The program gets arrays in their place, for which it has its fastest way.
            values = list(args)
            for at, (param, value) in enumerate(zip(program.config.params, args, strict=False)):
                if isinstance(value, DeviceTensor):
                    values[at] = self._own(value, f"{program.config.entry}(): argument '{param.name}'")
            program(*values, config=settings)
            outputs = tuple(args[index] for index in program.config.returns)
            return outputs if len(outputs) > 1 else outputs[0] if outputs else None
        finally:
            self._end()

    def alloc_tensor(self, shape: Sequence[int], dtype: object, init: object = None) -> DeviceTensor:
        """A tensor in the worker's memory.

        Args:
            shape: lengths of its axes.
            dtype: such as ``pl.FP32``, ``"FP32"`` or ``np.float32``.
            init: array of that shape and dtype to copy, or a number for all elements; ``None`` leaves them unspecified.

        Raises:
            TypeError, ValueError: a shape, dtype or initial value that cannot be used.
            RuntimeError: the worker is closed.
        """
        lengths = _lengths(shape)
        name, numpy_dtype = _element_type(dtype)
        array = np.empty(lengths, numpy_dtype)
        if init is None:
            # Whoever reads what nobody wrote shall notice: in floating-point types this is no number.
            array.view(np.uint8).fill(0xFF if name != "BOOL" else 0)
        elif isinstance(init, (bool, int, float, np.bool_, np.number)):
            array.fill(_checked_number(init, name))
        else:
            np.copyto(array, _host_array(init, lengths, numpy_dtype, "init"))
        tensor = DeviceTensor(array, name, self)
        with self._changed:
            self._refuse_if_closed()
            self._tensors.add(tensor)
        return tensor

    def free_tensor(self, tensor: DeviceTensor) -> None:
        """Give a tensor's memory back; calls in progress still have it.

        Raises:
            ValueError: it belongs to another worker.
            RuntimeError: it was freed before, or the worker is closed.
        """
        with self._changed:
            self._refuse_if_closed()
            self._own(tensor, "free_tensor")
            self._tensors.discard(tensor)
            tensor.release()

    def copy_to(self, tensor: DeviceTensor, source: object) -> None:
        """Copy an array of the host, of the very shape and dtype, into a tensor.

        Raises:
            TypeError, ValueError: ``source`` does not fit, or the tensor belongs to another worker.
            RuntimeError: the tensor was freed, or the worker is closed.
        """
        with self._call():
            memory = self._own(tensor, "copy_to")
            np.copyto(memory, _host_array(source, memory.shape, memory.dtype, "the source of copy_to"))

    def copy_from(self, tensor: DeviceTensor, target: np.ndarray[Any, Any] | None = None) -> np.ndarray[Any, Any]:
        """Copy a tensor to the host: into ``target``, an array of that shape and dtype, or into a new one.

        Returns:
            The array.

        Raises:
            TypeError, ValueError: ``target`` does not fit, or the tensor belongs to another worker.
            RuntimeError: the tensor was freed, or the worker is closed.
        """
        with self._call():
            memory = self._own(tensor, "copy_from")
            if target is None:
                return memory.copy()
            if not isinstance(target, np.ndarray):
                raise TypeError(f"the target of copy_from is a NumPy array, got {type(target).__name__}")
            np.copyto(_host_array(target, memory.shape, memory.dtype, "the target of copy_from"), memory)
            return target

    def close(self) -> None:
        """Wait for calls in progress, then give back every tensor and program. Closing again does nothing."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: self._calls == 0)
            for tensor in self._tensors:
                tensor.release()
            self._tensors.clear()
            self._registered.clear()

    def __repr__(self) -> str:
        return f"<ChipWorker {self.config.platform_name}{', closed' if self._closed else ''}>"

    def _renew(self) -> None:
        """As no thread holds it: a forked child has none of its parent's threads, and its memory as its own."""
        self._changed = threading.Condition()
        self._calls = 0

    def _begin(self) -> None:
        with self._changed:
            self._refuse_if_closed()
            self._calls += 1

    def _end(self) -> None:
        with self._changed:
            self._calls -= 1
            if self._closed:
                self._changed.notify_all()

    @contextmanager
    def _call(self) -> Iterator[None]:
        self._begin()
        try:
            yield
        finally:
            self._end()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise RuntimeError("this ChipWorker is closed; make another one")

    def _own(self, tensor: object, what: str) -> np.ndarray[Any, Any]:
        if not isinstance(tensor, DeviceTensor):
            raise TypeError(f"{what} takes a DeviceTensor of this worker, got {type(tensor).__name__}")
        if tensor.owner is not self:
            raise ValueError(
                f"{what}: {tensor!r} belongs to {tensor.owner!r}; copy_from and copy_to carry its elements"
            )
        return tensor.memory(what)

    def _program(self, compiled: Program | RegisteredProgram) -> CompiledProgram:
        if not isinstance(compiled, RegisteredProgram):
            return self._fitting(_checked(compiled))
        if compiled.worker is not self:
            raise ValueError(f"{compiled!r} is registered with another worker; register it with this one")
        return compiled.program

    def _fitting(self, compiled: Program) -> CompiledProgram:
        program = compiled.load() if isinstance(compiled, CompiledKernel) else compiled
        if program.platform != self.config.platform_name:
            raise ValueError(
                f"'{program.config.entry}' was built for {program.platform}, and this worker is for "
                f"{self.config.platform_name}"
            )
        return program


_workers: weakref.WeakSet[ChipWorker] = weakref.WeakSet()


def _renew_all() -> None:
    for worker in list(_workers):
        worker._renew()


os.register_at_fork(after_in_child=_renew_all)


def _checked(compiled: object) -> Program:
    if isinstance(compiled, (CompiledKernel, CompiledProgram)):
        return compiled
    raise TypeError(
        f"a worker runs what f.compile(...) or CompiledProgram.from_dir(...) returns, got {type(compiled).__name__}"
    )


def _lengths(shape: Sequence[int]) -> tuple[int, ...]:
    lengths = whole_lengths(shape)
    if lengths is None:
        raise TypeError(f"shape is a sequence of lengths, got {shape!r}")
    if not lengths or any(length < 1 for length in lengths):
        raise ValueError(f"shape has positive lengths, one at least, got {lengths}")
    if math.prod(lengths) > MAX_ELEMENTS:
        raise ValueError(f"shape {lengths} has {math.prod(lengths)} elements; kernels address at most {MAX_ELEMENTS}")
    return lengths


def _checked_number(value: object, dtype: str) -> object:
    """A number that every element can be, unless it does not fit the element type."""
    if dtype == "BOOL" and value in (0, 1):
        return bool(value)
    scalar_bits("alloc_tensor", Parameter("init", "scalar", "in", dtype), value)
    return value


def _element_type(dtype: object) -> tuple[str, np.dtype[Any]]:
    name = str(dtype)
    if name in NUMPY_DTYPES:
        return name, NUMPY_DTYPES[name]
    try:
        wanted = np.dtype(dtype)  # type: ignore[call-overload]
    except TypeError:
        wanted = None
    for name, known in NUMPY_DTYPES.items():
        if known == wanted:
            return name, known
    raise TypeError(f"dtype is one of {', '.join(NUMPY_DTYPES)} or the NumPy type of one, got {dtype!r}")


def _host_array(value: object, shape: tuple[int, ...], dtype: np.dtype[Any], what: str) -> np.ndarray[Any, Any]:
    if isinstance(value, np.ndarray):
        array = value
    elif hasattr(value, "__dlpack__"):
        try:
            array = dlpack.import_tensor(value).array
        except dlpack.UnsupportedTensor as error:
            raise TypeError(f"{what} cannot be used: {error}") from None
    else:
        raise TypeError(f"{what} is an array, got {type(value).__name__}")
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(f"{what} has shape {array.shape} and dtype {array.dtype}, expected {shape} and {dtype}")
    return array
