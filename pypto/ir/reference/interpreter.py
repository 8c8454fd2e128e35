"""Runs a program on NumPy arrays in float64, whatever its element types and after whichever pass: what it means.

Only conversions round. Tiles are arrays of their valid size, and what nothing has written yet is NaN.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pypto.ir.nodes import Block, Op, Program
from pypto.ir.ops.arith import FUNCTIONS
from pypto.ir.reference.moving import MOVING, WHOLE, changes_elements
from pypto.ir.reference.tiles import TILES, chosen, compared, converted, wrapped
from pypto.ir.rounding import limits, rounded_to
from pypto.ir.types import ScalarType, TensorType, TileType, Valid

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
    "bitand": operator.and_,
    "bitor": operator.or_,
    "bitxor": operator.xor,
    "shl": lambda a, b: a << min(b, 64) if b > 0 else a,
    "shr": lambda a, b: a >> b if b > 0 else a,
    "neg": operator.neg,
    **{name: TILES[name] for name in FUNCTIONS},
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "not": operator.not_,
    "select": lambda c, a, b: a if c else b,
}


class NoReference(Exception):
    """An operation whose meaning is not written down here; the message names it and its place."""


def run(program: Program, arguments: Mapping[str, Any]) -> None:
    """Run the entry; arrays are changed in place.

    Args:
        arguments: a float64 array or a number for each parameter, by name.

    Raises:
        NoReference: the program has an operation that only the compiled kernel can do.
    """
    entry = program.entry_function
    _Run(program).block(entry.body, {id(p.value): arguments[p.name] for p in entry.params})


class _Run:
    def __init__(self, program: Program) -> None:
        self.program = program
        # Of each group of tasks that was entered: whether its tasks run.
        self.groups: list[bool] = []

    def block(self, block: Block, values: dict[int, Any]) -> list[Any]:
        for op in block.ops:
            operands = [values[id(v)] for v in op.operands]
            if op.name == "scf.yield":
                return operands
            for result, value in zip(op.results, self.op(op, operands, values), strict=True):
                values[id(result)] = value
        return []

    def group(self, op: Op, operands: list[Any]) -> list[Any]:
        """Tasks run in the order of the program, so that what a group waits for is over."""
        if op.name == "task.enter":
            self.groups.append(True)
        elif op.name == "task.when":
            holds = getattr(operator, op.attrs["pred"])(operands[0].item(), op.attrs["number"])
            self.groups[-1] = self.groups[-1] and holds
        else:
            self.groups.pop()
            return [None]
        return []

    def op(self, op: Op, operands: list[Any], values: dict[int, Any]) -> list[Any]:
        family, _, name = op.name.partition(".")
        if op.name == "scf.for":
            (body,) = op.regions
            carried = operands[3:]
            for index in range(*operands[:3]):
                if op.attrs["kind"] == "while" and not carried[-1]:
                    break
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
        if family == "task":
            return self.group(op, operands)
        if op.name in ("func.scope", "func.call") and not all(self.groups):
            return []
        if op.name == "func.scope":
            self.block(op.regions[0], values)
            return []
        if op.name == "func.call":
            callee = self.program.functions[op.attrs["callee"]]
            if callee.extern is not None:
                raise NoReference(f"{callee.name} is hand-written C++, which has no NumPy reference")
            self.block(callee.body, {id(p.value): v for p, v in zip(callee.params, operands, strict=True)})
            return []
        if op.name == "scf.return":
            return []
        if family == "arith":
            return [self.scalar(op, name, operands)]
        if op.name == "tensor.untracked":
            return operands
        if op.name == "tensor.assign":
            source, target = operands
            target[...] = source
            return []
        if op.name == "tensor.apply":
            made = self.compute(op, op.attrs["tile"], operands)
            return [made] if len(op.results) == 1 else list(made)
        if family == "tensor":
            return [self.tensor(op, name, operands)]
        return self.tile(op, name, operands, values)

    def scalar(self, op: Op, name: str, operands: list[Any]) -> Any:
        if name == "constant":
            return op.attrs["value"]
        if name == "cast":
            type = op.result.type
            assert isinstance(type, ScalarType)
            if type.dtype.is_float:
                return float(operands[0])
            if isinstance(operands[0], (float, np.floating)):
                return rounded_to(float(operands[0]), type.dtype, op.attrs.get("mode", "trunc"))
            return int(wrapped(int(operands[0]), type.dtype))
        if name == "cmp":
            return getattr(operator, op.attrs["pred"])(*operands)
        if name not in _SCALARS:
            raise _no_reference(op)
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
        if name != "view":
            raise _no_reference(op)
        rank = op.attrs["rank"]
        part = operands[0][_window(operands[1 : rank + 1], operands[rank + 1 :])]
        return part.reshape([s for a, s in enumerate(part.shape) if a not in op.attrs.get("dropped", ())])

    def tile(self, op: Op, name: str, operands: list[Any], values: dict[int, Any]) -> list[Any]:
        type = op.results[0].type if op.results else None
        if name == "store":
            tile, tensor, *offsets = operands
            sizes = ((1,) * (len(offsets) - 2) + tile.shape)[-len(offsets) :]
            place = _window(offsets, sizes)
            added = tensor[place] if op.attrs.get("atomic", "none") == "add" else 0
            tensor[place] = added + tile.reshape(sizes)
            return []
        if name == "mscatter":
            source, index, tensor = operands
            if op.attrs["rows"]:
                tensor.reshape(-1, tensor.shape[-1])[index.astype(np.int64).ravel()] = source
            else:
                tensor.reshape(-1)[index.astype(np.int64)] = source
            return []
        if name in MOVING and not changes_elements(op):
            made = MOVING[name](op, *operands)
            if isinstance(type, TileType):
                made = made[tuple(slice(_number(length, values)) for length in type.valid)]
            return [made]
        if name == "gather_compare":
            return list(WHOLE[name](op, *operands))
        if not isinstance(type, TileType) or len(op.results) > 1:
            raise _no_reference(op)
        rows, cols = (_number(length, values) for length in type.valid)
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
        if name == "reshape":
            return [operands[0].reshape(rows, cols)]
        if name == "set_validshape":
            return [operands[0][:rows, :cols]]
        return [self.compute(op, name, operands)]

    def compute(self, op: Op, name: str, operands: list[Any]) -> Any:
        """What the operation on tiles called ``name`` computes, on tiles or whole tensors."""
        if name == "cast":
            type = op.result.type
            assert isinstance(type, (TileType, TensorType))
            made = converted(operands[0], type.dtype, op.attrs.get("mode", "round"))
            source = op.operands[0].type
            assert isinstance(source, (TileType, TensorType))
            if source.dtype.is_float and type.dtype.is_integer:
                low, high = limits(type.dtype)
                return np.clip(made, float(low), float(high))
            return wrapped(made, type.dtype)
        if name in ("matmul", "matmul_acc"):
            left, right = operands[-2:]
            if op.attrs.get("a_trans"):
                left = np.swapaxes(left, -1, -2)
            if op.attrs.get("b_trans"):
                right = np.swapaxes(right, -1, -2)
            return operands[0] + left @ right if name == "matmul_acc" else left @ right
        if name in ("cmp", "cmps"):
            return compared(op.attrs["pred"], *operands)
        if name in ("sel", "sels"):
            return chosen(op.attrs["mask"], *operands)
        if name == "transpose" and "axes" in op.attrs:
            return np.swapaxes(operands[0], *op.attrs["axes"])
        if op.name == "tensor.apply" and name in WHOLE and not changes_elements(op):
            type = op.result.type
            if (
                name in ("ci", "tri")
                and isinstance(type, TensorType)
                and not all(isinstance(n, int) for n in type.shape)
            ):
                raise _no_reference(op)
            return WHOLE[name](op, *operands)
        if name not in TILES:
            raise _no_reference(op)
        made, type = TILES[name](*operands), op.result.type
        return wrapped(made, type.dtype) if isinstance(type, (TileType, TensorType)) else made


def _number(length: Valid, values: Mapping[int, Any]) -> int:
    return length if isinstance(length, int) else values[id(length)]


def _no_reference(op: Op) -> NoReference:
    name = f"{op.name} ({op.attrs['tile']})" if op.name == "tensor.apply" else op.name
    return NoReference(f"{name} has no NumPy reference" + (f" ({op.loc})" if op.loc else ""))


def _window(offsets: Any, sizes: Any) -> tuple[slice, ...]:
    return tuple(slice(o, o + s) for o, s in zip(offsets, sizes, strict=True))
