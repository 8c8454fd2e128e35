"""HOST entries of distributed programs: windows, calls of chips' programs, collectives over the ranks."""

from __future__ import annotations

from pypto.ir.nodes import CoreType
from pypto.ir.ops.registry import Attr, Call, Kind, OpDef, Operand, register
from pypto.ir.ops.user_names import user_name
from pypto.ir.types import INDEX, INT32, MAX_RANK, DType, ReduceOp, ScalarType, TensorType, Type
from pypto.ir.values import simplified

COLLECTIVES = ("allreduce", "reduce_scatter", "broadcast", "allgather", "all_to_all", "barrier")

SPACE = "distributed"
TENSOR, SYSTEM = f"{SPACE}.tensor", f"{SPACE}.system"


def _nothing(call: Call) -> tuple[Type, ...]:
    return ()


def _index(call: Call) -> tuple[Type, ...]:
    return (ScalarType(INDEX),)


def _window(call: Call) -> tuple[Type, ...]:
    if not 1 <= len(call.operands) <= MAX_RANK:
        raise call.error(f"needs 1 to {MAX_RANK} sizes, got {len(call.operands)}")
    shape = tuple(simplified(v) for v in call.operands)
    for size in shape:
        if isinstance(size, int) and size <= 0:
            raise call.error(f"every size must be positive, got {size}")
    return (TensorType(shape, call.attrs["dtype"]),)


register(OpDef("host.world_size", (), _index, incore=False))
# The buffer of a number has this many bytes on every rank.
register(
    OpDef(
        "host.window_buffer",
        (Operand("bytes", Kind.INDEX),),
        _nothing,
        (Attr("buffer", int),),
        pure=False,
        incore=False,
    )
)
register(
    OpDef(
        "host.window",
        (Operand("sizes", Kind.INDEX, variadic=True),),
        _window,
        (Attr("buffer", int), Attr("dtype", DType), Attr("called", str)),
        incore=False,
    )
)
# Runs a chip's program on one rank. A window among the arguments is that rank's; those that ``windows`` counts are all
# ranks' parts, and with any of them the program's last parameter is the rank.
register(
    OpDef(
        "host.call",
        (Operand("rank", Kind.INDEX), Operand("arguments", Kind.ANY, variadic=True)),
        _nothing,
        (Attr("chip", int), Attr("callee", str), Attr("windows", tuple)),
        pure=False,
        incore=False,
    )
)
register(
    OpDef(
        "host.collective",
        (Operand("tensors", Kind.TENSOR, variadic=True),),
        _nothing,
        (
            Attr("kind", str, choices=COLLECTIVES),
            Attr("label", str),
            Attr("reduce", ReduceOp, required=False),
            Attr("root", int, required=False),
        ),
        pure=False,
        incore=False,
    )
)

HOST_OPS = frozenset(
    {
        *("host.world_size", "host.window_buffer", "host.window", "host.call", "host.collective"),
        *("scf.for", "scf.while", "scf.if", "scf.yield", "scf.return"),
        *("tensor.create", "tensor.dim", "tensor.view", "tensor.reshape", "tensor.read"),
    }
)
"""What a HOST entry consists of, besides scalar arithmetic."""

SIGNAL_DTYPE = INT32


def _name(name: str, parameters: str, doc: str, space: str, handler: str = "", unsupported: str = "") -> None:
    spaces = (SPACE, space)
    user_name(name, parameters, doc, spaces, handler=f"{SPACE}.{handler or name}", unsupported=unsupported)


_name("world_size", "", "Number of ranks; for HOST entries.", SYSTEM)
_name(
    "alloc_window_buffer",
    "size, *, dtype=None, name=''",
    "Memory of ``size`` bytes on every rank, or of a shape and a dtype; zero at first, gone when the entry ends.",
    TENSOR,
)
_name("window", "buf, shape, *, dtype", "A window buffer as a tensor: of every rank its own.", TENSOR)
_name(
    "allreduce",
    "target, signal=None, *, op=ReduceOp.Sum, mode='mesh', core_num=1",
    "Every rank's ``target`` becomes the reduction of all of them.",
    TENSOR,
)
_name(
    "all_reduce",
    "target, signal=None, *, op=ReduceOp.Sum, mode='mesh', core_num=1",
    "The same as ``allreduce``.",
    TENSOR,
    "allreduce",
)
_name("barrier", "signal=None", "All ranks wait for each other.", TENSOR)
_name("broadcast", "target, signal=None, *, root=0", "Every rank's ``target`` becomes that of rank ``root``.", TENSOR)
_name(
    "allgather",
    "local_data, target, signal=None",
    "Part ``r`` of every rank's ``target`` becomes ``local_data`` of rank ``r``.",
    TENSOR,
)
_name("all_gather", "local_data, target, signal=None", "The same as ``allgather``.", TENSOR, "allgather")
_name(
    "reduce_scatter",
    "target, signal=None, *, op=ReduceOp.Sum",
    "Part ``r`` of rank ``r``'s ``target`` becomes the reduction of all ranks' parts ``r``; other parts stay.",
    TENSOR,
)
_name(
    "all_to_all",
    "input, target, signal=None",
    "Part ``s`` of rank ``r``'s ``target`` becomes part ``r`` of rank ``s``'s ``input``.",
    TENSOR,
)
_name("get_comm_ctx", "dist_tensor", "The ranks that share a window; for ``rank`` and ``nranks``.", SYSTEM)
_name("rank", "ctx", "Number of the rank that runs.", SYSTEM)
_name("nranks", "ctx", "Number of ranks.", SYSTEM)
_name(
    "notify",
    "target, peer, offsets, value, *, op",
    "Adds to a cell of another rank's window of INT32, or sets it; what this rank stored before is there then.",
    SYSTEM,
)
_name(
    "wait",
    "signal, offsets, expected, *, cmp",
    "Waits until a cell of this rank's window is equal to a number, or at least as large.",
    SYSTEM,
)
_name(
    "remote_load",
    "target, peer, offsets, shape, valid_shape=None",
    "A tile of another rank's window.",
    TENSOR,
)
_name("remote_store", "src, target, peer, offsets, *, atomic=None", "Stores a tile into another rank's window.", TENSOR)
_MOVED = "dst_offsets=None, src_offsets=None, shape=None, *, chunk_rows=0, chunk_cols=0, pipeline=False"
_name("put", f"dst, peer, src, {_MOVED}, atomic=None", "Copies a tensor into another rank's window.", TENSOR)
_name("get", f"dst, peer, src, {_MOVED}", "Copies another rank's window into a tensor.", TENSOR)


def _cell(call: Call) -> tuple[Type, ...]:
    if call.tensor(0).dtype != SIGNAL_DTYPE or len(call.operands) != 2 + call.tensor(0).rank:
        raise call.error(f"needs a tensor of {SIGNAL_DTYPE} and {call.tensor(0).rank} indices")
    return ()


# All ranks' parts of a window of signals, a number, the rank and the indices of a cell.
for _what, _attr in (("notify", "add"), ("wait", "equal")):
    register(
        OpDef(
            f"tile.{_what}",
            (
                Operand("signals", Kind.TENSOR),
                Operand("number", Kind.INDEX),
                Operand("indices", Kind.INDEX, variadic=True),
            ),
            _cell,
            (Attr(_attr, bool),),
            core=CoreType.AIV,
            pure=False,
        )
    )
