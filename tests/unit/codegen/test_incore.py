"""One incore function as `.pto` text and plan."""

from __future__ import annotations

import pytest
from sample_programs import SHAPE, VEC, adder, incore, load

from pypto.codegen.incore import Kernel, print_kernel
from pypto.codegen.rewrites import prepared
from pypto.ir.builder import Builder
from pypto.ir.errors import IRError
from pypto.ir.nodes import Block, CoreType, Direction, Function, Loc, Value
from pypto.ir.types import (
    BF16,
    FP16,
    FP32,
    INDEX,
    INT8,
    INT32,
    INT64,
    UINT8,
    DType,
    MemorySpace,
    ScalarType,
    TensorType,
    TileType,
)


def kernel(function: Function) -> Kernel:
    return print_kernel(prepared(function))


def calls(made: Kernel) -> list[str]:
    return [call["name"] for call in made.repairs["calls"]]


def lines_with(made: Kernel, word: str) -> list[str]:
    return [line.strip() for line in made.pto.splitlines() if word in line]


def test_text_of_a_loop_with_a_run_time_valid_length() -> None:
    made = kernel(adder())
    lines = made.pto.splitlines()
    assert lines[0:2] == [
        "module {",
        "  func.func @adder_kernel(%a0: !pto.ptr<f32>, %a1: !pto.ptr<f32>, %a2: !pto.ptr<f32>, %a3: index, "
        "%a4: index, %a5: i64, %a6: i64, %a7: index, %a8: i64, %a9: index, %a10: i64, %a11: index) {",
    ]
    assert "    scf.for %i0 = %c0 to %a3 step %c8 {" in lines
    tile = (
        "loc=ub, dtype=f32, rows=8, cols=64, v_row=?, v_col=64, blayout=row_major, slayout=none_box, fractal=512, pad=0"
    )
    assert any(line.startswith(f"      %t1 = pto.alloc_tile valid_row = %a4 : <{tile}>  // ") for line in lines)
    assert (
        "      %w2 = pto.subview %v0, offsets = [%c0, %c0, %c0, %i0, %c0], sizes = [%c1, %c1, %c1, %a4, %c64] : "
        "!pto.tensor_view<5xf32> -> !pto.tile_view<1x1x1x8x64xf32>"
    ) in lines
    (construct,) = made.repairs["constructs"]
    assert construct["begin"] == ["$a4 = pypto::narrow(pypto::minimum(($a5 - int64_t{$l0}), 8));"]
    assert made.repairs["calls"][2] == {"op": 2, "call": "TADD", "name": "TADD"}
    assert ["((int64_t{$l0} + pypto::minimum(($a5 - int64_t{$l0}), 8)) <= $a10)", "pl.store writes outside of o"] in (
        made.repairs["calls"][3]["require"]
    )


def test_affine_offsets_are_written_out() -> None:
    def body(b: Builder, p: list[Value]) -> None:
        with b.loop(0, 4) as loop:
            place = b.value("arith.add", [b.value("arith.mul", [loop.index, b.constant(8)]), b.constant(-8)])
            b.store(load(b, p[0]), p[2], [place, 0])

    made = kernel(incore("k", body))
    assert lines_with(made, "arith.muli") == ["%n3 = arith.muli %i0, %c8 : index"]
    assert lines_with(made, "arith.addi") == ["%n4 = arith.addi %n3, %m8 : index"]
    assert made.repairs["constructs"][0]["begin"] == []


def test_carried_tile_is_updated_in_place() -> None:
    def body(b: Builder, p: list[Value]) -> None:
        with b.loop(0, 4, 1, [load(b, p[0])]) as loop:
            loop.carry(b.value("tile.add", [loop.carried[0], load(b, p[1])]))
        b.store(loop.results[0], p[2], [0, 0])

    made = kernel(incore("k", body))
    assert calls(made) == ["TLOAD", "TLOAD", "TADD", "TSTORE"]
    # Inside the loop only what is new in every turn.
    assert [line.split(" =")[0] for line in lines_with(made, "alloc_tile")] == ["%t1", "%t3"]
    assert lines_with(made, "pto.tadd")[0].startswith("pto.tadd ins(%t1, %t3 :")


def test_chain_of_elementwise_work_takes_one_buffer() -> None:
    def body(b: Builder, p: list[Value]) -> None:
        tile = load(b, p[0])
        for _ in range(3):
            tile = b.value("tile.exp", [tile])
        b.store(tile, p[2], [0, 0])

    assert len(lines_with(kernel(incore("k", body)), "alloc_tile")) == 1


@pytest.mark.parametrize(("planner", "buffers"), [("PTOAS", 6), ("PYPTO", 3), ("DSA_RP", 1)])
def test_who_reuses_memory(planner: str, buffers: int) -> None:
    """Three tiles one after the other, each with one operation."""

    def body(b: Builder, p: list[Value]) -> None:
        for source in (p[0], p[1], p[0]):
            b.store(b.value("tile.exp", [load(b, source)]), p[2], [0, 0])

    made = print_kernel(prepared(incore("k", body)), memory_planner=planner)
    assert len(lines_with(made, "alloc_tile")) == buffers


def test_buffers_of_tiles_that_are_needed_are_not_reused() -> None:
    def body(b: Builder, p: list[Value]) -> None:
        first = load(b, p[0])
        b.store(b.value("tile.exp", [load(b, p[1])]), p[2], [0, 0])
        with b.loop(0, 4, 1, [load(b, p[1])]) as loop:
            loop.carry(b.value("tile.add", [loop.carried[0], load(b, p[0])]))
        b.store(b.value("tile.add", [loop.results[0], first]), p[2], [0, 0])

    made = print_kernel(prepared(incore("k", body)), memory_planner="DSA_RP")
    # `first`; what is stored, then carried; what is new in every turn.
    assert len(lines_with(made, "alloc_tile")) == 3


def test_operand_that_is_needed_again_keeps_its_buffer() -> None:
    def body(b: Builder, p: list[Value]) -> None:
        tile = load(b, p[0])
        b.store(b.value("tile.sub", [b.value("tile.exp", [tile]), tile]), p[2], [0, 0])

    made = kernel(incore("k", body))
    assert lines_with(made, "pto.texp")[0].startswith("pto.texp ins(%t1 :")
    assert lines_with(made, "pto.tsub")[0].split("outs(")[1].startswith("%t3 :")


def test_start_of_a_loop_that_is_used_again_is_copied() -> None:
    def body(b: Builder, p: list[Value]) -> None:
        start = load(b, p[0])
        with b.loop(0, 4, 1, [start]) as loop:
            loop.carry(b.value("tile.exp", [loop.carried[0]]))
        b.store(b.value("tile.add", [loop.results[0], start]), p[2], [0, 0])

    assert calls(kernel(incore("k", body))) == ["TLOAD", "TMOV", "TEXP", "TADD", "TSTORE"]


def test_swapped_tiles_go_through_a_temporary() -> None:
    def body(b: Builder, p: list[Value]) -> None:
        with b.loop(0, 4, 1, [load(b, p[0]), load(b, p[1])]) as loop:
            loop.carry(*reversed(loop.carried))
        b.store(loop.results[0], p[2], [0, 0])

    made = kernel(incore("k", body))
    assert calls(made) == ["TLOAD", "TLOAD", "TMOV", "TMOV", "TMOV", "TSTORE"]
    assert len(lines_with(made, "alloc_tile")) == 3


def test_operation_that_cannot_work_in_place_gets_its_own_buffer() -> None:
    def body(b: Builder, p: list[Value]) -> None:
        with b.loop(0, 4, 1, [b.load(p[0], [0, 0], (8, 8), memory=VEC)]) as loop:
            loop.carry(b.value("tile.transpose", [loop.carried[0]]))
        b.store(loop.results[0], p[2], [0, 0])

    assert calls(kernel(incore("k", body))) == ["TLOAD", "PYPTO_TRANSPOSE", "TMOV", "TSTORE"]


def test_column_is_viewed_as_a_row_only_in_memory_that_stays_in_use() -> None:
    def body(b: Builder, p: list[Value]) -> None:
        column = b.value("tile.row_max", [load(b, p[0])])
        doubled = b.value("tile.muls", [column, b.constant(2.0)])
        b.store(b.value("tile.add", [doubled, column]), p[2], [0, 0])

    made = kernel(incore("k", body))
    assert calls(made) == ["TLOAD", "TROWMAX", "TMOV", "TRESHAPE", "TMULS", "TRESHAPE", "TADD", "TSTORE"]
    first, second = lines_with(made, "treshape")
    target = lines_with(made, "tmov")[0].split("outs(")[1].split(" ")[0]
    assert first.startswith(f"pto.treshape ins({target} :")
    assert f"outs({target} :" in second


def test_conversion_fills_both_sides_alike() -> None:
    def body(b: Builder, p: list[Value]) -> None:
        tile = b.load(p[0], [0, 0], (4, 40), memory=VEC)
        half = b.value("tile.cast", [tile], types=(TileType((4, 40), FP16, VEC, (4, 40)),), mode="round")
        b.store(half, p[1], [0, 0])

    params = [("x", TensorType((4, 40), FP32), Direction.In), ("o", TensorType((4, 40), FP16), Direction.Out)]
    made = kernel(incore("k", body, params))
    assert [line.split("cols=")[1].split(",")[0] for line in lines_with(made, "alloc_tile")] == ["48", "48"]
    assert made.repairs["calls"][1]["replace"] == {"2": "pto::RoundMode::CAST_ROUND"}


def test_calls_that_ptoas_misprints_are_renamed() -> None:
    def body(b: Builder, p: list[Value]) -> None:
        tile = load(b, p[0])
        b.store(b.value("tile.col_max", [tile]), p[2], [0, 0])
        b.store(b.value("tile.maximums", [tile, b.constant(0.5)]), p[2], [0, 0])

    made = kernel(incore("k", body))
    pairs = [(call["call"], call["name"]) for call in made.repairs["calls"]]
    assert ("TCOLEXPAND", "TCOLMAX") in pairs
    assert ("TMINS", "TMAXS") in pairs


def test_numbers_are_exact() -> None:
    def body(b: Builder, p: list[Value]) -> None:
        tile = b.value("tile.muls", [load(b, p[0]), b.constant(0.1)])
        b.store(b.value("tile.minimums", [tile, b.constant(float("inf"))]), p[2], [0, 0])

    made = kernel(incore("k", body))
    assert "    %f3DCCCCCD = arith.constant 0x3DCCCCCD : f32" in made.pto.splitlines()
    assert "    %f7F800000 = arith.constant 0x7F800000 : f32" in made.pto.splitlines()


def test_transposed_operand_is_loaded_the_other_way_round() -> None:
    half = TensorType((16, 32), FP16)
    params = [("x", half, Direction.In), ("y", half, Direction.In), ("o", TensorType((16, 16), FP32), Direction.Out)]

    def body(b: Builder, p: list[Value]) -> None:
        left, right = (
            b.move(b.load(t, [0, 0], (16, 32), memory=MemorySpace.Mat), memory)
            for t, memory in ((p[0], MemorySpace.Left), (p[1], MemorySpace.Right))
        )
        b.store(b.value("tile.matmul", [left, right], b_trans=True), p[2], [0, 0])

    function = incore("k", body, params, CoreType.AIC)
    made = kernel(function)
    assert lines_with(made, "make_tensor_view %a1") == [
        "%v1t = pto.make_tensor_view %a1, shape = [%c1, %c1, %c1, %c32, %c16] "
        "strides = [%c1, %c1, %c1, %c1, %c32] : !pto.tensor_view<5xf16>"
    ]
    assert calls(made) == ["TLOAD", "TMOV", "TLOAD", "TMOV", "TMATMUL", "TSTORE"]
    # The function itself is as it was.
    assert [op.attrs.get("b_trans") for op in function.body.ops if op.name == "tile.matmul"] == [True]


def test_bfloat16_is_written_as_half_and_noted() -> None:
    type = TensorType(SHAPE, BF16)
    params = [("x", type, Direction.In), ("o", type, Direction.Out)]
    made = kernel(incore("k", lambda b, p: b.store(load(b, p[0]), p[1], [0, 0]), params))
    assert made.repairs["tiles"] == ["bfloat16_t"]
    assert made.repairs["arguments"] == ["bfloat16_t*", "bfloat16_t*"]
    assert "!pto.ptr<f16>" in made.pto


def number(b: Builder, dtype: DType = INDEX) -> Value:
    return b.value("arith.cast", [b.constant(3)], types=(ScalarType(dtype),))


def test_fillings_that_the_dialect_cannot_write_are_put_in_by_the_repair_step() -> None:
    dtypes = (BF16, UINT8, INT64)

    def body(b: Builder, p: list[Value]) -> None:
        for tensor, number, dtype in zip(p, (1.5, 200, 7), dtypes, strict=True):
            b.store(b.full(SHAPE, dtype, number), tensor, [0, 0])

    params = [(f"o{dtype}", TensorType(SHAPE, dtype), Direction.Out) for dtype in dtypes]
    made = kernel(incore("k", body, params))
    filled = [call["replace"]["1"] for call in made.repairs["calls"] if "replace" in call]
    assert filled == ["static_cast<bfloat16_t>(__builtin_bit_cast(float, 0x3FC00000u))", "static_cast<uint8_t>(200)"]
    # Only 8 bytes an element need a template, which devices do not have.
    assert [made.ops[number]["op"] for number in made.templates] == ["tile.full"]
    assert [c["statement"] for c in made.repairs["calls"] if "statement" in c] == ["pypto::tiles::fill($p1.0, 7);"]


def checks(made: Kernel) -> list[list[object]]:
    return [check for call in made.repairs["calls"] for check in call.get("require", ()) if len(check) == 3]


def test_divisor_is_checked_where_the_quotient_is_used() -> None:
    index = ScalarType(INDEX)

    def body(b: Builder, p: list[Value]) -> None:
        x, n, o = p
        quotient = b.value("arith.floordiv", [b.constant(8), n])
        unused = b.value("arith.mod", [b.constant(8), n])
        known = b.value("arith.floordiv", [n, b.constant(2)])
        some = b.value("arith.cmp", [n, b.constant(0)], pred="gt")
        b.store(load(b, x), o, [b.value("arith.select", [some, quotient, known]), 0])
        b.store(load(b, x), o, [quotient, 0])
        b.store(load(b, x), o, [quotient, 0])
        assert unused.type == index

    tensor = TensorType(SHAPE, FP32)
    params = [("x", tensor, Direction.In), ("n", index, Direction.In), ("o", tensor, Direction.Out)]
    made = kernel(incore("k", body, params))
    found = checks(made)
    # Once as far as the choice takes it, once for good.
    assert [check[1] for check in found] == ["division by zero"] * 2
    assert [made.ops[check[2]]["op"] for check in found] == ["arith.floordiv"] * 2
    slots = {f"$a{2 + i}": slot.initial for i, slot in enumerate(made.slots)}
    assert [slots[str(check[0])] for check in found] == ["((!(a1 > 0)) || (a1 != 0))", "(a1 != 0)"]


def test_divisor_of_a_loops_bound_is_checked_in_front_of_it() -> None:
    def body(b: Builder, p: list[Value]) -> None:
        x, n, o = p
        with b.loop(0, b.value("arith.floordiv", [b.constant(8), n])):
            b.store(load(b, x), o, [0, 0])

    tensor = TensorType(SHAPE, FP32)
    params = [("x", tensor, Direction.In), ("n", ScalarType(INDEX), Direction.In), ("o", tensor, Direction.Out)]
    made = kernel(incore("k", body, params))
    assert checks(made) == []
    (loop,) = made.repairs["constructs"]
    assert loop["before"][-1].endswith(', "division by zero");')


def floor_to_half(b: Builder, p: list[Value]) -> None:
    b.value("tile.cast", [load(b, p[0])], types=(TileType(SHAPE, FP16, VEC, SHAPE),), mode="floor")


def huge_offset(b: Builder, p: list[Value]) -> None:
    big = b.value("arith.mul", [b.constant(2**31), b.constant(1)])
    b.store(load(b, p[0]), p[2], [big, 0])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (floor_to_half, "mode floor in a conversion to FP16"),
        (huge_offset, "does not fit into 32 bits"),
    ],
)
def test_what_cannot_be_lowered_is_an_error(body: object, message: str) -> None:
    with pytest.raises(IRError, match=message) as caught:
        kernel(incore("k", body))  # type: ignore[arg-type]
    assert caught.value.loc is not None


def test_error_has_the_place_of_the_operation() -> None:
    def body(b: Builder, p: list[Value]) -> None:
        b.loc = Loc("k", 5, 8)
        floor_to_half(b, p)

    with pytest.raises(IRError) as caught:
        kernel(incore("k", body))
    assert caught.value.loc == Loc("k", 5, 8)


def test_transposed_operand_from_elsewhere_is_transposed_on_chip() -> None:
    half = TensorType((16, 16), FP16)
    params = [("x", half, Direction.In), ("o", TensorType((16, 16), FP32), Direction.Out)]

    def body(b: Builder, p: list[Value]) -> None:
        loaded = b.load(p[0], [0, 0], (16, 16), memory=MemorySpace.Mat)
        flag = b.value("arith.cmp", [number(b), b.constant(0)], pred="gt")
        arms = Block(), Block()
        for arm in arms:
            with b.inside(arm):
                b.op("scf.yield", [loaded])
        (chosen,) = b.op("scf.if", [flag], types=[loaded.type], regions=arms).results
        right = b.move(chosen, MemorySpace.Right)
        left = b.move(loaded, MemorySpace.Left)
        b.store(b.value("tile.matmul", [left, right], b_trans=True), p[1], [0, 0])

    calls = kernel(incore("k", body, params, CoreType.AIC)).repairs["calls"]
    names = [call["name"] for call in calls if "name" in call]
    assert names[-4:] == ["PYPTO_TRANSPOSE", "TMOV", "TMATMUL", "TSTORE"]


def test_accumulator_that_is_needed_again_is_an_error() -> None:
    params = [
        ("x", TensorType((16, 16), INT8), Direction.In),
        ("o", TensorType((16, 16), INT32), Direction.Out),
    ]

    def body(b: Builder, p: list[Value]) -> None:
        loaded = b.load(p[0], [0, 0], (16, 16), memory=MemorySpace.Mat)
        left, right = b.move(loaded, MemorySpace.Left), b.move(loaded, MemorySpace.Right)
        first = b.value("tile.matmul", [left, right])
        second = b.value("tile.matmul_acc", [first, left, right])
        b.store(first, p[1], [0, 0])
        b.store(second, p[1], [0, 0])

    with pytest.raises(IRError, match="the accumulator is needed again"):
        kernel(incore("k", body, params, CoreType.AIC))
