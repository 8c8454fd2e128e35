"""Just-in-time compilation: ``jit``, the cache configuration and its statistics; names resolve on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypto.jit.config import CacheConfig as CacheConfig
    from pypto.jit.config import configure_cache as configure_cache
    from pypto.jit.decorators import jit as jit
    from pypto.jit.function import JITFunction as JITFunction
    from pypto.jit.sealed import use_bundles as use_bundles
    from pypto.jit.stats import CacheStats as CacheStats
    from pypto.jit.stats import cache_stats as cache_stats

_HOMES = {
    "CacheConfig": "config",
    "CacheStats": "stats",
    "JITFunction": "function",
    "cache_stats": "stats",
    "configure_cache": "config",
    "jit": "decorators",
    "use_bundles": "sealed",
}

__all__ = ["CacheConfig", "CacheStats", "JITFunction", "cache_stats", "configure_cache", "jit", "use_bundles"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'pypto.jit' has no attribute {name!r}")
    return getattr(import_module(f"pypto.jit.{home}"), name)
