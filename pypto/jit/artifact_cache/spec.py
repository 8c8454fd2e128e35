"""Which stage of an artifact is asked for, and which files it must hold."""

from __future__ import annotations

import enum
import hashlib
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from pypto._identity.records import canonical_json

MARKER_NAME = "artifact_manifest.json"


class ArtifactState(enum.Enum):
    """Stage of an artifact; the value is the name of its directory."""

    GENERATED = "generated"
    BINARY_READY = "ready"


class BuildKind(enum.Enum):
    """Whether an artifact is for one chip or has children for several."""

    SINGLE_CHIP = "single_chip"
    DISTRIBUTED = "distributed"


def check_relative_path(path: object) -> str:
    """`path`, when it is canonical and relative: parts joined by `/`, none of them empty, `.` or `..`.

    Raises:
        ValueError: anything else, a backslash, a NUL byte or text that is no UTF-8 included.
    """
    if type(path) is not str or not path:
        raise ValueError(f"a file of an artifact is named by a relative path, not by {path!r}")
    if "\\" in path or "\0" in path:
        raise ValueError(f"{path!r}: backslashes and NUL bytes are not allowed in an artifact's paths")
    if any(part in ("", ".", "..") for part in path.split("/")):
        raise ValueError(f"{path!r} is not a canonical relative path")
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"{path!r}: an artifact's paths must be UTF-8") from None
    return path


@dataclass(frozen=True)
class ArtifactSpec:
    """The stage, the kind of build and the files without which the stage is not complete (kept sorted).

    Raises:
        ValueError: no files, a repeated or unsafe path, the marker's own name, or no member of the two enums.
    """

    state: ArtifactState
    build_kind: BuildKind
    required_files: tuple[str, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.state, ArtifactState):
            raise ValueError(f"state must be an ArtifactState, not {self.state!r}")
        if not isinstance(self.build_kind, BuildKind):
            raise ValueError(f"build_kind must be a BuildKind, not {self.build_kind!r}")
        given: object = self.required_files
        if isinstance(given, str):
            raise ValueError("required_files must be a list of paths, not one string")
        files = tuple(sorted(check_relative_path(path) for path in self.required_files))
        if not files:
            raise ValueError("required_files must not be empty")
        repeated = [path for path, following in pairwise(files) if path == following]
        if repeated:
            raise ValueError(f"required_files names {repeated[0]!r} twice")
        if MARKER_NAME in files:
            raise ValueError(f"{MARKER_NAME} is the store's own file and cannot be required")
        object.__setattr__(self, "required_files", files)

    @cached_property
    def encoded_files(self) -> bytes:
        """The canonical JSON of the required files."""
        return canonical_json(list(self.required_files))

    @cached_property
    def digest(self) -> str:
        """SHA-256 over stage, kind and sorted required files: the third folder level of the store."""
        record = {
            "state": self.state.value,
            "build_kind": self.build_kind.value,
            "required_files": list(self.required_files),
        }
        return hashlib.sha256(canonical_json(record)).hexdigest()
