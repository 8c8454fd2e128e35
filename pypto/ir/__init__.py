"""The program between Python and code: nodes, types, passes, a printer, a NumPy reference."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "compile":
        from pypto.build.programs import compile_program

        return compile_program
    raise AttributeError(f"module 'pypto.ir' has no attribute {name!r}")
