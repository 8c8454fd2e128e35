"""Products, transpositions, gathers and scatters of tensors that are larger than what stands on chip."""

import pypto.language as pl

R = pl.dynamic("R")
C = pl.dynamic("C")


@pl.jit
def products(
    a: pl.Tensor[[2, 1, 40, 300], pl.FP16],
    b: pl.Tensor[[3, 70, 300], pl.FP16],
    rows: pl.Tensor[[6, 5, 300], pl.FP16],
    w: pl.Tensor[[300, 170], pl.FP16],
    many: pl.Tensor[[2, 150, 40], pl.FP16],
    out: pl.Out[pl.Tensor[[2, 3, 40, 70], pl.FP32]],
    folded: pl.Out[pl.Tensor[[6, 5, 170], pl.FP16]],
    turned: pl.Out[pl.Tensor[[2, 40, 170], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.batch_matmul(a, b, b_trans=True) * 0.5 + 1.0
        folded[:] = pl.matmul(rows, w, out_dtype=pl.FP16)
        turned[:] = pl.matmul(many, w[0:150, :], a_trans=True)
    return out, folded, turned


@pl.jit
def transposed(
    x: pl.Tensor[[5, 70, 3, 90], pl.INT16],
    swapped: pl.Out[pl.Tensor[[5, 3, 70, 90], pl.INT16]],
    first: pl.Out[pl.Tensor[[3, 70, 5, 90], pl.INT16]],
    last: pl.Out[pl.Tensor[[90, 70, 3, 5], pl.INT16]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        swapped[:] = pl.transpose(x, 1, 2)
        first[:] = pl.transpose(x, 0, -2)
        last[:] = pl.transpose(x, 3, 0)
    return swapped, first, last


@pl.jit
def repeated(
    x: pl.Tensor[[3, R, 200], pl.FP32],
    bias: pl.Tensor[[R, 200], pl.FP32],
    scale: pl.Tensor[[3, 1, 200], pl.FP32],
    out: pl.Out[pl.Tensor[[3, R, 200], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = (x + bias) * scale - pl.row_sum(bias)
    return out


@pl.jit
def chosen(
    x: pl.Tensor[[40, 70000], pl.FP32],
    h: pl.Tensor[[3, R, 60], pl.FP16],
    columns: pl.Tensor[[33, 300], pl.INT32],
    planes: pl.Tensor[[2, R, 60], pl.INT32],
    lines: pl.Tensor[[3, 90, 60], pl.INT32],
    v: pl.Tensor[[C], pl.FP32],
    places: pl.Tensor[[C], pl.INT32],
    by_column: pl.Out[pl.Tensor[[33, 300], pl.FP32]],
    by_plane: pl.Out[pl.Tensor[[2, R, 60], pl.FP16]],
    by_line: pl.Out[pl.Tensor[[3, 90, 60], pl.FP16]],
    by_place: pl.Out[pl.Tensor[[C], pl.FP32]],
    every: pl.Out[pl.Tensor[[40, 17500], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        by_column[:] = pl.tensor.gather(x, dim=-1, index=columns)
        by_plane[:] = pl.tensor.gather(h, dim=0, index=planes)
        by_line[:] = pl.tensor.gather(h, dim=1, index=lines)
        by_place[:] = pl.tensor.gather(v, dim=0, index=places) + v
        every[:] = pl.tensor.gather(x, mask_pattern=pl.MaskPattern.P0100)
    return by_column, by_plane, by_line, by_place, every


@pl.jit
def compared(
    x: pl.Tensor[[2, 70, 333], pl.FP16],
    keys: pl.Tensor[[2, 70, 1], pl.FP16],
    places: pl.Out[pl.Tensor[[2, 70, 90], pl.INT32]],
    counts: pl.Out[pl.Tensor[[2, 70, 1], pl.INT32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        found, number = pl.tensor.gather(x, kvalue=keys, cmp_mode="gt", out_cols=90, offset=7)
        places[:] = found
        counts[:] = number
    return places, counts


@pl.jit
def scattered(
    x: pl.Tensor[[40, 3000], pl.FP32],
    part: pl.Tensor[[40, 200], pl.FP32],
    columns: pl.Tensor[[40, 200], pl.INT32],
    low: pl.Tensor[[7, 3000], pl.INT32],
    cache: pl.InOut[pl.Tensor[[9, 30, 1, 1100], pl.FP16]],
    rows: pl.Tensor[[R, 1100], pl.FP16],
    slots: pl.Tensor[[R], pl.INT32],
    by_column: pl.Out[pl.Tensor[[40, 3000], pl.FP32]],
    by_row: pl.Out[pl.Tensor[[40, 3000], pl.FP32]],
    spread: pl.Out[pl.Tensor[[40, 400], pl.FP32]],
    flat: pl.InOut[pl.Tensor[[40, 3000], pl.FP32]],
    fetched: pl.Out[pl.Tensor[[40, 200], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        by_column[:] = pl.tensor.scatter(x, -1, columns, part)
        by_row[:] = pl.tensor.scatter(x, 0, low, 3.0)
        spread[:] = pl.tensor.scatter(part, mask_pattern=pl.MaskPattern.P1010)
        pl.scatter_update(cache, -2, slots, rows)
        flat = pl.mscatter(part, columns, flat)
        fetched[:] = pl.gather(x, columns, x)
        fetched = pl.gather_row(fetched, x, [20, 100], [3, 7], [30, 15], transpose=True)
    return by_column, by_row, spread, fetched


@pl.jit
def sorted_rows(
    x: pl.Tensor[[70, 1040], pl.FP32],
    places: pl.Tensor[[70, 1040], pl.INT32],
    blocks: pl.Out[pl.Tensor[[70, 2080], pl.FP32]],
    runs: pl.Out[pl.Tensor[[70, 2080], pl.FP32]],
    both: pl.Out[pl.Tensor[[70, 512], pl.FP32]],
    rows: pl.Out[pl.Tensor[[50, 1040], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        pairs = pl.sort32(x, places)
        blocks[:] = pairs
        merged = pl.mrgsort(pairs, block_len=64)
        runs[:] = merged
        both[:] = pl.mrgsort(merged[:, 0:256], merged[:, 256:512])
        rows[:] = pl.mgather(x, places[0:1, 0:50], gather_oob="wrap")
    return blocks, runs, both, rows


@pl.jit
def extremes(
    h: pl.Tensor[[2, 33, 9000], pl.FP16],
    i: pl.Tensor[[2, 9000, 33], pl.INT32],
    across: pl.Out[pl.Tensor[[2, 33, 1], pl.INT32]],
    down: pl.Out[pl.Tensor[[2, 1, 33], pl.INT32]],
    turned: pl.Out[pl.Tensor[[33, 9000, 2], pl.INT32]],
    first: pl.Out[pl.Tensor[[33, 2, 9000], pl.FP16]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        across[:] = pl.row_argmax(h)
        down[:] = pl.col_argmin(i)
        turned[:] = pl.transpose(i, 0, 2)
        first[:] = pl.transpose(h, 0, 1)
    return across, down, turned, first
