"""Passes and the verifier on programs made by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ir_samples import MATRIX, incore, program_with

from pypto.ir.builder import Builder, function
from pypto.ir.errors import IRError
from pypto.ir.footprint import MemoryLimitError, check_footprint, fits_in_order
from pypto.ir.limits import capacity, shape_problem
from pypto.ir.nodes import Block, CoreType, Direction, Function, FunctionKind, Op, Program, Value
from pypto.ir.passes import pipeline
from pypto.ir.printer import print_program
from pypto.ir.types import FP16, FP32, INT8, MemorySpace, ScalarType, TileType
from pypto.ir.verify import verify


def names(body: Block) -> list[str]:
    return [op.name for op in body.walk()]


def test_pipeline_on_a_hand_made_program() -> None:
    part, b = incore()
    a, other, out = (p.value for p in part.params[:3])
    b.load(other, [0, 0], (8, 64))  # unused
    tile = b.load(a, [0, 0], (32, 64), hint="t")
    with b.loop(0, part.params[3].value, inits=[tile]) as loop:
        loop.carry(b.value("tile.exp", [loop.carried[0]], hint="e"))
    b.store(loop.results[0], out, [32, 0])
    b.op("scf.return")
    program = pipeline.run(program_with(part))
    assert part.core is CoreType.AIV
    assert print_program(program) == (
        "entry @main\n"
        "\n"
        "orchestration @main(%a: Tensor[[64, 64], FP32], %b: Tensor[[64, 64], FP32], "
        "%out: out Tensor[[64, 64], FP32], %n: INDEX) {\n"
        "  func.call %a, %b, %out, %n {callee=part}\n"
        "  scf.return\n"
        "}\n"
        "\n"
        "incore aiv @part(%a: Tensor[[64, 64], FP32], %b: Tensor[[64, 64], FP32], "
        "%out: out Tensor[[64, 64], FP32], %n: INDEX) {\n"
        "  %c = arith.constant {value=0} : INDEX\n"
        "  %c_1 = arith.constant {value=0} : INDEX\n"
        "  %t = tile.load %a, %c, %c_1 {transposed=false} : Tile[[32, 64], FP32, Vec]\n"
        "  %c_2 = arith.constant {value=0} : INDEX\n"
        "  %c_3 = arith.constant {value=1} : INDEX\n"
        "  %t_1 = scf.for %c_2, %n, %c_3, %t {kind=range} : Tile[[32, 64], FP32, Vec]\n"
        "  (%i: INDEX, %t_2: Tile[[32, 64], FP32, Vec]) {\n"
        "    %e = tile.exp %t_2 : Tile[[32, 64], FP32, Vec]\n"
        "    scf.yield %e\n"
        "  }\n"
        "  %c_4 = arith.constant {value=32} : INDEX\n"
        "  %c_5 = arith.constant {value=0} : INDEX\n"
        "  tile.store %t_1, %out, %c_4, %c_5\n"
        "  scf.return\n"
        "}\n"
    )


def test_scope_is_outlined_with_its_captures() -> None:
    entry, b = function(
        "main", FunctionKind.ORCHESTRATION, [("a", MATRIX), ("out", MATRIX, Direction.InOut), ("x", ScalarType(FP32))]
    )
    a, out, x = (p.value for p in entry.params)
    factor = b.value("arith.mul", [x, b.constant(2.0)], hint="factor")
    offset = b.constant(32)
    window = b.view(a, [0, 0], [32, 64], hint="window")
    body = Block()
    with b.inside(body):
        tile = b.value("tile.muls", [b.load(window, [0, 0], (32, 64)), factor])
        old = b.load(out, [offset, 0], (32, 64))
        b.store(b.value("tile.add", [tile, old]), out, [offset, 0])
    b.op("func.scope", [], {"name": "half"}, regions=[body])
    b.op("scf.return")
    program = pipeline.run(Program("main", {"main": entry}))
    half = program.functions["half"]
    assert [(p.name, p.direction) for p in half.params] == [
        ("window", Direction.In),
        ("factor", Direction.In),
        ("out", Direction.InOut),
    ]
    assert half.params[0].type.is_view
    (call,) = [op for op in entry.body.walk() if op.name == "func.call"]
    assert call.operands == [window, factor, out]
    # The constant was copied into the function, not passed.
    assert [o.attrs["value"] for o in half.body.walk() if o.name == "arith.constant"].count(32) == 1


def matmul_program(prepare: Callable[[Builder, Value, Value], tuple[Value, Value]]) -> Function:
    part, b = incore()
    left, right = prepare(b, part.params[0].value, part.params[1].value)
    b.store(b.value("tile.matmul", [left, right]), part.params[2].value, [0, 0])
    b.op("scf.return")
    pipeline.run(program_with(part))
    return part


def test_moves_are_inserted_in_front_of_products() -> None:
    part = matmul_program(lambda b, x, y: (b.load(x, [0, 0], (64, 64)), b.load(y, [0, 0], (64, 64))))
    assert part.core is CoreType.AIC
    assert [n for n in names(part.body) if n.startswith("tile.")] == [
        "tile.load",
        "tile.load",
        "tile.move",
        "tile.move",
        "tile.matmul",
        "tile.store",
    ]


def test_moves_that_were_written_are_kept() -> None:
    def prepare(b: Builder, x: Value, y: Value) -> tuple[Value, Value]:
        left = b.load(x, [0, 0], (64, 64), memory=MemorySpace.Mat)
        return b.move(left, MemorySpace.Left), b.load(y, [0, 0], (64, 64))

    assert names(matmul_program(prepare).body).count("tile.move") == 2


def test_tile_in_vector_memory_cannot_be_multiplied() -> None:
    with pytest.raises(IRError, match=r"matrix and vector cores do not share tiles|different cores"):
        matmul_program(
            lambda b, x, y: (b.load(x, [0, 0], (64, 64), memory=MemorySpace.Vec), b.load(y, [0, 0], (64, 64)))
        )


def test_verifier_finds_what_is_not_defined() -> None:
    part, b = incore()
    a, _, out = (p.value for p in part.params[:3])
    with b.loop(0, 4):
        inner = b.load(a, [0, 0], (64, 64), memory=MemorySpace.Vec)
    b.store(inner, out, [0, 0])
    b.op("scf.return")
    part.core = CoreType.AIV
    with pytest.raises(IRError, match=r"pl\.store uses tile, which is not defined there"):
        verify(program_with(part))


def test_verifier_finds_sizes_that_are_not_defined() -> None:
    part, b = incore()
    a, _, out = (p.value for p in part.params[:3])
    stray = Value("stray", ScalarType(part.params[3].type.dtype))
    b.store(b.load(a, [0, 0], (64, 64), (stray, 64), MemorySpace.Vec), out, [0, 0])
    b.op("scf.return")
    part.core = CoreType.AIV
    with pytest.raises(IRError, match="stray"):
        verify(program_with(part))


def test_verifier_holds_results_to_the_rules() -> None:
    part, b = incore()
    a, _, out = (p.value for p in part.params[:3])
    tile = b.load(a, [0, 0], (64, 64), memory=MemorySpace.Vec)
    made = b.op("tile.exp", [tile])
    made.result.type = TileType((64, 32), FP32, MemorySpace.Vec, (64, 32))
    b.op("tile.store", [tile, out, b.constant(0), b.constant(0)])
    b.op("scf.return")
    part.core = CoreType.AIV
    with pytest.raises(IRError, match=r"tile\.exp cannot result in"):
        verify(program_with(part))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p.entry_function.body.ops.pop(), "does not end with scf.return"),
        (lambda p: p.entry_function.body.ops[0].operands.pop(), "part takes 4 arguments, got 3"),
        (lambda p: p.entry_function.body.ops[0].attrs.update(callee="gone"), "there is no incore function gone"),
        (lambda p: setattr(p.entry_function.params[2], "direction", Direction.In), "out is an input of the entry"),
        (lambda p: setattr(p.functions["part"], "core", None), "part has no core type"),
        (
            lambda p: p.entry_function.body.ops.insert(0, Op("tile.create", [], [], {}, [], None)),
            "pl.create cannot stand in an entry",
        ),
    ],
)
def test_verifier_holds_the_structure(change: Callable[[Program], object], message: str) -> None:
    part, b = incore()
    b.store(b.full((64, 64), FP32, 0.0), part.params[2].value, [0, 0])
    b.op("scf.return")
    part.core = CoreType.AIV
    program = program_with(part)
    verify(program)
    change(program)
    with pytest.raises(IRError, match=message):
        verify(program)


def test_output_that_nothing_is_stored_into_is_refused() -> None:
    part, b = incore()
    b.op("scf.return")
    part.core = CoreType.AIV
    with pytest.raises(IRError, match="out is an output of part, but nothing is stored into it"):
        verify(program_with(part))


def test_store_into_a_view_counts_for_its_base() -> None:
    part, b = incore()
    half = b.view(part.params[2].value, [32, 0], [32, 64])
    b.store(b.full((32, 64), FP32, 0.0), half, [0, 0])
    b.op("scf.return")
    part.core = CoreType.AIV
    verify(program_with(part))


def test_unknown_backend_is_refused() -> None:
    with pytest.raises(IRError, match="backend Ascend000 is not supported; supported: Ascend910B"):
        capacity("Ascend000")


@pytest.mark.parametrize(
    ("shape", "dtype", "memory", "problem"),
    [
        ((3, 8), FP32, MemorySpace.Vec, None),
        ((8, 1), FP32, MemorySpace.Vec, None),
        ((1, 1), FP32, MemorySpace.Vec, None),
        ((8, 13), INT8, MemorySpace.Vec, None),
        ((16, 16), INT8, MemorySpace.Mat, None),
        ((16, 16), FP16, MemorySpace.Mat, None),
        ((1, 16), FP16, MemorySpace.Mat, None),
        ((8, 16), FP16, MemorySpace.Left, None),
        ((16, 8), FP16, MemorySpace.Right, None),
        ((1, 8), FP32, MemorySpace.Acc, None),
        ((2, 16), FP32, MemorySpace.Bias, "a bias has one row"),
    ],
)
def test_shapes_that_each_memory_takes(shape, dtype, memory, problem) -> None:
    said = shape_problem(TileType(shape, dtype, memory, shape))
    assert (said is None) if problem is None else (problem in (said or ""))


def filled(b: Builder, kib: int, hint: str) -> Value:
    return b.full((kib, 256), FP32, 0.0, hint)


def test_footprint_counts_tiles_that_live_together() -> None:
    part, b = incore()
    one, two = filled(b, 80, "one"), filled(b, 80, "two")
    total = b.value("tile.add", [one, two], hint="total")
    with pytest.raises(MemoryLimitError, match=r"part needs 240 KiB of Vec here.*one \[80, 256\] FP32 \(80 KiB\)"):
        check_footprint(part, "Ascend910B")
    assert total.type.nbytes == 80 * 1024


def test_footprint_forgets_tiles_after_their_last_use() -> None:
    part, b = incore()
    tile = filled(b, 90, "first")
    for number in range(5):
        tile = b.value("tile.exp", [tile], hint=f"t{number}")
    check_footprint(part, "Ascend910B")


@pytest.mark.parametrize(("rows", "fits"), [(76, True), (77, False)])
def test_small_tiles_leave_holes_that_larger_ones_cannot_use(rows: int, fits: bool) -> None:
    part, b = incore()
    half = b.full((rows, 128), FP32, 0.0, "half")
    column = b.value("tile.row_sum", [half])
    # From here on two tiles of `rows` KiB; behind the half as large one, which is gone.
    first = filled(b, rows, "first")
    b.value("tile.row_expand_sub", [first, column], hint="second")
    check_footprint(part, "Ascend910B")
    assert fits_in_order(part, "Ascend910B") is fits


def test_footprint_keeps_what_a_loop_reads_again() -> None:
    part, b = incore()
    kept = filled(b, 100, "kept")
    with b.loop(0, part.params[3].value):
        b.value("tile.exp", [b.value("tile.slice", [kept, b.constant(0), b.constant(0)], types=(row_type(),))])
        filled(b, 100, "later")
    with pytest.raises(MemoryLimitError, match="later"):
        check_footprint(part, "Ascend910B")


def row_type() -> TileType:
    return TileType((1, 256), FP32, MemorySpace.Vec, (1, 256))


def test_carried_tiles_count_once() -> None:
    part, b = incore()
    start = filled(b, 90, "start")
    with b.loop(0, part.params[3].value, inits=[start]) as loop:
        loop.carry(b.value("tile.exp", [loop.carried[0]]))
    check_footprint(part, "Ascend910B")
