"""Checks the files of a library in an action: ``check_sources [--import-root DIR]... --out FILE SOURCE...``.

Every module that a file imports, wherever in the file, must be one that a build offers. Nothing is executed.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ALWAYS = {"pypto", *sys.stdlib_module_names}


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and dotted name of every absolute import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.lineno, node.module


def offered(name: str, roots: Sequence[Path]) -> bool:
    """Whether a module is in the standard library, in pypto or below one of the roots."""
    if name.partition(".")[0] in ALWAYS:
        return True
    path = name.replace(".", "/")
    return any((root / f"{path}.py").is_file() or (root / path).is_dir() for root in roots)


def problems(source: Path, roots: Sequence[Path]) -> Iterator[str]:
    """What is wrong with a file, as lines that name the place."""
    try:
        tree = ast.parse(source.read_bytes(), str(source))
    except SyntaxError as error:
        yield f"{source}:{error.lineno or 1}: error: {error.msg}"
        return
    for line, name in imported(tree):
        if not offered(name, roots):
            yield (
                f"{source}:{line}: error: {name!r} is not in the standard library, in pypto or in a target of `deps`, "
                "and a build offers nothing else"
            )


def main() -> int:
    ask = argparse.ArgumentParser()
    ask.add_argument("--import-root", type=Path, action="append", default=[])
    ask.add_argument("--out", type=Path, required=True)
    ask.add_argument("sources", type=Path, nargs="*")
    given = ask.parse_args()
    found = [line for source in given.sources for line in problems(source, given.import_root)]
    if found:
        print(*found, sep="\n", file=sys.stderr)
        return 1
    given.out.write_text("")
    return 0


if __name__ == "__main__":
    sys.exit(main())
