"""The lock: every file of every tool set by name, version, size and SHA-256."""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pypto._identity.records import digest_record, is_digest
from pypto.toolchain.descriptor import OPTIONAL_ROOTS, ROOTS
from pypto.toolchain.errors import LockError

LOCK_SCHEMA = 1
LOCKED = (*ROOTS, *(name for name in OPTIONAL_ROOTS if name != "cann"))
"""The names of all sets that a lock pins; CANN is installed by its user."""

PACKAGED_LOCK = Path(__file__).with_name("lock.json")

RECIPE = 1
"""Version of how sets are unpacked; raised when the unpacked tree of an unchanged lock changes."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]*")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+~:_-]*")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+~%_-]*")


@dataclass(frozen=True)
class LockedFile:
    """One file to fetch.

    Attributes:
        kind: `wheel` (fetched with pip) or `deb` (fetched with apt).
        name, version: of the package, as its client spells them.
        file: the file's name.
        sha256, size: of its bytes.
        where: for a wheel `platform` and `python` (pip's tags), for a deb `suite` and `architecture`.
    """

    kind: Literal["wheel", "deb"]
    name: str
    version: str
    file: str
    sha256: str
    size: int
    where: Mapping[str, str]

    def record(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "name": self.name,
            "version": self.version,
            "file": self.file,
            "sha256": self.sha256,
            "size": self.size,
            **self.where,
        }


@dataclass(frozen=True)
class LockedSet:
    """One tool set: the version it is known by and its files, sorted by kind and name."""

    name: str
    version: str
    files: tuple[LockedFile, ...]

    def record(self) -> dict[str, Any]:
        return {"version": self.version, "files": [file.record() for file in self.files]}

    @property
    def digest(self) -> str:
        return digest_record({"name": self.name, **self.record()})

    @property
    def size(self) -> int:
        """Bytes to download."""
        return sum(file.size for file in self.files)

    def of(self, kind: str) -> tuple[LockedFile, ...]:
        return tuple(file for file in self.files if file.kind == kind)


@dataclass(frozen=True)
class Lock:
    """The whole lock."""

    sets: Mapping[str, LockedSet]

    def to_bytes(self) -> bytes:
        """The lock file's one spelling: indented, so that a change shows as a readable difference."""
        value = {"schema": LOCK_SCHEMA, "sets": {name: s.record() for name, s in sorted(self.sets.items())}}
        return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=True).encode("ascii") + b"\n"

    def __iter__(self) -> Iterator[LockedSet]:
        return iter(self.sets[name] for name in sorted(self.sets))


def load_lock(path: str | os.PathLike[str] | None = None) -> Lock:
    """Read a lock file (default: the packaged one).

    Raises:
        LockError: unreadable, malformed, or not in the spelling that `python -m pypto.toolchain lock` writes.
    """
    if path is None:
        return _packaged()
    what = f"toolchain lock {os.fspath(path)}"
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise LockError(f"{what} cannot be read: {error.strerror}") from None
    return parse_lock(data, what)


@functools.lru_cache(maxsize=1)
def _packaged() -> Lock:
    return load_lock(PACKAGED_LOCK)


def parse_lock(data: bytes, what: str = "toolchain lock") -> Lock:
    """Read a lock file's content; `what` names it in errors."""
    try:
        value = json.loads(data)
        if value["schema"] != LOCK_SCHEMA:
            raise LockError(f"{what} has schema {value['schema']!r}; this PyPTO reads schema {LOCK_SCHEMA}")
        sets = {}
        for name in LOCKED:
            entry = value["sets"][name]
            files = tuple(_file(fields, f"{what}: {name}") for fields in entry["files"])
            sets[name] = LockedSet(name, entry["version"], files)
    except KeyError as error:
        raise LockError(f"{what} lacks {error.args[0]!r}") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise LockError(f"{what} is malformed: {error}") from None
    lock = Lock(sets)
    if lock.to_bytes() != data:
        raise LockError(f"{what} was edited by hand: only `python -m pypto.toolchain lock` may write it")
    return lock


def _file(fields: Mapping[str, Any], what: str) -> LockedFile:
    where_names = {"wheel": ("platform", "python"), "deb": ("architecture", "suite")}
    if fields["kind"] not in where_names:
        raise LockError(f"{what}: unknown kind of file {fields['kind']!r}")
    where = {name: fields[name] for name in where_names[fields["kind"]]}
    # These texts become arguments of pip and apt and names of files, so nothing but plain names may pass.
    for name, pattern in (("name", _NAME), ("version", _VERSION), ("file", _FILE), *((n, _NAME) for n in where)):
        if not pattern.fullmatch(fields[name]):
            raise LockError(f"{what}: bad {name} {fields[name]!r}")
    if not is_digest(fields["sha256"]) or type(fields["size"]) is not int or fields["size"] <= 0:
        raise LockError(f"{what}: {fields['file']} needs a size and a SHA-256")
    return LockedFile(
        fields["kind"], fields["name"], fields["version"], fields["file"], fields["sha256"], fields["size"], where
    )


def prefix_name(lock: Lock) -> str:
    """Name of the install prefix: changes with every file of the sets that are always installed, and with the way of
    unpacking."""
    return digest_record({"recipe": RECIPE, "sets": {name: lock.sets[name].digest for name in ROOTS}})[:32]
