#!/usr/bin/env python3
"""Write what follows from the table of operations: `tools/op_tables.py` (`--check` only compares).

Type stubs of `pl`, `pl.tile` and `pl.tensor` for editors and type checkers, and `docs/reference/ops.md`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_ROOT), str(_ROOT / "tools")]

from op_page import page  # noqa: E402

from pypto.ir.ops.user_names import UserName, user_names  # noqa: E402

_HEAD = '''"""Written by tools/op_tables.py; do not edit."""

from typing import Any

from pypto.ir.types import *

'''


def stub(entry: UserName) -> str:
    """The declaration of a name."""
    doc = f"Not supported: {entry.unsupported}." if entry.unsupported else entry.doc
    parameters = ", ".join(_typed(part) for part in _split(entry.parameters))
    return f'def {entry.name}({parameters}) -> Any:\n    """{doc}"""\n'


def _split(parameters: str) -> list[str]:
    return [part.strip() for part in parameters.split(",")] if parameters else []


def _typed(parameter: str) -> str:
    name, equals, default = (part.strip() for part in parameter.partition("="))
    if name == "*":
        return name
    return f"{name}: Any = {default}" if equals else f"{name}: Any"


def files() -> dict[Path, str]:
    """Every generated file with its text."""
    language = _ROOT / "pypto/language"
    stubs = {
        language / f"_{space}.pyi": _HEAD + "\n".join(stub(entry) for entry in user_names(space).values())
        for space in ("pl", "tile", "tensor")
    }
    return {**stubs, _ROOT / "docs/reference/ops.md": page()}


def main() -> int:
    """Write the files, or say which of them differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if a file is out of date")
    check = parser.parse_args().check
    stale = [p for p, text in files().items() if not p.exists() or p.read_text(encoding="utf-8") != text]
    for path in stale:
        if check:
            print(f"{path.relative_to(_ROOT)} is out of date: run tools/op_tables.py", file=sys.stderr)
        else:
            path.write_text(files()[path], encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
