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
    from pypto.ir.types import DType as DType
    from pypto.ir.types import MemorySpace as MemorySpace
    from pypto.jit.decorators import jit as jit
    from pypto.language import tensor as tensor
    from pypto.language.annotations import FunctionType as FunctionType
    from pypto.language.annotations import InOut as InOut
    from pypto.language.annotations import Level as Level
    from pypto.language.annotations import Out as Out
    from pypto.language.annotations import Scalar as Scalar
    from pypto.language.annotations import Tensor as Tensor
    from pypto.language.annotations import Tile as Tile
    from pypto.language.annotations import dynamic as dynamic
    from pypto.language.errors import CompileError as CompileError
    from pypto.language.errors import OutsideKernelError as OutsideKernelError
    from pypto.language.ops import abs as abs
    from pypto.language.ops import add as add
    from pypto.language.ops import adds as adds
    from pypto.language.ops import assemble as assemble
    from pypto.language.ops import at as at
    from pypto.language.ops import batch_matmul as batch_matmul
    from pypto.language.ops import cast as cast
    from pypto.language.ops import col_expand as col_expand
    from pypto.language.ops import col_expand_add as col_expand_add
    from pypto.language.ops import col_expand_div as col_expand_div
    from pypto.language.ops import col_expand_mul as col_expand_mul
    from pypto.language.ops import col_expand_sub as col_expand_sub
    from pypto.language.ops import col_max as col_max
    from pypto.language.ops import col_min as col_min
    from pypto.language.ops import col_sum as col_sum
    from pypto.language.ops import concat as concat
    from pypto.language.ops import cond as cond
    from pypto.language.ops import const as const
    from pypto.language.ops import create as create
    from pypto.language.ops import create_tensor as create_tensor
    from pypto.language.ops import create_tile as create_tile
    from pypto.language.ops import div as div
    from pypto.language.ops import divs as divs
    from pypto.language.ops import exp as exp
    from pypto.language.ops import expands as expands
    from pypto.language.ops import full as full
    from pypto.language.ops import load as load
    from pypto.language.ops import log as log
    from pypto.language.ops import matmul as matmul
    from pypto.language.ops import matmul_acc as matmul_acc
    from pypto.language.ops import max as max
    from pypto.language.ops import maximum as maximum
    from pypto.language.ops import maximums as maximums
    from pypto.language.ops import min as min
    from pypto.language.ops import minimum as minimum
    from pypto.language.ops import minimums as minimums
    from pypto.language.ops import move as move
    from pypto.language.ops import mul as mul
    from pypto.language.ops import muls as muls
    from pypto.language.ops import neg as neg
    from pypto.language.ops import parallel as parallel
    from pypto.language.ops import pipeline as pipeline
    from pypto.language.ops import range as range
    from pypto.language.ops import read as read
    from pypto.language.ops import recip as recip
    from pypto.language.ops import relu as relu
    from pypto.language.ops import reshape as reshape
    from pypto.language.ops import row_expand as row_expand
    from pypto.language.ops import row_expand_add as row_expand_add
    from pypto.language.ops import row_expand_div as row_expand_div
    from pypto.language.ops import row_expand_max as row_expand_max
    from pypto.language.ops import row_expand_min as row_expand_min
    from pypto.language.ops import row_expand_mul as row_expand_mul
    from pypto.language.ops import row_expand_sub as row_expand_sub
    from pypto.language.ops import row_max as row_max
    from pypto.language.ops import row_min as row_min
    from pypto.language.ops import row_sum as row_sum
    from pypto.language.ops import rsqrt as rsqrt
    from pypto.language.ops import set_validshape as set_validshape
    from pypto.language.ops import slice as slice
    from pypto.language.ops import sqrt as sqrt
    from pypto.language.ops import static_assert as static_assert
    from pypto.language.ops import static_print as static_print
    from pypto.language.ops import store as store
    from pypto.language.ops import sub as sub
    from pypto.language.ops import subs as subs
    from pypto.language.ops import transpose as transpose
    from pypto.language.ops import unroll as unroll
    from pypto.language.ops import while_ as while_
    from pypto.language.ops import write as write
    from pypto.language.ops import yield_ as yield_

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
        "DType",
        "MemorySpace",
    ),
    "pypto.language.annotations": ("FunctionType", "InOut", "Level", "Out", "Scalar", "Tensor", "Tile", "dynamic"),
    "pypto.language.errors": ("CompileError", "OutsideKernelError"),
    "pypto.language.ops": (
        "add",
        "sub",
        "mul",
        "div",
        "maximum",
        "minimum",
        "adds",
        "subs",
        "muls",
        "divs",
        "maximums",
        "minimums",
        "exp",
        "log",
        "sqrt",
        "rsqrt",
        "recip",
        "neg",
        "abs",
        "relu",
        "row_sum",
        "row_max",
        "row_min",
        "col_sum",
        "col_max",
        "col_min",
        "row_expand",
        "row_expand_add",
        "row_expand_sub",
        "row_expand_mul",
        "row_expand_div",
        "row_expand_max",
        "row_expand_min",
        "col_expand",
        "col_expand_add",
        "col_expand_sub",
        "col_expand_mul",
        "col_expand_div",
        "expands",
        "cast",
        "matmul",
        "matmul_acc",
        "slice",
        "reshape",
        "transpose",
        "set_validshape",
        "load",
        "store",
        "move",
        "create",
        "create_tile",
        "full",
        "create_tensor",
        "assemble",
        "read",
        "write",
        "batch_matmul",
        "concat",
        "range",
        "parallel",
        "unroll",
        "pipeline",
        "while_",
        "yield_",
        "cond",
        "static_assert",
        "static_print",
        "at",
        "const",
        "min",
        "max",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "tensor":
        return import_module("pypto.language.tensor")
    if name == "jit":
        return import_module("pypto.jit").jit
    source = "MemorySpace" if name == "Mem" else name
    home = _HOME_OF.get(source)
    if home is None:
        raise AttributeError(f"module 'pypto.language' has no attribute {name!r}")
    value = getattr(import_module(home), source)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF, "Mem", "jit", "tensor"})
