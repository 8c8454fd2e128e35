"""The includes that a C++ source may have, without those in comments and in branches that are certainly dead."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pypto.runtime.errors import UnsupportedArtifactInput


@dataclass(frozen=True)
class Include:
    """One ``#include`` that may take effect.

    Attributes:
        name: what stands between the quotes or brackets.
        angled: whether they are brackets.
        place: file and line, for messages.
    """

    name: str
    angled: bool
    place: str

    def __str__(self) -> str:
        return f"#include <{self.name}>" if self.angled else f'#include "{self.name}"'


_CONTINUED = re.compile(r"\\[ \t]*\r?\n")
# Literals come first, so that what looks like a comment inside of one is none.
_TOKENS = re.compile(
    r"""
      (?P<raw> (?<![A-Za-z0-9_])(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\( .*? \)(?P=delimiter)" )
    | (?P<text> " (?:\\.|[^"\\\n])* " )
    | (?P<number> \d (?: ' [0-9A-Za-z] | [0-9A-Za-z_.] )* )
    | (?P<character> ' (?:\\.|[^'\\\n])* ' )
    | (?P<comment> //[^\n]* | /\*.*?(?:\*/|\Z) )
    """,
    re.VERBOSE | re.DOTALL,
)
_DIRECTIVE = re.compile(r"[ \t]*(?:\#|%:)[ \t]*(\w+)[ \t]*(.*)")
_QUOTED = re.compile(r'"([^"\n]+)"\s*')
_ANGLED = re.compile(r"<([^>\n]+)>\s*")
_ASSEMBLER = re.compile(r"\.(?:incbin|include)\b")
_READS_FILES = frozenset({"include_next", "import", "embed"})


def scan_includes(data: bytes, what: str) -> tuple[Include, ...]:
    """The includes of a source that may take effect, in order.

    Args:
        data: the source; bytes that are no UTF-8 are replaced for the scan.
        what: its name for messages.

    Raises:
        UnsupportedArtifactInput: an include whose file a macro decides, or something else that reads files.
    """
    return tuple(_includes(data.decode("utf-8", "replace"), what))


def _includes(text: str, what: str) -> Iterator[Include]:
    branches = _Branches()
    for number, line in _lines(text):
        place = f"{what}:{number}"
        match = _DIRECTIVE.match(line)
        if match is None:
            if branches.alive and _ASSEMBLER.search(line):
                raise UnsupportedArtifactInput(f"{place}: assembler directives that read files cannot be followed")
            continue
        directive, rest = match[1], match[2].strip()
        if branches.take(directive, rest) or not branches.alive:
            continue
        if directive == "include":
            yield _include(rest, place)
        elif directive in _READS_FILES:
            raise UnsupportedArtifactInput(f"{place}: #{directive} cannot be followed; use #include")
        elif directive == "define" and _ASSEMBLER.search(rest):
            raise UnsupportedArtifactInput(f"{place}: assembler directives that read files cannot be followed")


def _include(rest: str, place: str) -> Include:
    for pattern, angled in ((_QUOTED, False), (_ANGLED, True)):
        match = pattern.fullmatch(rest)
        if match is not None:
            return Include(match[1], angled, place)
    raise UnsupportedArtifactInput(f"{place}: the file of #include {rest} is decided by a macro")


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Logical lines without comments, and the number of the first physical line of each."""
    starts, joined, number = [], [], 1
    for physical in _CONTINUED.sub("\0", text.replace("\0", "\ufffd")).split("\n"):
        starts.append(number)
        joined.append(physical.replace("\0", ""))
        number += 1 + physical.count("\0")
    index = 0
    for line in _TOKENS.sub(_on_one_line, "\n".join(joined)).split("\n"):
        yield starts[index], line.replace("\0", "").rstrip("\r")
        index += 1 + line.count("\0")


def _on_one_line(match: re.Match[str]) -> str:
    """A literal as it is and a comment as one space, with marks in place of the ends of lines."""
    marks = "\0" * match[0].count("\n")
    if match["comment"] is not None:
        return " " + marks
    return match[0] if not marks else match[0].replace("\n", " ") + marks


class _Branches:
    """Which branches of conditions may take effect. Only ``0`` and ``1`` are decided; all else is possible."""

    def __init__(self) -> None:
        # Of each open condition: whether its present branch is live, and whether none after it can be.
        self._open: list[tuple[bool, bool]] = []

    @property
    def alive(self) -> bool:
        return all(live for live, _ in self._open)

    def take(self, directive: str, condition: str) -> bool:
        """Note a directive; whether it was one of a condition."""
        if directive in ("if", "ifdef", "ifndef"):
            known = _value(condition) if directive == "if" else None
            self._open.append((known is not False, known is True))
            return True
        if directive in ("elif", "elifdef", "elifndef", "else"):
            if self._open:
                _, decided = self._open.pop()
                known = _value(condition) if directive == "elif" else (True if directive == "else" else None)
                self._open.append((not decided and known is not False, decided or known is True))
            return True
        if directive == "endif":
            if self._open:
                self._open.pop()
            return True
        return False


def _value(condition: str) -> bool | None:
    return {"0": False, "1": True}.get(condition.strip())
