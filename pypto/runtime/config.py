"""How a kernel is compiled and run: `RunConfig` and its enumerations."""

from __future__ import annotations

import enum
import math
import operator
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pypto.runtime.distributed.config import DistributedConfig


class BackendType(enum.Enum):
    """Hardware generation."""

    Ascend910B = "Ascend910B"
    """A2/A3."""
    Ascend950 = "Ascend950"
    """A5."""


class ExecutionMode(enum.Enum):
    """Where kernels run."""

    SIM = "sim"
    """In the CPU simulator."""
    DEVICE = "device"
    """On an NPU."""


class RuntimeKind(enum.Enum):
    """Who runs the tasks of a call."""

    HOST_BUILD_GRAPH = "host_build_graph"
    """All tasks are submitted, then they run."""
    TENSORMAP_AND_RINGBUFFER = "tensormap_and_ringbuffer"
    """Tasks run while more of them are submitted, in a bounded window and bounded memory."""


class OptimizationStrategy(enum.Enum):
    """Which set of passes compiles a kernel."""

    Default = "Default"


class MemoryPlanner(enum.Enum):
    """Who reuses on-chip memory for tiles; the assembler gives them their addresses."""

    PYPTO = "PYPTO"
    """Tiles are computed in place of operands that are not needed again. The default."""
    DSA_RP = "DSA_RP"
    """Also, storage whose tiles are not needed any more is used again for later tiles of its size."""
    PTOAS = "PTOAS"
    """The assembler alone: each tile has storage of its own, which it reuses by lifetime."""


_TARGETS = {
    "a2a3": (BackendType.Ascend910B, ExecutionMode.DEVICE),
    "a2a3sim": (BackendType.Ascend910B, ExecutionMode.SIM),
    "a5": (BackendType.Ascend950, ExecutionMode.DEVICE),
    "a5sim": (BackendType.Ascend950, ExecutionMode.SIM),
}


def platform_name(backend_type: BackendType, execution_mode: ExecutionMode) -> str:
    """The one-word name of a target: ``a2a3``, ``a2a3sim``, ``a5`` or ``a5sim``."""
    return next(name for name, target in _TARGETS.items() if target == (backend_type, execution_mode))


@dataclass(frozen=True)
class RunConfig:
    """Settings of one compilation and of the calls made with it. Immutable; values are coerced to their types.

    Enumerations are accepted as members or by their text. Contradictory settings, and settings that nothing in the
    chosen target would heed, are a ``ValueError``.

    Attributes:
        platform: legacy spelling of ``backend_type`` and ``execution_mode`` in one word (``a2a3``, ``a2a3sim``, ``a5``,
            ``a5sim``); deprecated, ``None`` once it has been understood. `platform_name` is the word for any config.
        backend_type: hardware generation; default ``Ascend910B``.
        device_id: number of the NPU.
        strategy: which passes compile a kernel.
        memory_planner: who reuses on-chip memory; ``None`` for the default.
        dump_passes, dump_ptoas_passes: keep the program after each pass, and each kernel after each pass of ptoas.
        save_kernels, save_kernels_dir: keep the generated code and the binaries, and where; either one asks for it.
        codegen_only: generate sources, compile nothing.
        rtol, atol: tolerances for comparing results with a golden function.
        aicpu_thread_num: threads that run tasks; ``None`` for as many as the machine has. Independent tasks always get
            two at least.
        distributed_config: the ranks of a distributed program, a `DistributedConfig`.
        compile_profiling: keep the time of each pass, of ptoas and of the compiler for each kernel.
        enable_chip_swimlane: each run writes a timeline of its tasks into its run directory; any number but 0.
        enable_dep_gen: each run writes the graph of its tasks.
        enable_scope_stats: each run writes how often and how long its scopes ran.
        ring_task_window, ring_heap, ring_dep_pool: tasks, bytes of workspaces and dependencies that exist at once in
            the runtime ``tensormap_and_ringbuffer``, which they choose; default 16384, 1 GiB and 65536.
        execution_mode: ``sim`` (default) or ``device``.
        runtime: who runs the tasks, ``host_build_graph`` (default) or ``tensormap_and_ringbuffer``; part of what is
            compiled.
        cache_config: a ``pypto.CacheConfig`` for this call, or ``None`` for the process's.
        sim_checks: run in a child process with guarded memory, so that a crash, a failed assertion or an access out of
            bounds becomes a ``SimulatorCheckError``. Slow; for tests.
    """

    platform: str | None = None
    backend_type: BackendType | str | None = None
    device_id: int = 0
    strategy: OptimizationStrategy | str = OptimizationStrategy.Default
    memory_planner: MemoryPlanner | str | None = None
    dump_passes: bool = False
    dump_ptoas_passes: bool = False
    save_kernels: bool = False
    save_kernels_dir: str | os.PathLike[str] | None = None
    codegen_only: bool = False
    rtol: float = 1e-5
    atol: float = 1e-5
    aicpu_thread_num: int | None = None
    distributed_config: Any = None
    compile_profiling: bool = False
    enable_chip_swimlane: int = 0
    enable_dep_gen: bool = False
    enable_scope_stats: bool = False
    ring_task_window: int | None = None
    ring_heap: int | None = None
    ring_dep_pool: int | None = None
    execution_mode: ExecutionMode | str | None = None
    runtime: RuntimeKind | str | None = None
    cache_config: Any = None
    sim_checks: bool = False

    def __post_init__(self) -> None:
        for name, coerce in _COERCIONS.items():
            object.__setattr__(self, name, coerce(name, getattr(self, name)))
        self._resolve_target()
        self._take_runtime_of_chips()
        self._refuse_contradictions()

    @property
    def platform_name(self) -> str:
        """The target in one word: ``a2a3``, ``a2a3sim``, ``a5`` or ``a5sim``."""
        return platform_name(self.backend_type, self.execution_mode)  # type: ignore[arg-type]

    @property
    def wants_run_diagnostics(self) -> bool:
        """Whether runs leave files in their run directory."""
        return bool(self.enable_chip_swimlane or self.enable_dep_gen or self.enable_scope_stats)

    def _resolve_target(self) -> None:
        backend, mode = BackendType.Ascend910B, ExecutionMode.SIM
        if self.platform is not None:
            if self.platform not in _TARGETS:
                raise ValueError(f"RunConfig.platform is {' or '.join(_TARGETS)}, got {self.platform!r}")
            backend, mode = _TARGETS[self.platform]
            spelling = f"backend_type={backend.value!r}, execution_mode={mode.value!r}"
            for name, implied in (("backend_type", backend), ("execution_mode", mode)):
                if getattr(self, name) not in (None, implied):
                    raise ValueError(
                        f"RunConfig: platform={self.platform!r} means {spelling}, which contradicts "
                        f"{name}={getattr(self, name).value!r}; leave platform out"
                    )
            # Through __post_init__ and the generated __init__ to the line that made the config.
            warnings.warn(
                f"RunConfig(platform={self.platform!r}) is deprecated; write RunConfig({spelling})",
                DeprecationWarning,
                stacklevel=4,
            )
        object.__setattr__(self, "platform", None)
        object.__setattr__(self, "backend_type", self.backend_type or backend)
        object.__setattr__(self, "execution_mode", self.execution_mode or mode)

    def _take_runtime_of_chips(self) -> None:
        chips = self.distributed_config.runtime if self.distributed_config is not None else None
        if chips is None:
            return
        kind = _COERCIONS["runtime"]("distributed_config.runtime", chips)
        if self.runtime not in (None, kind):
            raise ValueError(
                f"RunConfig: runtime={self.runtime.value!r} contradicts distributed_config.runtime={chips!r}"  # type: ignore[union-attr]
            )
        object.__setattr__(self, "runtime", kind)

    def _refuse_contradictions(self) -> None:
        if self.execution_mode is ExecutionMode.DEVICE and self.sim_checks:
            raise ValueError("RunConfig: sim_checks needs execution_mode='sim'")
        for name in ("enable_chip_swimlane", "enable_dep_gen", "enable_scope_stats"):
            if getattr(self, name) and self.sim_checks:
                raise ValueError(f"RunConfig: {name} cannot watch a run with sim_checks; make two runs")
        for name in ("ring_task_window", "ring_heap", "ring_dep_pool"):
            if getattr(self, name) is None:
                continue
            if self.runtime is RuntimeKind.HOST_BUILD_GRAPH:
                raise ValueError(
                    f"RunConfig: {name} is a size of the runtime 'tensormap_and_ringbuffer'; "
                    "runtime='host_build_graph' has none"
                )
            object.__setattr__(self, "runtime", RuntimeKind.TENSORMAP_AND_RINGBUFFER)


def _enumeration(kind: type[enum.Enum], *, optional: bool) -> Callable[[str, object], enum.Enum | None]:
    def coerce(name: str, value: object) -> enum.Enum | None:
        if value is None and optional:
            return None
        if isinstance(value, kind):
            return value
        if isinstance(value, str):
            for member in kind:
                if value in (member.value, member.name):
                    return member
        raise ValueError(f"RunConfig.{name} is {' or '.join(repr(member.value) for member in kind)}, got {value!r}")

    return coerce


def _boolean(name: str, value: object) -> bool:
    # NumPy's bool is no subclass of bool.
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise TypeError(f"RunConfig.{name} is True or False, got {value!r}")


def _integer(least: int, *, optional: bool, most: int | None = None) -> Callable[[str, object], int | None]:
    def coerce(name: str, value: object) -> int | None:
        if value is None and optional:
            return None
        try:
            number = operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            number = None
        if number is None or isinstance(value, bool):
            raise TypeError(f"RunConfig.{name} is an int, got {value!r}")
        if number < least:
            raise ValueError(f"RunConfig.{name} is {least} or more, got {number}")
        if most is not None and number > most:
            raise ValueError(f"RunConfig.{name} is {most} at most, got {number}")
        return number

    return coerce


def _tolerance(name: str, value: object) -> float:
    if isinstance(value, (bool, str, bytes)):
        raise TypeError(f"RunConfig.{name} is a number, got {value!r}")
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise TypeError(f"RunConfig.{name} is a number, got {value!r}") from None
    if not (number >= 0 and math.isfinite(number)):
        raise ValueError(f"RunConfig.{name} is a finite number of 0 or more, got {value!r}")
    return number


def _path(name: str, value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, (str, os.PathLike)):
        path = os.fspath(value)
        if isinstance(path, str) and path:
            return path
    raise TypeError(f"RunConfig.{name} is a path, got {value!r}")


def _text(name: str, value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise TypeError(f"RunConfig.{name} is a str, got {value!r}")


def _distributed(name: str, value: object) -> DistributedConfig | None:
    return None if value is None else DistributedConfig.of(value)


def _cache_config(name: str, value: object) -> object:
    # By its fields: the class belongs to the JIT, which this package does not import.
    if value is None or all(hasattr(value, field) for field in ("enabled", "root", "readonly")):
        return value
    raise TypeError(f"RunConfig.{name} is a pypto.CacheConfig, got {value!r}")


_UINT32 = (1 << 32) - 1

_COERCIONS: dict[str, Callable[[str, object], object]] = {
    "platform": _text,
    "backend_type": _enumeration(BackendType, optional=True),
    "device_id": _integer(0, optional=False),
    "strategy": _enumeration(OptimizationStrategy, optional=False),
    "memory_planner": _enumeration(MemoryPlanner, optional=True),
    "dump_passes": _boolean,
    "dump_ptoas_passes": _boolean,
    "save_kernels": _boolean,
    "save_kernels_dir": _path,
    "codegen_only": _boolean,
    "rtol": _tolerance,
    "atol": _tolerance,
    "aicpu_thread_num": _integer(1, optional=True),
    "distributed_config": _distributed,
    "compile_profiling": _boolean,
    "enable_chip_swimlane": _integer(0, optional=False),
    "enable_dep_gen": _boolean,
    "enable_scope_stats": _boolean,
    "ring_task_window": _integer(1, optional=True, most=_UINT32),
    "ring_heap": _integer(1, optional=True, most=(1 << 63) - 1),
    "ring_dep_pool": _integer(1, optional=True, most=_UINT32),
    "execution_mode": _enumeration(ExecutionMode, optional=True),
    "runtime": _enumeration(RuntimeKind, optional=True),
    "cache_config": _cache_config,
    "sim_checks": _boolean,
}
