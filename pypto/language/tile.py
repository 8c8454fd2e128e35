"""``pl.tile``: operations on tiles, under the names that PyPTO has for them.

Those that mean the same in ``pl`` are the same objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pypto.language.stubs import operations

if TYPE_CHECKING:
    from pypto.language._tile import *  # noqa: F403


def __getattr__(name: str) -> Any:
    found = operations("tile")
    if name not in found:
        raise AttributeError(f"module 'pypto.language.tile' has no attribute {name!r}")
    return found[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *operations("tile")})
