"""What a scope hands on: values that are made in it and used after it stand in workspaces of the entry."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Sequence

from pypto.ir.nodes import Block, Direction, Op, Param, Value
from pypto.ir.passes.shapes import is_elementwise
from pypto.ir.rewrite import last_op
from pypto.ir.types import BOOL, FP32, INDEX, INT32, INT64, DType, MemorySpace, ScalarType, TensorType, TileType, Valid
from pypto.ir.values import same_value, simplified
from pypto.language.parsing import elements
from pypto.language.parsing.frame import Frame, tile_type
from pypto.language.parsing.liveness import read_names, stored_names
from pypto.language.parsing.model import Model, Unusable, describe, is_tasks, is_tensor, is_tile, valid_text

_STORED = (None, MemorySpace.Vec, MemorySpace.Acc)
# What is made of other values alone, so that it can be made again outside of the scope.
_AGAIN = ("tensor.view", "tensor.dim", "tensor.reshape", "tensor.untracked")


class Handover:
    """What one scope is given by earlier ones, and what it hands on.

    Outside of scopes a tile stands in a workspace, and its name for the valid part of that (`Frame.tiles`); a scope
    loads it again. A number is written into a workspace of one element and read again. Numbers and views that follow
    from what the entry has are made again there.

    Args:
        body: the statements of the scope.
        live: the names that are read later; ``None`` where each block of a launch does this, and hands on nothing.
    """

    def __init__(self, frame: Frame, body: Sequence[ast.stmt], live: frozenset[str] | None, node: ast.AST) -> None:
        self.frame = frame
        self.body = body
        self.live = live
        self.node = node
        # Operations for the entry, behind the scope.
        self._after = Block()
        self._loaded: dict[Value, Value] = {}
        self._moved: dict[Value, Model] = {}
        self._inside: set[int] = set()

    def parse(self, parse: Callable[[], None]) -> None:
        """Parse the scope into the current block, which ``parse`` does but for what is given and handed on."""
        frame = self.frame
        if frame.whole:
            # All of it is work of the entry, whose values stay.
            parse()
            return
        self._after, self._loaded, self._moved, self._inside = Block(), {}, {}, set()
        before = dict(frame.env)
        for name in read_names(self.body):
            if name in frame.env:
                frame.env[name] = self._given(frame.env[name])
        parse()
        self._hand_on(before)

    def finish(self, divided: bool) -> None:
        """Append what follows the scope in the entry.

        Args:
            divided: whether the scope was read as work on whole tensors.
        """
        if not divided:
            self.frame.builder.block.ops.extend(self._after.ops)

    def _given(self, model: Model) -> Model:
        """What a name of the entry stands for in the scope."""
        if isinstance(model, tuple):
            return tuple(map(self._given, model))
        if not isinstance(model, Value):
            return model
        frame = self.frame
        type = frame.tiles.get(model)
        if type is not None:
            if model not in self._loaded:
                frame.program.loads_of_tensors += 1
                lengths = [v if isinstance(v, int) else self._given(v) for v in type.valid]
                valid = _length(lengths[0]), _length(lengths[1])
                with frame.at(self.node):
                    made = frame.builder.load(model, [0, 0], type.shape, valid, hint=model.name)
                self._loaded[model] = made
                self._moved[made] = model
            return self._loaded[model]
        if model in frame.numbers:
            if model not in self._loaded:
                self._loaded[model] = made = self._read(frame.numbers[model], model)
                self._moved[made] = model
            return self._loaded[model]
        if model in frame.repeated and isinstance(model.owner, Op):
            # Computed here again, it is seen to be equal to what this scope computes.
            if model not in self._loaded:
                operands = [self._given(operand) for operand in model.owner.operands]
                self._loaded[model] = made = self._copy(model.owner, operands, model)
                self._moved[made] = model
            return self._loaded[model]
        return model

    def _copy(self, op: Op, operands: Sequence[Value], value: Value) -> Value:
        with self.frame.at(self.node):
            made = self.frame.builder.op(op.name, operands, op.attrs, [r.type for r in op.results], hint=value.name)
        made.loc = op.loc
        return made.result

    def _hand_on(self, before: dict[str, Model]) -> None:
        frame = self.frame
        block = frame.builder.block
        for op in block.walk():
            self._inside.add(id(op))
            self._inside.update(map(id, op.regions))
        stored = stored_names(self.body)
        for name, old in before.items():
            if name not in stored:
                frame.env[name] = self._given_back(old, frame.env[name], name)
        for name in list(frame.env):
            if name not in stored:
                if name not in before:
                    del frame.env[name]
            elif self.live is not None and name in self.live:
                frame.env[name] = self._outside(frame.env[name])
            else:
                frame.env[name] = self._gone(frame.env[name])

    def _given_back(self, old: Model, new: Model, name: str) -> Model:
        """What a name stands for after the scope that the scope did not bind anew."""
        if isinstance(old, tuple) and isinstance(new, tuple):
            return tuple(self._given_back(a, b, name) for a, b in zip(old, new, strict=True))
        if new is old or not isinstance(old, Value) or old not in self._loaded:
            return new
        if new not in self._moved:
            # Changed in place: so is what stands in the workspace.
            frame = self.frame
            if self.live is None:
                raise frame.error(
                    f"{name} is a tile that every block of the launch changes; store what each block makes into a "
                    "tensor",
                    self.node,
                )
            with frame.at(self.node):
                frame.builder.store(new, old, [0, 0])
            self._moved[new] = old
        return old

    def _outside(self, model: Model) -> Model:
        """What stands for a model after the scope."""
        if isinstance(model, tuple):
            return tuple(map(self._outside, model))
        if not isinstance(model, Value) or is_tasks(model):
            return model
        if model not in self._moved:
            self._moved[model] = self._handed(model)
        return self._moved[model]

    def _handed(self, value: Value) -> Model:
        if is_tile(value):
            return self._tile(value)
        op = value.owner
        if id(op) not in self._inside:
            return value
        if isinstance(op, Op) and (op.name.startswith("arith.") or op.name in _AGAIN) and self._is_made_again(value):
            return self._again(op, value)
        if is_tensor(value):
            if isinstance(op, Op) and op.name == "tensor.view":
                return self._again(op, value)
            return Unusable("is a view that only its scope has; make it where it is used")
        return self._number(value)

    def _is_made_again(self, value: Value) -> bool:
        """Whether a value follows from what the entry has."""
        op = value.owner
        if id(op) not in self._inside:
            return True
        again = isinstance(op, Op) and (op.name.startswith("arith.") or op.name in _AGAIN)
        return again and all(map(self._is_made_again, op.operands))  # type: ignore[union-attr]

    def _again(self, op: Op, value: Value) -> Model:
        operands = [self._outside(operand) for operand in op.operands]
        missing = next((operand for operand in operands if not isinstance(operand, Value)), None)
        if missing is not None:
            return missing
        with self.frame.builder.inside(self._after):
            made = self._copy(op, operands, value)
        if op.name.startswith("arith."):
            self.frame.repeated.add(made)
        return made

    def _tile(self, tile: Value) -> Model:
        frame, type = self.frame, tile_type(tile)
        if type.memory not in _STORED:
            where = type.memory.value if type.memory is not None else ""
            return Unusable(f"is a tile in {where}, which no scope can hand on; load or move it where it is used")
        lengths = [v if isinstance(v, int) else self._outside(v) for v in type.valid]
        if any(isinstance(length, Unusable) for length in lengths):
            return Unusable("is a tile whose valid lengths only its scope has; store it into a tensor there")
        valid: tuple[Valid, Valid] = (_length(lengths[0]), _length(lengths[1]))
        flat = _is_flat(tile)
        sizes, used = (type.shape[1:], valid[1:]) if flat else (type.shape, valid)
        place, zeros = self._workspace(sizes, type.dtype, tile.name), [0] * len(sizes)
        with frame.at(self.node):
            frame.builder.store(tile, place, zeros)
            handle = place
            if used != sizes:
                with frame.builder.inside(self._after):
                    handle = frame.builder.view(place, zeros, list(used), tile.name)
        frame.tiles[handle] = None if flat else TileType(type.shape, type.dtype, None, valid)
        return handle

    def _number(self, value: Value) -> Model:
        """A number that only the core knows, read by the entry."""
        frame, node = self.frame, self.node
        if not isinstance(value.type, ScalarType):
            return Unusable(f"is {describe(value)} that only its scope has")
        given = value.type.dtype
        dtype = _written_as(given)
        place = self._workspace((1,), dtype, value.name)
        number = value
        if given == BOOL:
            numbers = [frame.scalar(n, INT32, node, value.name) for n in (1, 0)]
            number = frame.op("arith.select", [value, *numbers], node).result
        elif given != dtype:
            number = frame.op("arith.cast", [value], node, (ScalarType(dtype),)).result
        elements.write(frame, place, [frame.index(0, node, value.name)], number, node)
        with frame.builder.inside(self._after):
            made = self._read(place, value)
        frame.numbers[made] = place
        return made

    def _read(self, place: Value, value: Value) -> Value:
        """A number from its workspace, of the type of ``value``."""
        frame, node = self.frame, self.node
        made = frame.op("tensor.read", [place, frame.index(0, node, value.name)], node).result
        if value.type == ScalarType(BOOL):
            zero = frame.scalar(0, INT32, node, value.name)
            made = frame.op("arith.cmp", [made, zero], node, pred="ne").result
        elif made.type != value.type:
            made = frame.op("arith.cast", [made], node, (value.type,)).result
        made.name = value.name
        return made

    def _workspace(self, shape: tuple[int, ...], dtype: DType, name: str) -> Value:
        frame = self.frame
        if frame.outer is None:
            raise TypeError("no entry around the scope")
        with frame.at(self.node), frame.builder.inside(frame.outer):
            return frame.builder.create_tensor(shape, dtype, name)

    def _gone(self, model: Model) -> Model:
        if isinstance(model, tuple):
            return tuple(map(self._gone, model))
        if not isinstance(model, Value) or is_tasks(model):
            return model
        if model in self._moved:
            return self._moved[model]
        if id(model.owner) not in self._inside:
            return model
        return gone(model, "launch" if self.live is None else "scope")


def result_parameter(frame: Frame, tile: Value, node: ast.AST) -> Value:
    """What a device kernel returns that is none of its parameters: a further one, into which it stores the tile."""
    type = tile_type(tile)
    if type.memory not in _STORED or not all(isinstance(length, int) for length in type.valid):
        raise frame.error(
            f"{describe(tile)}{valid_text(tile)} cannot be returned: only tiles in Vec and results of products whose "
            "valid lengths are known while compiling can; store it into a pl.Out parameter",
            node,
        )
    taken = {param.value.name for param in frame.function.params}
    name = next(n for n in (f"result{number or ''}" for number in itertools.count()) if n not in taken)
    flat = _is_flat(tile)
    sizes = type.valid[1:] if flat else type.valid
    value = Value(name, TensorType(sizes, type.dtype), frame.function.body)
    frame.function.params.append(Param(value, Direction.Out))
    with frame.at(node):
        frame.builder.store(tile, value, [0] * len(sizes))
    kept = None if flat else TileType(type.shape, type.dtype, None, type.valid)
    frame.program.tiles_of_results[value] = kept
    return value


def result_workspace(frame: Frame, result: Value, node: ast.AST) -> Value:
    """In the caller, what stands for such a parameter."""
    if not isinstance(result.type, TensorType):
        raise TypeError(f"{result.name} is no tensor")
    with frame.at(node):
        made = frame.builder.create_tensor([*map(_length, result.type.shape)], result.type.dtype, result.name)
    frame.tiles[made] = frame.program.tiles_of_results[result]
    return made


def gone(model: Value, what: str) -> Unusable:
    """What a name stands for that nobody handed on."""
    kind = "tile" if is_tile(model) else "view" if is_tensor(model) else "number"
    if what == "launch":
        return Unusable(f"is a {kind} of each block of a launch; store it into a tensor there, each block into a part")
    return Unusable(f"is a {kind} of a scope that has ended; store it into a tensor there")


def same_tile(frame: Frame, a: Value, b: Value) -> bool:
    """Whether two tensors stand for tiles of one type in scopes."""
    one, other = frame.tiles.get(a), frame.tiles.get(b)
    if one is None or other is None or one.shape != other.shape or one.dtype != other.dtype:
        return False
    return all(same_value(x, y) for x, y in zip(one.valid, other.valid, strict=True))


def keep_tile(frame: Frame, made: Value, *sources: Value) -> None:
    """Note that a tensor which may be any of ``sources`` stands for a tile if each of them does."""
    if all(same_tile(frame, sources[0], source) for source in sources):
        frame.tiles[made] = frame.tiles[sources[0]]


def _is_flat(tile: Value) -> bool:
    """Whether a tile of one row is made element by element of tensors of one dimension, and stands for such a one."""
    found = False
    waiting, seen = [tile], set[Value]()
    while waiting:
        value = waiting.pop()
        op = value.owner
        if value in seen or not is_tile(value):
            continue
        seen.add(value)
        if not isinstance(op, Op):
            # What a loop carries is what it begins with.
            continue
        if op.name == "tile.load":
            source = op.operands[0].type
            if not isinstance(source, TensorType) or source.rank != 1:
                return False
            found = True
        elif op.name in ("scf.for", "scf.if", "scf.while"):
            index = op.results.index(value)
            regions = op.regions if op.name == "scf.if" else op.regions[-1:]
            waiting.extend(last_op(region).operands[index] for region in regions)
            waiting.extend(op.operands[3 + index :][:1] if op.name == "scf.for" else ())
        elif is_elementwise(op.name.removeprefix("tile.")):
            waiting.extend(op.operands)
        else:
            return False
    return found


def _length(length: Model) -> Valid:
    if isinstance(length, Value):
        return simplified(length)
    number: int = length
    return number


def _written_as(dtype: DType) -> DType:
    """The element type in which a number of a dtype goes through memory."""
    if dtype.is_float:
        return FP32
    if dtype == INDEX or dtype.bits > 32 or (dtype.bits == 32 and dtype.kind == "uint"):
        return INT64
    return INT32
