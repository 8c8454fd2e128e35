"""Distributed programs of the tests."""

import pypto.language as pl
import pypto.language.distributed as pld

ROWS, COLUMNS = 4, 8
NR = pl.dynamic("NR")


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
