"""Calls of matrix products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pypto.ir.nodes import Block, Value
from pypto.ir.types import BOOL, MemorySpace
from pypto.language.parsing.arguments import (
    dtype_argument,
    flag_argument,
)
from pypto.language.parsing.binding import Bound
from pypto.language.parsing.frame import Frame, tile_type
from pypto.language.parsing.model import (
    Model,
    describe,
    is_scalar,
    is_tile,
)


def _matmul(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    tiles = [frame.tile(bound[name], bound.place(name), f"{bound.label}: {name}") for name in ("lhs", "rhs")]
    flags = {name: flag_argument(frame, bound, name) for name in ("a_trans", "b_trans")}
    made = frame.op("tile.matmul", tiles, bound.node, (), **flags).result
    if bound["out_dtype"] in (None, tile_type(made).dtype):
        return made
    # Vector work: the compiler hands the product on.
    wanted = replace(tile_type(made), dtype=dtype_argument(frame, bound, "out_dtype"), memory=MemorySpace.Vec)
    return frame.op("tile.cast", [made], bound.node, (wanted,), mode="round").result


def _matmul_acc(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    if not is_tile(bound["acc"]):
        raise frame.error(f"{bound.label}: acc must be a tile, not {describe(bound['acc'])}", bound.place("acc"))
    acc: Value = bound["acc"]
    tiles = [frame.tile(bound[name], bound.place(name), f"{bound.label}: {name}") for name in ("lhs", "rhs")]
    flags = {name: flag_argument(frame, bound, name) for name in ("a_trans", "b_trans")}
    start = bound["init_cond"]
    if start is None or start is False:
        return frame.op("tile.matmul_acc", [acc, *tiles], bound.node, (), **flags).result
    if start is True:
        return frame.op("tile.matmul", tiles, bound.node, (), **flags).result
    if not is_scalar(start) or start.type.dtype != BOOL:
        raise frame.error(
            f"{bound.label}: init_cond must be a condition, not {describe(start)}", bound.place("init_cond")
        )
    first, later = Block(), Block()
    for block, name, operands in ((first, "tile.matmul", tiles), (later, "tile.matmul_acc", [acc, *tiles])):
        with frame.builder.inside(block):
            value = frame.op(name, operands, bound.node, (), **flags).result
            frame.op("scf.yield", [value], bound.node)
    with frame.at(bound.node):
        return frame.builder.op("scf.if", [start], types=(value.type,), regions=(first, later), hint="acc").result


Handler = Callable[[Frame, Bound], Model]

HANDLERS: dict[str, Handler] = {
    "matmul": _matmul,
    "matmul_acc": _matmul_acc,
}
# (operation, parameter) whose meaning is handled here.
OPTIONS = frozenset({("matmul", "out_dtype")})
