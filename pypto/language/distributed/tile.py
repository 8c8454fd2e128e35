"""``pld.tile``: tiles of other ranks."""

from __future__ import annotations

from typing import Any

from pypto.language.stubs import operations


def __getattr__(name: str) -> Any:
    found = operations("distributed.tensor")
    if name not in found:
        raise AttributeError(f"module 'pypto.language.distributed.tile' has no attribute {name!r}")
    return found[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *operations("distributed.tensor")})
