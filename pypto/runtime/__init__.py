"""Running compiled kernels: configuration of a call, loading of binaries, the host side of the simulator.

The names are imported on first use: ``import pypto.runtime`` loads neither NumPy nor any compiled code.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypto.build.programs import run as run
    from pypto.runtime.benchmarking import BenchmarkResult as BenchmarkResult
    from pypto.runtime.benchmarking import benchmark as benchmark
    from pypto.runtime.config import BackendType as BackendType
    from pypto.runtime.config import ExecutionMode as ExecutionMode
    from pypto.runtime.config import MemoryPlanner as MemoryPlanner
    from pypto.runtime.config import OptimizationStrategy as OptimizationStrategy
    from pypto.runtime.config import RunConfig as RunConfig
    from pypto.runtime.config import RuntimeKind as RuntimeKind
    from pypto.runtime.device_tensor import DeviceTensor as DeviceTensor
    from pypto.runtime.distributed.config import DistributedConfig as DistributedConfig
    from pypto.runtime.distributed.program import DistributedProgram as DistributedProgram
    from pypto.runtime.distributed.program import DistributedWorker as DistributedWorker
    from pypto.runtime.errors import DeviceUnavailable as DeviceUnavailable
    from pypto.runtime.errors import HostProgramError as HostProgramError
    from pypto.runtime.errors import KernelRunError as KernelRunError
    from pypto.runtime.errors import LoadError as LoadError
    from pypto.runtime.errors import RankError as RankError
    from pypto.runtime.errors import SimulatorCheckError as SimulatorCheckError
    from pypto.runtime.kernel_compiler import KernelCompiler as KernelCompiler
    from pypto.runtime.program import CompiledProgram as CompiledProgram
    from pypto.runtime.specs import ScalarSpec as ScalarSpec
    from pypto.runtime.specs import TensorSpec as TensorSpec
    from pypto.runtime.worker import ChipWorker as ChipWorker

_HOMES = {
    "BackendType": "config",
    "BenchmarkResult": "benchmarking",
    "ChipWorker": "worker",
    "CompiledProgram": "program",
    "DeviceTensor": "device_tensor",
    "DeviceUnavailable": "errors",
    "DistributedConfig": "distributed.config",
    "DistributedProgram": "distributed.program",
    "DistributedWorker": "distributed.program",
    "ExecutionMode": "config",
    "HostProgramError": "errors",
    "KernelCompiler": "kernel_compiler",
    "KernelRunError": "errors",
    "LoadError": "errors",
    "MemoryPlanner": "config",
    "OptimizationStrategy": "config",
    "RankError": "errors",
    "RunConfig": "config",
    "RuntimeKind": "config",
    "ScalarSpec": "specs",
    "SimulatorCheckError": "errors",
    "TensorSpec": "specs",
    "benchmark": "benchmarking",
}
# What stands above this package, and is named for it.
_ELSEWHERE = {"run": "pypto.build.programs"}

__all__ = [
    "BackendType",
    "BenchmarkResult",
    "ChipWorker",
    "CompiledProgram",
    "DeviceTensor",
    "DeviceUnavailable",
    "DistributedConfig",
    "DistributedProgram",
    "DistributedWorker",
    "ExecutionMode",
    "HostProgramError",
    "KernelCompiler",
    "KernelRunError",
    "LoadError",
    "MemoryPlanner",
    "OptimizationStrategy",
    "RankError",
    "RunConfig",
    "RuntimeKind",
    "ScalarSpec",
    "SimulatorCheckError",
    "TensorSpec",
    "benchmark",
    "run",
]


def __getattr__(name: str) -> Any:
    home = f"pypto.runtime.{_HOMES[name]}" if name in _HOMES else _ELSEWHERE.get(name)
    if home is None:
        raise AttributeError(f"module 'pypto.runtime' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
