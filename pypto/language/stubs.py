"""Operations of the language as Python objects: a name and a signature for the parser; nothing may call them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar, cast

from pypto.language.errors import OutsideKernelError

F = TypeVar("F", bound=Callable[..., Any])


class Operation:
    """One operation of the language.

    Attributes:
        name: name without ``pl.``.
        signature: its parameters, for binding arguments.
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        functools.update_wrapper(self, function)
        self.name = name
        self.signature = inspect.signature(function)

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise OutsideKernelError(
            f"pl.{self.name} is compiled, not run: it may only stand in the body of a function under "
            "@pl.jit or @pl.jit.incore"
        )

    def __repr__(self) -> str:
        return f"<pl.{self.name}>"


def operation(function: F) -> F:
    """Make a stub an operation; type checkers keep seeing the stub's signature."""
    return cast(F, Operation(function, function.__name__))
