"""Calls of Python's own functions: what they give for numbers, and advice where they mean nothing here."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from pypto.ir.types import DynDim
from pypto.language.parsing import known_values
from pypto.language.parsing.elementwise import apply_binary, function_of, magnitude
from pypto.language.parsing.frame import Frame
from pypto.language.parsing.model import Model, is_number, is_scalar
from pypto.language.parsing.operators import NUMBER_FUNCTIONS
from pypto.language.source import MathFunction, Table

_BUILTIN_ADVICE = {
    "range": "use pl.range in a for loop",
    "min": "use pl.min for scalars, pl.minimum or pl.row_min for tiles",
    "max": "use pl.max for scalars, pl.maximum or pl.row_max for tiles",
    "int": "use pl.cast",
    "float": "use pl.cast",
    "bool": "write a comparison",
    "abs": "use pl.abs for tiles",
    "sum": "use pl.row_sum or pl.col_sum",
    "round": "use pl.cast with a mode",
    "len": "use .shape",
    "enumerate": "use pl.range",
    "print": "pl.static_print shows what is known while compiling",
}
_OF_NUMBERS: dict[str, Callable[..., Any]] = {
    **{"min": min, "max": max, "abs": abs, "round": round},
    **{"int": int, "float": float, "bool": bool, "divmod": divmod, "pow": pow},
}


_OF_ITEMS = ("zip", "enumerate", "reversed", "tuple", "list")


def call_builtin(frame: Frame, name: str, node: ast.Call, evaluate: Callable[[Frame, ast.expr], Model]) -> Model:
    """A call of a builtin function.

    Raises:
        CompileError: it means nothing here; the message says what to use instead.
    """
    known = _builtin(frame, name, node, evaluate)
    if known is not None:
        return known
    advice = _BUILTIN_ADVICE.get(name, "it takes what is known while compiling, if anything")
    raise frame.syntax_error(f"Python's {name}() is not part of the language; {advice}", node)


def _builtin(frame: Frame, name: str, node: ast.Call, evaluate: Callable[[Frame, ast.expr], Model]) -> Model:
    """What a builtin function of Python gives for numbers, where it has a meaning here; else ``None``."""
    if node.keywords or name not in (*_OF_NUMBERS, *_OF_ITEMS, "len", "str", "sum"):
        return None
    args = [evaluate(frame, arg) for arg in node.args]
    if name == "len":
        sized = args[0].items if len(args) == 1 and isinstance(args[0], Table) else args[0] if len(args) == 1 else None
        return len(sized) if isinstance(sized, (tuple, str)) else None
    if name in _OF_ITEMS:
        return known_values.items_of(name, args)
    if name == "str" and len(args) == 1:
        return args[0] if isinstance(args[0], str) else known_values.plain_text(args[0])
    if name == "sum":
        items = args[0] if len(args) == 1 and isinstance(args[0], tuple) else ()
        return sum(items) if items and all(is_number(item) for item in items) else None
    if name in ("min", "max") and len(args) == 1 and isinstance(args[0], tuple) and args[0]:
        args = list(args[0])
    # float("-inf") and the like.
    text = name == "float" and len(args) == 1 and isinstance(args[0], str)
    if args and (text or all(is_number(arg) for arg in args)):
        try:
            return _OF_NUMBERS[name](*args)
        except (ArithmeticError, TypeError, ValueError) as error:
            raise frame.error(f"{name}(...) cannot be computed: {error}", node) from None
    numbers = all(is_number(arg) or is_scalar(arg) or isinstance(arg, DynDim) for arg in args)
    if name == "abs" and len(args) == 1 and numbers:
        return magnitude(frame, args[0], node)
    if name in ("min", "max") and len(args) > 1 and numbers:
        result = args[0]
        for arg in args[1:]:
            result = apply_binary(frame, name, result, arg, node)
        return result
    return None


def call_math(frame: Frame, target: MathFunction, args: list[Model], kwargs: dict[str, Model], node: ast.Call) -> Model:
    """A function of ``math``: of known numbers, and those that `pl` has as well of run-time numbers."""
    run_time = len(args) == 1 and (is_scalar(args[0]) or isinstance(args[0], DynDim))
    if run_time and not kwargs and target.name in NUMBER_FUNCTIONS:
        return function_of(frame, target.name, args[0], f"math.{target.name}", node)
    if kwargs or not all(is_number(a) for a in args):
        raise frame.error(
            f"math.{target.name} takes numbers known while compiling; for tiles use the operation of pl", node
        )
    try:
        return target(*args)
    except (TypeError, ValueError, OverflowError) as error:
        raise frame.error(f"math.{target.name} cannot be computed: {error}", node) from None
