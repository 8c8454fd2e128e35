"""Kernels that hold many operations each: filling, gathering, scattering, sorting, elements as numbers."""

import pypto.language as pl

F, H, Z, W, B = pl.FP32, pl.FP16, pl.INT32, pl.INT16, pl.INT8


@pl.jit
def filling(
    a: pl.Tensor[[8, 32], F],
    h: pl.Tensor[[8, 32], H],
    i: pl.Tensor[[8, 32], Z],
    b: pl.Tensor[[8, 32], B],
    rows: pl.Scalar[pl.INT32],
    cols: pl.Scalar[pl.INT32],
    largest: pl.Out[pl.Tensor[[8, 32], F]],
    smallest: pl.Out[pl.Tensor[[8, 32], H]],
    whole: pl.Out[pl.Tensor[[8, 32], Z]],
    bytes: pl.Out[pl.Tensor[[8, 32], B]],
    expanded: pl.Out[pl.Tensor[[16, 64], F]],
    joined: pl.Out[pl.Tensor[[8, 64], F]],
    placed: pl.Out[pl.Tensor[[8, 32], F]],
    clamped: pl.Out[pl.Tensor[[8, 32], F]],
    corner: pl.Out[pl.Tensor[[8, 32], F]],
    total: pl.InOut[pl.Tensor[[8, 32], H]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        part = pl.load(a, [0, 0], [8, 32], valid_shape=[rows, cols])
        largest[:] = pl.fillpad(part, pad_value=pl.PadValue.max)
        expanded[:] = pl.fillpad_expand(part, [16, 64], pad_value=pl.PadValue.min)
        both = pl.concat(part, pl.load(a, [0, 0], [8, 32], valid_shape=[rows, 8]))
        pl.store(both, [0, 0], joined)
        half = pl.load(h, [0, 0], [8, 32], valid_shape=[rows, cols])
        smallest[:] = pl.fillpad_inplace(half, pl.PadValue.min)
        whole[:] = pl.fillpad(pl.load(i, [0, 0], [8, 32], valid_shape=[rows, cols]), pad_value=pl.PadValue.max)
        bytes[:] = pl.fillpad(pl.load(b, [0, 0], [8, 32], valid_shape=[3, cols]), pad_value=pl.PadValue.min)
        target = pl.load(a, [0, 0], [8, 32])
        inner = pl.load(a, [2, 8], [4, 8])
        target = pl.assemble(target, inner, [rows // 2, 16])
        target[0:4, 0:8] = inner * 2.0
        placed[:] = target
        clamped[:] = pl.slice(a, [8, 32], [5, 30], pad_value=pl.PadValue.zero, clamp=True)
        pl.store(target, [0, 0], corner, shapes=[4, cols])
        pl.store(pl.load(h, [0, 0], [8, 32]), [0, 0], total, atomic=pl.AtomicType.Add)
        pl.store(pl.load(h, [0, 0], [4, 16]), [4, 16], total, atomic=pl.AtomicType.Add)


@pl.jit
def making(
    a: pl.Tensor[[6, 32], F],
    i: pl.Tensor[[8, 40], Z],
    start: pl.Scalar[pl.INT32],
    up: pl.Out[pl.Tensor[[1, 32], Z]],
    down: pl.Out[pl.Tensor[[1, 48], W]],
    lower: pl.Out[pl.Tensor[[8, 32], Z]],
    upper: pl.Out[pl.Tensor[[5, 24], F]],
    bits: pl.Out[pl.Tensor[[4, 320], Z]],
    few: pl.Out[pl.Tensor[[1, 64], Z]],
    words: pl.Out[pl.Tensor[[6, 32], Z]],
    halves: pl.Out[pl.Tensor[[12, 32], H]],
    again: pl.Out[pl.Tensor[[6, 32], F]],
    shaped: pl.Out[pl.Tensor[[24, 8], F]],
    turned: pl.Out[pl.Tensor[[40, 8], Z]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        up[:] = pl.ci(start, [1, 32], dtype=Z)
        down[:] = pl.ci(start + 1, [1, 48], dtype=W, descending=True)
        lower[:] = pl.tri(start, [8, 32], dtype=Z)
        pl.store(pl.tri(-2, [8, 32], valid_shape=[5, 24], dtype=F, upper=True), [0, 0], upper)
        bits[:] = pl.random(1, 2, start, 4, 5, 6, [4, 320], dtype=Z)
        few[:] = pl.random(7, 8, 9, 10, 11, 12, [1, 64], dtype=Z, rounds=7)
        tile = pl.load(a, [0, 0], [6, 32])
        words[:] = pl.reinterpret_view(tile, Z)
        narrow = pl.reinterpret_view(tile, H, shape=[12, 32])
        halves[:] = narrow
        again[:] = pl.reinterpret_view(narrow, F, shape=[6, 32])
        shaped[:] = pl.reshape(tile, [24, 8])
        turned[:] = pl.transpose(pl.load(i, [0, 0], [8, 40]), 0, 1)


@pl.jit
def gathering(
    a: pl.Tensor[[8, 32], F],
    h: pl.Tensor[[8, 32], H],
    flat: pl.Tensor[[4, 16], Z],
    along: pl.Tensor[[8, 16], Z],
    down: pl.Tensor[[4, 32], Z],
    blocks: pl.Tensor[[4, 8], Z],
    keys: pl.Tensor[[8, 1], F],
    table: pl.Tensor[[20, 16], F],
    rows: pl.Tensor[[1, 8], Z],
    places: pl.Tensor[[4, 16], Z],
    picked: pl.Out[pl.Tensor[[4, 16], F]],
    picked_half: pl.Out[pl.Tensor[[4, 16], H]],
    columns: pl.Out[pl.Tensor[[8, 16], F]],
    lines: pl.Out[pl.Tensor[[4, 32], F]],
    strips: pl.Out[pl.Tensor[[4, 64], F]],
    even: pl.Out[pl.Tensor[[8, 16], F]],
    third: pl.Out[pl.Tensor[[8, 8], Z]],
    last: pl.Out[pl.Tensor[[8, 16], H]],
    above: pl.Out[pl.Tensor[[8, 32], Z]],
    counts: pl.Out[pl.Tensor[[8, 1], Z]],
    equal: pl.Out[pl.Tensor[[8, 32], Z]],
    from_rows: pl.Out[pl.Tensor[[8, 16], F]],
    from_places: pl.Out[pl.Tensor[[4, 16], F]],
    wrapped: pl.Out[pl.Tensor[[4, 16], F]],
    zeroed: pl.Out[pl.Tensor[[8, 16], F]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        tile, half = pl.load(a, [0, 0], [8, 32]), pl.load(h, [0, 0], [8, 32])
        index = pl.load(flat, [0, 0], [4, 16])
        picked[:] = pl.gather(tile, index, tile)
        picked_half[:] = pl.gather(half, index, half)
        columns[:] = pl.tensor.gather(tile, dim=-1, index=pl.load(along, [0, 0], [8, 16]))
        lines[:] = pl.tensor.gather(tile, 0, pl.load(down, [0, 0], [4, 32]))
        strips[:] = pl.gatherb(tile, pl.load(blocks, [0, 0], [4, 8]))
        even[:] = pl.gather_mask(tile, pl.MaskPattern.P0101)
        third[:] = pl.gather_mask(tile, pl.MaskPattern.P0100, output_dtype=Z)
        last[:] = pl.tensor.gather(half, mask_pattern=pl.MaskPattern.P1010)
        key = pl.load(keys, [0, 0], [8, 1])
        found, number = pl.gather_compare(tile, key, tile, cmp_mode="gt", offset=100, out_cols=32)
        above[:] = found
        counts[:] = number
        same, _ = pl.gather_compare(tile, 0.5, tile, out_cols=32)
        equal[:] = same
        chosen, where = pl.load(rows, [0, 0], [1, 8]), pl.load(places, [0, 0], [4, 16])
        from_rows[:] = pl.mgather(table, chosen, gather_oob="clamp")
        from_places[:] = pl.mgather(table[4:, :], where, "elem", gather_oob="zero")
        wrapped[:] = pl.mgather(table, where, coalesce="elem", gather_oob="wrap")
        zeroed[:] = pl.mgather(table, chosen, gather_oob="zero")


@pl.jit
def scattering(
    a: pl.Tensor[[8, 16], F],
    rows: pl.Tensor[[4, 16], Z],
    along: pl.Tensor[[8, 8], Z],
    index: pl.Tensor[[1, 8], Z],
    table: pl.Tensor[[20, 16], F],
    places: pl.Tensor[[8, 16], Z],
    by_row: pl.Out[pl.Tensor[[8, 16], F]],
    by_column: pl.Out[pl.Tensor[[8, 16], F]],
    spread: pl.Out[pl.Tensor[[8, 32], F]],
    spread_wide: pl.Out[pl.Tensor[[8, 64], F]],
    updated: pl.Out[pl.Tensor[[8, 16], F]],
    collected: pl.Out[pl.Tensor[[8, 16], F]],
    turned: pl.Out[pl.Tensor[[16, 8], F]],
    memory: pl.InOut[pl.Tensor[[20, 16], F]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        tile = pl.load(a, [0, 0], [8, 16])
        zero = pl.full([8, 16], F, 0.0)
        by_row[:] = pl.scatter(zero, pl.load(a, [4, 0], [4, 16]), pl.load(rows, [0, 0], [4, 16]))
        by_column[:] = pl.tensor.scatter(tile, dim=-1, index=pl.load(along, [0, 0], [8, 8]), src=zero[:, 0:8] + 7.0)
        spread[:] = pl.scatter_mask(pl.full([8, 32], F, 1.0), tile, pl.MaskPattern.P1010)
        spread_wide[:] = pl.tensor.scatter(tile, mask_pattern=pl.MaskPattern.P0001)
        updated[:] = pl.scatter_update(tile, -2, pl.load(index, [0, 0], [1, 8]), pl.load(table, [0, 0], [3, 16]))
        acc = zero
        for i in pl.range(8):
            row = pl.read(index, [0, i])
            acc = pl.gather_row(acc, table, [i, 0], [row, 0], [1, 16])
        collected[:] = acc
        columns = pl.full([16, 8], F, 0.0)
        for i in pl.range(8):
            pl.gather_row(columns, table, [0, i], [2 * i, 0], [1, 16], transpose=True)
        turned[:] = columns
        pl.mscatter(tile, pl.load(places, [0, 0], [8, 16]), memory)


@pl.jit
def sorting(
    a: pl.Tensor[[2, 256], F],
    h: pl.Tensor[[1, 64], H],
    positions: pl.Tensor[[2, 256], Z],
    blocks: pl.Out[pl.Tensor[[2, 512], F]],
    longer: pl.Out[pl.Tensor[[2, 512], F]],
    halves: pl.Out[pl.Tensor[[1, 256], H]],
    merged: pl.Out[pl.Tensor[[1, 256], F]],
    three: pl.Out[pl.Tensor[[1, 192], F]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        tile, index = pl.load(a, [0, 0], [2, 256]), pl.load(positions, [0, 0], [2, 256])
        pairs = pl.sort32(tile, index)
        blocks[:] = pairs
        longer[:] = pl.mrgsort(pairs, block_len=64)
        halves[:] = pl.sort32(pl.load(h, [0, 0], [1, 64]), pl.load(positions, [0, 0], [1, 64]))
        r = pl.load(blocks, [0, 0], [1, 512])
        merged[:] = pl.mrgsort(r[:, 0:64], r[:, 64:128], r[:, 128:192], r[:, 192:256])
        three[:] = pl.mrgsort(r[:, 0:64], r[:, 64:128], r[:, 128:192], tmp=r)


@pl.jit.incore
def follow(
    a: pl.Tensor[[16, 32], F],
    table: pl.Tensor[[4, 8], Z],
    flags: pl.Tensor[[16], B],
    out: pl.Out[pl.Tensor[[16, 32], F]],
    sums: pl.InOut[pl.Tensor[[8, 8], Z]],
):
    """Numbers from memory as offsets, lengths, bounds, conditions and elements; nested loops."""
    for i in pl.range(4):
        first = pl.read(table, [i, 0])
        count = pl.read(table, [i, 1])
        for j in pl.range(count):
            width = pl.read(table, [i, 2 + j])
            if width > 0:
                row = first + j
                tile = pl.load(a, [row, 0], [1, 32], valid_shape=[1, width])
                if pl.read(flags, [row]) != 0:
                    tile = tile * 2.0
                pl.store(tile, [row, 0], out)
                best = pl.read(tile, [0, width - 1])
                if best > 1.0:
                    pl.write(sums, [i, j], width)
                else:
                    sums[i, j] = 0 - width
    counter = pl.full([1, 8], Z, 0)
    for i in pl.range(4):
        n = table[i, 1]
        before = counter[0, 0]
        counter[0, 0] = before + n
        counter[0, i + 1] = before
    pl.store(counter, [7, 0], sums)
    squares = 0
    for i in pl.range(table[3, 1]):
        for j in pl.range(i):
            squares = squares + i * j
    pl.write(sums, [6, 7], squares)


@pl.jit
def following(
    a: pl.Tensor[[16, 32], F],
    table: pl.Tensor[[4, 8], Z],
    flags: pl.Tensor[[16], B],
    out: pl.Out[pl.Tensor[[16, 32], F]],
    sums: pl.InOut[pl.Tensor[[8, 8], Z]],
):
    follow(a, table, flags, out, sums)


@pl.jit
def outside(
    a: pl.Tensor[[8, 32], F],
    i: pl.Tensor[[8, 32], Z],
    which: pl.Scalar[pl.INT32],
    out: pl.InOut[pl.Tensor[[8, 32], F]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        tile, index = pl.load(a, [0, 0], [8, 32]), pl.load(i, [0, 0], [8, 32])
        if which == 0:
            out[:] = pl.gather(tile, index, tile)
        if which == 1:
            out[:] = pl.scatter(tile, tile, index)
        if which == 2:
            out[:] = pl.mgather(a, index, coalesce="elem")
        if which == 3:
            pl.mscatter(tile, index, out)
        if which == 4:
            out[0, 0] = pl.read(a, [pl.read(i, [0, 0]), 0])
        if which == 5:
            out[0, 0] = tile[pl.read(index, [0, 0]), 0]
        if which == 6:
            pl.write(tile, [0, index[0, 0]], 1.0)
            out[:] = tile
        if which == 7:
            out[:] = pl.assemble(tile, tile[0:4, :], [index[0, 1], 0])
        zero = pl.read(i, [0, 2])
        quotient = 7 // zero
        if which == 8:
            out[0, 0] = pl.cast(quotient, F)
        if which == 9:
            for _ in pl.range(7 % zero):
                out[0, 0] = 1.0
        if which == 10:
            for _ in pl.range(0, 4, zero):
                out[0, 0] = 1.0


@pl.jit.inline
def of_any_type(a, index, out):
    part = pl.load(a, [0, 0], [8, 32], valid_shape=[5, 20])
    out[0:8, 0:32] = pl.fillpad(part, pad_value=pl.PadValue.max)
    full = pl.load(a, [0, 0], [8, 32])
    out[0:8, 32:64] = pl.gather(full, index, full)
    turned = pl.transpose(full, 0, 1)
    turned[7, 3] = turned[0, 1]
    back = pl.transpose(turned, 0, 1)
    out[0:8, 64:96] = pl.concat(back[:, 16:32], back[:, 0:16])
    out[0:8, 96:112] = pl.gather_mask(full, pl.MaskPattern.P1010)
    out[0:8, 112:144] = pl.scatter(full, back, pl.tri(0, [8, 32], dtype=pl.INT32))
    pl.write(out, [7, 0], pl.read(a, [1, 1]))
    pl.write(out, [7, 1], full[2, 2])


@pl.jit
def types(
    index: pl.Tensor[[8, 32], Z],
    a0: pl.Tensor[[8, 32], pl.BF16],
    a1: pl.Tensor[[8, 32], pl.INT16],
    a2: pl.Tensor[[8, 32], pl.UINT8],
    a3: pl.Tensor[[8, 32], pl.UINT16],
    a4: pl.Tensor[[8, 32], pl.UINT32],
    a5: pl.Tensor[[8, 32], pl.INT64],
    a6: pl.Tensor[[8, 32], pl.FP16],
    o0: pl.Out[pl.Tensor[[8, 144], pl.BF16]],
    o1: pl.Out[pl.Tensor[[8, 144], pl.INT16]],
    o2: pl.Out[pl.Tensor[[8, 144], pl.UINT8]],
    o3: pl.Out[pl.Tensor[[8, 144], pl.UINT16]],
    o4: pl.Out[pl.Tensor[[8, 144], pl.UINT32]],
    o5: pl.Out[pl.Tensor[[8, 144], pl.INT64]],
    o6: pl.Out[pl.Tensor[[8, 144], pl.FP16]],
    bits: pl.Out[pl.Tensor[[2, 64], pl.UINT32]],
    pairs: pl.Out[pl.Tensor[[1, 64], F]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        where = pl.load(index, [0, 0], [8, 32])
        of_any_type(a0, where, o0)
        of_any_type(a1, where, o1)
        of_any_type(a2, where, o2)
        of_any_type(a3, where, o3)
        of_any_type(a4, where, o4)
        of_any_type(a5, where, o5)
        of_any_type(a6, where, o6)
        bits[:] = pl.tensor.random(1, 2, 3, 4, 5, 6, [2, 64])
        pairs[:] = pl.sort32(pl.cast(where[0:1, :], F), pl.load(a4, [0, 0], [1, 32]))


@pl.jit
def full_memory(
    a: pl.Tensor[[64, 128], F],
    b: pl.Tensor[[64, 128], F],
    flat: pl.Tensor[[64, 128], Z],
    rows: pl.Tensor[[64, 128], Z],
    out: pl.Out[pl.Tensor[[64, 128], F]],
):
    """More tiles than fit at once: each must stay until the last call that reads it."""
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(a, [0, 0], [64, 128])
        for _ in pl.range(2):
            g = pl.gather(t, pl.load(flat, [0, 0], [64, 128]), t)
            u = g + pl.load(b, [0, 0], [64, 128])
            s = pl.scatter(u, g * 2.0, pl.load(rows, [0, 0], [64, 128]))
            w = pl.assemble(pl.transpose(pl.transpose(s, 0, 1), 0, 1), g[0:32, :], [32, 0])
            x = pl.fillpad(pl.set_validshape(w * 0.5, 60, 100), pad_value=pl.PadValue.zero)
            y = pl.gather(x, pl.load(flat, [0, 0], [64, 128]), x)
            pl.write(y, [3, 4], x[1, 2])
            t = y + x
        out[:] = t
