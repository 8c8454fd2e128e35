"""The content of the pypto package itself, as the components `pypto` and `runtime`.

Only bytes and the path inside the package enter, links are followed, and only the files listed here count: a checkout,
a wheel, an editable install and Bazel's runfiles give equal digests.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from pypto._identity.content import Fingerprint
from pypto._identity.records import digest_record

PACKAGE_FILES = (
    ("runtime", "runtime/**/*.py"),
    ("runtime", "runtime/native/**/*.h"),
    ("runtime", "runtime/native/**/*.hpp"),
    ("pypto", "**/*.py"),
    ("pypto", "_environment.json"),
    ("pypto", "py.typed"),
    ("pypto", "toolchain/*.json"),
    ("pypto", "toolchain/compat/**/*.h"),
    ("pypto", "toolchain/compat/**/*.hpp"),
    ("pypto", "toolchain/compat/**/stdfloat"),
)
"""(component, pattern) of every file that takes part; the first pattern that fits decides. `**/` spans folders."""

_MAX_DEPTH = 32


def default_package_root() -> Path:
    """The folder of the imported `pypto` package."""
    return Path(__file__).parent.parent


def component_of(relative: str) -> str | None:
    """`pypto` or `runtime` for a file, by its path inside the package (with `/`); None when it does not count."""
    if any(part == "__pycache__" or part.startswith(".") for part in relative.split("/")):
        return None
    return next((component for component, pattern in _patterns() if pattern.fullmatch(relative)), None)


def package_files(package_root: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """(component, path inside the package) of all files that count, sorted by path.

    Raises:
        OSError: a folder cannot be read, or a link leads nowhere.
        ValueError: a folder that contains itself by a link.
    """
    found = []
    for relative in _walk(os.fspath(package_root), "", ()):
        component = component_of(relative)
        if component is not None:
            found.append((component, relative))
    return sorted(found, key=lambda item: item[1])


def package_fingerprints(package_root: str | os.PathLike[str]) -> dict[str, Fingerprint]:
    """Fingerprints of the components `pypto` and `runtime`; a reason where a file cannot be read or none is there.

    Read once per process and folder: a package must not change under a running process.
    """
    root = os.path.realpath(package_root)
    try:
        return {name: Fingerprint(digest) for name, digest in _read_package(root).items()}
    except (OSError, ValueError) as error:
        unavailable = Fingerprint(None, f"the package in {root} cannot be read: {error}")
        return {"pypto": unavailable, "runtime": unavailable}


@functools.lru_cache(maxsize=8)
def _read_package(root: str) -> dict[str, str]:
    entries: dict[str, list[list[str]]] = {"pypto": [], "runtime": []}
    for component, relative in package_files(root):
        data = Path(root, relative).read_bytes()
        entries[component].append([relative, hashlib.sha256(data).hexdigest()])
    for component, files in entries.items():
        if not files:
            raise ValueError(f"it has no files of {component}")
    return {name: digest_record({"component": name, "files": files}) for name, files in entries.items()}


def _walk(folder: str, relative: str, parents: tuple[tuple[int, int], ...]) -> Iterator[str]:
    status = os.stat(folder)
    identity = (status.st_dev, status.st_ino)
    if identity in parents or len(parents) > _MAX_DEPTH:
        raise ValueError(f"{folder} contains itself by a link")
    for name in os.listdir(folder):
        if name == "__pycache__" or name.startswith("."):
            continue
        path = os.path.join(folder, name)
        below = f"{relative}/{name}" if relative else name
        if stat.S_ISDIR(os.stat(path).st_mode):
            yield from _walk(path, below, (*parents, identity))
        else:
            yield below


@functools.cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((component, re.compile(_regex(pattern))) for component, pattern in PACKAGE_FILES)


def _regex(pattern: str) -> str:
    parts = re.split(r"(\*\*/|\*)", pattern)
    return "".join({"**/": "(?:.+/)?", "*": "[^/]*"}.get(part, re.escape(part)) for part in parts)
