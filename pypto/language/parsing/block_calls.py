"""Calls about the blocks of a launch, the vector cores of a block, and the tracking of tensors."""

from __future__ import annotations

from collections.abc import Callable

from pypto.ir.nodes import FunctionKind, Param, Value
from pypto.ir.types import INDEX, ScalarType
from pypto.language.annotations import SplitMode
from pypto.language.parsing import lanes
from pypto.language.parsing.arguments import tensor_argument
from pypto.language.parsing.binding import Bound
from pypto.language.parsing.frame import Frame
from pypto.language.parsing.model import Hint, Model, describe, is_tensor, is_tile, is_whole
from pypto.language.source import Table


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


def _dump_tag(frame: Frame, bound: Bound) -> Model:
    """Runs on the simulator dump no tensors, as on devices where nobody asks for it."""
    return tensor_argument(frame, bound, "tensor")


def _func_attr(frame: Frame, bound: Bound) -> Model:
    """Attributes say how another compiler places work; here that follows from the program."""
    attrs, place = bound["attrs"], bound.place("attrs")
    if not isinstance(attrs, Table):
        raise frame.error(f"{bound.label}: attrs must be a dictionary, not {describe(attrs)}", place)
    for name, value in attrs.items:
        if name not in _ATTRIBUTES:
            known = ", ".join(_ATTRIBUTES)
            raise frame.error(f"{bound.label}: there is no attribute {name!r}; known are {known}", place)
        fits, what = _ATTRIBUTES[name]
        if not fits(value):
            raise frame.error(f"{bound.label}: {name} must be {what}, not {describe(value)}", place)
        if name in frame.attributes:
            raise frame.error(f"{bound.label}: {name} is given twice", place)
        frame.attributes.add(name)
    return None


_ATTRIBUTES: dict[str, tuple[Callable[[Model], bool], str]] = {
    "split": (lambda value: isinstance(value, SplitMode), "one of pl.SplitMode"),
    "split_aiv": (lambda value: isinstance(value, bool), "True or False"),
    "stationary": (lambda value: is_tensor(value) or is_tile(value), "a parameter that is a tensor or a tile"),
}

HANDLERS = {
    "get_block_idx": lambda frame, bound: block_number(frame, "idx"),
    "get_block_num": lambda frame, bound: block_number(frame, "num"),
    "get_subblock_idx": lanes.subblock,
    "aiv_shard": lanes.shard,
    "aic_gather": lanes.gather,
    "split": _split,
    "cross_core_slot": _slots,
    "func_attr": _func_attr,
    "dump_tag": _dump_tag,
    "tensor.dump_tag": _dump_tag,
    "tensor.no_dep": _no_dep,
}
