"""Program output directories that are built again and again: which of their binaries may stay.

``binary_context.json`` in such a directory is the mark that its binaries are valid. It records for what they were built
and the digest of each. A transaction removes the mark before it changes anything and publishes it again when everything
is there, so that what a failed or interrupted one leaves is never taken for a result.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from pypto._identity.records import canonical_json, is_digest, parse_canonical_json
from pypto._identity.roles import is_executable
from pypto.runtime.kernel_config import MANIFEST_FILE, KernelConfig

CONTEXT_FILE = "binary_context.json"
CONTEXT_SCHEMA = 2

_PART = ".part"


@dataclass(frozen=True)
class BinaryContext:
    """The content of the mark.

    Attributes:
        context: what the files were built for and from, as plain data.
        files: SHA-256 by relative path.
    """

    context: Mapping[str, Any]
    files: Mapping[str, str]

    def to_bytes(self) -> bytes:
        """Canonical JSON."""
        return canonical_json({"schema": CONTEXT_SCHEMA, "context": dict(self.context), "files": dict(self.files)})

    @classmethod
    def read(cls, directory: Path) -> BinaryContext | None:
        """The mark of a directory; ``None`` when there is none, or one of another schema, or a damaged one."""
        try:
            record = parse_canonical_json((directory / CONTEXT_FILE).read_bytes(), CONTEXT_FILE)
        except (OSError, ValueError):
            return None
        if not isinstance(record, dict) or record.keys() != {"schema", "context", "files"}:
            return None
        context, files = record["context"], record["files"]
        if record["schema"] != CONTEXT_SCHEMA or not isinstance(context, dict) or not isinstance(files, dict):
            return None
        if not all(isinstance(digest, str) and is_digest(digest) for digest in files.values()):
            return None
        return cls(context, files)


@dataclass(frozen=True)
class Positions:
    """Where a transaction writes, as paths relative to the directory. Files elsewhere are the user's or sources.

    Attributes:
        files: every file that a complete directory has.
        folders: folders in which each shared object is the transaction's.
    """

    files: tuple[str, ...]
    folders: tuple[str, ...]

    @classmethod
    def of(cls, config: KernelConfig, assembled: Collection[str]) -> Positions:
        """The positions of a program: its binaries, and the assembled sources."""
        folders = {str(PurePosixPath(path).parent) for path in config.binaries}
        return cls(tuple(sorted((*config.binaries, *assembled))), tuple(sorted(folders)))


@dataclass(frozen=True)
class Built:
    """What was built for the missing files.

    Attributes:
        files: content by relative path.
        covered: whether the context decides all of it; if not, the next transaction trusts nothing.
    """

    files: Mapping[str, bytes]
    covered: bool = True


Build = Callable[[tuple[str, ...]], Built]
"""Makes the missing files."""

Manifest = Callable[[Mapping[str, bytes]], bytes]
"""The binary manifest for the content of all files; raises when a file is not what it must be."""


def complete(
    directory: Path, context: Mapping[str, Any] | None, positions: Positions, build: Build, manifest: Manifest
) -> tuple[str, ...]:
    """One transaction: make every file of ``positions`` present and valid.

    Files that the mark records for this very context and whose digest fits stay as they are. Changed and unrecorded
    ones are removed and missing ones built. Processes take turns.

    Args:
        context: what decides the content of the files; ``None`` when that is not known, so that nothing may stay.

    Returns:
        What was built, sorted.

    Raises:
        OSError: the directory cannot be written.
        Whatever ``build`` and ``manifest`` raise; the directory has no mark then.
    """
    with _locked(directory):
        mark = BinaryContext.read(directory)
        trusted = mark.files if mark is not None and mark.context == context else {}
        kept = {name: data for name in positions.files if (data := _verified(directory, name, trusted)) is not None}
        missing = tuple(name for name in positions.files if name not in kept)
        strays = _strays(directory, positions, kept)
        if not missing and not strays and _read(directory / MANIFEST_FILE) == manifest(kept):
            return ()
        _remove(directory, CONTEXT_FILE)
        _remove(directory, MANIFEST_FILE)
        _flush(directory)
        for name in (*strays, *missing):
            _remove(directory, name)
        built = build(missing) if missing else Built({})
        files = kept | {name: built.files[name] for name in missing}
        listing = manifest(files)
        for name in missing:
            _publish(directory, name, files[name])
        _publish(directory, MANIFEST_FILE, listing)
        if context is not None and built.covered:
            digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
            _publish(directory, CONTEXT_FILE, BinaryContext(context, digests).to_bytes())
        return missing


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    # The directory is its own lock, so that none is left in it.
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _verified(directory: Path, name: str, trusted: Mapping[str, str]) -> bytes | None:
    data = _read(directory / name) if name in trusted else None
    return data if data is not None and hashlib.sha256(data).hexdigest() == trusted[name] else None


def _read(path: Path) -> bytes | None:
    """The bytes of a regular file; ``None`` for anything else. A link's target is not the directory's."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None
        return path.read_bytes()
    except OSError:
        return None


def _strays(directory: Path, positions: Positions, kept: Collection[str]) -> tuple[str, ...]:
    found = []
    for folder in positions.folders:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            for name in sorted(os.listdir(directory / folder)):
                path = f"{folder}/{name}"
                if path not in kept and path not in positions.files and name.endswith((".so", f".so{_PART}")):
                    found.append(path)
    return tuple(found)


def _remove(directory: Path, name: str) -> None:
    (directory / name).unlink(missing_ok=True)


def _publish(directory: Path, name: str, data: bytes) -> None:
    target = directory / name
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + _PART)
    with open(part, "wb") as file:
        file.write(data)
        os.fchmod(file.fileno(), 0o755 if is_executable(name) else 0o644)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, target)
    _flush(target.parent)


def _flush(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Some file systems cannot.
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
