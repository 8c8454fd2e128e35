"""The completion marker: what an entry is and every file it holds, in one canonical spelling."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pypto._identity.records import is_digest, parse_canonical_json
from pypto.jit.artifact_cache.key import ARTIFACT_SCHEMA, ArtifactKey
from pypto.jit.artifact_cache.spec import MARKER_NAME, ArtifactSpec, ArtifactState, BuildKind, check_relative_path

MARKER_LIMIT = 16 * 1024 * 1024
"""Largest marker, in bytes."""

__all__ = ["MARKER_LIMIT", "MARKER_NAME", "FileRecord", "Manifest"]

_FIELDS = {"schema", "key", "components", "state", "build_kind", "required_files", "files"}
_BOOLEAN = {True: "true", False: "false"}
_quoted = json.JSONEncoder(ensure_ascii=False).encode
_FILE_FIELDS = {"path", "size", "sha256", "executable"}


@dataclass(frozen=True, order=True, slots=True)
class FileRecord:
    """One file of an entry: path relative to it, size in bytes, SHA-256, and whether its owner may execute it."""

    path: str
    size: int
    sha256: str
    executable: bool

    def to_record(self) -> dict[str, Any]:
        """The record as plain data."""
        return {"path": self.path, "size": self.size, "sha256": self.sha256, "executable": self.executable}


@dataclass(frozen=True)
class Manifest:
    """Key, spec and files (sorted by path) of one entry."""

    key: ArtifactKey
    spec: ArtifactSpec
    files: tuple[FileRecord, ...]

    def encode(self) -> bytes:
        """The marker's bytes: canonical JSON, joined from parts that were encoded before, since every hit needs it."""
        files = ",".join(
            f'{{"executable":{_BOOLEAN[file.executable]},"path":{_quoted(file.path)},'
            f'"sha256":"{file.sha256}","size":{file.size}}}'
            for file in self.files
        )
        return b"".join(
            (
                f'{{"build_kind":"{self.spec.build_kind.value}","components":'.encode(),
                self.key.encoded,
                f',"files":[{files}],"key":"{self.key.digest}","required_files":'.encode(),
                self.spec.encoded_files,
                f',"schema":{ARTIFACT_SCHEMA},"state":"{self.spec.state.value}"}}'.encode(),
            )
        )

    @classmethod
    def decode(cls, data: bytes, what: str = MARKER_NAME) -> Manifest:
        """The manifest in `data`; `what` names it in errors.

        Raises:
            ValueError: too large, not canonical JSON, or any field missing, unknown or contradictory.
        """
        if len(data) > MARKER_LIMIT:
            raise ValueError(f"{what} is larger than {MARKER_LIMIT} bytes")
        record = parse_canonical_json(data, what)
        try:
            return cls._from_record(record)
        except ValueError as error:
            raise ValueError(f"{what}: {error}") from None

    @classmethod
    def _from_record(cls, record: object) -> Manifest:
        if type(record) is not dict or record.keys() != _FIELDS:
            raise ValueError(f"expected exactly the fields {', '.join(sorted(_FIELDS))}")
        if type(record["schema"]) is not int or record["schema"] != ARTIFACT_SCHEMA:
            raise ValueError(f"artifact schema {record['schema']!r}; this pypto reads {ARTIFACT_SCHEMA}")
        key = ArtifactKey.from_record(record["components"])
        if record["key"] != key.digest:
            raise ValueError("the key does not fit its components")
        required = record["required_files"]
        if type(required) is not list or type(record["files"]) is not list:
            raise ValueError("required_files and files must be lists")
        spec = ArtifactSpec(ArtifactState(record["state"]), BuildKind(record["build_kind"]), tuple(required))
        files = tuple(_file_from_record(item) for item in record["files"])
        paths = [file.path for file in files]
        if list(spec.required_files) != required or sorted(set(paths)) != paths:
            raise ValueError("required_files and files must be sorted and without repetition")
        missing = sorted(set(spec.required_files) - set(paths))
        if missing:
            raise ValueError(f"the required file {missing[0]!r} is not in the list of files")
        return cls(key, spec, files)


def _file_from_record(record: object) -> FileRecord:
    if type(record) is not dict or record.keys() != _FILE_FIELDS:
        raise ValueError(f"a file has exactly the fields {', '.join(sorted(_FILE_FIELDS))}")
    path = check_relative_path(record["path"])
    size, sha256, executable = record["size"], record["sha256"], record["executable"]
    if path == MARKER_NAME:
        raise ValueError(f"{MARKER_NAME} must not list itself")
    if type(size) is not int or size < 0 or not is_digest(sha256) or type(executable) is not bool:
        raise ValueError(f"{path!r}: malformed size, sha256 or executable")
    return FileRecord(path, size, sha256, executable)
