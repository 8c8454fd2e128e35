"""From typed IR to what the tools compile: `.pto` text, kernel wrappers, orchestration C++, `kernel_config.json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypto.codegen.generate import generate as generate

__all__ = ["generate"]


def __getattr__(name: str) -> Any:
    if name == "generate":
        from pypto.codegen.generate import generate

        return generate
    raise AttributeError(f"module {__name__} has no attribute {name}")
