"""HOST entries of distributed programs: windows, calls of chips' programs, collectives over the ranks."""

from __future__ import annotations

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
# Runs a chip's program on one rank; a window among the arguments is that rank's.
register(
    OpDef(
        "host.call",
        (Operand("rank", Kind.INDEX), Operand("arguments", Kind.ANY, variadic=True)),
        _nothing,
        (Attr("chip", int), Attr("callee", str)),
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
_CORES = (
    "ranks meet between the programs of chips: collectives of the HOST entry move data; a core has no access to other "
    "ranks' windows in the simulator"
)
for _what, _parameters in (
    ("get_comm_ctx", "dist_tensor"),
    ("rank", "ctx"),
    ("nranks", "ctx"),
    ("notify", "target, peer, offsets, value, *, op"),
    ("wait", "signal, offsets, expected, *, cmp"),
):
    _name(_what, _parameters, "Communication of a core with other ranks.", SYSTEM, unsupported=_CORES)
for _what, _parameters in (
    ("put", "dst, peer, src, dst_offsets=None, src_offsets=None, shape=None, **kwargs"),
    ("get", "dst, peer, src, dst_offsets=None, src_offsets=None, shape=None, **kwargs"),
    ("remote_load", "target, peer, offsets, shape, valid_shape=None"),
    ("remote_store", "src, target, peer, offsets, **kwargs"),
):
    _name(_what, _parameters, "Communication of a core with other ranks.", TENSOR, unsupported=_CORES)
