"""Signatures of kernels, from their annotations."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from pypto.ir.nodes import Direction, FunctionKind
from pypto.ir.types import BF16, BOOL, FP32, INDEX, INT64, MAX_RANK, DType, DynDim
from pypto.language.annotations import (
    DirectedAnnotation,
    DistributedTensor,
    Scalar,
    ScalarAnnotation,
    Tensor,
    TensorAnnotation,
    Tile,
    TileAnnotation,
    WindowAnnotation,
)
from pypto.language.source import KernelSource

_PYTHON_SCALARS: dict[Any, DType] = {int: INT64, float: FP32, bool: BOOL}
_NO_DEFAULT = object()


@dataclass(frozen=True)
class ArgSpec:
    """What a kernel is compiled for, of one argument.

    Attributes:
        dtype: element type, or the type of a scalar.
        shape: dimensions of a tensor, dynamic ones by name; ``None`` for a scalar.
    """

    dtype: DType
    shape: tuple[int | DynDim, ...] | None = None


@dataclass(frozen=True)
class SignatureParam:
    """One parameter as annotated.

    Attributes:
        kind: ``tensor``, ``scalar``, ``tile``, or ``any`` for what a spliced function takes without saying more.
        shape: dimensions, or ``None`` when they come from the argument (and for scalars).
        dtype: ``None`` when it comes from the argument.
        default: default value of a scalar; see ``has_default``.
        window: whether a tensor is a rank's part of a window.
    """

    name: str
    kind: str
    direction: Direction
    shape: tuple[int | DynDim, ...] | None
    dtype: DType | None
    default: int | float | bool | None = None
    has_default: bool = False
    window: bool = False

    @property
    def is_tensor(self) -> bool:
        """Whether it is a tensor."""
        return self.kind == "tensor"

    @property
    def is_complete(self) -> bool:
        """Whether nothing has to come from an argument."""
        return self.dtype is not None and (self.kind == "scalar" or self.shape is not None)


@dataclass(frozen=True)
class Signature:
    """The parameters of a kernel."""

    name: str
    params: tuple[SignatureParam, ...]

    @staticmethod
    def of(kernel: KernelSource) -> Signature:
        """Read the annotations of a kernel.

        Raises:
            KernelSyntaxError: a parameter has no annotation or one that is not allowed, with its place.
        """
        return _read(kernel)

    @property
    def is_complete(self) -> bool:
        """Whether the kernel needs no sample arguments."""
        return all(p.is_complete for p in self.params)

    def record(self) -> list[Any]:
        """Plain data for digests."""
        return [
            [
                p.name,
                "window" if p.window else p.kind,
                p.direction.value,
                None if p.shape is None else [_dim_record(d) for d in p.shape],
                None if p.dtype is None else p.dtype.name,
                _default_record(p),
            ]
            for p in self.params
        ]


def _dim_record(dim: int | DynDim) -> int | list[str]:
    return dim if isinstance(dim, int) else ["dynamic", dim.name]


def _default_record(param: SignatureParam) -> list[Any] | None:
    if not param.has_default:
        return None
    value = param.default
    if isinstance(value, bool):
        return ["bool", value]
    return ["float", value.hex()] if isinstance(value, float) else ["int", str(value)]


def _read(kernel: KernelSource) -> Signature:
    text = kernel.text
    arguments = text.node.args
    for extra in (arguments.vararg, arguments.kwarg, *arguments.kwonlyargs):
        if extra is not None:
            raise text.error(f"{extra.arg}: a kernel takes plain positional parameters only", extra)
    nodes = [*arguments.posonlyargs, *arguments.args]
    defaults = kernel.function.__defaults__ or ()
    values = [_NO_DEFAULT] * (len(nodes) - len(defaults)) + list(defaults)
    params = []
    for node, default in zip(nodes, values, strict=True):
        try:
            params.append(_param(kernel, node, default))
        except _BadAnnotation as bad:
            raise text.error(f"parameter {node.arg}: {bad}", node) from None
    return Signature(kernel.name, tuple(params))


class _BadAnnotation(Exception):
    """What is wrong with an annotation; becomes a KernelSyntaxError."""


def _param(kernel: KernelSource, node: ast.arg, default: Any) -> SignatureParam:
    spliced = kernel.kind in (FunctionKind.INLINE, FunctionKind.OPAQUE)
    if spliced and node.arg not in kernel.function.__annotations__:
        return _with_default(SignatureParam(node.arg, "any", Direction.In, None, None), default)
    annotation = _live_annotation(kernel, node.arg)
    direction = Direction.In
    if isinstance(annotation, DirectedAnnotation):
        direction, annotation = annotation.direction, _evaluated(kernel, annotation.inner)
    if annotation is Tile or isinstance(annotation, TileAnnotation):
        if kernel.kind is not FunctionKind.INLINE:
            raise _BadAnnotation("only functions under @pl.jit.inline take tiles; pass a tensor")
        return SignatureParam(node.arg, "tile", direction, None, None)
    window = annotation is DistributedTensor or isinstance(annotation, WindowAnnotation)
    if annotation is Tensor or annotation is DistributedTensor:
        shape, dtype, kind = None, None, "tensor"
    elif isinstance(annotation, TensorAnnotation):
        shape, dtype = _tensor_item(annotation.item)
        kind = "tensor"
    else:
        shape, dtype, kind = None, _scalar_dtype(annotation), "scalar"
        if direction is not Direction.In:
            raise _BadAnnotation("a scalar cannot be an output; use a tensor of one element")
    return _with_default(SignatureParam(node.arg, kind, direction, shape, dtype, window=window), default)


def _with_default(param: SignatureParam, default: Any) -> SignatureParam:
    if default is _NO_DEFAULT:
        return param
    if param.kind == "tensor" or not isinstance(default, (bool, int, float)):
        raise _BadAnnotation("only scalars may have a default, and it must be an int, float or bool")
    return replace(param, default=default, has_default=True)


def _live_annotation(kernel: KernelSource, name: str) -> Any:
    annotations = kernel.function.__annotations__
    if name not in annotations:
        raise _BadAnnotation(
            "needs an annotation: pl.Tensor, pl.Tensor[[rows, cols], dtype], pl.Out[...], pl.InOut[...], "
            "pl.Scalar[dtype], int, float or bool"
        )
    return _evaluated(kernel, annotations[name])


def _evaluated(kernel: KernelSource, annotation: Any) -> Any:
    """The object behind an annotation that ``from __future__ import annotations`` or quotes left as text."""
    if not isinstance(annotation, str):
        return annotation
    function = kernel.function
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    names = {}
    for name, cell in cells.items():
        try:
            names[name] = cell.cell_contents
        except ValueError:
            continue
    try:
        return _evaluated(kernel, eval(annotation, function.__globals__, names))
    except Exception as error:
        raise _BadAnnotation(f"the annotation {annotation} cannot be evaluated: {error}") from None


def _tensor_item(item: Any) -> tuple[tuple[int | DynDim, ...], DType]:
    form = "write pl.Tensor[[rows, cols], dtype]"
    if not isinstance(item, tuple) or len(item) != 2 or not isinstance(item[0], (list, tuple)):
        raise _BadAnnotation(f"a tensor annotation needs a shape and a dtype; {form}")
    dims, dtype = item
    if not isinstance(dtype, DType):
        raise _BadAnnotation(f"{dtype!r} is not a dtype such as pl.FP32; {form}")
    if dtype == INDEX:
        raise _BadAnnotation("tensors of INDEX do not exist; use pl.INT64")
    return _checked_shape(dims), dtype


def _checked_shape(dims: Iterable[Any]) -> tuple[int | DynDim, ...]:
    """Dimensions of a tensor parameter: 1 to 5 positive ints or dynamic names."""
    shape: list[int | DynDim] = []
    for dim in dims:
        if isinstance(dim, DynDim):
            if not isinstance(dim.name, str) or not dim.name.isidentifier():
                raise _BadAnnotation(f"pl.dynamic({dim.name!r}): the name of a dimension is a Python identifier")
            shape.append(dim)
        elif isinstance(dim, int) and not isinstance(dim, bool) and dim > 0:
            shape.append(int(dim))
        else:
            raise _BadAnnotation(f"dimension {dim!r} is neither a positive int nor pl.dynamic(name)")
    if not 1 <= len(shape) <= MAX_RANK:
        raise _BadAnnotation(f"a tensor has 1 to {MAX_RANK} dimensions, not {len(shape)}")
    return tuple(shape)


def _scalar_dtype(annotation: Any) -> DType:
    if isinstance(annotation, ScalarAnnotation):
        item = annotation.item
        if not isinstance(item, DType):
            raise _BadAnnotation(f"pl.Scalar needs a dtype such as pl.INT32, not {item!r}")
        if item == BF16:
            raise _BadAnnotation("a scalar cannot be BF16; use pl.FP32")
        return item
    if annotation is Scalar:
        raise _BadAnnotation("pl.Scalar needs a dtype: pl.Scalar[pl.INT32]")
    for python, dtype in _PYTHON_SCALARS.items():
        if annotation is python:
            return dtype
    if isinstance(annotation, DType):
        raise _BadAnnotation(f"a dtype is not an annotation; write pl.Scalar[pl.{annotation.name}]")
    shown = getattr(annotation, "__name__", None) or repr(annotation)
    raise _BadAnnotation(f"{shown} is not an annotation of the language")
