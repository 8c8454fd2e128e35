"""Running compiled kernels: configuration of a call, loading of binaries, the host side of the simulator.

The names are imported on first use: ``import pypto.runtime`` loads neither NumPy nor any compiled code.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypto.runtime.config import BackendType as BackendType
    from pypto.runtime.config import ExecutionMode as ExecutionMode
    from pypto.runtime.config import MemoryPlanner as MemoryPlanner
    from pypto.runtime.config import OptimizationStrategy as OptimizationStrategy
    from pypto.runtime.config import RunConfig as RunConfig
    from pypto.runtime.config import RuntimeKind as RuntimeKind
    from pypto.runtime.errors import DeviceUnavailable as DeviceUnavailable
    from pypto.runtime.errors import KernelRunError as KernelRunError
    from pypto.runtime.errors import LoadError as LoadError
    from pypto.runtime.errors import SimulatorCheckError as SimulatorCheckError
    from pypto.runtime.kernel_compiler import KernelCompiler as KernelCompiler
    from pypto.runtime.program import CompiledProgram as CompiledProgram

_HOMES = {
    "BackendType": "config",
    "CompiledProgram": "program",
    "DeviceUnavailable": "errors",
    "ExecutionMode": "config",
    "KernelCompiler": "kernel_compiler",
    "KernelRunError": "errors",
    "LoadError": "errors",
    "MemoryPlanner": "config",
    "OptimizationStrategy": "config",
    "RunConfig": "config",
    "RuntimeKind": "config",
    "SimulatorCheckError": "errors",
}

__all__ = [
    "BackendType",
    "CompiledProgram",
    "DeviceUnavailable",
    "ExecutionMode",
    "KernelCompiler",
    "KernelRunError",
    "LoadError",
    "MemoryPlanner",
    "OptimizationStrategy",
    "RunConfig",
    "RuntimeKind",
    "SimulatorCheckError",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'pypto.runtime' has no attribute {name!r}")
    value = getattr(import_module(f"pypto.runtime.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
