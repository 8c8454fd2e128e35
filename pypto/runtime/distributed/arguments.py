"""Arguments of a distributed call: those of any call, and besides lists with one array for each rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pypto.runtime.arguments import BoundArguments, bind
from pypto.runtime.kernel_config import Parameter


@dataclass(frozen=True)
class DistributedArguments:
    """Checked arguments.

    Attributes:
        values: what the caller passed, by parameter.
        bound: the same with lists stacked on a new axis 0.
    """

    values: tuple[object, ...]
    bound: BoundArguments

    @property
    def arrays(self) -> tuple[np.ndarray | None, ...]:
        """The tensors, by parameter; ``None`` for scalars."""
        return self.bound.arrays

    def hand_back(self, index: int, result: np.ndarray) -> None:
        """Copy what the run made of an output into the caller's memory."""
        value = self.values[index]
        if isinstance(value, (list, tuple)):
            for part, row in zip(value, result, strict=True):
                part[...] = row
            return
        target = self.arrays[index]
        assert target is not None
        target[...] = result


def bind_distributed(
    entry: str, params: Sequence[Parameter], args: Sequence[object], world: int
) -> DistributedArguments:
    """Check the arguments of one call; see `pypto.runtime.arguments.bind`.

    A tensor may also be a list of arrays, one for each rank: axis 0 of the parameter is the rank then.

    Raises:
        TypeError, ValueError: what does not fit, by the name of the parameter.
    """
    given = list(args)
    for index, (param, value) in enumerate(zip(params, args, strict=False)):
        if param.kind == "tensor" and isinstance(value, (list, tuple)):
            given[index] = _stacked(f"{entry}(): argument '{param.name}'", param, value, world)
    return DistributedArguments(tuple(args), bind(entry, params, given))


def _stacked(at: str, param: Parameter, parts: Sequence[object], world: int) -> np.ndarray:
    arrays = []
    for number, part in enumerate(parts):
        if not isinstance(part, np.ndarray):
            raise TypeError(f"{at} is a list, whose items must be NumPy arrays; item {number} is {type(part).__name__}")
        if param.direction != "in" and not part.flags.writeable:
            raise ValueError(f"{at}: item {number} is read-only, but the program writes it")
        arrays.append(part)
    if len(arrays) != world:
        raise ValueError(f"{at} is a list of {len(arrays)} arrays, but there are {world} ranks")
    first = arrays[0]
    for number, array in enumerate(arrays):
        if (array.shape, array.dtype) != (first.shape, first.dtype):
            raise ValueError(
                f"{at}: item {number} is {array.dtype} {array.shape}, but item 0 is {first.dtype} {first.shape}"
            )
        if param.direction != "in" and any(np.shares_memory(array, other) for other in arrays[:number]):
            raise ValueError(f"{at}: item {number} shares memory with another one, but the program writes both")
    return np.stack(arrays)
