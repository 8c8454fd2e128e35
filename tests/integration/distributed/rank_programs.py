"""Distributed programs of the tests."""

import pypto.language as pl
import pypto.language.distributed as pld

ROWS, COLUMNS = 4, 8
NR = pl.dynamic("NR")
WIDE = pl.dynamic("WIDE")


@pl.jit
def add_one(x: pl.Tensor[[ROWS, COLUMNS], pl.FP32], y: pl.Out[pl.Tensor[[ROWS, COLUMNS], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [ROWS, COLUMNS]) + 1.0, [0, 0], y)
    return y


@pl.jit.inline
def collectives(whole: pl.Tensor, parts: pl.Tensor, gathered: pl.Tensor):
    """Every collective, each on its own part of axis 0."""
    pld.tensor.allreduce(whole[0], op=pld.ReduceOp.Sum)
    pld.tensor.allreduce(whole[1], op=pld.ReduceOp.Max, mode="ring")
    pld.all_reduce(whole[2], op=pld.ReduceOp.Min)
    pl.distributed.all_reduce(whole[3], op=pl.distributed.ReduceOp.Prod)
    pld.tensor.broadcast(whole[4], root=1)
    pld.tensor.barrier()
    pld.tensor.allgather(whole[5], gathered)
    pld.tensor.reduce_scatter(parts[0], op=pld.ReduceOp.Sum)
    pld.tensor.all_to_all(parts[1], parts[2])


@pl.jit.host
def every_collective(
    x: pl.Tensor[[NR, ROWS, COLUMNS], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, ROWS, COLUMNS], pl.FP32]],
    wide: pl.Tensor[[ROWS, WIDE], pl.FP32],
    wider: pl.Out[pl.Tensor[[ROWS, WIDE], pl.FP32]],
    whole_f32: pl.InOut[pl.Tensor[[6, NR, ROWS, COLUMNS], pl.FP32]],
    parts_f32: pl.InOut[pl.Tensor[[3, NR, NR, COLUMNS], pl.FP32]],
    gathered_f32: pl.Out[pl.Tensor[[NR, NR, ROWS, COLUMNS], pl.FP32]],
    whole_f16: pl.InOut[pl.Tensor[[6, NR, ROWS, COLUMNS], pl.FP16]],
    parts_f16: pl.InOut[pl.Tensor[[3, NR, NR, COLUMNS], pl.FP16]],
    gathered_f16: pl.Out[pl.Tensor[[NR, NR, ROWS, COLUMNS], pl.FP16]],
    whole_bf16: pl.InOut[pl.Tensor[[6, NR, ROWS, COLUMNS], pl.BF16]],
    parts_bf16: pl.InOut[pl.Tensor[[3, NR, NR, COLUMNS], pl.BF16]],
    gathered_bf16: pl.Out[pl.Tensor[[NR, NR, ROWS, COLUMNS], pl.BF16]],
    whole_i32: pl.InOut[pl.Tensor[[6, NR, ROWS, COLUMNS], pl.INT32]],
    parts_i32: pl.InOut[pl.Tensor[[3, NR, NR, COLUMNS], pl.INT32]],
    gathered_i32: pl.Out[pl.Tensor[[NR, NR, ROWS, COLUMNS], pl.INT32]],
):
    """Every collective on tensors of every dtype, and one program of a chip between windows and arguments."""
    buffer = pld.alloc_window_buffer(ROWS * COLUMNS * pl.FP32.get_byte())
    signals = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    collectives(whole_f32, parts_f32, gathered_f32)
    collectives(whole_f16, parts_f16, gathered_f16)
    collectives(whole_bf16, parts_bf16, gathered_bf16)
    collectives(whole_i32, parts_i32, gathered_i32)
    signal = pld.window(signals, [pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(buffer, [ROWS, COLUMNS], dtype=pl.FP32)
        add_one(x[r], data, device=r)
    data = pld.window(buffer, [ROWS, COLUMNS], dtype=pl.FP32)
    data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Sum)
    for r in pl.range(pld.world_size()):
        add_one(data, y[r], device=r)
        # Parts of rows, whose elements do not lie side by side.
        part = r * COLUMNS
        add_one(wide[:, part : part + COLUMNS], wider[:, part : part + COLUMNS], device=r)
    return y


@pl.jit.host
def around_the_ring(x: pl.Tensor[[ROWS, COLUMNS], pl.FP32], y: pl.Out[pl.Tensor[[ROWS, COLUMNS], pl.FP32]], laps: int):
    """Every rank adds one to what its neighbour made, ``laps`` times around; only their memory orders them."""
    even = pl.create_tensor([ROWS, COLUMNS], dtype=pl.FP32)
    odd = pl.create_tensor([ROWS, COLUMNS], dtype=pl.FP32)
    add_one(x, even, device=0)
    for step in pl.range(1, laps * pld.world_size()):
        if step % 2 == 1:
            add_one(even, odd, device=step % pld.world_size())
        else:
            add_one(odd, even, device=step % pld.world_size())
    last = laps * pld.world_size() - 1
    if last % 2 == 1:
        add_one(odd, y, device=0)
    else:
        add_one(even, y, device=0)
    return y


@pl.jit.extern(core_type="aiv", source="misbehave.cpp")
def misbehave(x: pl.Tensor[[ROWS, COLUMNS], pl.FP32], how: int, y: pl.Out[pl.Tensor[[ROWS, COLUMNS], pl.FP32]]): ...


@pl.jit
def maybe_misbehave(x: pl.Tensor[[ROWS, COLUMNS], pl.FP32], how: int, y: pl.Out[pl.Tensor[[ROWS, COLUMNS], pl.FP32]]):
    misbehave(x, how, y)
    return y


@pl.jit.host
def some_misbehave(
    x: pl.Tensor[[NR, ROWS, COLUMNS], pl.FP32],
    how: pl.Tensor[[NR], pl.INT32],
    y: pl.Out[pl.Tensor[[NR, ROWS, COLUMNS], pl.FP32]],
):
    """Every rank runs a program that behaves as its number in ``how`` says, then all ranks meet."""
    for r in pl.range(pld.world_size()):
        maybe_misbehave(x[r], how[r], y[r], device=r)
    pld.tensor.barrier()
    return y


SIZE = 72  # more than one block, and not a multiple of the elements of two
Signals = pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]]
Row = pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]]
Table = pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]]


@pl.jit.incore
def talk(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[10, SIZE], pl.FP32]],
    row: Row,
    other: Row,
    table: Table,
    result: Table,
    signal: Signals,
    done: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
):
    """Every way in which a core reaches other ranks, one row of ``y`` for each."""
    ctx = pld.get_comm_ctx(row)
    me, count = pld.rank(ctx), pld.nranks(ctx)
    right = (me + 1) % count
    mine = pl.load(x, [0, 0], [1, SIZE])
    # A hand-made barrier, and the neighbour's part by load, get and put.
    row = pl.store(mine, [0, 0], row)
    for peer in pl.range(count):
        pld.system.notify(done, peer=peer, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(done, offsets=[0, 0], expected=count, cmp=pld.WaitCmp.Eq)
    pl.store(pld.tile.remote_load(row, peer=right, offsets=[0, 0], shape=[1, SIZE]), [0, 0], y)
    pld.tensor.get(y, right, row, dst_offsets=[1, 0], src_offsets=[0, 0], shape=[1, SIZE], chunk_cols=32)
    pld.tensor.put(other, right, row)
    pld.tensor.barrier(signal)
    pl.store(pl.load(other, [0, 0], [1, SIZE]), [2, 0], y)
    pld.tensor.barrier(signal)
    pld.tile.remote_store(mine + 1.0, other, peer=right, offsets=[0, 0])
    pld.tensor.barrier(signal)
    pl.store(pl.load(other, [0, 0], [1, SIZE]), [3, 0], y)
    # Collectives of cores.
    row = pld.tensor.allreduce(row, signal, op=pld.ReduceOp.Sum)
    pl.store(pl.load(row, [0, 0], [1, SIZE]), [4, 0], y)
    pl.store(mine, [0, 0], row)
    row = pld.tensor.allreduce(row, signal, op=pld.ReduceOp.Max, mode="ring")
    pl.store(pl.load(row, [0, 0], [1, SIZE]), [5, 0], y)
    pl.store(mine, [0, 0], row)
    row = pld.tensor.broadcast(row, signal, root=1)
    pl.store(pl.load(row, [0, 0], [1, SIZE]), [6, 0], y)
    table = pld.tensor.allgather(x, table, signal)
    result = pld.tensor.all_to_all(table, result, signal)
    pl.store(pl.load(table, [right, 0], [1, SIZE]), [7, 0], y)
    pl.store(pl.load(result, [right, 0], [1, SIZE]), [8, 0], y)
    table = pld.tensor.reduce_scatter(table, signal, op=pld.ReduceOp.Sum)
    pl.store(pl.load(table, [me, 0], [1, SIZE]), [9, 0], y)


@pl.jit
def talking(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[10, SIZE], pl.FP32]],
    row: Row,
    other: Row,
    table: Table,
    result: Table,
    signal: Signals,
    done: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
):
    talk(x, y, row, other, table, result, signal, done)
    return y


@pl.jit.host
def cores_talk(x: pl.Tensor[[NR, 1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, 10, SIZE], pl.FP32]]):
    """The cores of all ranks talk to each other, with no help of this entry."""
    world = pld.world_size()
    row = pld.window(pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32), [1, SIZE], dtype=pl.FP32)
    other = pld.window(pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32), [1, SIZE], dtype=pl.FP32)
    table = pld.window(pld.alloc_window_buffer([world, SIZE], dtype=pl.FP32), [world, SIZE], dtype=pl.FP32)
    result = pld.window(pld.alloc_window_buffer([world, SIZE], dtype=pl.FP32), [world, SIZE], dtype=pl.FP32)
    signal = pld.window(pld.alloc_window_buffer([world, 1], dtype=pl.INT32), [world, 1], dtype=pl.INT32)
    done = pld.window(pld.alloc_window_buffer(4), [1, 1], dtype=pl.INT32)
    for r in pl.range(world):
        talking(x[r], y[r], row, other, table, result, signal, done, device=r)
    return y
