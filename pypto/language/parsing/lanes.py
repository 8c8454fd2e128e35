"""Regions that both vector cores of a block run: ``for lane in pl.split_aiv(2, mode=...):``.

A region is written out once for each of the two cores. Under ``UP_DOWN`` and ``LEFT_RIGHT`` each has half of the rows
or columns: ``pl.aiv_shard`` gives a core its half of a tile, ``pl.aic_gather`` makes one tile of both halves. Where the
body names no half, the compiler may divide it as it likes; here it is written out once, with tiles of full size.

What a name stands for may differ between the cores after a region. It then stands for `PER_LANE`, and further regions
find the value of each core under `lane_key`.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pypto.ir.errors import IRError
from pypto.ir.nodes import Block, CoreType, FunctionKind, Op, Value
from pypto.ir.ops.registry import definition
from pypto.ir.types import MemorySpace, TensorType, TileType, Valid
from pypto.ir.values import same_value
from pypto.language.annotations import SplitMode
from pypto.language.errors import CompileError, KernelTypeError
from pypto.language.parsing.binding import Bound
from pypto.language.parsing.frame import Frame, tile_type
from pypto.language.parsing.liveness import stored_names
from pypto.language.parsing.model import Model, Unusable, describe
from pypto.language.source import FunctionSource, KernelSource
from pypto.language.stubs import Operation

if TYPE_CHECKING:
    from pypto.language.parsing.statements import Statements

LANES = (0, 1)
PER_LANE = Unusable(
    "has a value of its own on each vector core of pl.split_aiv; use it in such a region of the same scope, make one "
    "tile of both there with pl.aic_gather, or store it into a tensor"
)
_JOINED = Unusable("is made of what both vector cores give: use it behind the region of pl.split_aiv")
_MISSING = Unusable("is not assigned on each vector core of pl.split_aiv; give it a value before")
_AXES = {SplitMode.NONE: None, SplitMode.UP_DOWN: 0, SplitMode.LEFT_RIGHT: 1}
_LINES = ("rows", "columns")
_GENERATORS = ("tile.full", "tile.create", "tile.ci", "tile.tri", "tile.random")
_REDUCED = {"row": 1, "col": 0}
_REDUCTIONS = ("sum", "max", "min", "prod", "argmax", "argmin")


@dataclass
class Lane:
    """The vector core that the current point is for.

    Attributes:
        number: 0 or 1; ``None`` where the region is written out once for both.
        axis: the axis of tiles of which each core has one half; ``None`` when it has tiles of its own.
        block: the block in which the region stands.
        joins: what the first core's calls of ``pl.aic_gather`` made, in order.
        joined: how many of them the second core has completed.
    """

    number: int | None
    axis: int | None
    block: Block
    joins: list[Value] = field(default_factory=list)
    joined: int = 0


def lane_key(name: str, lane: int) -> str:
    """Under which key an environment has the value that a name has on one core; no name is written so."""
    return f"{name}@{lane}"


def base_name(key: str) -> str:
    """The name that a key of an environment belongs to."""
    return key.partition("@")[0]


def set_apart(env: MutableMapping[str, Model], name: str) -> None:
    """Let a name have a value for each core, at first the one that it has for both."""
    if env.get(name) is not PER_LANE:
        for lane in LANES:
            env[lane_key(name, lane)] = env[name]
        env[name] = PER_LANE


def apart(env: MutableMapping[str, Model], before: MutableMapping[str, Model]) -> set[str]:
    """Names whose values differ between the cores, and were others before."""
    found = set()
    for name, model in env.items():
        if model is PER_LANE and name in before:
            keys = [lane_key(name, lane) for lane in LANES]
            if before[name] is not PER_LANE or any(env.get(key) is not before.get(key) for key in keys):
                found.add(name)
    return found


def keys_of_branches(branches: Sequence[dict[str, Model]], before: MutableMapping[str, Model]) -> list[str]:
    """Let names that one branch sets apart be so in every branch; the keys of their values."""
    found: list[str] = []
    made = {name for env in branches for name, model in env.items() if model is PER_LANE and name not in before}
    for name in sorted(made.union(*(apart(env, before) for env in branches))):
        models = [env.get(name, _MISSING) for env in branches]
        if all(model is PER_LANE or not isinstance(model, Unusable) for model in models):
            for env in branches:
                set_apart(env, name)
            found += [lane_key(name, lane) for lane in LANES]
    return found


# Regions


def parse_region(statements: Statements, body: Sequence[ast.stmt], bound: Bound, variable: str) -> None:
    """Parse a region; afterwards names stand for what it made of them."""
    frame = statements.frame
    mode = bound["mode"]
    if not isinstance(mode, SplitMode):
        raise frame.error(f"pl.split_aiv: mode must be one of pl.SplitMode, not {describe(mode)}", bound.place("mode"))
    if bound["n"] != 2:
        raise frame.error("pl.split_aiv: n must be 2: a block has two vector cores", bound.place("n"))
    if frame.lane is not None:
        raise frame.syntax_error("pl.split_aiv cannot stand inside another pl.split_aiv", bound.node)
    axis = _AXES[mode]
    uses = _Uses(frame, variable)
    uses.look(body)
    halves = axis is None or uses.halves or any(frame.env.get(name) is PER_LANE for name in uses.read)
    if halves or uses.lane:
        frame.need_core(bound.label, bound.node)
        depends = uses.depending(body, axis)
        made = _each(statements, body, axis, variable, depends)
    else:
        if not frame.whole:
            frame.need_core(bound.label, bound.node)
        made = _both(statements, body, axis, variable)
    if axis is None:
        return
    try:
        for op in made:
            _check_halved(op, axis, mode)
            if not halves:
                _check_divided(op, axis, mode, uses.lane)
    except IRError as error:
        raise _at_source(frame, error, bound.node) from None


def _at_source(frame: Frame, error: IRError, node: ast.AST) -> CompileError:
    for function in frame.program.closure.functions:
        if error.loc is not None and function.kernel.qualname == error.loc.function:
            return function.kernel.text.error(error.message, error.loc, KernelTypeError)
    return frame.error(error.message, node)


def _both(statements: Statements, body: Sequence[ast.stmt], axis: int | None, variable: str) -> list[Op]:
    frame = statements.frame
    block = frame.builder.block
    start = len(block.ops)
    frame.lane = Lane(None, axis, block)
    try:
        statements.block(body)
    finally:
        frame.lane = None
    frame.env[variable] = _ended()
    return list(Block([], block.ops[start:]).walk())


def _each(
    statements: Statements, body: Sequence[ast.stmt], axis: int | None, variable: str, depends: Collection[str]
) -> list[Op]:
    """The region for one core after the other, each with tiles and numbers of its own."""
    frame = statements.frame
    block, before, outer = frame.builder.block, dict(frame.env), frame.outer_names()
    start = len(block.ops)
    joins: list[Value] = []
    after: list[dict[str, Model]] = []
    names: list[list[dict[str, Model]]] = []
    try:
        for number in LANES:
            frame.restore_names(outer)
            frame.lane = Lane(number, axis, block, joins)
            frame.env = {name: _own(before, name, number) for name in before}
            frame.env[variable] = number
            statements.block(body)
            after.append(frame.env)
            names.append([env for _, env in frame.outer_names()])
    finally:
        frame.lane = None
    for first, second in zip(*names, strict=True):
        for name in first:
            if first[name] is not second[name]:
                raise frame.syntax_error(
                    f"pl.split_aiv changes {name} of a caller, on each vector core another one; put the region there",
                    body[0],
                )
    frame.env = dict(before)
    _join(frame, before, after, stored_names(body), depends)
    frame.env[variable] = _ended()
    return list(Block([], block.ops[start:]).walk())


def _own(env: MutableMapping[str, Model], name: str, lane: int) -> Model:
    # What a scope made for each core is gone when the scope is.
    return env.get(lane_key(name, lane), PER_LANE) if env[name] is PER_LANE else env[name]


def _ended() -> Unusable:
    return Unusable("is the number of a vector core, and known in its region of pl.split_aiv only")


def _join(
    frame: Frame,
    before: dict[str, Model],
    after: Sequence[dict[str, Model]],
    stored: Collection[str],
    depends: Collection[str],
) -> None:
    """What names stand for behind a region."""
    env = frame.env
    # What is changed in place is so under its other names, too.
    changed = {id(before[name]) for name in depends if isinstance(before.get(name), Value)}
    for name in sorted(name for name in {*stored, *before} if "@" not in name):
        first, second = (there.get(name, _MISSING) for there in after)
        if [first, second] == [_own(before, name, lane) if name in before else _MISSING for lane in LANES]:
            continue
        alike = name not in depends and id(before.get(name)) not in changed
        if first is _JOINED or alike or (first == second and type(first) is type(second)):
            env[name] = second
            continue
        for lane, model in zip(LANES, (first, second), strict=True):
            env[lane_key(name, lane)] = model
        env[name] = PER_LANE


class _Uses:
    """What a region does with the number of its core, also in functions that it calls."""

    def __init__(self, frame: Frame, variable: str) -> None:
        self.frame = frame
        self.variable = variable
        self.lane = False
        self.halves = False
        self.read: set[str] = set()

    def look(self, body: Sequence[ast.stmt]) -> None:
        """Note what some statements use."""
        for node in (node for statement in body for node in ast.walk(statement)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self.read.add(node.id)
                self.lane |= node.id == self.variable
        names = set(_called(self.frame, self.frame.source, body))
        self.lane |= "get_subblock_idx" in names
        self.halves = bool(names & {"aiv_shard", "aic_gather"})

    def depending(self, body: Sequence[ast.stmt], axis: int | None) -> set[str]:
        """Names whose values may differ between the cores, found by what assignments read."""
        found = {self.variable, *(name for name, model in self.frame.env.items() if model is PER_LANE)}
        while True:
            size = len(found)
            for statement in body:
                self._spread(statement, found, axis, False)
            if len(found) == size:
                return found

    def _spread(self, node: ast.stmt, found: set[str], axis: int | None, inside: bool) -> None:
        heads = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]
        differs = inside or any(self._differs(head, found, axis) for head in heads)
        if differs:
            found.update(name for head in heads for name in _changed(head, isinstance(node, ast.Expr)))
        nested = differs if isinstance(node, (ast.If, ast.For, ast.While)) else inside
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                self._spread(child, found, axis, nested)

    def _differs(self, node: ast.AST, found: set[str], axis: int | None) -> bool:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load) and inner.id in found:
                return True
            if isinstance(inner, ast.Call):
                names = set(_called(self.frame, self.frame.source, [inner]))
                if "get_subblock_idx" in names or (axis is not None and "aiv_shard" in names):
                    return True
        return False


def _changed(head: ast.AST, effect: bool) -> Iterator[str]:
    """Names that a part of a statement may change; a call that stands alone may change what it takes."""
    for node in ast.walk(head):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            node = node.value
            if isinstance(node, ast.Name):
                yield node.id
        elif isinstance(node, ast.Name) and (effect or isinstance(node.ctx, ast.Store)):
            yield node.id


def _called(
    frame: Frame, source: FunctionSource, nodes: Sequence[ast.AST], seen: tuple[KernelSource, ...] = ()
) -> Iterator[str]:
    """Names of the operations that are called, also in functions that are spliced."""
    for node in (node for outer in nodes for node in ast.walk(outer)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Name, ast.Attribute)):
            continue
        model = source.values.get(ast.unparse(node.func))
        if isinstance(model, Operation):
            yield model.name
        elif isinstance(model, KernelSource) and model.kind is FunctionKind.INLINE and model not in seen:
            inner = frame.program.closure.of(model)
            yield from _called(frame, inner, model.text.node.body, (*seen, model))


def _check_halved(op: Op, axis: int, mode: SplitMode) -> None:
    """Refuse what has no meaning for halves of tiles."""
    label = f"pl.split_aiv with pl.SplitMode.{mode.name}"
    name = f"tile.{op.attrs['tile']}" if op.name == "tensor.apply" else op.name
    if not name.startswith("tile."):
        return
    short = name.removeprefix("tile.")
    what, _, kind = short.partition("_")
    if kind in _REDUCTIONS and _REDUCED.get(what) == axis:
        raise IRError(
            f"{label}: {short} goes over the {_LINES[axis]}, of which each vector core has one half; divide the other "
            "axis, or use pl.SplitMode.NONE",
            op.loc,
        )
    if name in ("tile.transpose", "tile.transpose_view"):
        raise IRError(f"{label}: a transpose swaps halves of {_LINES[axis]}; use pl.SplitMode.NONE", op.loc)
    if name.startswith(("tile.matmul", "tile.gemv")) or definition(name).core is CoreType.AIC:
        raise IRError(
            f"{label}: products run on the matrix core; move them out of the region, and bring the result in with "
            "pl.aiv_shard",
            op.loc,
        )


def _check_divided(op: Op, axis: int, mode: SplitMode, numbered: bool) -> None:
    """Refuse tiles without halves in a region that names none: odd ones, and those that the core's number chooses."""
    for result in op.results:
        if not isinstance(result.type, (TileType, TensorType)):
            continue
        rank = len(result.type.shape)
        size = result.type.shape[rank - 2 + axis] if rank > 1 - axis else 1
        if size == 1:
            continue
        if numbered and op.name not in _GENERATORS:
            raise IRError(
                f"pl.split_aiv with pl.SplitMode.{mode.name} divides tiles by itself, so that they are not divided by "
                "the number of the core: bring tiles in with pl.aiv_shard, leave the number out, or use "
                "pl.SplitMode.NONE",
                op.loc,
            )
        if isinstance(size, int) and size % 2:
            raise IRError(
                f"pl.split_aiv with pl.SplitMode.{mode.name}: {size} {_LINES[axis]} are not divided between two vector "
                "cores; make them even, or use pl.SplitMode.NONE",
                op.loc,
            )


# Tiles that cross


def shard(frame: Frame, bound: Bound) -> Model:
    """``pl.aiv_shard``: this core's half of a tile, or all of it under ``SplitMode.NONE``."""
    lane, tile = _crossing(frame, bound)
    if lane.axis is None or lane.number is None:
        return tile
    type, axis = tile_type(tile), lane.axis
    size = type.shape[axis]
    if size == 1:
        return tile
    if size % 2:
        raise frame.error(
            f"{bound.label}: {describe(tile)} has {size} {_LINES[axis]}, which are not divided between two vector "
            "cores",
            bound.place("x"),
        )
    half = size // 2
    shape = (half, type.shape[1]) if axis == 0 else (type.shape[0], half)
    start = lane.number * half
    place, length = _part(frame, bound, type.valid[axis], start, half)
    valid = (length, type.valid[1]) if axis == 0 else (type.valid[0], length)
    wanted = TileType(shape, type.dtype, MemorySpace.Vec, valid)
    zero = frame.index(0, bound.node, "an offset")
    places = (place, zero) if axis == 0 else (zero, place)
    return frame.op("tile.slice", [tile, *places], bound.node, (wanted,)).result


def _part(frame: Frame, bound: Bound, valid: Valid, start: int, half: int) -> tuple[Value, Valid]:
    """Where one half starts, at most at the end of what is valid, and how much of it is valid."""
    if isinstance(valid, int):
        length = min(valid - start, half)
        if length <= 0:
            raise frame.error(
                f"{bound.label}: only {valid} are valid, all of them on the first vector core; use pl.SplitMode.NONE",
                bound.place("x"),
            )
        return frame.index(start, bound.node, "an offset"), length
    with frame.at(bound.node):
        build = frame.builder
        place = build.value("arith.min", (build.index(start), valid))
        return place, build.value("arith.min", (build.value("arith.sub", (valid, place)), build.index(half)))


def gather(frame: Frame, bound: Bound) -> Model:
    """``pl.aic_gather``: one tile of the halves of both cores, or the tile itself under ``SplitMode.NONE``."""
    lane, tile = _crossing(frame, bound)
    if lane.axis is None or lane.number is None:
        return tile
    if frame.builder.block is not lane.block:
        raise frame.syntax_error(
            f"{bound.label} stands in a region of pl.split_aiv itself, not in a loop or branch of it", bound.node
        )
    type, axis = tile_type(tile), lane.axis
    half = type.shape[axis]
    zero, start = (frame.index(number, bound.node, "an offset") for number in (0, half))
    if not all(same_value(length, size) for length, size in zip(type.valid, type.shape, strict=True)):
        raise frame.error(
            f"{bound.label}: only tiles that are valid throughout are put together; use pl.fillpad first",
            bound.place("x"),
        )
    if lane.number == 0:
        full = tuple(size * 2 if position == axis else size for position, size in enumerate(type.shape))
        wanted = TileType((full[0], full[1]), type.dtype, MemorySpace.Vec, (full[0], full[1]))
        made = frame.op("tile.create", [], bound.node, (wanted,)).result
        lane.joins.append(frame.op("tile.assemble", [made, tile, zero, zero], bound.node).result)
        return _JOINED
    made, lane.joined = lane.joins[lane.joined], lane.joined + 1
    places = (start, zero) if axis == 0 else (zero, start)
    return frame.op("tile.assemble", [made, tile, *places], bound.node).result


def _crossing(frame: Frame, bound: Bound) -> tuple[Lane, Value]:
    lane = frame.lane
    if lane is None:
        raise frame.syntax_error(f"{bound.label} stands in `for lane in pl.split_aiv(2, mode=...):`", bound.node)
    if bound["span"] is not None:
        raise frame.error(f"{bound.label}: span is not supported", bound.place("span"))
    return lane, frame.tile(bound["x"], bound.place("x"), f"{bound.label}: x")


def subblock(frame: Frame, bound: Bound) -> Model:
    """``pl.get_subblock_idx``: the number of the vector core."""
    return 0 if frame.lane is None else frame.lane.number
