"""Operations that act while a kernel is compiled, or only name values."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pypto.language.parsing.frame import Frame
from pypto.language.parsing.model import Model, describe, is_number

if TYPE_CHECKING:
    from pypto.language.parsing.binding import Bound


def static_assert(frame: Frame, bound: Bound) -> Model:
    """Refuse the kernel unless a known condition holds."""
    condition = bound["condition"]
    if not is_number(condition):
        raise frame.error(
            f"pl.static_assert: the condition must be known while compiling, not {describe(condition)}",
            bound.place("condition"),
        )
    if not condition:
        text = bound["msg"]
        raise frame.error(f"pl.static_assert: {text}" if text else "pl.static_assert does not hold", bound.node)
    return None


def static_print(args: list[Model]) -> Model:
    """Show models; the standard output may belong to a build tool's protocol."""
    print(*(str(a) if is_number(a) or isinstance(a, str) else describe(a) for a in args), file=sys.stderr)
    return None


def yielded(args: list[Model]) -> Model:
    """``pl.yield_`` outside of the end of a loop's body names values, as in a branch."""
    return args[0] if len(args) == 1 else tuple(args)


# Operations that take any number of anything.
VARIADIC = {"static_print": static_print, "yield_": yielded}
