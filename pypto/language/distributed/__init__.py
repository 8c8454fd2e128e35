"""Programs over several ranks: ``import pypto.language.distributed as pld``, also reached as ``pl.distributed``.

Every name of `pld.tensor` and `pld.system` is one of this module as well.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pypto.language.stubs import operations

if TYPE_CHECKING:
    from pypto.ir.types import NotifyOp as NotifyOp
    from pypto.ir.types import ReduceOp as ReduceOp
    from pypto.ir.types import WaitCmp as WaitCmp
    from pypto.language.annotations import DistributedTensor as DistributedTensor
    from pypto.language.distributed import system as system
    from pypto.language.distributed import tensor as tensor

_SPACES = ("system", "tensor", "tile")
_ENUMERATIONS = ("NotifyOp", "ReduceOp", "WaitCmp")


def __getattr__(name: str) -> Any:
    if name in _SPACES:
        return import_module(f"pypto.language.distributed.{name}")
    if name in _ENUMERATIONS:
        return getattr(import_module("pypto.ir.types"), name)
    if name == "DistributedTensor":
        return import_module("pypto.language.annotations").DistributedTensor
    found = operations("distributed")
    if name not in found:
        raise AttributeError(f"module 'pypto.language.distributed' has no attribute {name!r}")
    return found[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *operations("distributed"), *_SPACES, *_ENUMERATIONS, "DistributedTensor"})
