"""Kernels that hold many matrix products each."""

import pypto.language as pl

F, H, Z, B = pl.FP32, pl.FP16, pl.INT32, pl.INT8


@pl.jit
def products(
    a: pl.Tensor[[20, 24], H],
    b: pl.Tensor[[24, 40], H],
    bt: pl.Tensor[[40, 24], H],
    bias: pl.Tensor[[1, 40], F],
    wide: pl.Tensor[[1, 40], H],
    row: pl.Tensor[[1, 24], H],
    i: pl.Tensor[[20, 48], B],
    j: pl.Tensor[[48, 24], B],
    ibias: pl.Tensor[[1, 24], Z],
    k: pl.Scalar[pl.INT32],
    plain: pl.Out[pl.Tensor[[20, 40], F]],
    turned: pl.Out[pl.Tensor[[20, 40], F]],
    biased: pl.Out[pl.Tensor[[20, 40], F]],
    cast: pl.Out[pl.Tensor[[20, 40], F]],
    vector: pl.Out[pl.Tensor[[1, 40], F]],
    vector_acc: pl.Out[pl.Tensor[[1, 40], F]],
    vector_bias: pl.Out[pl.Tensor[[1, 40], F]],
    whole: pl.Out[pl.Tensor[[20, 24], Z]],
    inner: pl.Out[pl.Tensor[[20, 40], F]],
    chosen: pl.Out[pl.Tensor[[16, 16], F]],
    narrow: pl.Out[pl.Tensor[[20, 40], H]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        plain[:] = pl.matmul(a, b)
        turned[:] = pl.batch_matmul_acc(pl.matmul(a, bt, b_trans=True), a, b)
        row_of_bias = pl.load(bias, [0, 0], [1, 40], target_memory=pl.MemorySpace.Mat)
        biased[:] = pl.matmul_bias(a, b, pl.move(row_of_bias, target_memory=pl.MemorySpace.Bias))
        vector[:] = pl.gemv(row, b)
        vector_acc[:] = pl.gemv_acc(pl.gemv(row, b), row, b)
        vector_bias[:] = pl.gemv_bias(row, b, bias)
        whole[:] = pl.matmul_bias(i, j, ibias)
    with pl.at(level=pl.Level.CORE_GROUP):
        left = pl.load(a, [0, 0], [20, 24], valid_shape=[20, k], target_memory=pl.MemorySpace.Mat)
        right = pl.load(b, [0, 0], [24, 40], valid_shape=[k, 40], target_memory=pl.MemorySpace.Mat)
        inner[:] = pl.matmul(left, right)
        full_a = pl.load(a, [0, 0], [20, 24], target_memory=pl.MemorySpace.Mat)
        full_b = pl.load(b, [0, 0], [24, 40], target_memory=pl.MemorySpace.Mat)
        part_a = pl.extract(full_a, 4, 8, [16, 16], target_memory=pl.MemorySpace.Left)
        part_b = pl.extract(full_b, 8, k, [16, 16], target_memory=pl.MemorySpace.Right)
        chosen[:] = pl.matmul(part_a, part_b)
    with pl.at(level=pl.Level.CORE_GROUP):
        cast[:] = pl.matmul_bias(a, b, pl.cast(pl.load(wide, [0, 0], [1, 40]), F))
        narrow[:] = pl.matmul(a, b, out_dtype=H)


@pl.jit.incore
def rows_by_table(
    q: pl.Tensor[[16, 32], H],
    cache: pl.Tensor[[64, 32], H],
    table: pl.Tensor[[16], pl.INT32],
    out: pl.Out[pl.Tensor[[16, 16], F]],
    twice: pl.Out[pl.Tensor[[32, 16], F]],
):
    """Keys that a table names, collected in matrix memory, and used transposed."""
    keys = pl.create_tile([16, 32], dtype=H, target_memory=pl.MemorySpace.Mat)
    for i in pl.range(16):
        keys = pl.gather_row(keys, cache, [i, 0], [pl.read(table, [i]), 0], [1, 32])
    left = pl.load(q, [0, 0], [16, 32], target_memory=pl.MemorySpace.Mat)
    pl.store(pl.matmul(left, keys, b_trans=True), [0, 0], out)
    turned = pl.transpose_view(left)
    pl.store(pl.matmul(turned, pl.load(q, [0, 0], [16, 16])), [0, 0], twice)


@pl.jit
def gathered_product(
    q: pl.Tensor[[16, 32], H],
    cache: pl.Tensor[[64, 32], H],
    table: pl.Tensor[[16], pl.INT32],
    out: pl.Out[pl.Tensor[[16, 16], F]],
    twice: pl.Out[pl.Tensor[[32, 16], F]],
):
    rows_by_table(q, cache, table, out, twice)


@pl.jit
def batches(
    a: pl.Tensor[[2, 3, 20, 24], H],
    b: pl.Tensor[[2, 3, 24, 40], H],
    x: pl.Tensor[[2, 8, 3, 32], F],
    product: pl.Out[pl.Tensor[[2, 3, 20, 40], F]],
    more: pl.Out[pl.Tensor[[2, 3, 20, 40], F]],
    heads: pl.Out[pl.Tensor[[2, 8, 3, 32], F]],
    sums: pl.Out[pl.Tensor[[2, 8, 3, 1], F]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        product[:] = pl.batch_matmul(a, b)
        more[:] = pl.batch_matmul_acc(pl.batch_matmul(a, b), a, b)
        sums[:] = pl.row_sum(pl.exp(x))
    for n in pl.range(2):
        for h in pl.range(3):
            with pl.at(level=pl.Level.CORE_GROUP):
                head = pl.load(x, [n, 0, h, 0], [1, 8, 1, 32], valid_shape=[1, 8, 1, 32])
                top = pl.slice(x, [1, 4, 1, 32], [n, 0, h, 0], drop_dims=[0, 2])
                pl.store(head + 1.0, [n, 0, h, 0], heads, shapes=[1, 8, 1, 32])
                pl.store(top * 2.0, [n, 0, h, 0], heads, shapes=[1, 4, 1, 32])
