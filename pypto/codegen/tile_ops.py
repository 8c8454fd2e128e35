"""The operations on tiles as instructions of ptoas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from pypto.codegen.buffers import Buffer, BufferPlan, is_tile
from pypto.codegen.lowering import lowering_of
from pypto.codegen.scalars import Const, Expr, Leaf, binary
from pypto.codegen.tensors import TaskArguments, TensorWindow
from pypto.codegen.text import KernelText, Tile
from pypto.codegen.tiles import CPP_NAMES, WRITTEN, Frame, element_name
from pypto.ir.errors import IRError
from pypto.ir.nodes import Op, Value
from pypto.ir.ops.lowering import Form, Instruction, Template
from pypto.ir.ops.registry import definition
from pypto.ir.types import FP32, INDEX, MemorySpace, ScalarType, TileType, Valid

_ZERO, _ONE = Const(0, INDEX), Const(1, INDEX)
# Where ptoas is shown that a read of an element puts something.
_SCRATCH = Frame(MemorySpace.Vec, FP32, 1, 8)
_MATRIX_SCRATCH = Frame(MemorySpace.Acc, FP32, 16, 16)
_ROUND_MODES = {"none": "RINT", "rint": "RINT", "round": "ROUND", "floor": "FLOOR", "ceil": "CEIL", "trunc": "TRUNC"}


@dataclass
class Values:
    """What the values of a kernel have become.

    Attributes:
        numbers: scalars.
        windows: tensors and views.
        tiles: tiles, by buffer.
        names: of the tensor parameters, for messages.
    """

    plan: BufferPlan
    arguments: TaskArguments
    names: tuple[str, ...]
    numbers: dict[Value, Expr] = field(default_factory=dict)
    windows: dict[Value, TensorWindow] = field(default_factory=dict)
    tiles: dict[Buffer, Tile] = field(default_factory=dict)

    def tile(self, value: Value) -> Tile:
        """The tile that a value stands in."""
        return self.tiles[self.plan.buffer[value]]


class TileOps:
    """Writes one operation at a time."""

    def __init__(self, text: KernelText, values: Values) -> None:
        self.text = text
        self.values = values
        self._bases: dict[tuple[int, bool, tuple[int, ...]], str] = {}
        self._special: dict[str, Callable[[Op], None]] = {
            "tile.create": self._create,
            "tile.full": self._full,
            "tile.load": self._load,
            "tile.store": self._store,
            "tile.move": self._move,
            "tile.slice": self._slice,
            "tile.reshape": self._reshape,
            "tile.set_validshape": self._set_validshape,
            "tile.transpose": self._transpose,
            "tile.read": self._read_element,
            "tile.mgather": self._mgather,
            "tile.gather_row": self._gather_row,
            "tile.extract": self._extract,
            "tile.transpose_view": self._transpose,
            "tile.mscatter": self._mscatter,
            "tile.notify": self._signal,
            "tile.wait": self._signal,
        }

    def write(self, op: Op) -> None:
        """Write a ``tile`` operation.

        Raises:
            IRError: it has no lowering, or not for these types.
        """
        lowering = lowering_of(op)
        if op.name in _SIZED:
            self._require_valid(op)
        if op.name == "tile.cast":
            _check_rounding(op)
        if op.name in self._special:
            self._special[op.name](op)
        elif isinstance(lowering, Template):
            self._template(op, lowering)
        elif lowering is not None:
            self._instructions(op, lowering)
        else:
            raise IRError(f"not supported: {definition(op.name).label} has no lowering yet", op.loc)

    def length(self, valid: Valid) -> Expr:
        """A valid length as an expression."""
        return self.text.valid_number(valid, self.values.numbers)

    def _require_valid(self, op: Op) -> None:
        type = tile_type(op.result)
        for valid, size in zip(type.valid, type.shape, strict=True):
            message = f"{definition(op.name).label}: a valid length is outside of 0 to {size}"
            self.text.require(_ZERO, self.length(valid), Const(size, INDEX), message)

    def _instructions(self, op: Op, lowering: Sequence[Instruction]) -> None:
        result = self.values.tile(op.result)
        names = {o.name: v for o, v in zip(definition(op.name).operands, op.operands, strict=True)}
        for instruction in lowering:
            tiles: dict[str, Tile] = {}
            for name in instruction.ins:
                if name == "result":
                    tiles[name] = result
                elif is_tile(names[name]):
                    tiles[name] = self.values.tile(names[name])
            if result.frame.column and not instruction.column:
                self._as_row(op, instruction, result, tiles, names)
            else:
                self._instruction(op, instruction, result, tiles, names)

    def _template(self, op: Op, template: Template) -> None:
        """A call of one of our own templates; what the result is an update of is copied into it before."""
        known = definition(op.name)
        results = [self.values.tile(r) for r in op.results]
        operands = {o.name: v for o, v in zip(known.operands, op.operands, strict=False)}
        tiles: list[Tile] = []
        arguments: list[Tile | str] = []
        if known.inplace is not None:
            source = self.values.tile(op.operands[known.inplace])
            if source.name != results[0].name:
                self.text.copy(results[0], source, op)
            tiles.append(results[0])
        for name in template.ins:
            base, _, side = name.partition(".")
            if side:
                rows, cols = tile_type(op.results[0] if base == "result" else operands[base]).shape
                arguments.append(str(rows if side == "rows" else cols))
            elif base not in operands:
                arguments.append(str(int(op.attrs.get(base, 0))))
            elif known.operands[-1].variadic and base == known.operands[-1].name:
                arguments += [self.values.tile(v) for v in op.operands[len(known.operands) - 1 :]]
            elif is_tile(operands[base]):
                arguments.append(self.values.tile(operands[base]))
            else:
                arguments.append(self.number(operands[base]))
        self.text.template(template.name.format(**op.attrs), results, tiles, arguments)

    def number(self, value: Value) -> str:
        """C++ text of a number."""
        return self.text.side.text(self.values.numbers[value])

    def _read_element(self, op: Op) -> None:
        """An element of a tile as a number; ptoas is shown a reshape into a tile that nobody uses."""
        source, row, col = op.operands
        unused = self._unused(False)
        arguments: list[Tile | str] = [self.values.tile(source), self.number(row), self.number(col)]
        self._read(op, "read", unused, arguments)

    def read_tensor(self, op: Op, on_matrix_core: bool) -> None:
        """An element of a tensor as a number."""
        window, indices = self.values.windows[op.operands[0]], [self.values.numbers[v] for v in op.operands[1:]]
        starts = [_ZERO] * window.hidden + indices
        message = f"pl.read reads outside of {self.values.names[window.param]}"
        for start, dim in zip(starts, window.dims, strict=True):
            self.text.require(_ZERO, start, binary("sub", dim, _ONE), message)
        unused = self._unused(on_matrix_core)
        self._read(op, "read_memory", unused, [f"$a{window.param}", self.text.side.text(_flat(window, starts))])

    def _unused(self, on_matrix_core: bool) -> Tile:
        """A tile that ptoas is shown to be written and that nobody reads."""
        frame = _MATRIX_SCRATCH if on_matrix_core else _SCRATCH
        return self.text.allocate(frame, (frame.rows, frame.cols), self.values.numbers, "u")

    def nothing(self, on_matrix_core: bool) -> None:
        """A call that does nothing."""
        self.text.template("nothing", [self._unused(on_matrix_core)], [], [])

    def _read(self, op: Op, template: str, unused: Tile, arguments: Sequence[Tile | str]) -> None:
        type = op.result.type
        if not isinstance(type, ScalarType):
            raise TypeError(f"{op.name} must give a number")
        read = self.text.side.read(type.dtype)
        self.text.template(template, [unused], [], arguments, read)
        self.values.numbers[op.result] = Leaf("read", read.slot, type.dtype)

    def _mgather(self, op: Op) -> None:
        """Elements or rows of a tensor at the positions that a tile names."""
        name = "gather_memory_rows" if op.attrs["rows"] else "gather_memory"
        memory, index = self._matrix(op, op.operands[0]), self.values.tile(op.operands[1])
        arguments: list[Tile | str] = [index, *memory, str(op.attrs["outside"])]
        self.text.template(name, [self.values.tile(op.result)], [], arguments)

    def _gather_row(self, op: Op) -> None:
        """A block of a tensor into a tile, at a place of it."""
        target, source = self.values.tile(op.result), self.values.tile(op.operands[0])
        if target.name != source.name:
            self.text.copy(target, source, op)
        window = self.values.windows[op.operands[1]]
        starts = [_ZERO] * window.hidden + [self.values.numbers[v] for v in op.operands[6:]]
        extents = [_ONE] * (len(starts) - 2) + [self.values.numbers[v] for v in op.operands[4:6]][-len(starts) :]
        message = f"pl.gather_row reads outside of {self.values.names[window.param]}"
        for start, extent, dim in zip(starts, extents, window.dims, strict=True):
            self.text.require(_ZERO, start, None, message)
            self.text.require(None, binary("add", start, extent), dim, message)
        stride = self.text.side.text(window.strides[-2] if len(starts) > 1 else _ZERO)
        memory = f"$a{window.param} + {self.text.side.text(_flat(window, starts))}"
        numbers = [self.number(v) for v in op.operands[2:6]]
        self.text.template(
            "insert_memory", [target], [target], [memory, stride, *numbers, str(int(op.attrs["turned"]))]
        )

    def _mscatter(self, op: Op) -> None:
        """Elements of a tile into a tensor; the source takes the place of a result."""
        source, index = (self.values.tile(v) for v in op.operands[:2])
        arguments: list[Tile | str] = [index, *self._matrix(op, op.operands[2])]
        if op.attrs["rows"]:
            arguments.append(str(tile_type(op.operands[1]).shape[1]))
        self.text.template(
            "scatter_memory_rows" if op.attrs["rows"] else "scatter_memory", [source], [source], arguments
        )

    def _signal(self, op: Op) -> None:
        """A cell that ranks signal through; ptoas is shown a reshape into a tile that nobody uses."""
        window = self.values.windows[op.operands[0]]
        number, *indices = (self.values.numbers[v] for v in op.operands[1:])
        for index, dim in zip(indices, window.dims, strict=True):
            message = f"{definition(op.name).label} reaches outside of {self.values.names[window.param]}"
            self.text.require(_ZERO, index, binary("sub", dim, _ONE), message)
        arguments: list[Tile | str] = [
            f"$a{window.param}",
            self.text.side.text(_flat(window, indices)),
            self.text.side.text(number),
            str(int(op.attrs["add"] if op.name == "tile.notify" else op.attrs["equal"])),
        ]
        self.text.template("notify" if op.name == "tile.notify" else "wait", [self._unused(False)], [], arguments)

    def _matrix(self, op: Op, tensor: Value) -> list[str]:
        """First element, rows, elements between rows, and columns of a tensor."""
        window = self.values.windows[tensor]
        dims = [window.length(axis) for axis in range(len(window.dims) - window.hidden)]
        start = _flat(window, [_ZERO] * len(window.dims))
        rows, stride = (dims[-2], window.strides[-2]) if len(dims) > 1 else (_ONE, dims[-1])
        for dim in dims[:-2]:  # without gaps: only views have some
            rows = binary("mul", dim, rows)
        return [f"$a{window.param} + {self.text.side.text(start)}", *map(self.text.side.text, (rows, stride, dims[-1]))]

    def _as_row(
        self, op: Op, instruction: Instruction, target: Tile, tiles: dict[str, Tile], names: dict[str, Value]
    ) -> None:
        """Work on a column as one row, in the memory of the target."""
        (source,) = tiles
        if tiles[source].name != target.name:
            self.text.copy(target, tiles[source], op)
        row = self.text.allocate(target.frame.as_row(), (1, target.valid[0]), self.values.numbers, "r")
        self.text.reinterpret(row, target)
        self._instruction(op, instruction, row, {source: row}, names)
        self.text.reinterpret(target, row)

    def _instruction(
        self, op: Op, instruction: Instruction, target: Tile, tiles: dict[str, Tile], names: dict[str, Value]
    ) -> None:
        operands: list[tuple[str, str]] = []
        element = target.frame.dtype
        for name in instruction.ins:
            if name in tiles:
                operands.append((tiles[name].name, tiles[name].type))
            else:
                number = self.values.numbers[names[name]]
                operands.append(self.text.tile_scalar(number, instruction.scalar or element, element, op.loc))
        if instruction.form is Form.GROUPED:
            ins = f"{', '.join(n for n, _ in operands)} : {', '.join(t for _, t in operands)}"
        elif instruction.form is Form.BARE_SCALAR:
            ins = ", ".join([f"{operands[0][0]} : {operands[0][1]}", *(n for n, _ in operands[1:])])
        else:
            ins = ", ".join(f"{n} : {t}" for n, t in operands)
        self.text.call(
            instruction.op,
            ins,
            target.typed,
            suffix=instruction.suffix,
            printed=instruction.call,
            name=instruction.rename,
            replace={2: _rounding(op)} if instruction.op == "tcvt" else None,
        )

    def _create(self, op: Op) -> None:
        if tile_type(op.result).memory is MemorySpace.Mat:
            self.text.template("fill", [self.values.tile(op.result)], [], ["0"])
        elif fills(op):
            dtype = tile_type(op.result).dtype
            self._fill(op, Const(0.0 if dtype.is_float else 0, dtype))

    def _full(self, op: Op) -> None:
        self._fill(op, self.values.numbers[op.operands[0]])

    def _fill(self, op: Op, value: Expr) -> None:
        target = self.values.tile(op.result)
        element = target.frame.dtype
        if element.nbytes > 4:
            # ptoas fills nothing as large.
            self.text.template("fill", [target], [], [self.text.side.text(value)])
        elif element in WRITTEN:
            name, type = self.text.tile_scalar(value, element, element, op.loc)
            self.text.call("texpands", f"{name} : {type}", target.typed)
        else:
            name, type = self.text.blank_scalar(element)
            shown = f"static_cast<{CPP_NAMES[element]}>({self.text.side.text(value)})"
            self.text.call("texpands", f"{name} : {type}", target.typed, replace={1: shown})

    def _move(self, op: Op) -> None:
        target, source = self.values.tile(op.result), self.values.tile(op.operands[0])
        if target.name != source.name:
            self.text.call("tmov", source.typed, target.typed)

    def _load(self, op: Op) -> None:
        target = self.values.tile(op.result)
        transposed = bool(op.attrs.get("transposed", False))
        if target.frame.memory is MemorySpace.Bias:
            frame = replace(target.frame, memory=MemorySpace.Mat, plain=True)
            row = self.text.allocate(frame, target.valid, self.values.numbers, "b")
            self.text.call("tload", self._window(op, op.operands[0], op.operands[1:], row, transposed), row.typed)
            self.text.call("tmov", row.typed, target.typed)
            return
        self.text.call("tload", self._window(op, op.operands[0], op.operands[1:], target, transposed), target.typed)

    def _store(self, op: Op) -> None:
        source = self.values.tile(op.operands[0])
        added = op.attrs.get("atomic", "none") == "add"
        target = self._window(op, op.operands[1], op.operands[2:], source, False)
        self.text.call("tstore", source.typed, target, name="pypto::bounds::add" if added else None)

    def _window(self, op: Op, tensor: Value, offsets: Sequence[Value], tile: Tile, transposed: bool) -> str:
        """A view of global memory that has exactly the valid sizes of a tile; checked to lie inside its tensor."""
        window = self.values.windows[tensor]
        starts = [_ZERO] * window.hidden + [self.values.numbers[v] for v in offsets]
        if transposed and len(starts) < 2:
            raise IRError("not supported: a tensor of one dimension cannot be loaded transposed", op.loc)
        lengths = [self.length(v) for v in tile.valid]
        across = lengths[::-1] if transposed else lengths
        extents = [_ONE] * (len(starts) - 2) + across[-len(starts) :]
        verb = "reads" if op.name == "tile.load" else "writes"
        message = f"{definition(op.name).label} {verb} outside of {self.values.names[window.param]}"
        shifted = [binary("add", o, s) for o, s in zip(window.offsets, starts, strict=True)]
        whole = self.values.arguments.window(window.param)
        # A view may itself reach outside of its tensor.
        held = [(starts, window.dims)]
        if window != whole:
            held.append((shifted, tuple(whole.dims[axis] for axis in window.order)))
        for firsts, dims in held:
            for first, extent, dim in zip(firsts, extents, dims, strict=True):
                self.text.require(_ZERO, first, None, message)
                self.text.require(None, binary("add", first, extent), dim, message)
        places = [self.text.index(s, op) for s in shifted]
        if transposed:
            places[-2], places[-1] = places[-1], places[-2]
        base = self._base(window, transposed)
        zero, one = self.text.index_constant(0), self.text.index_constant(1)
        rows, cols = (self.text.index(length, op) for length in lengths)
        name = self.text.fresh("w")
        element = element_name(window.dtype, op.loc)
        # The type holds the sizes that are known; it wants some number for the others.
        shown = [
            v if isinstance(v, int) else size
            for v, size in zip(tile.valid, (tile.frame.rows, tile.frame.cols), strict=True)
        ]
        type = f"!pto.tile_view<1x1x1x{shown[0]}x{shown[1]}x{element}>"
        self.text.line(
            f"{name} = pto.subview {base}, offsets = [{', '.join([zero] * (5 - len(places)) + places)}], "
            f"sizes = [{one}, {one}, {one}, {rows}, {cols}] : !pto.tensor_view<5x{element}> -> {type}"
        )
        return f"{name} : {type}"

    def _base(self, window: TensorWindow, transposed: bool) -> str:
        """The five-dimensional view of a whole tensor parameter, made once at the start of the function."""
        key = (window.param, transposed, window.order)
        if key not in self._bases:
            whole = self.values.arguments.window(window.param)
            shape, strides = ([field[axis] for axis in window.order] for field in (whole.dims, whole.strides))
            if transposed:
                shape[-2], shape[-1] = shape[-1], shape[-2]
                strides[-2], strides[-1] = strides[-1], strides[-2]
            missing = 5 - len(shape)
            sizes = ", ".join(self.text.index(e) for e in [_ONE] * missing + shape)
            steps = ", ".join(self.text.index(e) for e in [strides[0]] * missing + strides)
            turned = "" if window.order == whole.order else "_" + "".join(map(str, window.order))
            name = f"%v{window.param}{'t' if transposed else ''}{turned}"
            self.text.base_lines.append(
                f"    {name} = pto.make_tensor_view %a{window.param}, shape = [{sizes}] strides = [{steps}] "
                f": !pto.tensor_view<5x{element_name(window.dtype)}>"
            )
            self._bases[key] = name
        return self._bases[key]

    def _slice(self, op: Op) -> None:
        target, source = self.values.tile(op.result), self.values.tile(op.operands[0])
        starts = [self.values.numbers[v] for v in op.operands[1:]]
        for start, length, whole in zip(starts, target.valid, source.valid, strict=True):
            self.text.require(_ZERO, start, None, "pl.slice starts before its tile")
            end = binary("add", start, self.length(length))
            self.text.require(None, end, self.length(whole), "pl.slice ends behind the valid part of its tile")
        row, col = (self.text.index(s, op) for s in starts)
        self.text.call("textract", f"{source.name}[{row}, {col}] : {source.type}", target.typed)

    def _extract(self, op: Op) -> None:
        row, col = (self.number(v) for v in op.operands[1:])
        arguments: list[Tile | str] = [self.values.tile(op.operands[0]), row, col]
        self.text.template("extract", [self.values.tile(op.result)], [], arguments)

    def _reshape(self, op: Op) -> None:
        target, source = self.values.tile(op.result), self.values.tile(op.operands[0])
        shapes = [tile_type(value).shape for value in (op.result, op.operands[0])]
        filled_up = any(
            1 not in shape and frame.cols != shape[1]
            for shape, frame in zip(shapes, (target.frame, source.frame), strict=True)
        )
        sizes = {frame.rows * frame.cols for frame in (target.frame, source.frame)}
        if filled_up or len(sizes) > 1:
            (rows, cols), (_, source_cols) = shapes
            self.text.template("reshape", [target], [], [source, str(source_cols), str(rows), str(cols)])
        else:
            self._copy_reinterpreted(op, target, source)

    def _set_validshape(self, op: Op) -> None:
        self._copy_reinterpreted(op, self.values.tile(op.result), self.values.tile(op.operands[0]))

    def _copy_reinterpreted(self, op: Op, target: Tile, source: Tile) -> None:
        """Copy the source's memory, seen as the target's type."""
        seen = self.text.allocate(target.frame, target.valid, self.values.numbers, "r")
        self.text.reinterpret(seen, source)
        self.text.copy(target, seen, op)
        self.text.reinterpret(source, seen)

    def _transpose(self, op: Op) -> None:
        # ptoas has no transposition that works, and takes any shapes in a reshape.
        target, source = self.values.tile(op.result), self.values.tile(op.operands[0])
        self.text.call("treshape", source.typed, target.typed, name="PYPTO_TRANSPOSE")


# Operations whose valid lengths are arguments of the call.
_SIZED = frozenset(
    f"tile.{name}"
    for name in (
        "create",
        "full",
        "load",
        "slice",
        "set_validshape",
        "fillpad_expand",
        "tri",
        "random",
        "ci",
        "mgather",
    )
)


def _flat(window: TensorWindow, starts: Sequence[Expr]) -> Expr:
    """How many elements an index lies behind the first element of its parameter."""
    flat: Expr = _ZERO
    for offset, start, stride in zip(window.offsets, starts, window.strides, strict=True):
        flat = binary("add", flat, binary("mul", binary("add", offset, start), stride))
    return flat


def fills(op: Op) -> bool:
    """Whether a created tile is filled: ptoas cannot read what was never written."""
    return tile_type(op.result).memory in (MemorySpace.Vec, MemorySpace.Acc, MemorySpace.Mat)


def tile_type(value: Value) -> TileType:
    """Type of a value that is a tile."""
    if not isinstance(value.type, TileType):
        raise TypeError(f"{value.name} is no tile")
    return value.type


def _check_rounding(op: Op) -> None:
    """Refuse a rounding mode that a conversion would ignore: to floating-point types they round to nearest."""
    mode, target = op.attrs["mode"], tile_type(op.result).dtype
    if target.is_float and mode in ("floor", "ceil", "trunc"):
        raise IRError(
            f"not supported: mode {mode} in a conversion to {target}; it applies to whole numbers only", op.loc
        )


def _rounding(op: Op) -> str:
    """The rounding mode of a conversion, in C++."""
    return f"pto::RoundMode::CAST_{_ROUND_MODES[op.attrs['mode']]}"
