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
from typing import Any

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
_CHUNK = 1 << 18

_records: dict[str, dict[str, Any]] = {}


def default_package_root() -> Path:
    """The folder of the imported `pypto` package."""
    return Path(__file__).parent.parent


def component_of(relative: str) -> str | None:
    """`pypto` or `runtime` for a file, by its path inside the package (with `/`); None when it does not count."""
    if any(part == "__pycache__" or part.startswith(".") for part in relative.split("/")):
        return None
    found = _pattern().fullmatch(relative)
    return None if found is None else PACKAGE_FILES[int(found.lastgroup[1:])][0]  # type: ignore[index]


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


def package_record(digest: str) -> dict[str, Any] | None:
    """What the digest of a component was taken of, if this process did: under `files`, path and SHA-256 of each."""
    return _records.get(digest)


@functools.lru_cache(maxsize=8)
def _read_package(root: str) -> dict[str, str]:
    entries: dict[str, list[list[str]]] = {"pypto": [], "runtime": []}
    for component, relative in package_files(root):
        entries[component].append([relative, _hash_file(f"{root}/{relative}")])
    for component, files in entries.items():
        if not files:
            raise ValueError(f"it has no files of {component}")
    digests = {}
    for name, files in entries.items():
        record = {"component": name, "files": files}
        digests[name] = digest_record(record)
        _records[digests[name]] = record
    return digests


def _hash_file(path: str) -> str:
    # Plain system calls, without the buffers of `open`: this is most of the time that an identity costs.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"{path} is not a regular file")
        digest = hashlib.sha256()
        size = 0
        while data := os.read(descriptor, _CHUNK):
            digest.update(data)
            size += len(data)
    finally:
        os.close(descriptor)
    if size != status.st_size:
        raise ValueError(f"{path} changed while it was being read")
    return digest.hexdigest()


def _walk(folder: str, relative: str, parents: tuple[tuple[int, int], ...]) -> Iterator[str]:
    status = os.stat(folder)
    identity = (status.st_dev, status.st_ino)
    if identity in parents or len(parents) > _MAX_DEPTH:
        raise ValueError(f"{folder} contains itself by a link")
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if name == "__pycache__" or name.startswith("."):
                continue
            below = f"{relative}/{name}" if relative else name
            # A link's target decides; a broken link is a file that cannot be read.
            if entry.is_dir():
                yield from _walk(entry.path, below, (*parents, identity))
            else:
                yield below


@functools.cache
def _pattern() -> re.Pattern[str]:
    # One expression of all patterns; which one fitted is told by the group's name.
    return re.compile("|".join(f"(?P<p{index}>{_regex(pattern)})" for index, (_, pattern) in enumerate(PACKAGE_FILES)))


def _regex(pattern: str) -> str:
    parts = re.split(r"(\*\*/|\*)", pattern)
    return "".join({"**/": "(?:.+/)?", "*": "[^/]*"}.get(part, re.escape(part)) for part in parts)
