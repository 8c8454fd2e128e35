"""The one error of the IR."""

from __future__ import annotations

from pypto.ir.nodes import Loc


class IRError(Exception):
    """An operation or program breaks a rule of the IR, of the hardware, or of an operation.

    Attributes:
        message: what is wrong and what to do.
        loc: the place in the kernel's source, if known.
        related: a second place that the message speaks of.
    """

    def __init__(self, message: str, loc: Loc | None = None, related: Loc | None = None) -> None:
        super().__init__(message if loc is None else f"{loc}: {message}")
        self.message = message
        self.loc = loc
        self.related = related


class TileShapeError(IRError):
    """A tile cannot have its shape in its memory."""
