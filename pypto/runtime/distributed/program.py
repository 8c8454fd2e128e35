"""A distributed program that can be called, and a worker that keeps its ranks between calls."""

from __future__ import annotations

import mmap
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pypto.runtime.config import BackendType, ExecutionMode, RunConfig, platform_name
from pypto.runtime.distributed.arguments import DistributedArguments, bind_distributed
from pypto.runtime.distributed.config import DistributedConfig
from pypto.runtime.distributed.host_program import HostProgram
from pypto.runtime.distributed.manifest import chip_files
from pypto.runtime.distributed.plan import Plan, make_plan
from pypto.runtime.distributed.ranks import Ranks
from pypto.runtime.distributed.regions import Region
from pypto.runtime.errors import DeviceUnavailable, LoadError
from pypto.runtime.kernel_config import CONFIG_FILE, KernelConfig
from pypto.runtime.places import Locate
from pypto.runtime.prebuilt import check, is_distributed


class DistributedProgram:
    """A program of a HOST entry and its chips' programs. Calls from several threads are independent.

    Attributes:
        host: the entry, as data.
        backend_type, execution_mode, platform: the target of every chip.
        param_names: names of all parameters, in call order.
        output_indices: positions of the parameters that are written.
        has_return: whether a call returns something.
        run_directory: where runs put what they leave behind: a folder for each rank, in it one for each chip's program.
        latest_diagnostics: folder of the latest run that left some.
    """

    def __init__(
        self,
        files: Mapping[str, bytes],
        *,
        locate: Locate | None = None,
        digests: Mapping[str, str] | None = None,
        run_directory: Path | None = None,
    ) -> None:
        """Check the files of a READY artifact; no process is started and nothing of them is loaded.

        Args:
            digests: SHA-256 by path, for bytes that were hashed and compared already.
            run_directory: where runs put what they leave behind, if they leave anything.

        Raises:
            LoadError: a file is missing or damaged.
            DeviceUnavailable: the program is for NPUs.
        """
        self._files = chip_files(files)
        self.host = HostProgram.from_bytes(files[CONFIG_FILE])
        self.backend_type = BackendType(self.host.backend_type)
        self.execution_mode = ExecutionMode(self.host.execution_mode)
        self.platform = platform_name(self.backend_type, self.execution_mode)
        if self.execution_mode is not ExecutionMode.SIM:
            raise DeviceUnavailable(
                f"'{self.host.entry}' is built for execution_mode='device' ({self.host.backend_type}); running it "
                "needs NPUs and their driver, and this machine has none"
            )
        self._chips: list[KernelConfig] = []
        for chip, own in self._files.items():
            known = None if digests is None else {name: digests[f"{chip}/{name}"] for name in own}
            self._chips.append(check(own, known))
        self.param_names = tuple(param.name for param in self.host.params)
        self.output_indices = tuple(i for i, param in enumerate(self.host.params) if param.direction != "in")
        self.has_return = bool(self.host.returns)
        self._locate = locate
        self.run_directory = run_directory
        self.latest_diagnostics: Path | None = None

    @classmethod
    def from_dir(cls, directory: str | os.PathLike[str]) -> DistributedProgram:
        """The program of a READY directory.

        Raises:
            LoadError: it is none, or a file is missing or damaged.
            DeviceUnavailable: the program is for NPUs.
        """
        root = Path(directory)
        files = {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        if not is_distributed(files):
            raise LoadError(f"{root} is not the READY directory of a distributed program")
        return cls(files, run_directory=root / "run")

    def __call__(self, *args: object, config: RunConfig | None = None) -> object:
        """Start the ranks, run once, end them; returns the entry's returned outputs.

        The caller's outputs change only if the run succeeds.

        Args:
            args: one per parameter: an array whose axes are the parameter's, or a list with one array for each rank.
            config: settings with ``distributed_config``, which says how many ranks there are.

        Raises:
            TypeError, ValueError: an argument does not fit its parameter, or there is no ``distributed_config``.
            HostProgramError: the entry cannot be run with these arguments and ranks.
            RankError: a rank failed, died or did not finish.
        """
        # What does not fit is said before a process is started.
        bound, plan = self.bind(args, self.settings(config).world_size)
        with DistributedWorker(self, config) as worker:
            return worker.run_bound(bound, plan, config)

    def prepare(self, config: RunConfig | None = None) -> DistributedWorker:
        """A worker whose ranks stay until it is closed; ``config`` says how many there are."""
        return DistributedWorker(self, config)

    def __repr__(self) -> str:
        return f"<DistributedProgram {self.host.entry}({', '.join(self.param_names)}) for {self.platform}>"

    def settings(self, config: RunConfig | None) -> DistributedConfig:
        """The ranks that a call's settings ask for.

        Raises:
            ValueError: they name none, or ask for another target than the program was built for.
        """
        if config is not None and not isinstance(config, RunConfig):
            raise TypeError(f"config is a pypto.runtime.RunConfig, got {config!r}")
        if config is None or config.distributed_config is None:
            raise ValueError(
                f"'{self.host.entry}' is a distributed program: say on which devices it runs, as "
                "config=RunConfig(distributed_config=DistributedConfig(device_ids=[0, 1]))"
            )
        if config.platform_name != self.platform:
            raise ValueError(
                f"'{self.host.entry}' was built for {self.platform}, but the call's RunConfig asks for "
                f"{config.platform_name}"
            )
        if config.sim_checks and self.host.cores_talk:
            raise ValueError(
                f"'{self.host.entry}': sim_checks runs every call of a chip on a copy of its memory, where cores "
                "cannot reach other ranks; leave it out"
            )
        wanted: DistributedConfig = config.distributed_config
        if wanted.runtime is not None and wanted.runtime != self.host.runtime:
            raise ValueError(
                f"'{self.host.entry}' was built for the runtime {self.host.runtime}, but the call's DistributedConfig "
                f"asks for {wanted.runtime}"
            )
        return wanted

    def start(self, config: DistributedConfig) -> Ranks:
        """Start the processes of the ranks; raises `pypto.runtime.LoadError`."""
        return Ranks(self.host.entry, list(self._files.values()), config, self._lines())

    def bind(self, args: tuple[object, ...], world: int) -> tuple[DistributedArguments, Plan]:
        """Check arguments, and turn the entry into steps; raises as `__call__`."""
        bound = bind_distributed(self.host.entry, self.host.params, args, world)
        chips = [config.params for config in self._chips]
        return bound, make_plan(self.host, chips, bound.bound.values, bound.arrays, world, self._locate)

    def diagnostics_folder(self) -> Path:
        """Where the next run that leaves diagnostics puts them."""
        if self.run_directory is None:
            from pypto.runtime.diagnostics.writing import fallback_run_directory

            self.run_directory = fallback_run_directory(self.host.entry)
        self.latest_diagnostics = self.run_directory
        return self.run_directory

    def _lines(self) -> dict[str, tuple[str, int]]:
        functions = {config.entry for config in self._chips}
        functions |= {op.function for config in self._chips for kernel in config.kernels for op in kernel.ops}
        found = {function: self._locate(function, 1) for function in sorted(functions)} if self._locate else {}
        return {function: place for function, place in found.items() if place is not None}


class DistributedWorker:
    """A distributed program whose ranks stay between calls. A context manager; calls from several threads take turns.

    Attributes:
        processes: process number of every rank.
    """

    def __init__(self, program: DistributedProgram, config: RunConfig | None) -> None:
        """Start the ranks.

        Raises:
            ValueError: ``config`` does not say on which devices.
            LoadError: they cannot be started.
        """
        self._program = program
        self._config = program.settings(config)
        self._default = config
        self._lock = threading.Lock()
        self._ranks = program.start(self._config)
        self.processes = tuple(self._ranks.processes)

    def __call__(self, *args: object, config: RunConfig | None = None) -> object:
        """Run once; arguments, result and errors as of the program's call. After a `RankError` the ranks are gone.

        Raises:
            RuntimeError: the worker is closed, or belongs to another process.
        """
        settings = self._default if config is None else config
        if self._program.settings(settings).device_ids != self._config.device_ids:
            raise ValueError(
                f"the worker of '{self._program.host.entry}' has the devices {list(self._config.device_ids)}, the "
                "call's DistributedConfig names others; prepare another worker"
            )
        bound, plan = self._program.bind(args, self._config.world_size)
        return self.run_bound(bound, plan, settings)

    def run_bound(self, bound: DistributedArguments, plan: Plan, settings: RunConfig | None) -> object:
        """Run with arguments that `DistributedProgram.bind` checked; otherwise as a call."""
        assert settings is not None
        with self._lock:
            if not self._ranks.alive:
                raise RuntimeError(
                    f"the worker of '{self._program.host.entry}' is closed, belongs to another process, or its ranks "
                    "ended with an error; prepare another one"
                )
            self._run(bound, plan, settings)
        outputs = tuple(bound.values[index] for index in self._program.host.returns)
        return None if not outputs else outputs[0] if len(outputs) == 1 else outputs

    def close(self) -> None:
        """End the ranks; closing again does nothing."""
        self._ranks.close()

    def __enter__(self) -> DistributedWorker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, bound: DistributedArguments, plan: Plan, settings: RunConfig) -> None:
        # Anonymous: it is gone with the last process that has it, however that ends.
        descriptor = os.memfd_create("windows", os.MFD_CLOEXEC)
        try:
            os.ftruncate(descriptor, plan.size)
            with mmap.mmap(descriptor, plan.size) as memory:
                for region, array in zip(plan.arguments, bound.arrays, strict=True):
                    if region is not None and array is not None:
                        memory[slice(*region.span)] = array.tobytes()
                folder = self._program.diagnostics_folder() if settings.wants_run_diagnostics else None
                self._ranks.run(plan, memory, descriptor, self._chip_settings(settings), folder)
                for index in self._program.output_indices:
                    region = plan.arguments[index]
                    assert region is not None
                    bound.hand_back(index, _content(memory, region, bound.arrays[index]))
        finally:
            os.close(descriptor)

    def _chip_settings(self, settings: RunConfig) -> dict[str, Any]:
        """What of a call's settings the ranks' own calls are made with, as plain data."""
        return {
            "backend_type": self._program.backend_type.value,
            "execution_mode": self._program.execution_mode.value,
            "runtime": self._program.host.runtime,
            "ring_task_window": settings.ring_task_window,
            "ring_heap": settings.ring_heap,
            "ring_dep_pool": settings.ring_dep_pool,
            "enable_chip_swimlane": settings.enable_chip_swimlane,
            "enable_dep_gen": settings.enable_dep_gen,
            "enable_scope_stats": settings.enable_scope_stats,
            "aicpu_thread_num": self._config.aicpu_thread_num or settings.aicpu_thread_num,
            "sim_checks": settings.sim_checks,
        }


def _content(memory: mmap.mmap, region: Region, like: np.ndarray | None) -> np.ndarray:
    assert like is not None
    return np.frombuffer(memory[slice(*region.span)], like.dtype).reshape(region.shape)
