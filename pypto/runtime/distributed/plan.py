"""From a HOST entry and the arguments of one call to the steps of every rank.

The entry is run once, in the caller's process, before a rank does anything: sizes, bounds and ranks are numbers then,
and whatever is wrong with them is an error of the call. Ranks run in program order, each its own steps; a step that
touches what another rank's earlier step wrote (or reads what a later one writes) waits for that step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pypto.runtime.distributed.host_program import HostBlock, HostOp, HostProgram
from pypto.runtime.distributed.order import Order
from pypto.runtime.distributed.regions import Region, Window, row_major
from pypto.runtime.distributed.scalars import HostArithmeticError, compute
from pypto.runtime.errors import HostProgramError
from pypto.runtime.kernel_config import Parameter
from pypto.runtime.places import Locate

_ALIGNMENT = 512
_MOST_STEPS = 1 << 20
STATUS_BYTES = 16
"""At the start of the shared memory, for each rank: the number of the step it is at (from 1), and whether it waits."""


@dataclass
class Plan:
    """What one call does.

    Attributes:
        size: bytes of shared memory.
        arguments: the region of every tensor parameter, ``None`` for scalars.
        steps: plain data for each rank, in order.
        places: what each step is, for messages: by rank, in order.
    """

    size: int
    arguments: tuple[Region | None, ...]
    steps: tuple[list[dict[str, Any]], ...]
    places: tuple[list[str], ...]


def make_plan(
    program: HostProgram,
    chips: Sequence[Sequence[Parameter]],
    values: Sequence[object],
    arrays: Sequence[np.ndarray | None],
    world: int,
    locate: Locate | None = None,
) -> Plan:
    """The plan of one call.

    Args:
        chips: parameters of every chip's program.
        values: the arguments; scalars as numbers.
        arrays: the tensors among them.
        world: number of ranks.
        locate: gives the place of a function's line, for messages.

    Raises:
        HostProgramError: the entry cannot be run with these arguments and ranks, with its place.
    """
    return _Planner(program, chips, world, locate).run(values, arrays)


class _Planner:
    def __init__(
        self, program: HostProgram, chips: Sequence[Sequence[Parameter]], world: int, locate: Locate | None
    ) -> None:
        self.program = program
        self.chips = chips
        self.world = world
        self.locate = locate
        self.values: dict[int, Any] = {}
        self.arrays: dict[int, tuple[np.ndarray, int]] = {}
        self.size = _aligned(world * STATUS_BYTES)
        self.bases = 0
        self.buffers: dict[int, list[tuple[int, int, int]]] = {}
        self.order = Order(world)
        self.steps: list[list[dict[str, Any]]] = [[] for _ in range(world)]
        self.places: list[list[str]] = [[] for _ in range(world)]

    def run(self, values: Sequence[object], arrays: Sequence[np.ndarray | None]) -> Plan:
        arguments: list[Region | None] = []
        body = self.program.body
        for number, value, array, param in zip(body.args, values, arrays, self.program.params, strict=True):
            if array is None:
                self.values[number] = value
                arguments.append(None)
                continue
            region = self.allocate(array.shape, param.dtype)
            self.values[number] = region
            self.arrays[region.base] = (array, region.offset)
            arguments.append(region)
        self.block(body)
        return Plan(self.size, tuple(arguments), tuple(self.steps), tuple(self.places))

    def error(self, op: HostOp, message: str) -> HostProgramError:
        return HostProgramError(
            f"{self.program.entry}: {message}{self.where(op)}",
            function=None if op.place is None else op.place[0],
            line=None if op.place is None else op.place[1],
        )

    def where(self, op: HostOp) -> str:
        if op.place is None:
            return ""
        function, line = op.place
        found = self.locate(function, line) if self.locate else None
        return f" ({function}, line {line})" if found is None else f" ({function}, {found[0]}:{found[1]})"

    def allocate(self, shape: tuple[int, ...], dtype: str) -> Region:
        region = Region(self.bases, self.size, tuple(shape), row_major(shape), dtype)
        self.bases += 1
        self.size += _aligned(region.size * region.itemsize)
        return region

    # Control flow

    def block(self, block: HostBlock) -> list[Any]:
        """Run a block; the values that it yields."""
        for op in block.ops:
            if op.name == "scf.yield":
                return [self.values[number] for number in op.operands]
            if op.name == "scf.return":
                return []
            results = self.operation(op)
            for number, value in zip(op.results, results, strict=True):
                self.values[number] = value
        return []

    def operation(self, op: HostOp) -> list[Any]:
        operands = [self.values[number] for number in op.operands]
        family, _, name = op.name.partition(".")
        if family == "arith":
            try:
                return [compute(name, operands, dict(op.attrs))]
            except HostArithmeticError as error:
                raise self.error(op, str(error)) from None
        handler = getattr(self, f"{family}_{name}", None)
        if handler is None:
            raise self.error(op, f"the operation {op.name} is not known")
        result: list[Any] = handler(op, operands)
        return result

    def scf_for(self, op: HostOp, operands: list[Any]) -> list[Any]:
        start, stop, step, *carried = operands
        if step == 0:
            raise self.error(op, "the step of a loop is 0")
        body = op.regions[0]
        for turn in range(start, stop, step):
            self.values.update(zip(body.args, [turn, *carried], strict=True))
            carried = self.block(body)
        return carried

    def scf_while(self, op: HostOp, operands: list[Any]) -> list[Any]:
        condition, body = op.regions
        carried = operands
        for _ in range(_MOST_STEPS):
            self.values.update(zip(condition.args, carried, strict=True))
            if not self.block(condition)[0]:
                return carried
            self.values.update(zip(body.args, carried, strict=True))
            carried = self.block(body)
        raise self.error(op, f"a while loop takes more than {_MOST_STEPS} turns")

    def scf_if(self, op: HostOp, operands: list[Any]) -> list[Any]:
        return self.block(op.regions[0 if operands[0] else 1])

    # Tensors

    def tensor_create(self, op: HostOp, operands: list[int]) -> list[Any]:
        self.positive(op, operands)
        return [self.allocate(tuple(operands), op.attrs["dtype"])]

    def tensor_dim(self, op: HostOp, operands: list[Any]) -> list[Any]:
        return [operands[0].shape[op.attrs["axis"]]]

    def tensor_view(self, op: HostOp, operands: list[Any]) -> list[Any]:
        base, rank = operands[0], op.attrs["rank"]
        offsets, sizes = operands[1 : 1 + rank], operands[1 + rank :]
        if isinstance(base, Window):
            return [Window(tuple(self.view(op, r, offsets, sizes) for r in base.regions), base.name, base.nbytes)]
        return [self.view(op, base, offsets, sizes)]

    def view(self, op: HostOp, base: Region, offsets: list[int], sizes: list[int]) -> Region:
        for axis, (offset, size, length) in enumerate(zip(offsets, sizes, base.shape, strict=True)):
            if offset < 0 or size < 1 or offset + size > length:
                what = f"index {offset} is" if size == 1 else f"elements {offset} to {offset + size - 1} are"
                ranks = f"; the program runs on {self.world} rank{'s' if self.world > 1 else ''}"
                raise self.error(op, f"{what} outside of axis {axis} of length {length}{ranks}")
        dropped = op.attrs.get("dropped", ())
        kept = [axis for axis in range(len(sizes)) if axis not in dropped]
        start = sum(offset * stride for offset, stride in zip(offsets, base.strides, strict=True))
        return Region(
            base.base,
            base.offset + start * base.itemsize,
            tuple(sizes[axis] for axis in kept),
            tuple(base.strides[axis] for axis in kept),
            base.dtype,
        )

    def tensor_reshape(self, op: HostOp, operands: list[Any]) -> list[Any]:
        base, *sizes = operands
        self.positive(op, sizes)
        if isinstance(base, Window):
            return [Window(tuple(self.reshaped(op, region, sizes) for region in base.regions), base.name, base.nbytes)]
        return [self.reshaped(op, base, sizes)]

    def reshaped(self, op: HostOp, base: Region, sizes: list[int]) -> Region:
        if math.prod(sizes) != base.size:
            raise self.error(op, f"{base.size} elements cannot have the shape {_shown(sizes)}")
        if not base.contiguous:
            raise self.error(op, "a part of a tensor whose elements do not lie side by side cannot be reshaped")
        return Region(base.base, base.offset, tuple(sizes), row_major(sizes), base.dtype)

    def tensor_read(self, op: HostOp, operands: list[Any]) -> list[Any]:
        region, *indices = operands
        argument = self.arrays.get(region.base) if isinstance(region, Region) else None
        if argument is None:
            raise self.error(op, "only elements of arguments can be read by a HOST entry")
        array, offset = argument
        for axis, (index, length) in enumerate(zip(indices, region.shape, strict=True)):
            if not 0 <= index < length:
                raise self.error(op, f"index {index} is outside of axis {axis} of length {length}")
        start = (region.offset - offset) // region.itemsize
        flat = start + sum(index * stride for index, stride in zip(indices, region.strides, strict=True))
        value = array.reshape(-1)[flat]
        kind = bool if region.dtype == "BOOL" else float if region.dtype in ("FP32", "FP16", "BF16") else int
        return [kind(value)]

    def positive(self, op: HostOp, sizes: list[int]) -> None:
        if any(size < 1 for size in sizes):
            raise self.error(op, f"every size of a tensor must be positive, got {_shown(sizes)}")

    # Ranks

    def host_world_size(self, op: HostOp, operands: list[Any]) -> list[Any]:
        return [self.world]

    def host_window_buffer(self, op: HostOp, operands: list[Any]) -> list[Any]:
        (nbytes,) = operands
        if nbytes < 1:
            raise self.error(op, f"a window buffer needs a positive number of bytes, got {nbytes}")
        # Side by side, so that all ranks' parts are one tensor as well.
        self.buffers[op.attrs["buffer"]] = [
            (self.bases + rank, self.size + rank * nbytes, nbytes) for rank in range(self.world)
        ]
        self.bases += self.world
        self.size += _aligned(self.world * nbytes)
        return []

    def host_window(self, op: HostOp, operands: list[Any]) -> list[Any]:
        self.positive(op, operands)
        name, dtype = op.attrs["called"], op.attrs["dtype"]
        regions = []
        for base, offset, nbytes in self.buffers[op.attrs["buffer"]]:
            region = Region(base, offset, tuple(operands), row_major(operands), dtype)
            if region.size * region.itemsize > nbytes:
                raise self.error(
                    op,
                    f"a window {_shown(operands)} of {dtype} takes {region.size * region.itemsize} bytes, but the "
                    f"buffer {name} has {nbytes}",
                )
            if nbytes % region.itemsize:
                raise self.error(op, f"a buffer of {nbytes} bytes cannot be divided into elements of {dtype}")
            regions.append(region)
        return [Window(tuple(regions), name, nbytes)]

    def host_call(self, op: HostOp, operands: list[Any]) -> list[Any]:
        rank, *arguments = operands
        chip = op.attrs["chip"]
        if not 0 <= rank < self.world:
            raise self.error(op, f"device={rank}, but the ranks are 0 to {self.world - 1}")
        windows = op.attrs["windows"]
        if windows:
            arguments.append(rank)
        touched: list[tuple[Region, bool]] = []
        given: list[dict[str, Any]] = []
        dims: dict[str, tuple[int, str]] = {}
        for index, (param, value) in enumerate(zip(self.chips[chip], arguments, strict=True)):
            if index in windows:
                # Signals order what ranks do to each other's windows, not this plan.
                given.append(self.all_parts(op, value).record() | {"written": param.direction != "in"})
                continue
            if param.kind == "scalar":
                given.append({"scalar": value.hex() if isinstance(value, float) else value})
                continue
            region = value.regions[rank] if isinstance(value, Window) else value
            self.check_argument(op, param, region, dims)
            touched.append((region, param.direction != "in"))
            given.append(region.record() | {"written": param.direction != "in"})
        self.refuse_overlaps(op, chip, touched)
        after = self.order.waits(rank, touched)
        for other, last in after.items():
            self.steps[other][last].setdefault("tell", []).append(rank)
        step = {"do": "call", "chip": chip, "arguments": given, "after": sorted(after)}
        self.order.add(rank, len(self.steps[rank]), touched)
        self.add(rank, step, f"{op.attrs['callee']}{self.where(op)}", op)
        return []

    def all_parts(self, op: HostOp, window: Window) -> Region:
        """All ranks' parts of a window as one tensor."""
        first = window.regions[0]
        if first.size * first.itemsize != window.nbytes:
            raise self.error(
                op, f"the window {window.name} must fill its buffer, since {op.attrs['callee']} uses other ranks' parts"
            )
        shape = (self.world, *first.shape)
        return Region(first.base, first.offset, shape, row_major(shape), first.dtype)

    def add(self, rank: int, step: dict[str, Any], place: str, op: HostOp) -> None:
        if len(self.steps[rank]) >= _MOST_STEPS:
            raise self.error(op, f"rank {rank} has more than {_MOST_STEPS} steps")
        self.steps[rank].append(step)
        self.places[rank].append(place)

    def check_argument(self, op: HostOp, param: Parameter, region: Region, dims: dict[str, tuple[int, str]]) -> None:
        what = f"{op.attrs['callee']}: {param.name}"
        if len(region.shape) != len(param.shape):
            raise self.error(op, f"{what} has {len(region.shape)} axes, expected {len(param.shape)}")
        for axis, (length, wanted) in enumerate(zip(region.shape, param.shape, strict=True)):
            expected = wanted if isinstance(wanted, int) else dims.setdefault(wanted, (length, param.name))[0]
            if length != expected:
                because = "" if isinstance(wanted, int) else f" as in {dims[wanted][1]}"
                raise self.error(op, f"{what}: axis {axis} is {length}, expected {wanted} = {expected}{because}")

    def refuse_overlaps(self, op: HostOp, chip: int, touched: list[tuple[Region, bool]]) -> None:
        names = [param.name for param in self.chips[chip] if param.kind == "tensor"]
        for first, (one, writes) in enumerate(touched):
            for second in range(first):
                other, other_writes = touched[second]
                if one.overlaps(other) and (writes or other_writes):
                    raise self.error(
                        op,
                        f"{op.attrs['callee']}: {names[second]} and {names[first]} overlap in memory, and one of "
                        "them is written; pass separate tensors",
                    )

    def host_collective(self, op: HostOp, operands: list[Any]) -> list[Any]:
        kind = op.attrs["kind"]
        families = [self.family(op, value) for value in operands]
        root = op.attrs.get("root", 0)
        if not 0 <= root < self.world:
            raise self.error(op, f"root={root}, but the ranks are 0 to {self.world - 1}")
        self.check_collective(op, kind, families)
        step: dict[str, Any] = {
            "do": kind,
            "op": op.attrs.get("reduce", ""),
            "root": root,
            "tensors": [[region.record() for region in family] for family in families],
        }
        for rank in range(self.world):
            self.add(rank, step, f"{op.attrs['label']}{self.where(op)}", op)
        self.order.meet([len(steps) for steps in self.steps])
        return []

    def family(self, op: HostOp, value: Region | Window) -> list[Region]:
        """The part of every rank: of a window, or of a tensor whose axis 0 is the ranks."""
        label = op.attrs["label"]
        if isinstance(value, Window):
            family = list(value.regions)
        elif len(value.shape) < 2 or value.shape[0] != self.world:
            raise self.error(
                op,
                f"{label} takes windows, and tensors with one row for each of the {self.world} ranks on axis 0, "
                f"got the shape {_shown(value.shape)}",
            )
        else:
            family = [value.row(rank) for rank in range(self.world)]
        if not family[0].contiguous:
            raise self.error(op, f"{label} takes tensors whose elements lie side by side, not a part of the columns")
        return family

    def check_collective(self, op: HostOp, kind: str, families: list[list[Region]]) -> None:
        label, parts = op.attrs["label"], [family[0] for family in families]
        if kind in ("allgather", "all_to_all") and parts[0].dtype != parts[1].dtype:
            raise self.error(op, f"{label} needs one dtype, got {parts[0].dtype} and {parts[1].dtype}")
        if kind == "allgather" and parts[1].size != self.world * parts[0].size:
            raise self.error(
                op,
                f"{label}: the target needs {self.world} x {parts[0].size} elements, one part for each rank, "
                f"got the shape {_shown(parts[1].shape)}",
            )
        if kind == "all_to_all" and parts[0].size != parts[1].size:
            raise self.error(op, f"{label}: the shapes {_shown(parts[0].shape)} and {_shown(parts[1].shape)} differ")
        if kind in ("reduce_scatter", "all_to_all") and parts[0].size % self.world:
            raise self.error(
                op, f"{label}: the shape {_shown(parts[0].shape)} cannot be divided among {self.world} ranks"
            )
        if len(families) > 1:
            for one in families[0]:
                for other in families[1]:
                    if one.overlaps(other):
                        raise self.error(op, f"{label}: source and target are the same memory; use two windows")


def _aligned(nbytes: int) -> int:
    return (nbytes + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT


def _shown(shape: Sequence[int]) -> str:
    return f"[{', '.join(map(str, shape))}]"
