"""Opening bundles. Opening checks `bundle.json` and every manifest; a kernel's files are checked when it is loaded.

Nothing is written, no process is started, and no byte is used before its digest was checked.
"""

from __future__ import annotations

import hashlib
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pypto._identity.records import is_digest
from pypto._identity.source import SOURCE_SCHEMA, SPECIALIZATION_SCHEMA
from pypto.bundle.description import (
    BUNDLE_FILE,
    BundleDescription,
    EntryDescription,
    Schemas,
    Stage,
    UnknownBundleSchema,
)
from pypto.bundle.errors import BundleDamaged, BundleIncompatible, UnknownKernel
from pypto.bundle.files import list_files, read_file
from pypto.jit.artifact_cache.handle import check_bytes, entry_parts
from pypto.jit.artifact_cache.key import ARTIFACT_SCHEMA, ArtifactKey
from pypto.jit.artifact_cache.manifest import MARKER_LIMIT, MARKER_NAME, FileRecord, Manifest
from pypto.jit.artifact_cache.spec import ArtifactSpec, ArtifactState
from pypto.jit.artifact_cache.write import write_file

if TYPE_CHECKING:
    from pypto.bundle.kernel import SealedKernel

_BUNDLE_LIMIT = 64 * 1024 * 1024


@dataclass(frozen=True)
class BundleArtifact:
    """One stage of one entry; its manifest has been checked, its files are checked whenever they are read."""

    root: Path
    manifest: Manifest

    @property
    def key(self) -> ArtifactKey:
        """The artifact's key."""
        return self.manifest.key

    @property
    def spec(self) -> ArtifactSpec:
        """The artifact's spec."""
        return self.manifest.spec

    @property
    def directory(self) -> Path:
        """The stage's directory in the bundle."""
        return self.root.joinpath(*entry_parts(self.key, self.spec))

    def files(self) -> tuple[FileRecord, ...]:
        """All files but the manifest, sorted by path."""
        return self.manifest.files

    def read(self, path: str) -> bytes:
        """Bytes of one file, checked.

        Raises:
            BundleDamaged: missing, or not what the manifest says.
        """
        record = next((record for record in self.manifest.files if record.path == path), None)
        if record is None:
            raise BundleDamaged(f"{self.directory} has no file {path!r}")
        return self._read(record)

    def load(self) -> dict[str, bytes]:
        """Bytes of all files by path: each is read once and checked; none may be missing or extra.

        Raises:
            BundleDamaged: naming the file.
        """
        try:
            present = set(list_files(self.directory)) - {MARKER_NAME}
        except (OSError, ValueError) as error:
            raise BundleDamaged(f"{self.directory} cannot be read: {error}") from None
        extra = sorted(present - {record.path for record in self.manifest.files})
        if extra:
            raise BundleDamaged(f"{self.directory / extra[0]} does not belong to the bundle")
        return {record.path: self._read(record) for record in self.manifest.files}

    def materialize(self, target: str | os.PathLike[str]) -> Path:
        """Write all files, checked, into an empty directory (made when absent), with the modes of the manifest.

        Raises:
            BundleDamaged: naming the file.
            ValueError: the directory is not empty.
        """
        place = Path(target)
        place.mkdir(mode=0o700, exist_ok=True)
        if any(place.iterdir()):
            raise ValueError(f"{place} is not an empty directory")
        payload = self.load()
        output = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for record in self.manifest.files:
                write_file(output, record.path, payload[record.path], executable=record.executable)
        finally:
            os.close(output)
        return place

    def _read(self, record: FileRecord) -> bytes:
        try:
            data = read_file(self.directory, record.path, record.size)
            return check_bytes(record, data, str(self.directory))
        except FileNotFoundError:
            raise BundleDamaged(f"{self.directory / record.path} is missing") from None
        except OSError as error:
            raise BundleDamaged(f"{self.directory / record.path} cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise BundleDamaged(str(error)) from None


@dataclass(frozen=True)
class BundleEntry:
    """One specialization of one kernel in an open bundle."""

    description: EntryDescription
    generated: BundleArtifact
    ready: BundleArtifact

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.description.name

    @property
    def key(self) -> ArtifactKey:
        """The artifact key."""
        return self.description.key


@dataclass(frozen=True)
class Bundle:
    """An open bundle; safe to use from many threads, and to read from a read-only place."""

    path: Path
    description: BundleDescription
    entries: tuple[BundleEntry, ...]
    _loaded: dict[str, SealedKernel] = field(default_factory=dict, init=False, repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    def __repr__(self) -> str:
        return f"<Bundle {self.path}: {', '.join(self.names())}>"

    @property
    def digest(self) -> str:
        """The bundle's digest: 64 lower-case hexadecimal digits that name every byte in it."""
        return self.description.digest

    def names(self) -> list[str]:
        """Names of the kernels, sorted, each once."""
        return sorted({entry.name for entry in self.entries})

    def find(self, key: ArtifactKey | str) -> BundleEntry | None:
        """The entry of one key (or key digest), or None."""
        wanted = key.digest if isinstance(key, ArtifactKey) else key
        return next((entry for entry in self.entries if entry.key.digest == wanted), None)

    def find_request(self, source_digest: str, specialization_digest: str) -> BundleEntry | None:
        """The entry for a request, with the environment that this bundle was sealed with."""
        return self.find(ArtifactKey(self.description.environment, source_digest, specialization_digest))

    def specializations(self, name: str) -> tuple[BundleEntry, ...]:
        """All specializations of one kernel.

        Raises:
            UnknownKernel: no kernel of that name.
        """
        found = tuple(entry for entry in self.entries if entry.name == name)
        if not found:
            raise UnknownKernel(f"the bundle {self.path} has no kernel {name!r}; it has {', '.join(self.names())}")
        return found

    def load(self, name: str) -> SealedKernel:
        """The kernel `name` as a callable that chooses the specialization by its arguments.

        The files of every specialization of that name are read and checked now; the same callable is returned again.

        Raises:
            UnknownKernel: no kernel of that name.
            BundleDamaged: naming the file.
            pypto.runtime.errors.LoadError: intact files that this process cannot load.
        """
        from pypto.bundle.kernel import SealedKernel

        found = self.specializations(name)
        with self._lock:
            if name not in self._loaded:
                self._loaded[name] = SealedKernel.load(found)
            return self._loaded[name]

    def verify(self) -> None:
        """Check every file of the bundle.

        Raises:
            BundleDamaged: naming the first file that is damaged, missing or extra.
        """
        expected = {BUNDLE_FILE}
        for artifact in self.artifacts():
            artifact.load()
            folder = "/".join(entry_parts(artifact.key, artifact.spec))
            expected |= {f"{folder}/{record.path}" for record in artifact.files()} | {f"{folder}/{MARKER_NAME}"}
        try:
            present = list_files(self.path)
        except (OSError, ValueError) as error:
            raise BundleDamaged(f"{self.path} cannot be read: {error}") from None
        extra = next((path for path in present if path not in expected), None)
        if extra is not None:
            raise BundleDamaged(f"{self.path / extra} does not belong to the bundle")

    def artifacts(self) -> list[BundleArtifact]:
        """Both stages of every entry."""
        return [artifact for entry in self.entries for artifact in (entry.generated, entry.ready)]


def import_bundle(path: str | os.PathLike[str], digest: str | None = None) -> Bundle:
    """Open the bundle in the directory `path` for use.

    Args:
        digest: the digest that the bundle must have: pin it in a deployment, where the bundle comes from elsewhere.

    Raises:
        BundleDamaged: `bundle.json` or a manifest is missing or not what it says; the message names the file.
        BundleIncompatible: another digest than asked for, or made for a pypto of other schemas or runtime ABI.
        ValueError: `digest` is no SHA-256.
    """
    if digest is not None and not is_digest(digest):
        raise ValueError(f"digest must be 64 lower-case hexadecimal digits, got {digest!r}")
    bundle = open_bundle(path, digest)
    _check_compatible(bundle)
    return bundle


def open_bundle(path: str | os.PathLike[str], digest: str | None = None) -> Bundle:
    """Open a bundle to look at it, whether or not this process could run it; otherwise as `import_bundle`."""
    root = Path(os.path.abspath(path))
    file = root / BUNDLE_FILE
    try:
        data = read_file(root, BUNDLE_FILE, _BUNDLE_LIMIT)
        description = BundleDescription.decode(data, str(file))
    except FileNotFoundError:
        reason = f"it has no {BUNDLE_FILE}" if root.is_dir() else "there is no such directory"
        raise BundleDamaged(f"{root} is no bundle: {reason}") from None
    except NotADirectoryError:
        raise BundleDamaged(f"{root} is no bundle: a bundle is a directory") from None
    except OSError as error:
        raise BundleDamaged(f"{file} cannot be read: {error.strerror}") from None
    except UnknownBundleSchema as error:
        raise BundleIncompatible(str(error)) from None
    except ValueError as error:
        raise BundleDamaged(str(error)) from None
    if digest is not None and description.digest != digest:
        raise BundleIncompatible(f"the bundle {root} has the digest {description.digest}, but {digest} was asked for")
    return Bundle(root, description, tuple(_open_entry(root, entry) for entry in description.entries))


def _open_entry(root: Path, entry: EntryDescription) -> BundleEntry:
    return BundleEntry(
        entry,
        _open_stage(root, entry.key, entry.generated, ArtifactState.GENERATED),
        _open_stage(root, entry.key, entry.ready, ArtifactState.BINARY_READY),
    )


def _open_stage(root: Path, key: ArtifactKey, stage: Stage, state: ArtifactState) -> BundleArtifact:
    folder = Path("artifacts", key.environment_digest, key.digest, stage.spec, state.value)
    file = root / folder / MARKER_NAME
    try:
        data = read_file(root / folder, MARKER_NAME, MARKER_LIMIT)
    except FileNotFoundError:
        raise BundleDamaged(f"{file} is missing") from None
    except (OSError, ValueError) as error:
        raise BundleDamaged(f"{file} cannot be read: {error}") from None
    if hashlib.sha256(data).hexdigest() != stage.manifest:
        raise BundleDamaged(f"{file} does not have the SHA-256 of {BUNDLE_FILE}")
    try:
        manifest = Manifest.decode(data, str(file))
    except ValueError as error:
        raise BundleDamaged(str(error)) from None
    if manifest.key != key or manifest.spec.digest != stage.spec or manifest.spec.state is not state:
        raise BundleDamaged(f"{file} is the manifest of another artifact")
    return BundleArtifact(root, manifest)


def _check_compatible(bundle: Bundle) -> None:
    from pypto.runtime.config import BackendType, ExecutionMode
    from pypto.runtime.kernel_config import RUNTIME_ABI

    ours = Schemas(SOURCE_SCHEMA, SPECIALIZATION_SCHEMA, ARTIFACT_SCHEMA)
    target = bundle.description.target
    problems = [
        f"its {name} schema is {theirs}, this pypto's is {ours.to_record()[name]}"
        for name, theirs in bundle.description.schemas.to_record().items()
        if theirs != ours.to_record()[name]
    ]
    if target.runtime_abi != RUNTIME_ABI:
        problems.append(f"its runtime ABI is {target.runtime_abi}, this pypto's is {RUNTIME_ABI}")
    if target.backend_type not in {member.value for member in BackendType}:
        problems.append(f"this pypto knows no backend type {target.backend_type!r}")
    if target.execution_mode not in {member.value for member in ExecutionMode}:
        problems.append(f"this pypto knows no execution mode {target.execution_mode!r}")
    if problems:
        raise BundleIncompatible(
            f"the bundle {bundle.path} cannot be used: {'; '.join(problems)}. Build it again with this pypto, or run "
            "it with the one that built it"
        )
