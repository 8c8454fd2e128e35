"""HOST entries of the tests, right and wrong ones."""

import pypto.language as pl
import pypto.language.distributed as pld

ROWS, COLUMNS = 4, 8
NR = pl.dynamic("NR")
Rows = pl.Tensor[[ROWS, COLUMNS], pl.FP32]
AllRows = pl.Tensor[[NR, ROWS, COLUMNS], pl.FP32]


@pl.jit.incore
def copy_tile(x: Rows, y: pl.Out[Rows]):
    pl.store(pl.load(x, [0, 0], [ROWS, COLUMNS]), [0, 0], y)


@pl.jit
def copy(x: Rows, y: pl.Out[Rows]):
    copy_tile(x, y)
    return y


@pl.jit
def copy_any(x: pl.Tensor, factor: float, y: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [ROWS, COLUMNS]) * factor, [0, 0], y)
    return y


@pl.jit.inline
def copy_all(x, y):
    for r in pl.range(pld.world_size()):
        copy(x[r], y[r], device=r)


@pl.jit.host
def spliced(x: AllRows, y: pl.Out[AllRows]):
    copy_all(x, y)
    return y


@pl.jit.host
def two_variants(x: AllRows, small: pl.Tensor[[2 * ROWS, COLUMNS], pl.FP32], y: pl.Out[AllRows], z: pl.Out[AllRows]):
    other = pl.create_tensor([2 * ROWS, COLUMNS], dtype=pl.FP32)
    for r in pl.range(pld.world_size()):
        copy_any(x[r], 2.0, y[r], device=r)
        copy_any(y[r], 1.5, z[r], device=r)
    copy_any(small, 1.0, other, device=0)
    return y, z


@pl.jit.host
def swapped(x: AllRows, y: pl.Out[AllRows]):
    """Every rank reads what another one wrote."""
    between = pl.create_tensor([pld.world_size(), ROWS, COLUMNS], dtype=pl.FP32)
    copy_all(x, between)
    for r in pl.range(pld.world_size()):
        copy(between[pld.world_size() - 1 - r], y[r], device=r)
    return y


@pl.jit.host
def numbers(x: AllRows, count: int, scale: float, chosen: pl.Tensor[[NR], pl.INT32], y: pl.Out[AllRows]):
    i = 0
    while i * i < count:
        i = i + 1
    first = chosen[0]
    device = pl.min(i // 2, pld.world_size() - 1)
    if first > 2 and first != 7:
        device = first % pld.world_size()
    copy_any(x[device], scale * 0.5, y[device], device=device)
    return y


@pl.jit.host
def windows(x: AllRows, y: pl.Out[AllRows], nbytes: int, rows: int):
    buffer = pld.alloc_window_buffer(nbytes)
    for r in pl.range(pld.world_size()):
        data = pld.window(buffer, [rows, COLUMNS], dtype=pl.FP32)
        copy(x[r], data, device=r)
        copy(data, y[r], device=r)
    return y


@pl.jit.host
def computes(x: AllRows, y: pl.Out[AllRows]):
    y[0] = pl.add(x[0], x[0])
    return y


@pl.jit.host
def scoped(x: AllRows, y: pl.Out[AllRows]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0, 0], [1, ROWS, COLUMNS]), [0, 0, 0], y)
    return y


@pl.jit.host
def no_device(x: AllRows, y: pl.Out[AllRows]):
    copy(x[0], y[0])
    return y


@pl.jit.host
def kernel_called(x: AllRows, y: pl.Out[AllRows]):
    copy_tile(x[0], y[0])
    return y


@pl.jit.host
def no_chip(x: pl.InOut[AllRows]):
    pld.tensor.allreduce(x)
    return x


@pl.jit.host
def wrong_op(x: pl.InOut[AllRows]):
    pld.tensor.allreduce(x, op="sum")
    return x


@pl.jit.host
def writes_input(x: AllRows, y: pl.Out[AllRows]):
    copy(x[0], y[0], device=0)
    pld.tensor.broadcast(x)
    return y


@pl.jit.host
def forgets_output(x: AllRows, y: pl.Out[AllRows], z: pl.Out[AllRows]):
    copy(x[0], y[0], device=0)
    return y


@pl.jit.host
def buffer_in_loop(x: AllRows, y: pl.Out[AllRows]):
    for r in pl.range(pld.world_size()):
        buffer = pld.alloc_window_buffer(128)
        copy(x[r], pld.window(buffer, [ROWS, COLUMNS], dtype=pl.FP32), device=r)
    return y


@pl.jit.host
def no_buffer(x: AllRows, y: pl.Out[AllRows]):
    copy(pld.window(x, [ROWS, COLUMNS], dtype=pl.FP32), y[0], device=0)
    return y


@pl.jit.host
def signal_of_floats(x: pl.InOut[AllRows]):
    copy(x[0], x[1], device=0)
    pld.tensor.allreduce(x, x[0])
    return x


@pl.jit
def asks_for_ranks(x: Rows, y: pl.Out[Rows]):
    for _ in pl.range(pld.world_size()):
        copy_tile(x, y)
    return y


@pl.jit
def calls_host(x: AllRows, y: pl.Out[AllRows]):
    spliced(x, y)
    return y


Part = pl.InOut[pld.DistributedTensor[[ROWS, COLUMNS], pl.FP32]]
Signals = pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]]


@pl.jit.incore
def meet(data: Part, signal: Signals, y: pl.Out[Rows]):
    pld.tensor.barrier(signal)
    pl.store(pl.load(data, [0, 0], [ROWS, COLUMNS]), [0, 0], y)


@pl.jit
def meeting(data: Part, signal: Signals, y: pl.Out[Rows]):
    meet(data, signal, y)
    return y


@pl.jit.host
def ranks_meet(nbytes: int, y: pl.Out[AllRows]):
    data = pld.window(pld.alloc_window_buffer(nbytes), [ROWS, COLUMNS], dtype=pl.FP32)
    signals = pld.alloc_window_buffer(4 * pld.world_size())
    for r in pl.range(pld.world_size()):
        meeting(data, pld.window(signals, [pld.world_size(), 1], dtype=pl.INT32), y[r], device=r)
    return y


@pl.jit.host
def no_window(x: pl.InOut[AllRows], y: pl.Out[AllRows]):
    signals = pld.alloc_window_buffer(4 * pld.world_size())
    meeting(x[0], pld.window(signals, [pld.world_size(), 1], dtype=pl.INT32), y[0], device=0)
    return y


@pl.jit.incore
def loads_from_no_window(x: Rows, y: pl.Out[Rows]):
    pl.store(pld.tile.remote_load(x, 0, [0, 0], [ROWS, COLUMNS]), [0, 0], y)


@pl.jit.incore
def signals_with_floats(data: Part, y: pl.Out[Rows]):
    pld.system.notify(data, 0, [0, 0], 1, op=pld.NotifyOp.Set)
    pl.store(pl.load(data, [0, 0], [ROWS, COLUMNS]), [0, 0], y)


@pl.jit.incore
def meets_without_signal(data: Part, y: pl.Out[Rows]):
    pld.tensor.allreduce(data)
    pl.store(pl.load(data, [0, 0], [ROWS, COLUMNS]), [0, 0], y)


@pl.jit.incore
def adds_remotely(data: Part, y: pl.Out[Rows]):
    tile = pl.load(data, [0, 0], [ROWS, COLUMNS])
    pld.remote_store(tile, data, 0, [0, 0], atomic=pl.AtomicType.Add)
    pl.store(tile, [0, 0], y)


@pl.jit.incore
def waits_for_nothing(data: pl.InOut[pld.DistributedTensor[[ROWS, COLUMNS], pl.INT32]], y: pl.Out[Rows]):
    pld.system.wait(data, [0, 0], 1, cmp="ge")


def chip_of(kernel, dtype):
    """A chip's program that only calls one kernel."""

    @pl.jit
    def chip(data: pl.InOut[pld.DistributedTensor[[ROWS, COLUMNS], dtype]], y: pl.Out[Rows]):
        kernel(data, y)
        return y

    return chip
