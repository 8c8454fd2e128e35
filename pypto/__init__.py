"""PyPTO: write kernels for Ascend NPUs in Python.

A kernel is a function under ``@pl.jit`` of ``import pypto.language as pl``; a call builds what is missing and runs it::

    @pl.jit
    def double(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], [16, 64]) * 2.0, [0, 0], out)
        return out

    double(x, out)    # NumPy arrays, or anything with DLPack

=====================  ================================================================================================
`RunConfig`            for what and how a call compiles and runs: backend, simulator or device, output directories
`configure_cache`      keep kernels for other processes (`CacheConfig`, ``PYPTO_CACHE=1``); `cache_stats` counts
`import_bundle`        open a sealed bundle that Bazel made, and run its kernels without a compiler
`use_bundles`          let calls of ``@pl.jit`` functions take their kernels from such bundles
`pypto.ir`             ``compile`` a program of the IR; `pypto.runtime`: ``run``, workers, ``benchmark``, errors
`pypto.diagnostics`    ``check_precision``: what each pass does to the numbers
`pypto.toolchain`      the tools that compile; ``python -m pypto.toolchain install`` fetches them
=====================  ================================================================================================

``python -m pypto`` lists the commands. The public names are imported on first use, so that ``import pypto`` loads
neither the compiler nor NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypto.bundle import import_bundle as import_bundle
    from pypto.jit.config import CacheConfig as CacheConfig
    from pypto.jit.config import configure_cache as configure_cache
    from pypto.jit.sealed import use_bundles as use_bundles
    from pypto.jit.stats import CacheStats as CacheStats
    from pypto.jit.stats import cache_stats as cache_stats
    from pypto.runtime import RunConfig as RunConfig

__version__ = "0.1.0"

_HOMES = {
    "CacheConfig": "pypto.jit.config",
    "CacheStats": "pypto.jit.stats",
    "RunConfig": "pypto.runtime",
    "cache_stats": "pypto.jit.stats",
    "configure_cache": "pypto.jit.config",
    "import_bundle": "pypto.bundle",
    "use_bundles": "pypto.jit.sealed",
}
_PACKAGES = frozenset({"bundle", "diagnostics", "ir", "jit", "language", "runtime", "toolchain"})

__all__ = [
    "CacheConfig",
    "CacheStats",
    "RunConfig",
    "__version__",
    "bundle",
    "cache_stats",
    "configure_cache",
    "diagnostics",
    "import_bundle",
    "ir",
    "jit",
    "language",
    "runtime",
    "toolchain",
    "use_bundles",
]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"pypto.{name}")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'pypto' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
