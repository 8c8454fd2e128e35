#!/usr/bin/env python3
"""Check that `pypto/_environment.json` lists every environment variable that the project reads.

    python tests/lint/check_environment_inputs.py [ROOT]

Looks at every Python, Starlark, shell and C++ file of pypto/, rules/, toolchains/ and tools/, imports none of them and
needs nothing but Python. Fails for a variable that is read and not listed, for a read of a name that only the run knows
(or of the whole environment) without an exception for exactly that function, for an exception that nothing needs, and
for a file that it cannot read.

It cannot show that the list is complete: programs that are started read variables of their own, as do libraries, and
reflection (`getattr(os, computed)`, `exec`) hides reads from it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from environment_cpp import cpp_reads
from environment_python import Read, python_reads
from environment_shell import shell_reads

FOLDERS = ("pypto", "rules", "toolchains", "tools")
REGISTRY = "pypto/_environment.json"
CLASSES = ("semantic", "tool_resolution", "fresh_request", "nonsemantic")

_PYTHON = (".py", ".pyi", ".bzl", ".bazel", ".BUILD")
_CPP = (".h", ".hh", ".hpp", ".hxx", ".c", ".cc", ".cpp", ".cxx", ".inc", ".inl", ".cce")
_DATA = (".json", ".md", ".txt", ".typed", ".toml", ".lock", ".patch", ".rst", ".pyc", ".so", ".deb", ".whl", ".zip")
_PAGES = (".css", ".html", ".js")  # what a browser shows, where there is no environment
_SKIPPED = ("__pycache__", "node_modules")
_NO_SUFFIX_CPP = {"stdfloat"}
"""Headers that are named like those of the standard library."""


@dataclass(frozen=True)
class Registry:
    """What the registry says: known variables, and dynamic reads that have an exception."""

    variables: frozenset[str]
    exceptions: frozenset[tuple[str, str]]


class RegistryError(Exception):
    """The registry itself is wrong; every text is one complaint."""


def read_registry(path: Path) -> Registry:
    """Read and check the registry.

    Raises:
        RegistryError: it cannot be read, or an entry has no class or reason.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RegistryError(f"{path} cannot be read: {error}") from None
    wrong = [*_wrong_shape(record)]
    if wrong:
        raise RegistryError(*(f"{path}: {text}" for text in wrong))
    exceptions = [(item["file"], item["function"]) for item in record["dynamic_reads"]]
    twice = sorted({item for item in exceptions if exceptions.count(item) > 1})
    if twice:
        raise RegistryError(*(f"{path}: two exceptions for {function} of {file}" for file, function in twice))
    return Registry(frozenset(record["variables"]), frozenset(exceptions))


def _wrong_shape(record: Any) -> Iterator[str]:
    if not isinstance(record, dict) or record.keys() != {"schema", "variables", "dynamic_reads"}:
        yield "it has exactly the fields schema, variables and dynamic_reads"
        return
    if record["schema"] != 1:
        yield f"unknown schema {record['schema']!r}"
    for name, entry in record["variables"].items():
        if not isinstance(entry, dict) or not {"class", "reason"} <= entry.keys() <= {"class", "reason", "flag"}:
            yield f"{name} has a class, a reason and, if Bazel sets it, a flag"
        elif entry["class"] not in CLASSES:
            yield f"{name} has the class {entry['class']!r}; the classes are {', '.join(CLASSES)}"
        elif not isinstance(entry["reason"], str) or not entry["reason"].strip():
            yield f"{name} has no reason"
    for item in record["dynamic_reads"]:
        if not isinstance(item, dict) or item.keys() != {"file", "function", "reason"}:
            yield f"an exception has exactly the fields file, function and reason, not {item!r}"
        elif not all(isinstance(item[field], str) and item[field].strip() for field in item):
            yield f"the exception for {item['function']!r} of {item['file']!r} needs a reason, a file and a function"


def check(root: Path, registry: Registry | None = None) -> list[str]:
    """All complaints about a checkout; none means that it is well.

    Raises:
        RegistryError: the registry itself is wrong.
    """
    if registry is None:
        registry = read_registry(root / REGISTRY)
    complaints: list[str] = []
    needed = set()
    for path in _files(root):
        name = path.relative_to(root).as_posix()
        try:
            reads = _reads(path)
        except (SyntaxError, ValueError, OSError, RecursionError) as error:
            complaints.append(f"{name}: cannot be checked: {error}")
            continue
        for read in reads:
            if read.name is None:
                needed.add((name, read.function))
                if (name, read.function) not in registry.exceptions:
                    complaints.append(
                        f"{name}:{read.line}: {read.function} reads variables whose names only the run knows; give it "
                        f"an exception with a reason in {REGISTRY}"
                    )
            elif read.name not in registry.variables:
                complaints.append(f"{name}:{read.line}: {read.name} is read and not listed in {REGISTRY}")
    complaints += [
        f"{file}: the exception for {function} is not needed; remove it from {REGISTRY}"
        for file, function in sorted(registry.exceptions - needed)
    ]
    return complaints


def _files(root: Path) -> Iterator[Path]:
    for top in FOLDERS:
        for folder, folders, names in os.walk(root / top, onerror=_raise):
            folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith("."))
            yield from (Path(folder, name) for name in sorted(names) if not name.startswith("."))


def _raise(error: OSError) -> None:
    # A folder that is not there has no reads; one that cannot be listed may have some.
    if not isinstance(error, FileNotFoundError):
        raise error


def _reads(path: Path) -> list[Read]:
    if path.suffix in (*_DATA, *_PAGES):
        return []
    text = path.read_bytes().decode("utf-8")
    if path.suffix == ".sh" or path.name.endswith(".sh.tpl"):
        return shell_reads(text)
    if path.suffix in _PYTHON or (not path.suffix and _starts_python(text)) or path.name in ("BUILD", "WORKSPACE"):
        return python_reads(text, str(path))
    if path.suffix in _CPP or path.name in _NO_SUFFIX_CPP:
        return cpp_reads(text)
    raise ValueError("a kind of file that this check does not know; teach it, or move the file")


def _starts_python(text: str) -> bool:
    first = text.split("\n", 1)[0]
    return first.startswith("#!") and "python" in first


def main(arguments: list[str]) -> int:
    """Check the checkout given (default: this one), print the complaints, return the exit status."""
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parents[2]
    try:
        complaints = check(root)
    except RegistryError as error:
        complaints = list(map(str, error.args))
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
