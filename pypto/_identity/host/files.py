"""Files as evidence: digests, Build-IDs, and finding programs as the execution in the project root would."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable

from pypto._identity.elf import MalformedElf, read_build_id
from pypto._identity.host.records import NativeRecord, ProgramRecord

_CHUNK = 1 << 20


class Unidentified(Exception):
    """Something that acts on the build cannot be identified; the message says what and why."""


def native_record(path: str, *, whole: bool = False) -> NativeRecord:
    """Evidence of a native file: its Build-ID from the small note, else (or with `whole`, too) the digest of its bytes.

    Raises:
        Unidentified: the file cannot be read.
    """
    try:
        build_id = read_build_id(path)
    except MalformedElf:
        # An unusable note is no evidence, and the bytes always are.
        build_id = None
    except OSError as error:
        raise Unidentified(f"{path}: cannot be read: {error.strerror}") from None
    return {"build_id": build_id, "sha256": file_digest(path) if whole or build_id is None else None}


def program_record(path: str, *, whole: bool = False) -> ProgramRecord:
    """`native_record` with the path."""
    return {"path": path, "native": native_record(path, whole=whole)}


def file_digest(path: str) -> str:
    """SHA-256 of a regular file's bytes.

    Raises:
        Unidentified: it cannot be read, is no regular file, or changed while it was read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise Unidentified(f"{path}: cannot be read: {error.strerror}") from None
    try:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            raise Unidentified(f"{path}: not a regular file")
        digest = hashlib.sha256()
        while chunk := os.read(descriptor, _CHUNK):
            digest.update(chunk)
        after = os.fstat(descriptor)
    except OSError as error:
        raise Unidentified(f"{path}: cannot be read: {error.strerror}") from None
    finally:
        os.close(descriptor)
    if _state(before) != _state(after):
        raise Unidentified(f"{path}: the file changed while it was being read")
    return digest.hexdigest()


def read_small(path: str, limit: int = 1 << 20) -> bytes:
    """The bytes of a small file.

    Raises:
        Unidentified: it cannot be read or is larger than `limit` bytes.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise Unidentified(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > limit:
        raise Unidentified(f"{path}: larger than {limit} bytes")
    return data


def is_elf(path: str) -> bool:
    """Whether the file begins as an ELF file does; False for one that cannot be read."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def is_executable(path: str) -> bool:
    """Whether `path` is a regular file that this process may execute."""
    return os.path.isfile(path) and os.access(path, os.X_OK)


def find_program(name: str, search_path: str, folder: str) -> str:
    """The absolute path of the program that `name` starts when the working directory is `folder`.

    A name with a slash is a path; any other is looked up on `search_path`, whose relative and empty entries are
    relative to `folder`. Links are not resolved: an entry's name may decide what it does.

    Raises:
        Unidentified: there is none.
    """
    if "/" in name:
        path = os.path.join(folder, name)
        if not is_executable(path):
            raise Unidentified(f"{path}: not an executable file")
        return path
    for entry in search_path.split(os.pathsep):
        path = os.path.join(folder, entry, name) if entry else os.path.join(folder, name)
        if is_executable(path):
            return path
    raise Unidentified(f"no program {name!r} on PATH")


def lies_in(path: str, folders: Iterable[str]) -> bool:
    """Whether `path` is one of `folders` or below one; all as they are, no links resolved."""
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def _state(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
