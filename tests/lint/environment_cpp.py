"""Reads of the environment in C++: calls of `getenv` and `secure_getenv`, and mentions of `environ`.

Comments, strings and raw strings are left out. An argument that is not a string literal, or a mention that is no call,
is a dynamic read.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from environment_python import MODULE, Read

_TOKEN = re.compile(
    r"""
    (?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)
  | (?P<raw>\b(?:u8|[uUL])?R"(?P<mark>[^()\s\\]{0,16})\((?P<body>.*?)\)(?P=mark)")
  | (?P<string>(?:\b(?:u8|[uUL]))?"(?P<text>(?:\\.|[^"\\\n])*)")
  | (?P<char>'(?:\\.|[^'\\\n])+')
  | (?P<name>[A-Za-z_]\w*)
  | (?P<number>\.?\d(?:'?[\w.])*)
  | (?P<newline>\n)
  | (?P<space>[^\S\n]+|\\\n)
  | (?P<sign>->|::|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_CALLS = {"getenv", "secure_getenv", "__secure_getenv", "_wgetenv"}
_TABLES = {"environ", "__environ", "_environ"}
_NOT_FUNCTIONS = {"if", "for", "while", "switch", "catch", "return", "sizeof", "alignas", "decltype", "noexcept"}


def cpp_reads(source: str) -> list[Read]:
    """All reads of a source or header."""
    return list(_reads(_tokens(source)))


def _tokens(source: str) -> list[tuple[int, str, str]]:
    """(line, kind, text); kinds are `string`, `name` and `sign`. `#include <...>` lines are no code."""
    found = []
    line = 1
    for match in _TOKEN.finditer(source):
        kind, text = match.lastgroup, match.group()
        if match.group("raw") is not None:
            found.append((line, "string", match.group("body")))
        elif match.group("string") is not None:
            found.append((line, "string", match.group("text")))
        elif kind in ("name", "sign"):
            found.append((line, kind, text))
        line += text.count("\n")
    return found


def _reads(tokens: list[tuple[int, str, str]]) -> Iterator[Read]:
    functions: list[str | None] = []
    for index, (line, kind, text) in enumerate(tokens):
        if text == "{" and kind == "sign":
            functions.append(_function_before(tokens, index))
        elif text == "}" and kind == "sign" and functions:
            functions.pop()
        elif kind == "name" and text in _CALLS | _TABLES:
            before = tokens[index - 1][2] if index else ""
            if before in (".", "->"):
                continue  # a member of some object
            named = [name for name in functions if name is not None]
            yield Read(line, ".".join(named) or MODULE, _argument(tokens, index) if text in _CALLS else None)


def _argument(tokens: list[tuple[int, str, str]], index: int) -> str | None:
    """The literal that a call is given; adjacent literals are one."""
    after = tokens[index + 1 :]
    if not after or after[0][2] != "(":
        return None
    parts = []
    for _, kind, text in after[1:]:
        if kind != "string":
            return _unescaped("".join(parts)) if parts and text == ")" else None
        parts.append(text)
    return None


def _unescaped(text: str) -> str | None:
    if "\\" not in text:
        return text
    try:
        value = ast.literal_eval(f'"{text}"')
    except (SyntaxError, ValueError):
        return None
    return value if isinstance(value, str) else None


def _function_before(tokens: list[tuple[int, str, str]], brace: int) -> str | None:
    """The name of the function whose body begins at a brace; None for other braces."""
    index = brace
    while True:
        index = _name_before(tokens, index)
        if index < 0:
            return None
        before = tokens[index - 1][2] if index else ""
        if before not in (",", ":"):
            break
        index -= 1  # an initialiser of a member: the parameters stand before it
    name = tokens[index][2]
    while index >= 2 and tokens[index - 1][2] == "::" and tokens[index - 2][1] == "name":
        name = f"{tokens[index - 2][2]}.{name}"
        index -= 2
    return name


def _name_before(tokens: list[tuple[int, str, str]], end: int) -> int:
    """Index of the name before the last parentheses that end before `end`; -1 where there is none."""
    index = end - 1
    # What may stand between the parameters and the body: qualifiers and a result type.
    while index >= 0 and tokens[index][2] not in (")", ";", "{", "}", "="):
        index -= 1
    if index < 0 or tokens[index][2] != ")":
        return -1
    depth = 0
    while index >= 0:
        if tokens[index][1] == "sign":
            depth += (tokens[index][2] == ")") - (tokens[index][2] == "(")
        if depth == 0:
            break
        index -= 1
    name = tokens[index - 1] if index > 0 else (0, "sign", "")
    return index - 1 if name[1] == "name" and name[2] not in _NOT_FUNCTIONS else -1
