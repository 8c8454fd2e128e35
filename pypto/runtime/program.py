"""A compiled program that can be called."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pypto.runtime import abi
from pypto.runtime.config import BackendType, ExecutionMode, RunConfig, platform_name
from pypto.runtime.errors import KernelRunError, SimulatorCheckError
from pypto.runtime.kernel_config import KernelConfig
from pypto.runtime.places import Locate, find_place
from pypto.runtime.targets import TENSORMAP_AND_RINGBUFFER

if TYPE_CHECKING:
    from pypto.runtime.diagnostics.trace import TimedRuns
    from pypto.runtime.diagnostics.writing import TracedRuns
    from pypto.runtime.prepared import PreparedCall

_PREPARED = 64
"""Different calls that a program is prepared for."""


class CompiledProgram:
    """A kernel entry with its loaded binaries. Calls from several threads are independent.

    Attributes:
        output_dir: the directory it was loaded from, if any.
        run_directory: where runs put diagnostics; made by the first run that does.
        latest_diagnostics: folder of the latest run that left some.
        platform: the target in one word, such as ``a2a3sim``.
        backend_type: the hardware generation.
        execution_mode: ``sim`` or ``device``.
        program: the IR it was compiled from, if it was compiled in this process.
        param_names: names of all parameters, in call order.
        output_indices: positions of the parameters that are written.
        has_return: whether a call returns something.
        orchestration_names: names of the entries.
        config: the whole description.
    """

    def __init__(
        self,
        config: KernelConfig,
        orchestration: abi.Orchestration,
        binaries: Mapping[str, bytes],
        *,
        output_dir: Path | None = None,
        program: object = None,
        locate: Locate | None = None,
        run_directory: Path | None = None,
    ) -> None:
        self.config = config
        self.output_dir = output_dir
        self.run_directory = run_directory
        self.latest_diagnostics: Path | None = None
        self.backend_type = BackendType(config.backend_type)
        self.execution_mode = ExecutionMode(config.execution_mode)
        self.platform = platform_name(self.backend_type, self.execution_mode)
        self.program = program
        self.param_names = tuple(param.name for param in config.params)
        self.output_indices = tuple(i for i, param in enumerate(config.params) if param.direction != "in")
        self.has_return = bool(config.returns)
        self.orchestration_names = (config.entry,)
        self._default = RunConfig(backend_type=self.backend_type, execution_mode=self.execution_mode)
        self._orchestration: abi.Orchestration | None = orchestration
        self._prepared: dict[Hashable, PreparedCall] = {}
        self._binaries = binaries
        self._locate = locate

    @classmethod
    def from_dir(cls, directory: str | os.PathLike[str]) -> CompiledProgram:
        """The program of a READY directory.

        Raises:
            LoadError: a file is missing or damaged, or a binary does not fit this process.
            DeviceUnavailable: the program is for an NPU.
        """
        from pypto.runtime.prebuilt import load_directory

        return load_directory(Path(directory))

    def __call__(self, *args: object, config: RunConfig | None = None) -> object:
        """Run with these arguments and return the entry's returned outputs: ``None``, one tensor, or a tuple.

        Args:
            args: one per parameter; tensors as NumPy arrays or anything with ``__dlpack__``, scalars as numbers.
            config: settings of this call; the target must be the one that the program was built for.

        Raises:
            TypeError, ValueError: an argument does not fit its parameter.
            KernelRunError: the orchestration or a task reported an error.
            SimulatorCheckError: the simulator stopped a task, or a run with ``sim_checks`` found a fault.
        """
        from pypto.runtime.prepared import facts

        name = facts(args)
        if config is None and (prepared := self._prepared.get(name)) is not None:
            frame = prepared.fill(self, args)
            if frame is not None:
                return prepared.run(self, frame, args)
        settings = self._settings(config)
        runs = self.loaded()
        result = self._call(self._traced(runs, settings) if settings.wants_run_diagnostics else runs, args, settings)
        if config is None and len(self._prepared) < _PREPARED:
            made = self.prepare(args)
            if made is not None:
                self._prepared[name] = made
        return result

    def timed(self, *args: object, config: RunConfig | None = None) -> tuple[object, int]:
        """As a call; with its result the nanoseconds from the start of the orchestration to the end of the last task.

        Raises:
            ValueError: the settings ask for more than a plain run. Otherwise as a call.
        """
        from pypto.runtime.diagnostics.trace import TimedRuns

        settings = self._settings(config)
        if settings.sim_checks or settings.wants_run_diagnostics:
            raise ValueError(f"'{self.config.entry}': checked runs and runs with diagnostics are not worth timing")
        with TimedRuns(self.loaded()) as runs:
            return self._call(runs, args, settings), runs.nanoseconds()

    def loaded(self) -> abi.Orchestration:
        """The loaded code.

        Raises:
            RuntimeError: it was released.
        """
        orchestration = self._orchestration
        if orchestration is None:
            raise RuntimeError(f"'{self.config.entry}' was released; load it again to call it")
        return orchestration

    def _call(
        self, runs: abi.Orchestration | TracedRuns | TimedRuns, args: tuple[object, ...], settings: RunConfig
    ) -> object:
        from pypto.runtime.arguments import bind

        bound = bind(self.config.entry, self.config.params, args)
        if settings.sim_checks:
            from pypto.runtime.checked import run_checked

            ring = ring_of(self.config, settings)
            result = run_checked(self.config, self._binaries, bound, settings, self._locate, ring)
        else:
            result = runs.run(
                bound.c_arguments, threads=settings.aicpu_thread_num or 0, ring=ring_of(self.config, settings)
            )
        self.raise_for(result)
        return self.returned(args)

    def prepare(self, args: Sequence[object], config: RunConfig | None = None) -> PreparedCall | None:
        """What runs calls like this one faster; ``None`` if there is nothing that does.

        Raises:
            TypeError, ValueError: as a call.
        """
        from pypto.runtime.arguments import bind
        from pypto.runtime.prepared import PreparedCall, can_prepare

        settings = self._settings(config)
        if settings.sim_checks or settings.wants_run_diagnostics or not can_prepare(self.config.params, args):
            return None
        bound = bind(self.config.entry, self.config.params, args)
        return PreparedCall(self.config, bound, settings.aicpu_thread_num or 0, ring_of(self.config, settings))

    def release(self) -> None:
        """Unload the binaries, once the calls in progress have ended. Later calls are a ``RuntimeError``."""
        self._orchestration = None
        self._prepared.clear()

    def __repr__(self) -> str:
        return f"<CompiledProgram {self.config.entry}({', '.join(self.param_names)}) for {self.platform}>"

    def _traced(self, orchestration: abi.Orchestration, settings: RunConfig) -> TracedRuns:
        from pypto.runtime.diagnostics.writing import TracedRuns, fallback_run_directory

        if self.run_directory is None:
            self.run_directory = fallback_run_directory(self.config.entry)

        def finished(folder: Path) -> None:
            self.latest_diagnostics = folder

        return TracedRuns(orchestration, settings, self.config, self._locate, self.run_directory, finished)

    def _settings(self, config: RunConfig | None) -> RunConfig:
        if config is None:
            return self._default
        if not isinstance(config, RunConfig):
            raise TypeError(f"config is a pypto.runtime.RunConfig, got {config!r}")
        if config.platform_name != self.platform:
            raise ValueError(
                f"'{self.config.entry}' was built for {self.platform}, but the call's RunConfig asks for "
                f"{config.platform_name}"
            )
        if config.runtime is not None and config.runtime.value != self.config.runtime:  # type: ignore[union-attr]
            raise ValueError(
                f"'{self.config.entry}' was built for the runtime {self.config.runtime}, but the call's RunConfig asks "
                f"for {config.runtime.value}"  # type: ignore[union-attr]
            )
        return config

    def raise_for(self, result: abi.RunResult) -> None:
        """Raise the error that the result of a run stands for, if it failed."""
        if result.status == abi.OK:
            return
        place = find_place(self.config, result.kernel_id, result.op, result.line, self._locate)
        said = result.message.decode("utf-8", "replace")
        kind: type[KernelRunError | SimulatorCheckError] = SimulatorCheckError
        if result.status == abi.GUARD_OVERWRITTEN:
            message = f"{said} by {place.text} or one that ran at the same time"
        elif result.status == abi.SIMULATOR_FAULT:
            message = f"{place.text} was stopped: {said}"
        else:
            kind = KernelRunError
            message = f"{place.text} failed: {said}{_advice(said)}"
        raise kind(
            f"{self.config.entry}: {message}", task=place.task, op=place.op, function=place.function, line=place.line
        )

    def returned(self, args: Sequence[object]) -> object:
        """What a call with these arguments returns."""
        returns = self.config.returns
        if len(returns) == 1:
            return args[returns[0]]
        return tuple(args[index] for index in returns) or None


def ring_of(config: KernelConfig, settings: RunConfig) -> abi.Ring | None:
    """The sizes for a run by ``tensormap_and_ringbuffer``; ``None`` for a program of ``host_build_graph``."""
    if config.runtime != TENSORMAP_AND_RINGBUFFER:
        return None
    return abi.Ring(settings.ring_task_window or 0, settings.ring_heap or 0, settings.ring_dep_pool or 0)


def _advice(said: str) -> str:
    if said.startswith("pl.load reads outside of"):
        return "; valid_shape says how much of the window holds data, clamp=True as much as the tensor has"
    if said.startswith("pl.load: a valid length is outside"):
        return "; with clamp=True, an offset is past the end of its axis"
    return ""
