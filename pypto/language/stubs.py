"""Operations of the language as Python objects: a name and a signature for the parser; nothing may call them.

They are made of what is registered in `pypto.ir.ops`; type checkers see the `.pyi` files that the same table gives.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any, NoReturn

import pypto.ir.types
from pypto.ir.ops.user_names import UserName, user_names
from pypto.language.errors import OutsideKernelError


class Operation:
    """One operation of the language.

    Attributes:
        name: name without ``pl.``.
        signature: its parameters, for binding arguments.
        also: other names of the same parameters: name to its position.
        unsupported: why it cannot be carried; empty when it can.
    """

    def __init__(self, entry: UserName) -> None:
        self._entry = entry
        self.name = entry.key
        self.unsupported = entry.unsupported
        self.__name__ = entry.name
        self.__doc__ = entry.doc

    # Most programs use few operations.
    @functools.cached_property
    def signature(self) -> inspect.Signature:
        """Its parameters."""
        return signature(self._entry.parameters)

    @functools.cached_property
    def also(self) -> dict[str, int]:
        """Other names of the same parameters."""
        return {
            parameter: position
            for form in self._entry.also
            for position, parameter in enumerate(part.strip() for part in form.split(","))
            if parameter not in self.signature.parameters
        }

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise OutsideKernelError(
            f"pl.{self.name} is compiled, not run: it may only stand in the body of a function under "
            "@pl.jit or @pl.jit.incore"
        )

    def __repr__(self) -> str:
        return f"<pl.{self.name}>"


def signature(parameters: str) -> inspect.Signature:
    """The signature of what stands between the parentheses of a registered name; it is text of this package."""
    return inspect.signature(eval(f"lambda {parameters}: None", dict(vars(pypto.ir.types))))


@functools.cache
def operations(space: str) -> dict[str, Operation]:
    """The operations of ``pl``, ``pl.tile`` or ``pl.tensor`` by name; a name with one meaning is one object."""
    return {name: _operation(entry) for name, entry in user_names(space).items()}


@functools.cache
def _operation(entry: UserName) -> Operation:
    return Operation(entry)
