"""Element-wise work, reductions, expansions and conversions, each over element types, odd shapes and valid lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from generated import Case, Shape

from pypto.ir.builder import Builder
from pypto.ir.nodes import Value
from pypto.ir.types import BF16, FP16, FP32, INT8, INT16, INT32, DType, MemorySpace, TileType, Valid

VEC = MemorySpace.Vec
BINARY: dict[str, Callable[..., np.ndarray]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
}
UNARY: dict[str, Callable[..., np.ndarray]] = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "recip": lambda x: 1 / x,
    "neg": np.negative,
    "abs": np.abs,
    "relu": lambda x: np.maximum(x, 0),
}
SCALAR: dict[str, Callable[..., np.ndarray]] = {
    "adds": np.add,
    "subs": np.subtract,
    "muls": np.multiply,
    "divs": np.divide,
    "rdivs": lambda x, s: s / x,
    "minimums": np.minimum,
    "maximums": np.maximum,
}
# Shapes, among them a column, one element, and rows that do not fill blocks of 32 bytes; with valid part or without.
SHAPES: list[tuple[tuple[int, int], tuple[int, int] | None]] = [
    ((8, 64), (5, 33)),
    ((3, 40), None),
    ((7, 1), None),
    ((16, 1), (9, 1)),
    ((1, 1), None),
]
OPS: dict[DType, dict[str, set[str]]] = {
    FP32: {"binary": set(BINARY), "unary": set(UNARY), "scalar": set(SCALAR)},
    FP16: {"binary": set(BINARY), "unary": set(UNARY), "scalar": set(SCALAR)},
    INT32: {
        "binary": set(BINARY) - {"div"},
        "unary": {"neg", "abs", "relu"},
        "scalar": {"adds", "subs", "muls"},
    },
    INT8: {"binary": set(BINARY) - {"div", "mul"}, "unary": {"neg", "relu"}, "scalar": {"adds"}},
    INT16: {"binary": {"add", "sub"}, "unary": set(), "scalar": set()},
    BF16: {"binary": {"add", "sub"}, "unary": {"exp", "sqrt"}, "scalar": set()},
}


def load(b: Builder, tensor: Value, shape: tuple[int, int], valid: tuple[Valid, Valid] | None = None) -> Value:
    """A vector tile from the start of a tensor."""
    return b.load(tensor, [0, 0], shape, valid, VEC)


def positive(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Data for logarithms, roots and quotients; also whole numbers."""
    return rng.uniform(0.5, 3, shape)


def halves(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Numbers in the middle between whole ones, which show the rounding mode."""
    return rng.integers(-40, 40, shape) / 2


def name_of(prefix: str, dtype: DType, shape: tuple[int, int]) -> str:
    return f"{prefix}_{dtype.name}_{shape[0]}x{shape[1]}"


def cases() -> Iterator[Case]:
    """All cases of this module."""
    for dtype, ops in OPS.items():
        for shape, valid in SHAPES if dtype in (FP32, FP16) else SHAPES[1:3]:
            yield elementwise(dtype, shape, valid or shape, ops)
    for dtype in (FP32, FP16):
        for shape, valid in [*SHAPES, ((1, 16), None)]:
            yield lines(dtype, shape, valid or shape)
    yield bfloat16_rows()
    yield from conversions()
    yield constants()


def elementwise(dtype: DType, shape: tuple[int, int], valid: tuple[int, int], ops: dict[str, set[str]]) -> Case:
    number = 0.75 if dtype.is_float else 3
    operations: list[tuple[str, str, bool]] = [(kind, op, True) for kind in ops for op in sorted(ops[kind])]
    operations += [("scalar", op, False) for op in sorted(ops["scalar"])]

    def body(b: Builder, x: list[Value], n: list[Value], o: list[Value]) -> None:
        left, right = load(b, x[0], shape, valid), load(b, x[1], shape, valid)
        for (kind, op, constant), out in zip(operations, o, strict=True):
            operands = [left]
            if kind == "binary":
                operands.append(right)
            elif kind == "scalar":
                operands.append(b.constant(number, dtype) if constant else n[0])
            b.store(b.value(f"tile.{op}", operands), out, [0, 0])

    def expected(a: np.ndarray, c: np.ndarray, s: float = 0) -> list[np.ndarray]:
        given = {"binary": lambda op: BINARY[op](a, c), "unary": lambda op: UNARY[op](a)}
        given["scalar"] = lambda op: SCALAR[op](a, number)
        return [given[kind](op) for kind, op, _ in operations]

    return Case(
        name_of("elementwise", dtype, shape),
        [(valid, dtype), (valid, dtype)],
        {f"{op}_{'constant' if c else 'argument'}": (valid, dtype) for _, op, c in operations},
        body,
        expected,
        numbers=[(FP32 if dtype.is_float else dtype, number)] if ops["scalar"] else [],
        sample=positive if dtype.is_float else None,
    )


def lines(dtype: DType, shape: tuple[int, int], valid: tuple[int, int]) -> Case:
    """Reductions to a column or row, and work with a column or row on every column or row."""
    reduce = {"sum": np.sum, "max": np.max, "min": np.min}
    compute = {**BINARY, "max": np.maximum, "min": np.minimum}
    reductions = [f"{axis}_{what}" for axis in ("row", "col") for what in reduce]
    expansions = [f"row_expand_{n}" for n in ("add", "sub", "mul", "div", "max", "min")] + ["row_expand"]
    expansions += [f"col_expand_{n}" for n in ("add", "sub", "mul", "div")] + ["col_expand"]

    def body(b: Builder, x: list[Value], n: list[Value], o: list[Value]) -> None:
        tile = load(b, x[0], shape, valid)
        lines = {"row": load(b, x[1], (shape[0], 1), (valid[0], 1)), "col": load(b, x[2], (1, shape[1]), (1, valid[1]))}
        for name, out in zip([*reductions, *expansions], o, strict=True):
            operands = [tile] if name in reductions else [tile, lines[name[:3]]]
            b.store(b.value(f"tile.{name}", operands), out, [0, 0])

    def expected(a: np.ndarray, column: np.ndarray, row: np.ndarray) -> list[np.ndarray]:
        result = [reduce[n[4:]](a, axis=1 if n.startswith("row") else 0, keepdims=True) for n in reductions]
        for name in expansions:
            line = column if name.startswith("row") else row
            operation = name.partition("_expand")[2].lstrip("_")
            result.append(compute[operation](a, line) if operation else line)
        return result

    outputs = {n: ((valid[0], 1) if n.startswith("row") else (1, valid[1]), dtype) for n in reductions}
    outputs.update((n, (valid, dtype)) for n in expansions)
    inputs = [(valid, dtype), ((valid[0], 1), dtype), ((1, valid[1]), dtype)]
    # The error of a sum grows with its length.
    tolerance = 2e-2 if dtype == FP16 else None
    return Case(name_of("lines", dtype, shape), inputs, outputs, body, expected, sample=positive, tolerance=tolerance)


def bfloat16_rows() -> Case:
    shape = (16, 64)

    def body(b: Builder, x: list[Value], n: list[Value], o: list[Value]) -> None:
        tile = load(b, x[0], shape)
        b.store(b.value("tile.row_max", [tile]), o[0], [0, 0])
        b.store(b.value("tile.row_sum", [tile]), o[1], [0, 0])
        wide = b.value("tile.cast", [tile], types=(TileType(shape, FP32, VEC, shape),), mode="rint")
        b.store(b.value("tile.muls", [wide, b.constant(3.0)]), o[2], [0, 0])
        b.store(b.value("tile.cast", [wide], types=(TileType(shape, BF16, VEC, shape),), mode="rint"), o[3], [0, 0])

    return Case(
        "bfloat16_rows",
        [(shape, BF16)],
        {
            "row_max": ((16, 1), BF16),
            "row_sum": ((16, 1), BF16),
            "wide": (shape, FP32),
            "again": (shape, BF16),
        },
        body,
        lambda a: [a.max(1, keepdims=True), a.sum(1, keepdims=True), 3 * a, a],
        sample=positive,
    )


def away(x: np.ndarray) -> np.ndarray:
    """Rounded to the nearest whole number, the middle away from zero."""
    return np.sign(x) * np.floor(np.abs(x) + 0.5)


MODES = {"none": np.rint, "rint": np.rint, "round": away, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}


def conversions() -> Iterator[Case]:
    targets = {
        FP32: (FP32, FP16, INT32, INT8),
        FP16: (FP32, INT8, INT32),
        INT32: (FP32, FP16),
        INT8: (FP32, FP16),
    }
    for source, wanted in targets.items():
        for shape in ((3, 40), (16, 1)) if source == FP32 else ((3, 40),):
            todo = [
                (target, mode)
                for target in wanted
                for mode in (MODES if target.is_integer and shape[1] > 1 else ("rint", "round"))
            ]

            def body(
                b: Builder,
                x: list[Value],
                n: list[Value],
                o: list[Value],
                shape: tuple[int, int] = shape,
                todo: list[tuple[DType, str]] = todo,
            ) -> None:
                tile = load(b, x[0], shape)
                for (target, mode), out in zip(todo, o, strict=True):
                    type = TileType(shape, target, VEC, shape)
                    b.store(b.value("tile.cast", [tile], types=(type,), mode=mode), out, [0, 0])

            def expected(a: np.ndarray, todo: list[tuple[DType, str]] = todo) -> list[np.ndarray]:
                return [MODES[mode](a) if target.is_integer else a for target, mode in todo]

            yield Case(
                name_of("conversions", source, shape),
                [(shape, source)],
                {f"{target.name}_{mode}": (shape, target) for target, mode in todo},
                body,
                expected,
                sample=halves,
            )


CONSTANTS = (np.inf, -np.inf, 3.0, -7.0, 1e6, 0.1, 1e-40, -0.0, 3.4e38, 16777217.0)


def constants() -> Case:
    """Numbers that ptoas prints in forms that C++ does not read, or that need all their digits."""
    shape = (1, 8)

    def body(b: Builder, x: list[Value], n: list[Value], o: list[Value]) -> None:
        for index, out in enumerate(o[:-1]):
            value = CONSTANTS[index // 2]
            if index % 2 == 0:
                b.store(b.full(shape, FP32, value), out, [0, 0])
            else:
                b.store(b.value("tile.maximums", [load(b, x[0], shape), b.constant(value)]), out, [0, 0])
        big = b.value("tile.muls", [load(b, x[1], shape), b.constant(16777217, INT32)])
        b.store(big, o[-1], [0, 0])

    def expected(a: np.ndarray, c: np.ndarray) -> list[np.ndarray]:
        rounded = [np.float64(np.float32(v)) for v in CONSTANTS]
        found = [f(v) for v in rounded for f in (lambda v: np.full(shape, v), lambda v: np.maximum(a, v))]
        return [*found, c * 16777217]

    outputs = {f"{kind}_{i}": (shape, FP32) for i in range(len(CONSTANTS)) for kind in ("full", "maximums")}
    return Case(
        "constants", [(shape, FP32), (shape, INT32)], {**outputs, "int": (shape, INT32)}, body, expected, tolerance=0
    )
