"""The compiler's own list of what it read, compared with what the identity of a build covers.

An identity is computed before the compiler runs: from the tool sets, this package and the sources. The list that the
compiler writes says what it really opened; a file that only the list knows is one whose change nobody would notice.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Collection

_SET = re.compile(r"t/([^/]+)/(.+)")
_WORD = re.compile(r"(?:\\.|\$\$|[^\s\\])+", re.DOTALL)


def parse_dependencies(text: str) -> tuple[str, ...]:
    """The prerequisites of a rule in the syntax of make, in their order, each once."""
    _, _, rest = text.replace("\\\n", " ").partition(": ")
    words = (re.sub(r"\\(.)", r"\1", word).replace("$$", "$") for word in _WORD.findall(rest))
    return tuple(dict.fromkeys(words))


def uncovered(
    dependencies: Collection[str], sets: Collection[str], sources: Collection[str], system: Collection[str] = ()
) -> tuple[str, ...]:
    """Those files that no identity covers, sorted.

    Args:
        dependencies: paths as the compiler wrote them, relative to its private root.
        sets: names of the tool sets in ``t``.
        sources: paths below ``w`` that were written for this compilation.
        system: real paths of folders that belong to a compiler of this machine.
    """
    return tuple(
        sorted({path for path in dependencies if not (_is_covered(path, sets, sources) or _lies_below(path, system))})
    )


def _is_covered(path: str, sets: Collection[str], sources: Collection[str]) -> bool:
    if path.startswith("w/"):
        return posixpath.normpath(path[2:]) in sources
    match = _SET.fullmatch(path)
    if match is None:
        return False
    # `t/<set>` is a link, so a path that leaves it does not come back to `t`.
    inside = posixpath.normpath(match[2])
    if inside.startswith("../") or inside == "..":
        return False
    return match[1] in sets or (match[1] == "pypto" and inside.startswith("pypto/"))


def _lies_below(path: str, folders: Collection[str]) -> bool:
    return path.startswith("/") and any(os.path.realpath(path).startswith(f"{folder}/") for folder in folders)
