"""Reads of the environment in shell scripts: variables that are used before the script gives them a value."""

from __future__ import annotations

import re

from environment_python import MODULE, Read

# Comments and single-quoted text expand nothing; `'` inside double quotes is a plain character.
_TOKEN = re.compile(
    r"""(?:(?<=\s)|^)\#[^\n]*|'[^']*'|\\.|"(?P<quoted>(?:\\.|[^"\\])*)"|(?P<plain>[^'"\\\#]+|.)""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
_USE = re.compile(r"(?<!\\)\$(?:\{[#!]?)?([A-Za-z_]\w*)")
_GIVEN = re.compile(r"(?:^|[;&|\s])(?:export\s+|local\s+|readonly\s+)?([A-Za-z_]\w*)=|\b(?:for|read(?:\s+-r)?)\s+(\w+)")


def shell_reads(source: str) -> list[Read]:
    """All reads of a script; an indirect expansion and a bare `env` are dynamic reads."""
    code = "".join(_kept(match) for match in _TOKEN.finditer(source))
    given: set[str] = set()
    found = []
    statements = [(n, part) for n, line in enumerate(code.split("\n"), 1) for part in line.split(";")]
    for number, statement in statements:
        for use in _USE.finditer(statement):
            if use.group().startswith("${!"):
                found.append(Read(number, MODULE, None))
            elif use.group(1) not in given:
                found.append(Read(number, MODULE, use.group(1)))
        if re.search(r"(?:^|[&|(]|\$\()\s*(?:env|printenv|set)\s*(?:$|[&|)])", statement):
            found.append(Read(number, MODULE, None))
        given |= {name for match in _GIVEN.finditer(statement) for name in match.groups() if name}
    return found


def _kept(match: re.Match[str]) -> str:
    text = match.group()
    if match.group("quoted") is not None or match.group("plain") is not None:
        return text
    return "\n" * text.count("\n")
