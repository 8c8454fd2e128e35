"""Where run-time whole numbers are divided inside kernels: a divisor of 0 ends the run, if the quotient is used.

C++ computes quotients wherever it suits, also those that a branch or choice does not take. So the divisor is checked
where the value is used, and only as far as the value depends on the quotient.
"""

from __future__ import annotations

from pypto.codegen.scalars import Apply, Const, Expr
from pypto.codegen.sidework import Construct
from pypto.ir.types import BOOL


class Divisions:
    """The divisions of one kernel, and which of their checks have been made where."""

    def __init__(self) -> None:
        self.notes: dict[Expr, int] = {}
        self._made: set[tuple[Expr, int | None]] = set()

    def add(self, quotient: Expr, note: int) -> None:
        """A quotient or remainder, and the number of the note that has its place."""
        self.notes.setdefault(quotient, note)

    def checks(self, expr: Expr, current: Construct | None) -> list[tuple[Expr, int]]:
        """What must hold for ``expr`` to have a value at this point, and has not been checked: condition and note."""
        if not self.notes:
            return []
        around: list[int | None] = [None]
        construct = current
        while construct is not None:
            around.append(construct.number)
            construct = construct.parent
        found = []
        for condition, note in self._conditions(expr):
            if any((condition, number) in self._made for number in around):
                continue
            found.append((condition, note))
            # The arms of a branch are one construct.
            if current is None or current.kind == "for":
                self._made.add((condition, None if current is None else current.number))
        return found

    def _conditions(self, expr: Expr) -> list[tuple[Expr, int]]:
        if not isinstance(expr, Apply):
            return []
        found = self._conditions(expr.args[0])
        if expr.op in ("select", "and", "or"):
            first = expr.args[0]
            # The first one of a choice is taken when the condition holds, the second one when it does not.
            skipped: list[Expr] = [Apply("not", (first,), BOOL), first]
            if expr.op == "or":
                skipped.reverse()
            for other, unless in zip(expr.args[1:], skipped, strict=False):
                found += [(Apply("or", (unless, condition), BOOL), note) for condition, note in self._conditions(other)]
            return found
        for other in expr.args[1:]:
            found += self._conditions(other)
        if expr in self.notes:
            divisor = expr.args[1]
            found.append((Apply("ne", (divisor, Const(0, divisor.dtype)), BOOL), self.notes[expr]))
        return found


def may_be_zero(divisor: Expr) -> bool:
    """Whether a divisor is not known to be another number than 0."""
    if isinstance(divisor, Const):
        return divisor.value == 0
    if isinstance(divisor, Apply) and divisor.op == "max":
        return not any(isinstance(arg, Const) and arg.value > 0 for arg in divisor.args)
    return True
