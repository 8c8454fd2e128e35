"""Making programs: operations with checked operands and derived result types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pypto.ir.errors import IRError
from pypto.ir.nodes import Block, Direction, Function, FunctionKind, Loc, Op, Param, Value
from pypto.ir.ops.registry import definition
from pypto.ir.types import (
    BOOL,
    FP32,
    INDEX,
    DType,
    MemorySpace,
    ScalarType,
    TensorType,
    TileType,
    Type,
    Valid,
)


class Builder:
    """Appends operations to the current block.

    Attributes:
        loc: place given to the operations made next.
        block: where they go.
    """

    def __init__(self, block: Block, loc: Loc | None = None) -> None:
        self.block = block
        self.loc = loc

    def op(
        self,
        name: str,
        operands: Sequence[Value] = (),
        attrs: dict[str, Any] | None = None,
        types: Sequence[Type] = (),
        regions: Sequence[Block] = (),
        hint: str = "v",
    ) -> Op:
        """Append one operation.

        Args:
            types: result types, for operations that do not derive them.
            hint: name of the results.

        Raises:
            IRError: the operation's rule refuses the use; the error has this builder's place.
        """
        attrs = dict(attrs or {})
        try:
            result_types = definition(name).check_call(operands, attrs, types)
        except IRError as error:
            raise IRError(error.message, error.loc or self.loc) from None
        made = Op(name, list(operands), [], attrs, list(regions), self.loc)
        made.results = [Value(hint, type, made) for type in result_types]
        for region in regions:
            for arg in region.args:
                arg.owner = region
        self.block.ops.append(made)
        return made

    def value(
        self, name: str, operands: Sequence[Value] = (), hint: str = "v", types: Sequence[Type] = (), **attrs: Any
    ) -> Value:
        """Append an operation with one result and return that."""
        return self.op(name, operands, attrs, types, hint=hint).result

    def constant(self, value: int | float | bool, dtype: DType | None = None) -> Value:
        """A scalar constant; its type is INDEX, FP32 or BOOL unless given."""
        if dtype is None:
            dtype = BOOL if isinstance(value, bool) else INDEX if isinstance(value, int) else FP32
        number = float(value) if dtype.is_float else bool(value) if dtype == BOOL else int(value)
        return self.value("arith.constant", types=(ScalarType(dtype),), hint="c", value=number)

    def index(self, value: int | Value) -> Value:
        """An index operand from a number or a value."""
        return value if isinstance(value, Value) else self.constant(value)

    def create_tensor(self, shape: Sequence[int | Value], dtype: DType, hint: str = "t") -> Value:
        """A workspace in global memory."""
        dims = [self.index(d) for d in shape]
        return self.value("tensor.create", dims, hint, (TensorType(tuple(shape), dtype),))

    def view(
        self,
        tensor: Value,
        offsets: Sequence[int | Value],
        sizes: Sequence[int | Value],
        hint: str = "view",
        dropped: tuple[int, ...] = (),
    ) -> Value:
        """A window of a tensor, without the axes that are dropped."""
        numbers = [self.index(n) for n in (*offsets, *sizes)]
        attrs: dict[str, Any] = {"dropped": dropped} if dropped else {}
        return self.value("tensor.view", (tensor, *numbers), hint, rank=len(offsets), **attrs)

    def load(
        self,
        tensor: Value,
        offsets: Sequence[int | Value],
        shape: tuple[int, int],
        valid: tuple[Valid, Valid] | None = None,
        memory: MemorySpace | None = None,
        transposed: bool = False,
        hint: str = "tile",
    ) -> Value:
        """A tile from a window of a tensor; ``shape`` and ``valid`` are the tile's, after any transposition."""
        type = TileType(shape, _tensor_type(tensor).dtype, memory, valid or shape)
        return self.value("tile.load", (tensor, *map(self.index, offsets)), hint, (type,), transposed=transposed)

    def store(self, tile: Value, tensor: Value, offsets: Sequence[int | Value], atomic: str = "none") -> Op:
        """Write a tile's valid part into a tensor; ``atomic``: ``none``, or ``add`` to what it holds."""
        attrs = {} if atomic == "none" else {"atomic": atomic}
        return self.op("tile.store", (tile, tensor, *map(self.index, offsets)), attrs)

    def full(self, shape: tuple[int, int], dtype: DType, value: float | Value, hint: str = "tile") -> Value:
        """A tile filled with one number."""
        scalar = value if isinstance(value, Value) else self.constant(value, dtype)
        return self.value("tile.full", (scalar,), hint, (TileType(shape, dtype, MemorySpace.Vec, shape),))

    def move(self, tile: Value, memory: MemorySpace, hint: str = "tile") -> Value:
        """The same tile in another memory."""
        old = tile.type
        if not isinstance(old, TileType):
            raise IRError(f"only tiles move, not {old}", self.loc)
        return self.value("tile.move", (tile,), hint, (TileType(old.shape, old.dtype, memory, old.valid),))

    @contextmanager
    def inside(self, block: Block) -> Iterator[Block]:
        """Append to ``block`` meanwhile."""
        outer, self.block = self.block, block
        try:
            yield block
        finally:
            self.block = outer

    @contextmanager
    def loop(
        self, start: int | Value, stop: int | Value, step: int | Value = 1, inits: Sequence[Value] = (), name: str = "i"
    ) -> Iterator[Loop]:
        """A counted loop; end its body with :meth:`Loop.carry` when it has carried values."""
        bounds = [self.index(n) for n in (start, stop, step)]
        body = Block([Value(name, ScalarType(INDEX)), *(Value(v.name, v.type) for v in inits)])
        loop = Loop(body)
        outer = self.block
        with self.inside(body):
            yield loop
            self.op("scf.yield", loop.yielded)
        self.block = outer
        made = self.op("scf.for", [*bounds, *inits], {"kind": "range"}, regions=[body])
        for result, init in zip(made.results, inits, strict=True):
            result.name = init.name
        loop.results.extend(made.results)


class Loop:
    """What the body of :meth:`Builder.loop` works with.

    Attributes:
        index: the loop variable.
        carried: the carried values inside the body.
        results: their last values; filled when the loop is complete.
    """

    def __init__(self, body: Block) -> None:
        self.index = body.args[0]
        self.carried = body.args[1:]
        self.yielded: Sequence[Value] = ()
        self.results: list[Value] = []

    def carry(self, *values: Value) -> None:
        """Give the values for the next turn."""
        self.yielded = values


def function(
    name: str,
    kind: FunctionKind,
    params: Sequence[tuple[str, Type] | tuple[str, Type, Direction]],
    returns: tuple[int, ...] = (),
    loc: Loc | None = None,
) -> tuple[Function, Builder]:
    """An empty function and a builder for its body."""
    body = Block()
    made = [Param(Value(p[0], p[1], body), p[2] if len(p) > 2 else Direction.In) for p in params]
    return Function(name, kind, made, body, returns=returns, loc=loc), Builder(body, loc)


def _tensor_type(value: Value) -> TensorType:
    if not isinstance(value.type, TensorType):
        raise IRError(f"{value.name} must be a tensor, but is {value.type}")
    return value.type
