"""Operators and element-wise operations by sign: how numbers compute, and what tiles and tensors become."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

# What Python does with numbers that are known while compiling.
PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "min": min,
    "max": max,
    "and_": operator.and_,
    "or_": operator.or_,
    "xor": operator.xor,
    "shl": operator.lshift,
    "shr": operator.rshift,
}
SYMBOLS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "and_": "&",
    "or_": "|",
    "xor": "^",
    "shl": "<<",
    "shr": ">>",
}
# Operations on two tiles or tensors, and their form with a scalar on the right.
WITH_SCALAR = {
    "add": "adds",
    "sub": "subs",
    "mul": "muls",
    "div": "divs",
    "floordiv": "floordivs",
    "maximum": "maximums",
    "minimum": "minimums",
    "fmod": "fmods",
    "rem": "rems",
    "and_": "ands",
    "or_": "ors",
    "xor": "xors",
    "shl": "shls",
    "shr": "shrs",
    "cmp": "cmps",
}
# Functions of one number: what they give for one that is known while compiling.
NUMBER_FUNCTIONS: dict[str, Callable[[float], float]] = {
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "sin": math.sin,
    "cos": math.cos,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "recip": lambda x: 1 / x,
}
COMMUTATIVE = frozenset({"add", "mul", "maximum", "minimum", "and_", "or_", "xor"})
# A comparison with its sides exchanged.
EXCHANGED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
# Operations that exist with a column or a row beside a tile: what follows row_expand_ and col_expand_.
EXPANDED = {"add": "add", "sub": "sub", "mul": "mul", "div": "div", "maximum": "max", "minimum": "min"}
# Operators whose operation on tiles and tensors has another name.
ON_TILES = {"mod": "rem"}
