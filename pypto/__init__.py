"""PyPTO: write kernels for Ascend NPUs in Python.

The public names are imported on first use, so that ``import pypto`` loads neither the compiler nor NumPy.
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
_PACKAGES = frozenset({"bundle", "jit", "language", "runtime", "toolchain"})

__all__ = [
    "CacheConfig",
    "CacheStats",
    "RunConfig",
    "__version__",
    "bundle",
    "cache_stats",
    "configure_cache",
    "import_bundle",
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
