"""What this package declares about each target: architectures, compilers, auxiliary sources."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pypto.runtime.config import BackendType, ExecutionMode

HOST_BUILD_GRAPH = "host_build_graph"
TENSORMAP_AND_RINGBUFFER = "tensormap_and_ringbuffer"
RUNTIMES = (HOST_BUILD_GRAPH, TENSORMAP_AND_RINGBUFFER)

_PACKAGE = Path(os.path.abspath(__file__)).parents[1]

_KERNEL_HEADERS = ("abi.h", "bounds.h", "fault.h", "kernel.h", "memory_model.h", "scalar.h")
_SIMULATOR_HEADERS = ("assertions.h", "functions.h", "gather.h", "signals.h", "tile_math.h", "tiles.h")
_ORCHESTRATION_HEADERS = (
    "abi.h",
    "accesses.h",
    "checks.h",
    "executor.h",
    "fault.h",
    "functions.h",
    "graph.h",
    "memory.h",
    "orchestration.h",
    "region.h",
    "ring.h",
    "scalar.h",
    "task.h",
    "threads.h",
    "trace.h",
    "types.h",
)
_COMPAT = ("pto_isa_compat.hpp", "pto_isa_cube.hpp")


@dataclass(frozen=True)
class Target:
    """A hardware generation and where kernels run.

    Attributes:
        simulated: name of the architecture in the simulator.
        aicore: what the device's compiler calls the architecture, by core type.
    """

    backend_type: BackendType
    execution_mode: ExecutionMode
    simulated: Literal["A2A3", "A5"]
    aicore: Mapping[str, str]

    @property
    def is_device(self) -> bool:
        return self.execution_mode is ExecutionMode.DEVICE

    def kernel_sources(self) -> tuple[Path, ...]:
        """Files of this package that a kernel is compiled with."""
        if self.is_device:
            return tuple(_headers(_KERNEL_HEADERS))
        compat = _PACKAGE / "toolchain" / "compat"
        return (*_headers((*_KERNEL_HEADERS, *_SIMULATOR_HEADERS)), *(compat / name for name in _COMPAT))

    def orchestration_sources(self) -> tuple[Path, ...]:
        """Files of this package that an orchestration is compiled with."""
        return tuple(_headers(_ORCHESTRATION_HEADERS))

    def orchestration_compiler(self, runtime: str) -> Literal["host", "aarch64"]:
        """Which compiler makes the orchestration for ``runtime``.

        Raises:
            ValueError: an unknown runtime.
        """
        if runtime not in RUNTIMES:
            raise ValueError(f"runtime is {' or '.join(map(repr, RUNTIMES))}, got {runtime!r}")
        return "aarch64" if self.is_device and runtime == TENSORMAP_AND_RINGBUFFER else "host"


_SIMULATED: Mapping[BackendType, Literal["A2A3", "A5"]] = {
    BackendType.Ascend910B: "A2A3",
    BackendType.Ascend950: "A5",
}
_AICORE: Mapping[BackendType, Mapping[str, str]] = {
    BackendType.Ascend910B: {"aic": "dav-c220-cube", "aiv": "dav-c220-vec"},
    BackendType.Ascend950: {"aic": "dav-c310-cube", "aiv": "dav-c310-vec"},
}


def target(backend_type: BackendType | str, execution_mode: ExecutionMode | str) -> Target:
    """The target's declaration.

    Raises:
        ValueError: an unknown backend type or execution mode.
    """
    backend, mode = BackendType(backend_type), ExecutionMode(execution_mode)
    return Target(backend, mode, _SIMULATED[backend], _AICORE[backend])


def _headers(names: Iterable[str]) -> Iterable[Path]:
    return (_PACKAGE / "runtime" / "native" / "include" / "pypto" / name for name in names)
