"""Kernels to look at: two independent halves that a third task joins, loops with carried values, and half precision."""

import pypto.language as pl

R, C = 32, 64


@pl.jit
def joined(
    x: pl.Tensor[[R, C], pl.FP32],
    factor: pl.Scalar[pl.FP32],
    out: pl.Out[pl.Tensor[[R, C], pl.FP32]],
):
    """Two tasks that may run at the same time, and one that waits for both."""
    low = pl.create_tensor([R, C], dtype=pl.FP32)
    high = pl.create_tensor([R, C], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="scale"):
        pl.store(pl.mul(pl.load(x, [0, 0], [R, C]), factor), [0, 0], low)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="square"):
        tile = pl.load(x, [0, 0], [R, C])
        pl.store(pl.mul(tile, tile), [0, 0], high)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="join"):
        pl.store(pl.add(pl.load(low, [0, 0], [R, C]), pl.load(high, [0, 0], [R, C])), [0, 0], out)
    return out


@pl.jit.incore
def doubled(x: pl.Tensor[[R, C], pl.FP32], out: pl.Out[pl.Tensor[[R, C], pl.FP32]]):
    """A kernel for several tasks."""
    pl.store(pl.mul(pl.load(x, [0, 0], [R, C]), 2.0), [0, 0], out)


@pl.jit
def fourfold(x: pl.Tensor[[R, C], pl.FP32], out: pl.Out[pl.Tensor[[R, C], pl.FP32]]):
    """Two tasks of one kernel, one after the other."""
    twice = pl.create_tensor([R, C], dtype=pl.FP32)
    doubled(x, twice)
    doubled(twice, out)
    return out


@pl.jit
def loops(
    x: pl.Tensor[[R, C], pl.FP32],
    n: pl.Scalar[pl.INT32],
    out: pl.Out[pl.Tensor[[R, C], pl.FP32]],
):
    """Carried tiles and numbers, branches, and a loop without a known end."""
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="turns"):
        total = pl.load(x, [0, 0], [R, C])
        weight = 1.0
        for i in pl.range(n):
            if i > 2:
                total = total + total * 0.5
                weight = weight * 0.5
            else:
                total = total + 1.0
        pl.store(total * weight, [0, 0], out)
    step = n
    while step > 0:
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="halve"):
            pl.store(pl.load(out, [0, 0], [R, C]) * 0.5, [0, 0], out)
        step = step - 2
    return out


@pl.jit
def narrow(x: pl.Tensor[[R, C], pl.FP16], out: pl.Out[pl.Tensor[[R, 1], pl.FP32]]):
    """A sum in half precision, which loses what single precision keeps."""
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="total"):
        tile = pl.exp(pl.load(x, [0, 0], [R, C]))
        pl.store(pl.cast(pl.row_sum(tile), target_type=pl.FP32), [0, 0], out)
    return out


@pl.jit
def sized(x: pl.Tensor[[pl.dynamic("N"), C], pl.FP32], out: pl.Out[pl.Tensor[[pl.dynamic("N"), C], pl.FP32]]):
    """A dynamic dimension, whole tensors."""
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="twice"):
        out[:] = x * 2.0
    return out
