"""What an expression of a kernel can be while it is parsed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pypto.ir.nodes import Value
from pypto.ir.types import TASKS, DType, DynDim, MemorySpace, ScalarType, TensorType, TileType, Type
from pypto.ir.values import same_length, same_value
from pypto.language.source import Builtin, KernelSource, MathFunction, Table
from pypto.language.stubs import Operation

# A model is an IR value; or something known while compiling: a number, a string, a dtype, an enum, a tuple of models,
# a dynamic dimension, an operation, a function.
Model = Any


@dataclass(frozen=True)
class Unusable:
    """A name that exists but may not be read here; says why."""

    reason: str


@dataclass(frozen=True)
class Interval:
    """A subscript ``lower:upper``; ``None`` where nothing was written."""

    lower: Model
    upper: Model


@dataclass(frozen=True)
class ResultsOfNothing:
    """What a call without results gives; using it is an error.

    Attributes:
        outputs: what a hand-written kernel writes: a stub cannot say what it returns, so whoever asks gets these.
    """

    what: str
    outputs: tuple[Value, ...] = ()


@dataclass(frozen=True)
class MethodOfDType:
    """``dtype.get_byte`` before it is called; ``value`` is what the call gives."""

    value: int


@dataclass(frozen=True)
class Hint:
    """An optimization that changes no number; says which."""

    name: str


def is_number(model: Model) -> bool:
    """Whether a model is a number known while compiling (booleans included)."""
    return isinstance(model, (bool, int, float))


def is_whole(model: Model) -> bool:
    """Whether a model is a known whole number, not a boolean."""
    return isinstance(model, int) and not isinstance(model, bool)


def is_scalar(model: Model) -> bool:
    """Whether a model is a run-time scalar."""
    return isinstance(model, Value) and isinstance(model.type, ScalarType) and model.type.dtype != TASKS


def is_tasks(model: Model) -> bool:
    """Whether a model stands for tasks that were submitted."""
    return isinstance(model, Value) and model.type == ScalarType(TASKS)


def is_tile(model: Model) -> bool:
    """Whether a model is a tile."""
    return isinstance(model, Value) and isinstance(model.type, TileType)


def is_tensor(model: Model) -> bool:
    """Whether a model is a tensor or a view of one."""
    return isinstance(model, Value) and isinstance(model.type, TensorType)


def describe(model: Model) -> str:
    """A model in words, for messages."""
    if isinstance(model, Value):
        type = model.type
        if isinstance(type, TileType):
            return f"a tile [{type.shape[0]}, {type.shape[1]}] of {type.dtype}"
        if isinstance(type, TensorType):
            dims = ", ".join(d.name if isinstance(d, (DynDim, Value)) else str(d) for d in type.shape)
            return f"a tensor [{dims}] of {type.dtype}"
        if type == ScalarType(TASKS):
            return "tasks"
        return f"a run-time scalar of {type.dtype}"
    if isinstance(model, bool) or model is None:
        return str(model)
    if isinstance(model, (int, float)):
        return f"the number {model}"
    if isinstance(model, str):
        return f"the string {model!r}"
    if isinstance(model, DType):
        return f"the dtype {model}"
    if isinstance(model, tuple):
        return f"a tuple of {len(model)}"
    if isinstance(model, Table):
        return f"a dictionary of {len(model.items)}"
    if isinstance(model, DynDim):
        return f"the dynamic dimension {model.name}"
    if isinstance(model, Operation):
        return f"the operation pl.{model.name}"
    if isinstance(model, KernelSource):
        return f"the function {model.name}"
    if isinstance(model, (Builtin, MathFunction)):
        return f"Python's {model.name}"
    if isinstance(model, ResultsOfNothing):
        return f"the result of {model.what}, which has none"
    if isinstance(model, Interval):
        return "a slice"
    return f"{type_name(model)}"


def type_name(model: Model) -> str:
    """Name of a model's Python type."""
    return type(model).__name__


def same_type(a: Type, b: Type) -> bool:
    """Whether two values can stand for one name; tiles whose memory is still open fit any memory.

    Tensors need equal shapes; whether one of them is a view does not matter.
    """
    if isinstance(a, TileType) and isinstance(b, TileType):
        memories = {m for m in (a.memory, b.memory) if m is not None}
        # Results of vector and of matrix work meet in global memory.
        handed_on = memories == {MemorySpace.Vec, MemorySpace.Acc}
        return (
            a.shape == b.shape
            and a.dtype == b.dtype
            and (len(memories) <= 1 or handed_on)
            and all(same_value(x, y) for x, y in zip(a.valid, b.valid, strict=True))
        )
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return a.dtype == b.dtype and a.rank == b.rank and all(map(same_length, a.shape, b.shape))
    return a == b


def valid_text(model: Model) -> str:
    """What to add to a tile's description when its memory and valid lengths matter."""
    if not is_tile(model) or not isinstance(model.type, TileType):
        return ""
    memory = f" in {model.type.memory.value}" if model.type.memory else ""
    if model.type.valid == model.type.shape:
        return memory
    return f"{memory} (valid {', '.join(str(v) if isinstance(v, int) else v.name for v in model.type.valid)})"
