"""The state while one function is parsed, and the conversions that everything needs."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pypto.ir.builder import Builder
from pypto.ir.errors import IRError
from pypto.ir.nodes import Block, Direction, Function, FunctionKind, Op, Value
from pypto.ir.types import BOOL, FP32, INDEX, INT64, DType, DynDim, ScalarType, TensorType, TileType, Type, Valid
from pypto.ir.values import defining_op, simplified
from pypto.language.errors import CompileError, KernelSyntaxError, KernelTypeError, TileCodeError
from pypto.language.parsing.model import (
    Model,
    describe,
    is_number,
    is_scalar,
    is_tensor,
    is_tile,
    is_whole,
)
from pypto.language.source import FunctionSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pypto.language.parsing.lanes import Lane
    from pypto.language.parsing.program import ProgramParser


# From here on numbers round to infinity.
_BEYOND_FP32 = 2**128 - 2**103
_SAME_MEMORY = ("tensor.view", "tensor.reshape", "tensor.untracked")


class Frame:
    """One function that is being parsed.

    Attributes:
        env: what each name stands for at the current point.
        in_scope: whether the current point is inside a ``pl.at`` of an entry.
        whole: whether operations work on whole tensors of any size here, instead of on tiles.
        core_values: what loops and branches inside of scopes make, by identity.
        outer: the block of the entry in which the current scope stands.
        scope: the block of the current scope itself.
        caller: for a function that is spliced: where it is called.
        directions: how tensors may be used that loops carry or an ``if`` chooses, by identity.
        blocks: number of the current block and of all blocks, inside of a launch over blocks.
        lane: the vector core that the current point is for, inside of a region that both of a block run.
        windows: by identity, a rank's own part of a window and the tensor of all ranks' parts.
        attributes: names that ``pl.func_attr`` has given to the function.
        hidden: parameters that the function has besides those of its signature, by what they stand for.
        tiles: workspaces, or views of them, that stand for the tile which one scope hands to others, and its type, or
            ``None`` where scopes take it as a tensor.
        numbers: likewise the numbers that the entry reads from a workspace, and which one.
        repeated: numbers that the entry computes as a scope did.
    """

    def __init__(self, program: ProgramParser, source: FunctionSource, function: Function, builder: Builder) -> None:
        self.program = program
        self.source = source
        self.text = source.kernel.text
        self.function = function
        self.builder = builder
        self.env: dict[str, Model] = {}
        self.in_scope = False
        self.whole = False
        self.outer: Block | None = None
        self.scope: Block | None = None
        self.core_values: set[int] = set()
        self.caller: Frame | None = None
        self.directions: dict[int, Direction] = {}
        self.blocks: tuple[Model, Model] | None = None
        self.lane: Lane | None = None
        self.hidden: dict[str, Value] = {}
        self.attributes: set[str] = set()
        self.windows: dict[int, tuple[Value, Value]] = {}
        self.tiles: dict[Value, TileType | None] = {}
        self.numbers: dict[Value, Value] = {}
        self.repeated: set[Value] = set()

    @property
    def on_core(self) -> bool:
        """Whether tiles exist here: in an incore function or in a scope."""
        if self.whole:
            return False
        return self.in_scope or self.function.kind is FunctionKind.INCORE

    def spliced(self, source: FunctionSource) -> Frame:
        """A frame for the body of another function that becomes part of this one, at this point."""
        inner = Frame(self.program, source, self.function, self.builder)
        inner.in_scope, inner.whole, inner.outer, inner.scope = self.in_scope, self.whole, self.outer, self.scope
        inner.caller, inner.directions, inner.core_values = self, self.directions, self.core_values
        inner.blocks, inner.lane, inner.hidden = self.blocks, self.lane, self.hidden
        inner.windows, inner.tiles = self.windows, self.tiles
        inner.numbers, inner.repeated = self.numbers, self.repeated
        return inner

    def callers(self) -> Iterator[Frame]:
        """This frame, and those that it is spliced into."""
        frame: Frame | None = self
        while frame is not None:
            yield frame
            frame = frame.caller

    # Errors

    def error(self, message: str, node: ast.AST, kind: type[CompileError] = KernelTypeError) -> CompileError:
        """An error that marks ``node``."""
        return self.text.error(message, node, kind)

    def syntax_error(self, message: str, node: ast.AST) -> CompileError:
        """An error about a form that is used in the wrong way."""
        return self.text.error(message, node, KernelSyntaxError)

    def divisible(self, message: str, node: ast.AST) -> CompileError:
        """An error about code for tiles that could be about whole tensors."""
        error = self.text.error(message, node, KernelTypeError)
        error.divisible = True
        return error

    @contextmanager
    def at(self, node: ast.AST) -> Iterator[None]:
        """Operations made meanwhile have the place of ``node``; their errors mark it."""
        outer, self.builder.loc = self.builder.loc, self.text.loc(node)
        try:
            yield
        except IRError as error:
            raise self.text.error(error.message, error.loc or self.text.loc(node), KernelTypeError) from None
        finally:
            self.builder.loc = outer

    # Scalars

    def scalar(self, model: Model, dtype: DType, node: ast.AST, what: str) -> Value:
        """A run-time scalar of a dtype from a number or a scalar; whole numbers convert among each other."""
        with self.at(node):
            if is_number(model):
                if isinstance(model, bool) != (dtype == BOOL) or (isinstance(model, float) and not dtype.is_float):
                    raise self.error(f"{what} must be {dtype}, not {describe(model)}", node)
                self.check_range(model, dtype, node)
                return self.builder.constant(model, dtype)
            if isinstance(model, DynDim):
                model = self.dimension(model, node)
            if is_scalar(model):
                given = model.type.dtype
                if given == dtype:
                    value: Value = model
                    return value
                if given.is_integer and dtype.is_integer:
                    return self.builder.value("arith.cast", (model,), model.name, (ScalarType(dtype),))
                raise self.error(f"{what} must be {dtype}, but is {given}; use pl.cast", node)
        raise self.error(f"{what} must be a scalar of {dtype}, not {describe(model)}", node)

    def operand(self, model: Model, dtype: DType, node: ast.AST, what: str = "an operand") -> Value:
        """As `scalar`, for arithmetic: beside a floating-point number a whole one becomes one."""
        if is_scalar(model) and dtype.is_float and model.type.dtype.is_integer:
            with self.at(node):
                return self.builder.value("arith.cast", (model,), model.name, (ScalarType(dtype),))
        return self.scalar(model, dtype, node, what)

    def mixed_dtype(self, left: Model, right: Model) -> DType | None:
        """The dtype in which arithmetic on a scalar and another scalar or number is done; ``None`` without one.

        Whole numbers beside floating-point ones are converted, as in Python.
        """
        if is_scalar(left) and is_scalar(right):
            a, b = left.type.dtype, right.type.dtype
            mixed = (a.is_integer and b.is_float) or (a.is_float and b.is_integer)
            return FP32 if mixed else self.common_dtype(a, b)
        scalar, number = (left, right) if is_scalar(left) else (right, left)
        dtype: DType = scalar.type.dtype
        return FP32 if isinstance(number, float) and dtype.is_integer else dtype

    def zero(self, dtype: DType, node: ast.AST) -> Value:
        """Zero as an element of a dtype."""
        number = False if dtype == BOOL else 0.0 if dtype.is_float else 0
        return self.scalar(number, dtype, node, "zero")

    def check_range(self, number: int | float, dtype: DType, node: ast.AST) -> None:
        """A constant must fit into its dtype."""
        if dtype == BOOL:
            return
        if dtype.is_float:
            # Beside elements of 16 bits some operations take any FP32.
            if _BEYOND_FP32 <= abs(number) != math.inf:
                raise self.error("this number is outside the range of FP32", node)
            return
        low = 0 if dtype.kind == "uint" else -(1 << (dtype.bits - 1))
        high = (1 << (dtype.bits if dtype.kind == "uint" else dtype.bits - 1)) - 1
        if not low <= number <= high:
            raise self.error(f"{number} does not fit into {dtype}", node)

    def index(self, model: Model, node: ast.AST, what: str) -> Value:
        """An index operand: an offset, a bound, a size."""
        if isinstance(model, (bool, float)):
            raise self.error(f"{what} must be a whole number, not {describe(model)}", node)
        if is_scalar(model) and not model.type.dtype.is_integer:
            raise self.error(f"{what} must be a whole number, but is {model.type.dtype}", node)
        return self.scalar(model, INDEX, node, what)

    def dimension(self, dim: DynDim, node: ast.AST) -> Value:
        """The size that a dynamic dimension has in this call: read from the first parameter that has it."""
        for param in self.function.params:
            if isinstance(param.type, TensorType) and dim in param.type.shape:
                # Types of whole tensors mention it, so that it has to be known everywhere.
                start = Block() if self.whole else self.builder.block
                with self.at(node), self.builder.inside(start):
                    axis = param.type.shape.index(dim)
                    size = self.builder.value("tensor.dim", (param.value,), dim.name, axis=axis)
                if self.whole:
                    self.function.body.ops[:0] = start.ops
                return size
        raise self.error(f"no tensor parameter of {self.function.name} has the dimension {dim.name}", node)

    def known(self, model: Model, node: ast.AST, what: str) -> int:
        """A whole number that must be known while compiling."""
        if is_scalar(model):
            model = simplified(model)
        if not is_whole(model):
            raise self.error(f"{what} must be a whole number known while compiling, not {describe(model)}", node)
        number: int = model
        return number

    def default_dtype(self, model: Model) -> DType:
        """The dtype a known number gets when nothing else decides."""
        return BOOL if isinstance(model, bool) else INDEX if isinstance(model, int) else FP32

    def common_dtype(self, a: DType, b: DType) -> DType | None:
        """The dtype in which two scalars are computed together; ``None`` when they do not mix."""
        if a == b:
            return a
        if a.is_integer and b.is_integer:
            if INDEX in (a, b):
                return INDEX
            if a.kind == b.kind:
                return a if a.bits >= b.bits else b
            return INT64
        if a.is_float and b.is_float:
            return FP32
        return None

    # Tensors and tiles

    def dims(self, tensor: Value, node: ast.AST) -> tuple[Model, ...]:
        """The dimensions of a tensor as models; a dynamic one is read from the first parameter that has it."""
        type = tensor.type
        if not isinstance(type, TensorType):
            raise self.error(f"{describe(tensor)} has no dimensions", node)
        sizes: list[Model] = []
        for axis, dim in enumerate(type.shape):
            if isinstance(dim, DynDim) and any(
                isinstance(p.type, TensorType) and dim in p.type.shape for p in self.function.params
            ):
                sizes.append(self.dimension(dim, node))
            elif isinstance(dim, DynDim):
                with self.at(node):
                    sizes.append(self.builder.value("tensor.dim", (tensor,), dim.name, axis=axis))
            else:
                sizes.append(dim)
        return tuple(sizes)

    def root(self, tensor: Value) -> Value:
        """The parameter or workspace that a handle is a view of."""
        while (op := defining_op(tensor)) is not None and op.name in _SAME_MEMORY:
            tensor = op.operands[0]
        return tensor

    def direction(self, tensor: Value) -> Direction:
        """How a handle may be used: as its parameter is declared; workspaces may be read and written."""
        root = self.root(tensor)
        for param in self.function.params:
            if param.value is root:
                return param.direction
        return self.directions.get(id(root), Direction.InOut)

    def check_reads(self, tensor: Value, node: ast.AST) -> None:
        """Refuse to read an output of a kernel."""
        if self.function.kind is FunctionKind.INCORE and self.direction(tensor) is Direction.Out:
            name = self.root(tensor).name
            raise self.error(f"{name} is an output (pl.Out); to read it as well, annotate it with pl.InOut", node)

    def check_writes(self, tensor: Value, node: ast.AST) -> None:
        """Refuse to write an input."""
        if self.direction(tensor) is Direction.In:
            name = self.root(tensor).name
            raise self.error(f"{name} is an input; to write it, annotate it with pl.Out or pl.InOut", node)

    def need_core(self, what: str, node: ast.AST) -> None:
        """Refuse tile work in an entry."""
        if self.whole:
            raise self.error(
                f"{what} is not supported where tensors do not fit on chip as a whole", node, TileCodeError
            )
        if not self.on_core:
            raise self.syntax_error(
                f"{what} stands outside a scope; put it into `with pl.at(level=pl.Level.CORE_GROUP):` "
                "or into a function under @pl.jit.incore",
                node,
            )

    def rebind(self, old: Value, new: Value) -> None:
        """From here on every name of a tile stands for the tile that it has become."""
        for frame in self.callers():
            for name, model in frame.env.items():
                if model is old:
                    frame.env[name] = new

    def outer_names(self) -> list[tuple[Frame, dict[str, Model]]]:
        """What the names of the callers stand for, so that it can be restored."""
        return [(frame, dict(frame.env)) for frame in self.callers() if frame is not self]

    @staticmethod
    def restore_names(saved: list[tuple[Frame, dict[str, Model]]]) -> None:
        """Let the names of callers stand for what they stood for."""
        for frame, names in saved:
            frame.env = dict(names)

    def held_outside(self, value: Value) -> bool:
        """Whether a name of a caller stands for a value."""
        return any(model is value for _, names in self.outer_names() for model in names.values())

    def tile(self, model: Model, node: ast.AST, what: str) -> Value:
        """A tile operand; a tensor of known shape is loaded as a whole."""
        if is_tile(model):
            value: Value = model
            return value
        if not is_tensor(model):
            raise self.error(f"{what} must be a tile or a tensor, not {describe(model)}", node)
        self.check_reads(model, node)
        self.program.loads_of_tensors += 1
        type = model.type
        *leading, rows, cols = (1, *type.shape) if type.rank == 1 else type.shape
        if not isinstance(rows, int) or not isinstance(cols, int) or any(dim != 1 for dim in leading):
            raise self.divisible(
                f"{what} is {describe(model)}; only tensors of known shape with two dimensions are loaded as a whole: "
                "use pl.load with offsets, a shape and valid_shape",
                node,
            )
        with self.at(node):
            tile = self.builder.load(model, [0] * type.rank, (rows, cols), hint=model.name)
        self.program.taken_whole.append((tile, self, node))
        return tile

    def valid_shape(self, model: Model, shape: tuple[int, int], rank: int, node: ast.AST) -> tuple[Valid, Valid]:
        """Valid lengths from a list; ``None`` means the whole shape."""
        if model is None:
            return shape
        if not isinstance(model, tuple) or len(model) not in (2, rank):
            raise self.error(f"valid_shape must be a list of {max(rank, 2)} sizes, not {describe(model)}", node)
        sizes = [simplified(self.index(m, node, "a valid length")) for m in model]
        if any(size != 1 for size in sizes[:-2]):
            raise self.error("the leading sizes of valid_shape must be 1", node)
        rows, cols = (1, *sizes)[-2:]
        return rows, cols

    def op(self, name: str, operands: Sequence[Value], node: ast.AST, types: Sequence[Type] = (), **attrs: Any) -> Op:
        """Append an operation with the place of ``node``."""
        with self.at(node):
            return self.builder.op(name, operands, attrs, types)


def tile_type(value: Value) -> TileType:
    """The type of a value that is known to be a tile."""
    if not isinstance(value.type, TileType):
        raise TypeError(f"{value!r} is not a tile")
    return value.type
