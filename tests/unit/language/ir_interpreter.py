"""Runs lowered IR on NumPy arrays in float64, whatever the element types: for tests of what a program means."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from pypto.ir.nodes import Block, Op, Program
from pypto.ir.types import FP16, INT32, ScalarType, TileType

_SCALARS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    # A quotient that is computed and not chosen may have the divisor 0.
    "floordiv": lambda a, b: a // b if b else 0,
    "mod": lambda a, b: a % b if b else 0,
    "min": min,
    "max": max,
    "neg": operator.neg,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "not": operator.not_,
    "select": lambda c, a, b: a if c else b,
}
_TILES: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "recip": lambda a: 1 / a,
    "neg": operator.neg,
    "abs": abs,
    "relu": lambda a: np.maximum(a, 0),
    "row_sum": lambda a: a.sum(axis=1, keepdims=True),
    "row_max": lambda a: a.max(axis=1, keepdims=True),
    "row_min": lambda a: a.min(axis=1, keepdims=True),
    "col_sum": lambda a: a.sum(axis=0, keepdims=True),
    "col_max": lambda a: a.max(axis=0, keepdims=True),
    "col_min": lambda a: a.min(axis=0, keepdims=True),
    "transpose": np.transpose,
    "move": lambda a: a,
    "matmul": operator.matmul,
}
_TILES |= {f"{name}s": _TILES[name] for name in ("add", "sub", "mul", "div", "maximum", "minimum")}
_TILES["rdivs"] = lambda a, s: s / a
for _axis in ("row", "col"):
    for _name, _base in (("add", "add"), ("sub", "sub"), ("mul", "mul"), ("div", "div")):
        _TILES[f"{_axis}_expand_{_name}"] = _TILES[_base]
    _TILES[f"{_axis}_expand"] = lambda a, b: np.broadcast_to(b, a.shape)
_TILES["row_expand_max"], _TILES["row_expand_min"] = np.maximum, np.minimum


def converted(values: Any, dtype: Any) -> Any:
    """What a conversion does to values, in float64."""
    if dtype == FP16:
        return np.asarray(values).astype(np.float16).astype(np.float64)
    return np.rint(values) if dtype == INT32 else values


def run(program: Program, arguments: dict[str, Any]) -> None:
    """Run the entry; arrays are changed in place."""
    entry = program.entry_function
    _Run(program).block(entry.body, {id(p.value): arguments[p.name] for p in entry.params})


class _Run:
    def __init__(self, program: Program) -> None:
        self.program = program

    def block(self, block: Block, values: dict[int, Any]) -> list[Any]:
        for op in block.ops:
            operands = [values[id(v)] for v in op.operands]
            if op.name == "scf.yield":
                return operands
            for result, value in zip(op.results, self.op(op, operands, values), strict=True):
                values[id(result)] = value
        return []

    def op(self, op: Op, operands: list[Any], values: dict[int, Any]) -> list[Any]:
        family, _, name = op.name.partition(".")
        if op.name == "scf.for":
            (body,) = op.regions
            carried = operands[3:]
            for index in range(*operands[:3]):
                inner = [index, *carried]
                values.update((id(a), v) for a, v in zip(body.args, inner, strict=True))
                carried = self.block(body, values)
            return carried
        if op.name == "scf.while":
            head, body = op.regions
            carried = operands
            while True:
                for region in op.regions:
                    values.update((id(a), v) for a, v in zip(region.args, carried, strict=True))
                if not self.block(head, values)[0]:
                    return carried
                carried = self.block(body, values)
        if op.name == "scf.if":
            return self.block(op.regions[0 if operands[0] else 1], values)
        if op.name == "func.call":
            callee = self.program.functions[op.attrs["callee"]]
            self.block(callee.body, {id(p.value): v for p, v in zip(callee.params, operands, strict=True)})
            return []
        if op.name == "scf.return":
            return []
        if family == "arith":
            return [self.scalar(op, name, operands)]
        if family == "tensor":
            return [self.tensor(op, name, operands)]
        return self.tile(op, name, operands, values)

    def scalar(self, op: Op, name: str, operands: list[Any]) -> Any:
        if name == "constant":
            return op.attrs["value"]
        if name == "cast":
            type = op.result.type
            assert isinstance(type, ScalarType)
            return float(operands[0]) if type.dtype.is_float else int(operands[0])
        if name == "cmp":
            return getattr(operator, op.attrs["pred"])(*operands)
        return _SCALARS[name](*operands)

    def tensor(self, op: Op, name: str, operands: list[Any]) -> Any:
        if name == "create":
            return np.full(operands, np.nan)
        if name == "dim":
            return operands[0].shape[op.attrs["axis"]]
        if name == "reshape":
            return operands[0].reshape(operands[1:])
        if name == "read":
            return operands[0][tuple(operands[1:])]
        rank = op.attrs["rank"]
        part = operands[0][_window(operands[1 : rank + 1], operands[rank + 1 :])]
        return part.reshape([s for a, s in enumerate(part.shape) if a not in op.attrs.get("dropped", ())])

    def tile(self, op: Op, name: str, operands: list[Any], values: dict[int, Any]) -> list[Any]:
        type = op.results[0].type if op.results else None
        if name == "store":
            tile, tensor, *offsets = operands
            sizes = ((1,) * (len(offsets) - 2) + tile.shape)[-len(offsets) :]
            tensor[_window(offsets, sizes)] = tile.reshape(sizes)
            return []
        assert isinstance(type, TileType)
        rows, cols = (v if isinstance(v, int) else values[id(v)] for v in type.valid)
        if name == "full":
            return [np.full((rows, cols), float(operands[0]))]
        if name == "create":
            return [np.full((rows, cols), np.nan)]
        if name == "load":
            tensor, *offsets = operands
            sizes = ((1,) * (len(offsets) - 2) + (rows, cols))[-len(offsets) :]
            return [tensor[_window(offsets, sizes)].reshape(rows, cols).copy()]
        if name == "slice":
            return [operands[0][_window(operands[1:], (rows, cols))].copy()]
        if name == "cast":
            return [converted(operands[0], type.dtype)]
        if name == "reshape":
            return [operands[0].reshape(rows, cols)]
        if name == "set_validshape":
            return [operands[0][:rows, :cols]]
        if name.startswith("matmul"):
            left, right = operands[-2:]
            product = (left.T if op.attrs["a_trans"] else left) @ (right.T if op.attrs["b_trans"] else right)
            return [operands[0] + product if name == "matmul_acc" else product]
        return [_TILES[name](*operands)]


def _window(offsets: Any, sizes: Any) -> tuple[slice, ...]:
    return tuple(slice(o, o + s) for o, s in zip(offsets, sizes, strict=True))
