"""Small programs made by hand, for tests of passes and the verifier."""

from __future__ import annotations

from pypto.ir.builder import Builder, function
from pypto.ir.nodes import Direction, Function, FunctionKind, Program
from pypto.ir.types import FP32, INDEX, ScalarType, TensorType

MATRIX = TensorType((64, 64), FP32)


def program_with(part: Function) -> Program:
    """A program whose entry calls one incore function with parameters of its own."""
    entry, builder = function("main", FunctionKind.ORCHESTRATION, [(p.name, p.type, p.direction) for p in part.params])
    builder.op("func.call", [p.value for p in entry.params], {"callee": part.name})
    builder.op("scf.return")
    return Program("main", {"main": entry, part.name: part})


def incore() -> tuple[Function, Builder]:
    """An empty incore function ``part(a, b, out, n)`` on matrices of 64 by 64."""
    return function(
        "part",
        FunctionKind.INCORE,
        [("a", MATRIX), ("b", MATRIX), ("out", MATRIX, Direction.Out), ("n", ScalarType(INDEX))],
    )
