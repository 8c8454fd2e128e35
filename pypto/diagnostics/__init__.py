"""Looking at kernels: what each pass did to the numbers, where memory and time go.

``python -m pypto.diagnostics --help`` has the commands; `check_precision` is here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypto.diagnostics.precision import PrecisionReport as PrecisionReport
    from pypto.diagnostics.precision import check_precision as check_precision

__all__ = ["PrecisionReport", "check_precision"]


def __getattr__(name: str) -> Any:
    # Lazily, so that the command line can explain itself without NumPy.
    if name not in __all__:
        raise AttributeError(f"module 'pypto.diagnostics' has no attribute {name!r}")
    from pypto.diagnostics import precision

    return getattr(precision, name)
