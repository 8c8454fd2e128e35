"""HOST entries: calls of chips' programs on a rank, windows, collectives, and what such an entry may not hold."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from pypto.ir.nodes import Direction, Function, FunctionKind, Loc, Op, Value
from pypto.ir.ops.host import HOST_OPS, SIGNAL_DTYPE
from pypto.ir.types import ReduceOp, TensorType
from pypto.language.errors import CompileError, KernelSyntaxError
from pypto.language.parsing import window_calls
from pypto.language.parsing.arguments import dtype_argument, tensor_argument
from pypto.language.parsing.binding import Bound
from pypto.language.parsing.elementwise import apply_binary
from pypto.language.parsing.frame import Frame
from pypto.language.parsing.model import Model, describe, is_whole

_MODES = ("mesh", "ring")


@dataclass(frozen=True)
class WindowBuffer:
    """What ``pld.alloc_window_buffer`` gives: memory of every rank, which windows look into."""

    number: int


def is_host(frame: Frame) -> bool:
    """Whether the function that is parsed is a HOST entry, or part of one."""
    return frame.function.kind is FunctionKind.HOST


def need_host(frame: Frame, what: str, node: ast.AST) -> None:
    """Refuse what only a HOST entry has."""
    if not is_host(frame):
        raise frame.syntax_error(f"{what} stands in a function that is no HOST entry; put it under @pl.jit.host", node)


def check_host(function: Function, error: Callable[[str, Loc | None], CompileError]) -> None:
    """Refuse computation in a HOST entry, with its place."""
    for op in function.body.walk():
        if op.name in HOST_OPS or op.name.startswith("arith."):
            continue
        what = _LABELS.get(op.name, op.name.replace("tile.", "pl.").replace("tensor.", "pl."))
        raise error(
            f"{what} stands in the HOST entry {function.name}, which computes nothing itself; put it into a function "
            "under @pl.jit and call that one with device=",
            op.loc,
        )
    if not any(op.name == "host.call" for op in function.body.walk()):
        raise error(
            f"{function.name} calls no function under @pl.jit; a HOST entry runs at least one on a rank", function.loc
        )
    for param in function.params:
        if param.direction is Direction.Out and not any(_writes(op, param.value) for op in function.body.walk()):
            raise error(
                f"{param.name} is an output of {function.name}, but no chip and no collective gets it; hand it on, or "
                "do not annotate it with pl.Out",
                function.loc,
            )


_LABELS = {"func.scope": "with pl.at(...)", "func.call": "a call of a device kernel", "tensor.apply": "an operation"}


def _writes(op: Op, tensor: Value) -> bool:
    if op.name not in ("host.call", "host.collective"):
        # What a loop carries may be anything that enters it.
        return op.name in ("scf.for", "scf.while", "scf.yield") and tensor in op.operands
    return any(_root(operand) is tensor for operand in op.operands)


def _root(value: Value) -> Value:
    while isinstance(value.owner, Op) and value.owner.name in ("tensor.view", "tensor.reshape"):
        value = value.owner.operands[0]
    return value


def _world_size(frame: Frame, bound: Bound) -> Model:
    need_host(frame, bound.label, bound.node)
    return frame.op("host.world_size", [], bound.node).result


def _alloc_window_buffer(frame: Frame, bound: Bound) -> Model:
    need_host(frame, bound.label, bound.node)
    if frame.builder.block is not frame.function.body:
        raise frame.syntax_error(f"{bound.label} stands in a loop or an if; put it in front of them", bound.node)
    size = bound["size"]
    if isinstance(size, tuple):
        nbytes: Model = dtype_argument(frame, bound, "dtype").nbytes
        for length in size:
            nbytes = apply_binary(frame, "mul", nbytes, length, bound.node)
        size = nbytes
    number = sum(op.name == "host.window_buffer" for op in frame.function.body.ops)
    frame.op(
        "host.window_buffer",
        [frame.index(size, bound.place("size"), f"{bound.label}: size")],
        bound.node,
        buffer=number,
    )
    return WindowBuffer(number)


def _window(frame: Frame, bound: Bound) -> Model:
    need_host(frame, bound.label, bound.node)
    buffer, shape, dtype = bound["buf"], bound["shape"], dtype_argument(frame, bound, "dtype")
    if not isinstance(buffer, WindowBuffer):
        raise frame.error(
            f"{bound.label}: buf must come from alloc_window_buffer, not {describe(buffer)}", bound.place("buf")
        )
    if not isinstance(shape, tuple) or not shape:
        raise frame.error(f"{bound.label}: shape must be a list of sizes, not {describe(shape)}", bound.place("shape"))
    sizes = [frame.index(size, bound.place("shape"), f"{bound.label}: a size") for size in shape]
    place = bound.place("buf")
    name = place.id if isinstance(place, ast.Name) else "buf"
    return frame.op("host.window", sizes, bound.node, buffer=buffer.number, dtype=dtype, called=name).result


def _collective(kind: str, *names: str, reduces: bool = False) -> Callable[[Frame, Bound], Model]:
    def handler(frame: Frame, bound: Bound) -> Model:
        tensors = [tensor_argument(frame, bound, name) for name in names]
        # The last one is written; all collectives of one tensor read and write it.
        if tensors:
            frame.check_writes(tensors[-1], bound.place(names[-1]))
        _check_signal(frame, bound)
        attrs: dict[str, object] = {"kind": kind, "label": bound.label}
        reduction = _reduction(frame, bound) if reduces else None
        root = frame.known(bound["root"], bound.place("root"), f"{bound.label}: root") if kind == "broadcast" else 0
        if kind == "allreduce":
            _check_way(frame, bound)
        if not is_host(frame):
            window_calls.collective(frame, bound, kind, tensors, reduction, root)
            return tensors[-1] if tensors else bound["signal"]
        if reduction is not None:
            attrs["reduce"] = reduction
        if kind == "broadcast":
            attrs["root"] = root
        frame.op("host.collective", tensors, bound.node, (), **attrs)
        return tensors[-1] if tensors else bound["signal"]

    return handler


def _reduction(frame: Frame, bound: Bound) -> ReduceOp:
    reduction = bound["op"]
    if not isinstance(reduction, ReduceOp):
        raise frame.error(
            f"{bound.label}: op must be a ReduceOp such as pl.distributed.ReduceOp.Sum, not {describe(reduction)}",
            bound.place("op"),
        )
    type = bound["target"].type
    if isinstance(type, TensorType) and type.dtype.kind == "bool":
        raise frame.error(f"{bound.label}: tensors of BOOL cannot be reduced; use INT8", bound.place("target"))
    return reduction


def _check_signal(frame: Frame, bound: Bound) -> None:
    """Signals are for devices; here they must be what a device would take."""
    if bound["signal"] is None:
        return
    signal = tensor_argument(frame, bound, "signal")
    if not isinstance(signal.type, TensorType) or signal.type.dtype != SIGNAL_DTYPE:
        raise frame.error(
            f"{bound.label}: signal must be a window of {SIGNAL_DTYPE}, not {describe(signal)}", bound.place("signal")
        )


def _check_way(frame: Frame, bound: Bound) -> None:
    """How a device would do it; the result is the same."""
    if bound["mode"] not in _MODES:
        raise frame.error(f"{bound.label}: mode must be 'mesh' or 'ring', not {bound['mode']!r}", bound.place("mode"))
    cores = bound["core_num"]
    if not is_whole(cores) or cores < 1:
        raise frame.error(f"{bound.label}: core_num must be a positive number, not {cores!r}", bound.place("core_num"))


def split_device(frame: Frame, name: str, kwargs: dict[str, Model], node: ast.Call) -> tuple[Value, ast.Call]:
    """The rank that ``device=`` of a call says, and the call without it; ``kwargs`` loses it."""
    keyword = next((k for k in node.keywords if k.arg == "device"), None)
    if keyword is None:
        raise frame.text.error(
            f"{name} is called from a HOST entry without device=; say on which rank it runs, as {name}(..., device=r)",
            node,
            KernelSyntaxError,
        )
    rank = frame.index(kwargs.pop("device"), keyword.value, f"{name}: device")
    rest = ast.Call(node.func, node.args, [k for k in node.keywords if k is not keyword])
    return rank, ast.copy_location(rest, node)


HANDLERS: dict[str, Callable[[Frame, Bound], Model]] = {
    "distributed.world_size": _world_size,
    "distributed.alloc_window_buffer": _alloc_window_buffer,
    "distributed.window": _window,
    "distributed.allreduce": _collective("allreduce", "target", reduces=True),
    "distributed.reduce_scatter": _collective("reduce_scatter", "target", reduces=True),
    "distributed.broadcast": _collective("broadcast", "target"),
    "distributed.allgather": _collective("allgather", "local_data", "target"),
    "distributed.all_to_all": _collective("all_to_all", "input", "target"),
    "distributed.barrier": _collective("barrier"),
}
