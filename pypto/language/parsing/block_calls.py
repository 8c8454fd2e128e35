"""Calls about the blocks of a launch, the vector cores of a block, and the tracking of tensors."""

from __future__ import annotations

from pypto.ir.nodes import FunctionKind, Param, Value
from pypto.ir.types import INDEX, ScalarType
from pypto.language.annotations import SplitMode
from pypto.language.parsing import lanes
from pypto.language.parsing.arguments import tensor_argument
from pypto.language.parsing.binding import Bound
from pypto.language.parsing.frame import Frame
from pypto.language.parsing.model import Hint, Model, describe, is_whole


def block_number(frame: Frame, what: str) -> Model:
    """The number of the current block (``idx``), or of all blocks (``num``) of the launch; 0 of 1 outside of one.

    A device kernel gets them as further parameters.
    """
    if frame.blocks is not None:
        return frame.blocks[0 if what == "idx" else 1]
    if frame.function.kind is not FunctionKind.INCORE:
        return 0 if what == "idx" else 1
    if what not in frame.hidden:
        value = Value(f"block_{what}", ScalarType(INDEX), frame.function.body)
        frame.function.params.append(Param(value))
        frame.hidden[what] = value
    return frame.hidden[what]


def _no_dep(frame: Frame, bound: Bound) -> Model:
    tensor = tensor_argument(frame, bound, "tensor")
    if frame.on_core:
        raise frame.syntax_error(
            f"{bound.label} is for arguments of tasks: use it in the entry, or pl.at(..., no_dep_args=[...])",
            bound.node,
        )
    frame.program.untracked = True
    return frame.op("tensor.untracked", [tensor], bound.node).result


def _split(frame: Frame, bound: Bound) -> Model:
    if not isinstance(bound["mode"], SplitMode):
        raise frame.error(
            f"{bound.label}: mode must be one of pl.SplitMode, not {describe(bound['mode'])}", bound.place("mode")
        )
    if bound["slot_num"] is not None:
        _slots(frame, bound)
    return Hint("split")


def _slots(frame: Frame, bound: Bound) -> Model:
    if not is_whole(bound["slot_num"]) or bound["slot_num"] < 1:
        raise frame.error(
            f"{bound.label}: slot_num must be 1 or more, not {describe(bound['slot_num'])}", bound.place("slot_num")
        )
    return Hint("cross_core_slot")


HANDLERS = {
    "get_block_idx": lambda frame, bound: block_number(frame, "idx"),
    "get_block_num": lambda frame, bound: block_number(frame, "num"),
    "get_subblock_idx": lanes.subblock,
    "aiv_shard": lanes.shard,
    "aic_gather": lanes.gather,
    "split": _split,
    "cross_core_slot": _slots,
    "tensor.no_dep": _no_dep,
}
