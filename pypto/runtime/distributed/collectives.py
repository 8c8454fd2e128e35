"""Collectives over tensors in shared memory: what one rank does between two meetings of all.

Whatever happens between the meetings, no rank reads what another one writes then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

Parts = Sequence[np.ndarray]
"""The tensor of every rank, flat."""

_REDUCTIONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "Sum": np.add,
    "Max": np.maximum,
    "Min": np.minimum,
    "Prod": np.multiply,
}


def reduced(parts: Parts, op: str) -> np.ndarray:
    """The reduction of equal shapes, in rank order; small floats are accumulated in FP32 and rounded once."""
    dtype = parts[0].dtype
    small = dtype.itemsize == 2 and dtype.kind not in "biu"
    accumulator = parts[0].astype(np.float32 if small else dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        for part in parts[1:]:
            accumulator = _REDUCTIONS[op](accumulator, part.astype(accumulator.dtype))
        return accumulator.astype(dtype)


def allreduce(rank: int, tensors: Sequence[Parts], op: str, root: int) -> None:
    """Every rank reduces its share of the elements and writes it to all."""
    (parts,) = tensors
    share = _share(parts[0].size, rank, len(parts))
    result = reduced([part[share] for part in parts], op)
    for part in parts:
        part[share] = result


def reduce_scatter(rank: int, tensors: Sequence[Parts], op: str, root: int) -> None:
    """Row ``rank`` becomes the reduction of all ranks' rows of that number; other rows stay as they are."""
    (parts,) = tensors
    row = _row(parts[0], rank, len(parts))
    parts[rank][row] = reduced([part[row] for part in parts], op)


def broadcast(rank: int, tensors: Sequence[Parts], op: str, root: int) -> None:
    """Every rank copies the root's tensor."""
    (parts,) = tensors
    if rank != root:
        parts[rank][:] = parts[root]


def allgather(rank: int, tensors: Sequence[Parts], op: str, root: int) -> None:
    """Every rank writes its tensor to its row of all targets."""
    sources, targets = tensors
    row = _row(targets[0], rank, len(targets))
    for target in targets:
        target[row] = sources[rank]


def all_to_all(rank: int, tensors: Sequence[Parts], op: str, root: int) -> None:
    """Every rank writes its row for each rank to its own row of that rank's target."""
    sources, targets = tensors
    count = len(targets)
    own = _row(targets[0], rank, count)
    for other, target in enumerate(targets):
        target[own] = sources[rank][_row(sources[rank], other, count)]


def barrier(rank: int, tensors: Sequence[Parts], op: str, root: int) -> None:
    """The meetings are all there is."""


COLLECTIVES: dict[str, Callable[[int, Sequence[Parts], str, int], None]] = {
    "allreduce": allreduce,
    "reduce_scatter": reduce_scatter,
    "broadcast": broadcast,
    "allgather": allgather,
    "all_to_all": all_to_all,
    "barrier": barrier,
}


def _row(tensor: np.ndarray, row: int, count: int) -> slice:
    length = tensor.size // count
    return slice(row * length, (row + 1) * length)


def _share(size: int, rank: int, count: int) -> slice:
    return slice(size * rank // count, size * (rank + 1) // count)
