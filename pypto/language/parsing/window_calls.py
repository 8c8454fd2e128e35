"""Windows inside of a chip's program: other ranks' parts, signals, and collectives that cores carry out themselves.

A parameter that is annotated with ``pld.DistributedTensor`` is one tensor of all ranks' parts, axis 0 being the rank.
Its name stands for the part of the rank that runs, whose number is a further parameter.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pypto.ir.builder import Loop
from pypto.ir.nodes import FunctionKind, Param, Value
from pypto.ir.ops.host import SIGNAL_DTYPE
from pypto.ir.types import INDEX, AtomicType, DynDim, NotifyOp, ReduceOp, ScalarType, TensorType, WaitCmp
from pypto.ir.values import defining_op
from pypto.language.parsing.arguments import offsets_argument
from pypto.language.parsing.binding import Bound
from pypto.language.parsing.frame import Frame
from pypto.language.parsing.model import Model, describe, is_tensor
from pypto.language.signature import Signature

RANKS = DynDim("world_size")
_TILE_BYTES = 16384
_REDUCTIONS = {
    ReduceOp.Sum: "tile.add",
    ReduceOp.Max: "tile.maximum",
    ReduceOp.Min: "tile.minimum",
    ReduceOp.Prod: "tile.mul",
}


@dataclass(frozen=True)
class CommContext:
    """What ``pld.get_comm_ctx`` gives: the ranks that share a window."""

    parts: Value


def type_of_parts(type: TensorType) -> TensorType:
    """The type of all ranks' parts of a window."""
    return TensorType((RANKS, *type.shape), type.dtype)


def rank_of(frame: Frame) -> Value:
    """The number of the rank that runs: a further parameter of every function with windows."""
    rank = frame.hidden.get("rank")
    if rank is None:
        rank = Value("rank", ScalarType(INDEX), frame.function.body)
        frame.function.params.append(Param(rank))
        frame.hidden["rank"] = rank
    return rank


def open_windows(frame: Frame, signature: Signature) -> None:
    """Let the names of parameters that are windows stand for this rank's parts."""
    for declared, param in zip(signature.params, list(frame.function.params), strict=False):
        if not declared.window:
            continue
        parts, rank = param.value, rank_of(frame)
        type = _tensor_type(parts)
        with frame.at(frame.text.node):
            sizes: list[int | Value] = [1]
            for axis, dim in enumerate(type.shape[1:], 1):
                known = isinstance(dim, int)
                sizes.append(dim if known else frame.builder.value("tensor.dim", (parts,), "n", axis=axis))  # type: ignore[arg-type]
            own = frame.builder.view(parts, [rank, *[0] * (type.rank - 1)], sizes, param.name, (0,))
        frame.env[param.name] = own
        frame.windows[id(own)] = own, parts


def window_argument(frame: Frame, model: Value, what: str, place: ast.AST) -> Value:
    """What a function gets for a parameter that is a window: the HOST entry's window, or all ranks' parts."""
    if frame.function.kind is FunctionKind.HOST:
        op = defining_op(model)
        if op is not None and op.name == "host.window":
            return model
    elif id(model) in frame.windows:
        return frame.windows[id(model)][1]
    raise frame.error(
        f"{what} must be a window, not {describe(model)}; a HOST entry makes it with pld.window, functions take it as "
        "pld.DistributedTensor",
        place,
    )


def _tensor_type(value: Value) -> TensorType:
    if not isinstance(value.type, TensorType):
        raise TypeError(f"{value!r} is no tensor")
    return value.type


def _parts(frame: Frame, bound: Bound, name: str) -> Value:
    model = bound[name]
    if not is_tensor(model):
        raise frame.error(f"{bound.label}: {name} must be a window, not {describe(model)}", bound.place(name))
    return window_argument(frame, model, f"{bound.label}: {name}", bound.place(name))


def _world(frame: Frame, parts: Value, node: ast.AST) -> Value:
    return frame.op("tensor.dim", [parts], node, axis=0).result


def _get_comm_ctx(frame: Frame, bound: Bound) -> Model:
    return CommContext(_parts(frame, bound, "dist_tensor"))


def _context(frame: Frame, bound: Bound) -> CommContext:
    context = bound["ctx"]
    if not isinstance(context, CommContext):
        raise frame.error(f"{bound.label}: ctx must come from get_comm_ctx, not {describe(context)}", bound.node)
    return context


def _rank(frame: Frame, bound: Bound) -> Model:
    _context(frame, bound)
    return rank_of(frame)


def _nranks(frame: Frame, bound: Bound) -> Model:
    return _world(frame, _context(frame, bound).parts, bound.node)


# Signals


def _cell(frame: Frame, bound: Bound, name: str) -> tuple[Value, list[Value]]:
    """All ranks' parts of a window of signals, and the indices of a cell in one part."""
    frame.need_core(bound.label, bound.node)
    parts = _parts(frame, bound, name)
    _need_signal(frame, bound, parts, name)
    return parts, offsets_argument(frame, bound, "offsets", _tensor_type(parts).rank - 1, name)


def _need_signal(frame: Frame, bound: Bound, parts: Value, name: str) -> None:
    if _tensor_type(parts).dtype != SIGNAL_DTYPE:
        raise frame.error(
            f"{bound.label}: {name} must be a window of {SIGNAL_DTYPE}, not {describe(bound[name])}", bound.place(name)
        )


def _notify(frame: Frame, bound: Bound) -> Model:
    parts, indices = _cell(frame, bound, "target")
    how = bound["op"]
    if not isinstance(how, NotifyOp):
        raise frame.error(f"{bound.label}: op must be a NotifyOp, not {describe(how)}", bound.place("op"))
    peer = frame.index(bound["peer"], bound.place("peer"), f"{bound.label}: peer")
    value = frame.index(bound["value"], bound.place("value"), f"{bound.label}: value")
    frame.op("tile.notify", [parts, value, peer, *indices], bound.node, add=how is NotifyOp.AtomicAdd)
    return None


def _wait(frame: Frame, bound: Bound) -> Model:
    parts, indices = _cell(frame, bound, "signal")
    how = bound["cmp"]
    if not isinstance(how, WaitCmp):
        raise frame.error(f"{bound.label}: cmp must be a WaitCmp, not {describe(how)}", bound.place("cmp"))
    expected = frame.index(bound["expected"], bound.place("expected"), f"{bound.label}: expected")
    frame.op("tile.wait", [parts, expected, rank_of(frame), *indices], bound.node, equal=how is WaitCmp.Eq)
    return None


# Other ranks' memory


def _remote_load(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    parts = _parts(frame, bound, "target")
    rank = _tensor_type(parts).rank - 1
    offsets = offsets_argument(frame, bound, "offsets", rank, "the window")
    peer = frame.index(bound["peer"], bound.place("peer"), f"{bound.label}: peer")
    shape, place = bound["shape"], bound.place("shape")
    if not isinstance(shape, tuple) or len(shape) not in (rank, 2):
        raise frame.error(f"{bound.label}: shape must be a list of {rank} sizes, not {describe(shape)}", place)
    sizes = [frame.known(size, place, f"{bound.label}: a size") for size in shape]
    rows, cols = (1, *sizes)[-2:]
    valid = frame.valid_shape(bound["valid_shape"], (rows, cols), rank, bound.place("valid_shape"))
    with frame.at(bound.node):
        return frame.builder.load(parts, [peer, *offsets], (rows, cols), valid)


def _remote_store(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    parts = _parts(frame, bound, "target")
    _refuse_adding(frame, bound)
    offsets = offsets_argument(frame, bound, "offsets", _tensor_type(parts).rank - 1, "the window")
    peer = frame.index(bound["peer"], bound.place("peer"), f"{bound.label}: peer")
    tile = frame.tile(bound["src"], bound.place("src"), f"{bound.label}: src")
    with frame.at(bound.node):
        frame.builder.store(tile, parts, [peer, *offsets])
    return None


def _refuse_adding(frame: Frame, bound: Bound) -> None:
    if bound["atomic"] not in (None, AtomicType.None_):
        raise frame.error(
            f"{bound.label}: atomic is not supported: on the simulator ranks are processes, whose stores are not added "
            "up; store into a part of each rank's own and add those",
            bound.place("atomic"),
        )


def _transfer(to_peer: bool) -> Callable[[Frame, Bound], Model]:
    def handler(frame: Frame, bound: Bound) -> Model:
        frame.need_core(bound.label, bound.node)
        remote, local = ("dst", "src") if to_peer else ("src", "dst")
        parts = _parts(frame, bound, remote)
        own = bound[local]
        if not is_tensor(own):
            raise frame.error(f"{bound.label}: {local} must be a tensor, not {describe(own)}", bound.place(local))
        if to_peer:
            _refuse_adding(frame, bound)
        peer = frame.index(bound["peer"], bound.place("peer"), f"{bound.label}: peer")
        sizes = _known_sizes(frame, bound, own if bound["shape"] is None else None)
        there, here = (
            _offsets(frame, bound, f"{remote}_offsets", sizes),
            _offsets(frame, bound, f"{local}_offsets", sizes),
        )
        for at, shape in _chunks(frame, bound, sizes, _tensor_type(own).dtype.nbytes):
            source, target = ([own, _moved(frame, here, at, bound)], [parts, [peer, *_moved(frame, there, at, bound)]])
            if not to_peer:
                source, target = target, source
            _copy(frame, source[0], source[1], target[0], target[1], shape, bound.node)  # type: ignore[arg-type]
        return bound["dst"] if is_tensor(bound["dst"]) else None

    return handler


def _known_sizes(frame: Frame, bound: Bound, whole: Value | None) -> list[int]:
    """The sizes of a transfer: its shape, or those of a whole tensor."""
    model: Model = bound.models.get("shape") if whole is None else _tensor_type(whole).shape
    if not isinstance(model, tuple) or not 1 <= len(model) <= 3:
        raise frame.error(f"{bound.label}: shape must be a list of 1 to 3 sizes, not {describe(model)}", bound.node)
    sizes = [frame.known(size, bound.node, f"{bound.label}: a size of what is moved") for size in model]
    if any(size != 1 for size in sizes[:-2]):
        raise frame.error(f"{bound.label}: the leading sizes of what is moved must be 1, got {sizes}", bound.node)
    return sizes


def _offsets(frame: Frame, bound: Bound, name: str, sizes: Sequence[int]) -> list[Value]:
    if bound[name] is None:
        return [frame.index(0, bound.node, "an offset") for _ in sizes]
    return offsets_argument(frame, bound, name, len(sizes), "what is moved")


def _chunks(
    frame: Frame, bound: Bound, sizes: Sequence[int], nbytes: int
) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Offsets and sizes of blocks that fit on chip, as far as the call does not say how large they are."""
    rows, cols = (1, *sizes)[-2:]
    width = bound.models.get("chunk_cols") or min(cols, _TILE_BYTES // nbytes)
    height = bound.models.get("chunk_rows") or max(1, _TILE_BYTES // (width * nbytes))
    for size in (width, height):
        if not isinstance(size, int) or size < 1:
            raise frame.error(f"{bound.label}: a chunk has a known, positive size, not {describe(size)}", bound.node)
    for row in range(0, rows, height):
        for col in range(0, cols, width):
            yield (row, col), (min(height, rows - row), min(width, cols - col))


def _moved(frame: Frame, offsets: Sequence[Value], at: tuple[int, int], bound: Bound) -> list[Value]:
    """Offsets of a block, from those of all of it."""
    moved = list(offsets)
    for axis, step in zip(range(-min(2, len(moved)), 0), at[-min(2, len(moved)) :], strict=True):
        if step:
            by = frame.index(step, bound.node, "an offset")
            moved[axis] = frame.op("arith.add", [moved[axis], by], bound.node).result
    return moved


def _load(frame: Frame, tensor: Value, offsets: Sequence[Value], shape: tuple[int, int], node: ast.AST) -> Value:
    """A tile of whole blocks of 32 bytes, of which the wanted part is valid."""
    block = 32 // _tensor_type(tensor).dtype.nbytes
    rows, cols = shape
    with frame.at(node):
        return frame.builder.load(tensor, offsets, (rows, -(-cols // block) * block), shape)


def _copy(
    frame: Frame,
    source: Value,
    source_at: Sequence[Value],
    target: Value,
    target_at: Sequence[Value],
    shape: tuple[int, int],
    node: ast.AST,
) -> None:
    tile = _load(frame, source, source_at, shape, node)
    with frame.at(node):
        frame.builder.store(tile, target, target_at)


# Collectives


@contextmanager
def _over_ranks(
    frame: Frame, bound: Bound, parts: Value, start: int = 0, inits: Sequence[Value] = ()
) -> Iterator[Loop]:
    with frame.at(bound.node):
        world = _world(frame, parts, bound.node)
        with frame.builder.loop(start, world, 1, inits, "peer") as loop:
            frame.core_values.update(id(value) for value in (loop.index, *loop.carried))
            yield loop
        frame.core_values.add(id(frame.builder.block.ops[-1]))


def _meet(frame: Frame, bound: Bound) -> None:
    """All ranks are here: each gives every other one a credit in a cell of its own, and takes those that it got."""
    if bound["signal"] is None:
        raise frame.error(
            f"{bound.label}: a core needs a signal, a window of {SIGNAL_DTYPE} with one cell for each rank", bound.node
        )
    parts = _parts(frame, bound, "signal")
    _need_signal(frame, bound, parts, "signal")
    rank, one = rank_of(frame), frame.index(1, bound.node, "a credit")
    rest = [frame.index(0, bound.node, "an index") for _ in range(_tensor_type(parts).rank - 2)]
    with _over_ranks(frame, bound, parts) as loop:
        frame.op("tile.notify", [parts, one, loop.index, rank, *rest], bound.node, add=True)
    with _over_ranks(frame, bound, parts) as loop:
        frame.op("tile.wait", [parts, one, rank, loop.index, *rest], bound.node, equal=False)
        taken = frame.index(-1, bound.node, "a credit")
        frame.op("tile.notify", [parts, taken, rank, loop.index, *rest], bound.node, add=True)


def _reduced(
    frame: Frame, bound: Bound, parts: Value, offsets: Sequence[Value], shape: tuple[int, int], reduction: ReduceOp
) -> Value:
    """The reduction of a block of all ranks, in their order."""
    first = _load(frame, parts, [frame.index(0, bound.node, "a rank"), *offsets], shape, bound.node)
    with _over_ranks(frame, bound, parts, 1, [first]) as loop:
        other = _load(frame, parts, [loop.index, *offsets], shape, bound.node)
        loop.carry(frame.op(_REDUCTIONS[reduction], [loop.carried[0], other], bound.node).result)
    return loop.results[0]


def collective(
    frame: Frame, bound: Bound, kind: str, tensors: Sequence[Value], reduction: ReduceOp | None, root: int
) -> None:
    """A collective that the ranks' cores carry out: they meet, move data, and meet again."""
    frame.need_core(bound.label, bound.node)
    _meet(frame, bound)
    if kind == "barrier":
        return
    target = tensors[-1]
    parts = window_argument(frame, target, f"{bound.label}: target", bound.node)
    rank, node = rank_of(frame), bound.node
    zeros = [frame.index(0, node, "an offset") for _ in range(_tensor_type(target).rank)]
    nbytes = _tensor_type(target).dtype.nbytes
    if kind in ("allreduce", "broadcast"):
        results: list[tuple[Value, list[Value]]] = []
        sizes = _known_sizes(frame, bound, target)
        for at, shape in _chunks(frame, bound, sizes, nbytes):
            offsets = _moved(frame, zeros, at, bound)
            if reduction is None:
                peer = frame.index(root, node, "a rank")
                results.append((_load(frame, parts, [peer, *offsets], shape, node), offsets))
            else:
                results.append((_reduced(frame, bound, parts, offsets, shape, reduction), offsets))
        _meet(frame, bound)
        for tile, offsets in results:
            with frame.at(node):
                frame.builder.store(tile, target, offsets)
        return
    source = tensors[0]
    if _tensor_type(target).rank != 2:
        raise frame.error(f"{bound.label}: a core takes windows of two dimensions, not {describe(target)}", node)
    cols = frame.known(_tensor_type(target).shape[1], node, f"{bound.label}: the number of columns")
    sizes = _known_sizes(frame, bound, source) if kind == "allgather" else [1, cols]
    for at, shape in _chunks(frame, bound, sizes, nbytes):
        offsets = _moved(frame, zeros, at, bound)
        if kind == "reduce_scatter":
            assert reduction is not None
            block = [rank, offsets[1]]
            tile = _reduced(frame, bound, parts, block, shape, reduction)
            with frame.at(node):
                frame.builder.store(tile, target, block)
            continue
        with _over_ranks(frame, bound, parts) as loop:
            if kind == "all_to_all":
                _copy(frame, source, [loop.index, offsets[1]], parts, [loop.index, rank, offsets[1]], shape, node)
                continue
            height = frame.index(sizes[0] if len(sizes) > 1 else 1, node, "a size")
            row = frame.op("arith.mul", [rank, height], node).result
            row = frame.op("arith.add", [row, offsets[0]], node).result
            _copy(frame, source, offsets[-len(sizes) :], parts, [loop.index, row, offsets[1]], shape, node)
    _meet(frame, bound)


OPTIONS = {("distributed.remote_store", "atomic"), ("distributed.put", "atomic")}
HANDLERS: dict[str, Callable[[Frame, Bound], Model]] = {
    "distributed.get_comm_ctx": _get_comm_ctx,
    "distributed.rank": _rank,
    "distributed.nranks": _nranks,
    "distributed.notify": _notify,
    "distributed.wait": _wait,
    "distributed.remote_load": _remote_load,
    "distributed.remote_store": _remote_store,
    "distributed.put": _transfer(True),
    "distributed.get": _transfer(False),
}
