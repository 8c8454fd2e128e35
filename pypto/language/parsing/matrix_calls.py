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
)

Handler = Callable[[Frame, Bound], Model]


def _tiles(frame: Frame, bound: Bound, *names: str) -> list[Value]:
    return [frame.tile(bound[name], bound.place(name), f"{bound.label}: {name}") for name in names]


def _flags(frame: Frame, bound: Bound) -> dict[str, bool]:
    """The operands that are stored the other way round; not every product has these parameters."""
    return {name: flag_argument(frame, bound, name) for name in ("a_trans", "b_trans") if name in bound.models}


def _matmul(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    made = frame.op("tile.matmul", _tiles(frame, bound, "lhs", "rhs"), bound.node, (), **_flags(frame, bound)).result
    if bound.models.get("out_dtype") in (None, tile_type(made).dtype):
        return made
    # Vector work: the compiler hands the product on.
    wanted = replace(tile_type(made), dtype=dtype_argument(frame, bound, "out_dtype"), memory=MemorySpace.Vec)
    return frame.op("tile.cast", [made], bound.node, (wanted,), mode="round").result


def _matmul_acc(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    (acc,) = _tiles(frame, bound, "acc")
    tiles, flags = _tiles(frame, bound, "lhs", "rhs"), _flags(frame, bound)
    start = bound.models.get("init_cond")
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


def _matmul_bias(frame: Frame, bound: Bound) -> Model:
    frame.need_core(bound.label, bound.node)
    return frame.op("tile.matmul_bias", _tiles(frame, bound, "lhs", "rhs", "bias"), bound.node).result


def _gemv(product: Handler) -> Handler:
    """A product whose left side is one row."""

    def handler(frame: Frame, bound: Bound) -> Model:
        frame.need_core(bound.label, bound.node)
        left = frame.tile(bound["lhs"], bound.place("lhs"), f"{bound.label}: lhs")
        if tile_type(left).shape[0] != 1:
            raise frame.error(f"{bound.label}: lhs must be a row [1, K], not {describe(left)}", bound.place("lhs"))
        if bound["acc_phase"] != "unspecified":
            raise frame.error(f"{bound.label}: acc_phase is not supported; leave it out", bound.place("acc_phase"))
        bound.models["lhs"] = left
        return product(frame, bound)

    return handler


HANDLERS: dict[str, Handler] = {
    "matmul": _matmul,
    "matmul_acc": _matmul_acc,
    "matmul_bias": _matmul_bias,
    "batch_matmul": _matmul,
    "batch_matmul_acc": _matmul_acc,
    "gemv": _gemv(_matmul),
    "gemv_acc": _gemv(_matmul_acc),
    "gemv_bias": _gemv(_matmul_bias),
}
# (operation, parameter) whose meaning is handled here.
OPTIONS = frozenset({(name, "out_dtype") for name in ("matmul", "batch_matmul")})
