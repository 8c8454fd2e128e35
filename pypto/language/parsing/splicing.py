"""Calls of functions whose bodies become part of their callers."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pypto.ir.nodes import Direction, FunctionKind
from pypto.ir.types import DynDim, TensorType
from pypto.language.parsing.frame import Frame
from pypto.language.parsing.model import (
    Model,
    ResultsOfNothing,
    describe,
    is_number,
    is_scalar,
    is_tensor,
    is_tile,
)
from pypto.language.parsing.statements import Statements
from pypto.language.signature import Signature, SignatureParam
from pypto.language.source import KernelSource


def splice(
    frame: Frame,
    target: KernelSource,
    bound: Sequence[tuple[Model, ast.AST]],
    node: ast.Call,
    whole: bool = False,
) -> Model:
    """Parse the body of ``target`` here, its parameters bound to the arguments as they are.

    Args:
        bound: for each parameter the argument and where it was written.
        whole: whether it works on whole tensors.

    Returns:
        What the function returns.
    """
    if target.kind is FunctionKind.OPAQUE and (frame.on_core or frame.in_scope):
        raise frame.syntax_error(
            f"{target.name} may hold scopes of its own; call it from the entry, outside of any scope", node
        )
    if any(outer.source.kernel is target for outer in frame.callers()):
        raise frame.syntax_error(f"{target.name} calls itself; recursion is not part of the language", node)
    inner = frame.spliced(frame.program.closure.of(target))
    inner.whole = inner.whole or whole
    for param, (model, place) in zip(Signature.of(target).params, bound, strict=True):
        inner.env[param.name] = _checked(frame, target, param, model, place)
    returned = Statements(inner, target.text.node.body).parse_spliced()
    return ResultsOfNothing(target.name) if returned is None else returned


def _checked(frame: Frame, target: KernelSource, param: SignatureParam, model: Model, place: ast.AST) -> Model:
    """The argument, which must be what the parameter's annotation says."""
    what = f"{target.name}: {param.name}"
    if param.kind == "tile" and is_tensor(model) and frame.on_core:
        return frame.tile(model, place, what)
    if param.kind == "tile" and not is_tile(model):
        raise frame.error(f"{what} must be a tile, not {describe(model)}", place)
    if param.kind == "scalar" and param.dtype is not None:
        if param.dtype.is_float and isinstance(model, int) and not isinstance(model, bool):
            model = float(model)
        value = frame.scalar(model, param.dtype, place, what) if not is_number(model) else model
        if is_number(model):
            # Checked, and still known: the body may use it as a size.
            frame.scalar(model, param.dtype, place, what)
        return value
    if param.is_tensor:
        # Inside a core a parameter that is annotated as a tensor may be what the caller computed.
        if is_tile(model) and frame.on_core and param.direction is Direction.In:
            return model
        if not is_tensor(model):
            raise frame.error(f"{what} must be a tensor, not {describe(model)}", place)
        _check_tensor(frame, what, param, model.type, place)
        if param.direction is not Direction.In:
            frame.check_writes(model, place)
    elif param.kind != "any" and not (is_tile(model) or is_scalar(model) or is_number(model)):
        raise frame.error(f"{what} cannot be {describe(model)}", place)
    return model


def _check_tensor(frame: Frame, what: str, param: SignatureParam, given: TensorType, place: ast.AST) -> None:
    if param.dtype is not None and given.dtype != param.dtype:
        raise frame.error(f"{what} is {given.dtype}, but is annotated as {param.dtype}", place)
    if param.shape is None:
        return
    if len(given.shape) != len(param.shape):
        raise frame.error(f"{what} has {len(given.shape)} dimensions, but is annotated with {len(param.shape)}", place)
    for axis, (size, annotated) in enumerate(zip(given.shape, param.shape, strict=True)):
        if isinstance(size, int) and not isinstance(annotated, DynDim) and size != annotated:
            raise frame.error(f"{what} axis {axis} is {size}, but is annotated as {annotated}", place)
