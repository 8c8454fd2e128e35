"""The language in which kernels are written: ``import pypto.language as pl``.

``pl.jit`` is :data:`pypto.jit.jit`, found on first use, so that importing the language loads no build or run-time code.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypto.ir.types import BF16 as BF16
    from pypto.ir.types import BOOL as BOOL
    from pypto.ir.types import FP16 as FP16
    from pypto.ir.types import FP32 as FP32
    from pypto.ir.types import INDEX as INDEX
    from pypto.ir.types import INT8 as INT8
    from pypto.ir.types import INT16 as INT16
    from pypto.ir.types import INT32 as INT32
    from pypto.ir.types import INT64 as INT64
    from pypto.ir.types import UINT8 as UINT8
    from pypto.ir.types import UINT16 as UINT16
    from pypto.ir.types import UINT32 as UINT32
    from pypto.ir.types import UINT64 as UINT64
    from pypto.ir.types import AtomicType as AtomicType
    from pypto.ir.types import DType as DType
    from pypto.ir.types import MaskPattern as MaskPattern
    from pypto.ir.types import MemorySpace as MemorySpace
    from pypto.ir.types import PadValue as PadValue
    from pypto.ir.types import TensorLayout as TensorLayout
    from pypto.ir.types import TileLayout as TileLayout
    from pypto.jit.decorators import jit as jit
    from pypto.language import distributed as distributed
    from pypto.language import tensor as tensor
    from pypto.language import tile as tile
    from pypto.language._pl import *  # noqa: F403
    from pypto.language.annotations import FunctionType as FunctionType
    from pypto.language.annotations import InOut as InOut
    from pypto.language.annotations import Level as Level
    from pypto.language.annotations import Out as Out
    from pypto.language.annotations import Scalar as Scalar
    from pypto.language.annotations import SplitMode as SplitMode
    from pypto.language.annotations import Tensor as Tensor
    from pypto.language.annotations import Tile as Tile
    from pypto.language.annotations import dynamic as dynamic
    from pypto.language.errors import CompileError as CompileError
    from pypto.language.errors import OutsideKernelError as OutsideKernelError

    Mem = MemorySpace

_HOMES = {
    "pypto.ir.types": (
        "BF16",
        "BOOL",
        "FP16",
        "FP32",
        "INDEX",
        "INT16",
        "INT32",
        "INT64",
        "INT8",
        "UINT16",
        "UINT32",
        "UINT64",
        "UINT8",
        "AtomicType",
        "DType",
        "MaskPattern",
        "MemorySpace",
        "PadValue",
        "TensorLayout",
        "TileLayout",
    ),
    "pypto.language.annotations": (
        "FunctionType",
        "InOut",
        "Level",
        "Out",
        "Scalar",
        "SplitMode",
        "Tensor",
        "Tile",
        "dynamic",
    ),
    "pypto.language.errors": ("CompileError", "OutsideKernelError"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


_SPACES = ("distributed", "tensor", "tile")


def _operations() -> dict[str, Any]:
    operations: dict[str, Any] = import_module("pypto.language.stubs").operations("pl")
    return operations


def _no_attribute(name: str) -> str:
    text = f"module 'pypto.language' has no attribute {name!r}"
    if name in ("program", "function"):
        return f"{text}; kernels are functions under @pl.jit"
    from difflib import get_close_matches

    near = get_close_matches(name, __dir__(), n=1)
    return f"{text}; the nearest name is {near[0]!r}" if near and not name.startswith("_") else text


def __getattr__(name: str) -> Any:
    if name in _SPACES:
        return import_module(f"pypto.language.{name}")
    if name == "jit":
        return import_module("pypto.jit").jit
    source = "MemorySpace" if name == "Mem" else name
    home = _HOME_OF.get(source)
    if home is not None:
        value = getattr(import_module(home), source)
    elif not name.startswith("_") and name in _operations():
        value = _operations()[name]
    else:
        raise AttributeError(_no_attribute(name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF, *_operations(), *_SPACES, "Mem", "jit"})
