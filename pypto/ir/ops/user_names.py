"""What users write: the names of `pl`, `pl.tile` and `pl.tensor`, registered beside the operations that they stand for.

A name that PyPTO has and that cannot be carried is registered as well, with the reason.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass

PL, TILE, TENSOR = "pl", "tile", "tensor"
ON_TILES = (PL, TILE)
"""`pl.X` and `pl.tile.X`."""
ON_BOTH = (PL, TILE, TENSOR)
"""`pl.X` and `pl.tile.X` for tiles and tensors, and `pl.tensor.X`."""


@dataclass(frozen=True)
class UserName:
    """One name.

    Attributes:
        name: as users write it, without its module.
        parameters: what stands between the parentheses; defaults may name what `pypto.ir.types` has.
        doc: one or more sentences.
        spaces: the modules that have it, of :data:`PL`, :data:`TILE`, :data:`TENSOR`.
        also: the same parameters in order, as other forms of the name call them.
        ops: operations of the IR that it becomes; by default `tile.<name>`.
        handler: name under which the parser looks up what a call means.
        unsupported: why it cannot be carried; empty when it can.
        family: the module beside this one that registers it.
    """

    name: str
    parameters: str
    doc: str
    spaces: tuple[str, ...] = ON_BOTH
    also: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    handler: str = ""
    unsupported: str = ""
    family: str = ""

    @property
    def key(self) -> str:
        """How the parser calls it: the name, or `tensor.<name>` for what differs from the name in `pl`."""
        return self.handler or (self.name if PL in self.spaces else f"tensor.{self.name}")

    @property
    def label(self) -> str:
        """The name in messages."""
        return f"pl.{self.key}"


_NAMES: dict[tuple[str, str], UserName] = {}


def user_name(
    name: str,
    parameters: str,
    doc: str,
    spaces: tuple[str, ...] = ON_BOTH,
    *,
    also: Iterable[str] = (),
    ops: Iterable[str] = (),
    handler: str = "",
    unsupported: str = "",
) -> None:
    """Register a name; see :class:`UserName`."""
    family = sys._getframe(1).f_globals["__name__"].rpartition(".")[2]
    entry = UserName(name, parameters, doc, spaces, tuple(also), tuple(ops), handler, unsupported, family)
    for space in spaces:
        if (space, name) in _NAMES:
            raise ValueError(f"{name} is registered twice in {space}")
        _NAMES[space, name] = entry


def user_names(space: str) -> dict[str, UserName]:
    """The names of a module, in the order of registration."""
    from pypto.ir.ops.registry import all_definitions

    all_definitions()
    return {name: entry for (where, name), entry in _NAMES.items() if where == space}
