"""A stand-in for ``pypto.language`` with which Python itself runs the body of a kernel, on NumPy in float64."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

import pypto.language as pl
from pypto.ir.reference.tiles import TILES, converted


class Array:
    """A tensor or tile: operators give new arrays, slices of tensors are views, as in the language."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def __getitem__(self, key: Any) -> Any:
        part = self.values[key]
        return Array(part) if isinstance(part, np.ndarray) else part

    def __setitem__(self, key: Any, value: Array) -> None:
        self.values[key] = plain(value)

    def __neg__(self) -> Array:
        return Array(-self.values)


def plain(value: Any) -> Any:
    """The NumPy array of an array, a scalar as it is."""
    return value.values if isinstance(value, Array) else value


def _operator(name: str, swapped: bool = False) -> Any:
    def apply(self: Array, other: Any) -> Array:
        left, right = plain(self), plain(other)
        return Array(TILES[name](right, left) if swapped else TILES[name](left, right))

    return apply


for _sign, _name in (("add", "add"), ("sub", "sub"), ("mul", "mul"), ("truediv", "div")):
    setattr(Array, f"__{_sign}__", _operator(_name))
    setattr(Array, f"__r{_sign}__", _operator(_name, swapped=True))


_yielded: tuple[Any, ...] = ()


def _carrying(bounds: tuple[int, ...], values: tuple[Any, ...]) -> Any:
    global _yielded
    _yielded = values
    for index in range(*bounds):
        yield index, _yielded


class Language:
    """What ``pl`` is while Python runs a body."""

    def __getattr__(self, name: str) -> Any:
        if name in TILES:
            return lambda *args: Array(TILES[name](*map(plain, args)))
        return getattr(pl, name)

    @staticmethod
    def range(*bounds: int, init_values: Any = None, stage: int = 1) -> Any:
        if init_values is None:
            return range(*bounds)
        return _carrying(bounds, init_values)

    parallel = unroll = pipeline = spmd = range

    @staticmethod
    def yield_(*values: Any) -> Any:
        global _yielded
        _yielded = values
        return values[0] if len(values) == 1 else values

    @staticmethod
    def static_assert(condition: bool, msg: str = "") -> None:
        assert condition

    @staticmethod
    def create_tensor(shape: Any, dtype: Any) -> Array:
        return Array(np.full(shape, np.nan))

    @staticmethod
    def abs(value: Any) -> Any:
        return Array(np.abs(value.values)) if isinstance(value, Array) else abs(value)

    min = staticmethod(min)
    max = staticmethod(max)

    @staticmethod
    def matmul(left: Any, right: Any, a_trans: bool = False, b_trans: bool = False) -> Array:
        a, b = plain(left), plain(right)
        return Array((a.T if a_trans else a) @ (b.T if b_trans else b))

    @classmethod
    def matmul_acc(cls, acc: Array, left: Any, right: Any, init_cond: Any = False, **how: bool) -> Array:
        product = cls.matmul(left, right, **how)
        return product if init_cond else Array(acc.values + product.values)

    @staticmethod
    def store(tile: Array, offsets: list[int], tensor: Array) -> Array:
        tensor.values[tuple(slice(o, o + s) for o, s in zip(offsets, tile.shape, strict=True))] = tile.values
        return tensor

    @classmethod
    def slice(cls, tensor: Array, shape: list[int], offset: list[int], valid_shape: Any = None) -> Array:
        return cls.load(tensor, offset, shape, valid_shape)

    @classmethod
    def create_tile(cls, shape: list[int], dtype: Any, target_memory: Any = None) -> Array:
        return cls.create_tensor(shape, dtype)

    @staticmethod
    def reshape(tensor: Array, shape: list[int]) -> Array:
        return Array(tensor.values.reshape(shape))

    @staticmethod
    def read(tensor: Array, indices: list[int]) -> float:
        value: float = tensor.values[tuple(indices)]
        return value

    @staticmethod
    def write(tensor: Array, indices: list[int], value: float) -> Array:
        tensor.values[tuple(indices)] = value
        return tensor

    @classmethod
    def assemble(cls, tensor: Array, source: Array, offset: list[int]) -> Array:
        return cls.store(source, offset, tensor)

    @staticmethod
    def full(shape: list[int], dtype: Any, value: float) -> Array:
        return Array(np.full(shape, float(value)))

    @staticmethod
    def move(tile: Array, target_memory: Any) -> Array:
        return tile

    @staticmethod
    def at(level: object, name_hint: str = "") -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    @staticmethod
    def cast(value: Any, target_type: Any, mode: str = "round") -> Any:
        dtype = target_type
        if isinstance(value, Array):
            return Array(converted(value.values, dtype, mode))
        return float(value) if dtype.is_float else int(converted(value, dtype, mode))

    @staticmethod
    def transpose(value: Array, axis1: int, axis2: int) -> Array:
        return Array(value.values.T)

    @staticmethod
    def const(value: Any, dtype: Any) -> Any:
        return float(value) if dtype.is_float else int(value)

    @staticmethod
    def load(
        tensor: Array, offsets: list[int], shapes: list[int], valid_shape: Any = None, target_memory: Any = None
    ) -> Array:
        shapes = valid_shape or shapes
        return Array(tensor.values[tuple(slice(o, o + s) for o, s in zip(offsets, shapes, strict=True))].copy())


def run(names: dict[str, Any], entry: Any, arguments: dict[str, Any]) -> None:
    """Run the body of a kernel by Python; arrays are changed in place."""
    function = entry.function
    meaning = {**function.__globals__, "pl": Language()}
    for name, value in names.items():
        if hasattr(value, "function"):
            meaning[name] = _bound(value.function, meaning)
    wrapped = {k: Array(v) if isinstance(v, np.ndarray) else v for k, v in arguments.items()}
    _bound(function, meaning)(**wrapped)


def _bound(function: Any, meaning: dict[str, Any]) -> Any:
    return type(function)(function.__code__, meaning, function.__name__, function.__defaults__, function.__closure__)
