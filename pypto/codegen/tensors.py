"""What a task of a kernel is given, and windows of its tensors.

A task's arguments are the declared parameters in order, then for each tensor parameter its run-time dimensions, and its
strides when it is a view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pypto.codegen.scalars import Const, Expr, Leaf, binary
from pypto.ir.errors import IRError
from pypto.ir.nodes import Function, Param
from pypto.ir.types import INDEX, DType, ScalarType, TensorType


@dataclass(frozen=True)
class TensorWindow:
    """A block of a tensor parameter.

    Attributes:
        param: which tensor parameter, counting tensors only.
        offsets: where it begins in the parameter, per axis.
        dims: its lengths.
        strides: of the parameter, in elements.
        order: the parameter's axes in the order of the fields above, those that a view dropped first.
        hidden: how many were dropped.
    """

    param: int
    dtype: DType
    offsets: tuple[Expr, ...]
    dims: tuple[Expr, ...]
    strides: tuple[Expr, ...]
    order: tuple[int, ...]
    hidden: int = 0

    def length(self, axis: int) -> Expr:
        """The length of an axis that is left."""
        return self.dims[self.hidden + axis]

    def view(self, offsets: Sequence[Expr], sizes: Sequence[Expr], dropped: Sequence[int] = ()) -> TensorWindow:
        """A block of this block; axes that are dropped go to the front and keep their place."""
        zeros: list[Expr] = [Const(0, INDEX)] * self.hidden
        ones: list[Expr] = [Const(1, INDEX)] * self.hidden
        moved = tuple(binary("add", a, b) for a, b in zip(self.offsets, [*zeros, *offsets], strict=True))
        lengths = (*ones, *sizes)
        gone = {self.hidden + axis for axis in dropped} | set(range(self.hidden))
        axes = sorted(range(len(moved)), key=lambda axis: axis not in gone)
        return replace(
            self,
            offsets=tuple(moved[a] for a in axes),
            dims=tuple(lengths[a] for a in axes),
            strides=tuple(self.strides[a] for a in axes),
            order=tuple(self.order[a] for a in axes),
            hidden=len(gone),
        )


@dataclass(frozen=True)
class Extra:
    """An argument behind the declared ones: length (``dim``) or stride of an axis of a parameter."""

    param: int
    what: str
    axis: int


@dataclass(frozen=True)
class TaskArguments:
    """The arguments of a kernel's tasks.

    Attributes:
        windows: each tensor parameter as a whole.
        pointers: argument index of each tensor parameter.
        scalars: declared scalar parameters and the variables they stand in.
        extras: arguments behind the declared ones; ``param`` counts all declared parameters.
        declared: number of declared parameters.
    """

    windows: tuple[TensorWindow, ...]
    pointers: tuple[int, ...]
    scalars: tuple[tuple[Param, Expr], ...]
    extras: tuple[Extra, ...]
    declared: int

    def window(self, tensor: int) -> TensorWindow:
        """The whole of a tensor parameter."""
        return self.windows[tensor]


def task_arguments(function: Function) -> TaskArguments:
    """The arguments of an incore function's tasks."""
    extras: list[Extra] = []
    windows: list[TensorWindow] = []
    pointers: list[int] = []
    numbers: list[tuple[Param, Expr]] = []

    def extra(index: int, what: str, axis: int) -> Leaf:
        extras.append(Extra(index, what, axis))
        return Leaf("arg", len(function.params) + len(extras) - 1, INDEX)

    for index, param in enumerate(function.params):
        type = param.type
        if isinstance(type, ScalarType):
            numbers.append((param, Leaf("arg", index, type.dtype)))
        elif isinstance(type, TensorType):
            dims: list[Expr] = [
                Const(dim, INDEX) if isinstance(dim, int) else extra(index, "dim", axis)
                for axis, dim in enumerate(type.shape)
            ]
            strides: list[Expr] = [Const(1, INDEX)] * type.rank
            for axis in range(type.rank - 2, -1, -1):
                if type.is_view:
                    strides[axis] = extra(index, "stride", axis)
                else:
                    strides[axis] = binary("mul", dims[axis + 1], strides[axis + 1])
            zeros: tuple[Expr, ...] = (Const(0, INDEX),) * type.rank
            order = tuple(range(type.rank))
            windows.append(TensorWindow(len(windows), type.dtype, zeros, tuple(dims), tuple(strides), order))
            pointers.append(index)
        else:
            raise IRError(
                f"the parameter {param.name} of {function.name} is neither a tensor nor a number", function.loc
            )
    return TaskArguments(tuple(windows), tuple(pointers), tuple(numbers), tuple(extras), len(function.params))
