"""Small programs made with the builder."""

from __future__ import annotations

from collections.abc import Callable

from pypto.ir.builder import Builder, function
from pypto.ir.nodes import Block, CoreType, Direction, Function, FunctionKind, Loc, Program, Value
from pypto.ir.types import FP32, INDEX, INT32, DType, DynDim, MemorySpace, ScalarType, TensorType

VEC = MemorySpace.Vec
SHAPE = (8, 64)


def incore(
    name: str,
    body: Callable[[Builder, list[Value]], None],
    params: list[tuple[str, object, Direction]] | None = None,
    core: CoreType = CoreType.AIV,
) -> Function:
    """An incore function; by default of tensors ``x`` and ``y`` of [8, 64] FP32 and a result ``o``."""
    if params is None:
        params = [
            ("x", TensorType(SHAPE, FP32), Direction.In),
            ("y", TensorType(SHAPE, FP32), Direction.In),
            ("o", TensorType(SHAPE, FP32), Direction.Out),
        ]
    made, builder = function(name, FunctionKind.INCORE, params, loc=Loc(name, 1, 0))  # type: ignore[arg-type]
    made.core = core
    body(builder, [p.value for p in made.params])
    builder.op("scf.return")
    return made


def load(b: Builder, tensor: Value, dtype: DType = FP32) -> Value:
    """The first block of a tensor."""
    return b.load(tensor, [0, 0], SHAPE, memory=VEC)


def adder() -> Function:
    """Adds rows of two tensors with a run-time number of rows, block by block."""
    dims = TensorType((DynDim("S"), 64), FP32)

    def body(b: Builder, p: list[Value]) -> None:
        x, y, count, out = p
        rows = b.value("arith.cast", [count], types=(ScalarType(INDEX),))
        with b.loop(0, rows, 8) as loop:
            b.loc = Loc("adder", 7, 8)
            rest = b.value("arith.sub", [rows, loop.index])
            valid = (b.value("arith.min", [rest, b.constant(8)]), 64)
            tiles = [b.load(t, [loop.index, 0], SHAPE, valid, VEC) for t in (x, y)]
            b.store(b.value("tile.add", tiles), out, [loop.index, 0])

    return incore(
        "adder",
        body,
        [
            ("x", dims, Direction.In),
            ("y", dims, Direction.In),
            ("count", ScalarType(INT32), Direction.In),
            ("o", dims, Direction.Out),
        ],
    )


def program() -> Program:
    """An entry that submits `adder` for two halves of its rows, and something else for none."""
    dims = TensorType((DynDim("S"), 64), FP32)
    entry, b = function(
        "main",
        FunctionKind.ORCHESTRATION,
        [
            ("x", dims, Direction.In),
            ("y", dims, Direction.In),
            ("count", ScalarType(INT32), Direction.In),
            ("o", dims, Direction.Out),
        ],
        returns=(3,),
        loc=Loc("main", 1, 0),
    )
    x, y, count, out = (p.value for p in entry.params)
    b.loc = Loc("main", 9, 4)
    total = b.value("arith.cast", [count], types=(ScalarType(INDEX),))
    half = b.value("arith.floordiv", [total, b.constant(2)])
    work = b.create_tensor([half, 64], FP32)
    with b.loop(0, 2, 1, [total]) as loop:
        b.op("func.call", [x, y, count, work], {"callee": "adder"})
        loop.carry(b.value("arith.sub", [loop.carried[0], half]))
    left = b.value("arith.cmp", [loop.results[0], b.constant(0)], pred="gt")
    then, otherwise = Block(), Block()
    with b.inside(then):
        b.op("func.call", [x, y, count, out], {"callee": "adder"})
        b.op("scf.yield", [])
    with b.inside(otherwise):
        b.op("scf.yield", [])
    b.op("scf.if", [left], regions=[then, otherwise])
    b.op("scf.return")
    kernel = adder()
    return Program("main", {"main": entry, kernel.name: kernel})
