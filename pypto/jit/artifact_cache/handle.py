"""A validated entry of a store."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pypto.jit.artifact_cache.key import ArtifactKey
from pypto.jit.artifact_cache.manifest import FileRecord
from pypto.jit.artifact_cache.spec import ArtifactSpec
from pypto.jit.artifact_cache.tree import TreeError, directory_below, file_below, open_directory, read_exactly
from pypto.jit.artifact_cache.write import write_file


class ArtifactDamaged(ValueError):
    """A file of a validated entry no longer has the bytes that were validated; the message names it."""


def check_bytes(record: FileRecord, data: bytes, where: str) -> bytes:
    """`data`, when it is what the record says.

    Raises:
        ArtifactDamaged: other size or digest; `where` names the entry.
    """
    if len(data) != record.size:
        raise ArtifactDamaged(f"{where}/{record.path}: {len(data)} bytes, the manifest says {record.size}")
    if hashlib.sha256(data).hexdigest() != record.sha256:
        raise ArtifactDamaged(f"{where}/{record.path}: its bytes do not have the SHA-256 of the manifest")
    return data


@dataclass(frozen=True)
class ArtifactHandle:
    """An entry that was validated completely. Its files must stay as they are while the handle is in use.

    root: the store's root; directory: the entry, below it.
    """

    root: Path
    key: ArtifactKey
    spec: ArtifactSpec
    records: tuple[FileRecord, ...]
    payload: Mapping[str, bytes] | None = field(default=None, repr=False, compare=False)

    @property
    def parts(self) -> tuple[str, ...]:
        """Folder names from the root to the entry."""
        return entry_parts(self.key, self.spec)

    @property
    def directory(self) -> Path:
        """The entry's directory."""
        return self.root.joinpath(*self.parts)

    def files(self) -> tuple[FileRecord, ...]:
        """All files of the entry except its marker, sorted by path."""
        return self.records

    def read(self, path: str) -> bytes:
        """Bytes of one file: those that validation hashed, when it kept them, else read and checked now.

        Raises:
            ArtifactDamaged: the file is not the one that was validated, or the entry has no such file.
            OSError: it cannot be read.
        """
        record = next((record for record in self.records if record.path == path), None)
        if record is None:
            raise ArtifactDamaged(f"{self.directory} has no file {path!r}")
        if self.payload is not None and path in self.payload:
            return self.payload[path]
        try:
            with directory_below(self.root, self.parts) as directory:
                return _read(directory, record, str(self.directory))
        except TreeError as error:
            raise ArtifactDamaged(f"{self.directory}: {error}") from None

    def materialize(self, target: str | os.PathLike[str]) -> Path:
        """Copy the files, without the marker, into an empty directory outside the store, and return it.

        The directory is made when absent, its parents are not. Copies are independent, readable and writable by their
        owner, executable where the manifest says so, and checked against their digests.

        Raises:
            ValueError: the target lies in the store (links resolved) or is not an empty directory.
            ArtifactDamaged: a file is not the one that was validated.
            OSError: a file cannot be read or written.
        """
        place = Path(os.path.realpath(target))
        if place.is_relative_to(os.path.realpath(self.root)):
            raise ValueError(f"{os.fspath(target)} lies in the store {self.root}; give a directory outside it")
        try:
            place.mkdir(mode=0o700)
        except FileExistsError:
            if not place.is_dir() or any(place.iterdir()):
                raise ValueError(f"{os.fspath(target)} is not an empty directory") from None
        output = open_directory(place)
        try:
            with directory_below(self.root, self.parts) as directory:
                for record in self.records:
                    data = _read(directory, record, str(self.directory))
                    write_file(output, record.path, data, executable=record.executable)
        except TreeError as error:
            raise ArtifactDamaged(f"{self.directory}: {error}") from None
        finally:
            os.close(output)
        return place


def entry_parts(key: ArtifactKey, spec: ArtifactSpec) -> tuple[str, ...]:
    """Folder names from a store's or bundle's root to one entry."""
    return (*slot_parts(key, spec.digest), spec.state.value)


def slot_parts(key: ArtifactKey, spec_digest: str) -> tuple[str, ...]:
    """Folder names from a store's or bundle's root to one slot."""
    return ("artifacts", key.environment_digest, key.digest, spec_digest)


def _read(directory: int, record: FileRecord, where: str) -> bytes:
    with file_below(directory, record.path) as (descriptor, _):
        data = read_exactly(descriptor, record.size + 1)
    return check_bytes(record, data, where)
