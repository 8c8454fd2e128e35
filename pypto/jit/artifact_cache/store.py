"""The store: validated lookup, and get_or_build with one builder per key.

Whoever writes to a root must be trusted: digests show damage, they do not stop someone who replaces code and manifest
alike. An invalid entry is never repaired or overwritten while processes run; until it is removed offline, requests for
it build in private directories.
"""

from __future__ import annotations

import enum
import errno
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar, cast

from pypto.jit.artifact_cache.flight import SingleFlight
from pypto.jit.artifact_cache.handle import ArtifactHandle, entry_parts
from pypto.jit.artifact_cache.key import ArtifactKey
from pypto.jit.artifact_cache.locks import LockUnavailable, key_lock
from pypto.jit.artifact_cache.manifest import MARKER_LIMIT, MARKER_NAME, Manifest
from pypto.jit.artifact_cache.publish import PublicationFailed, publish
from pypto.jit.artifact_cache.spec import ArtifactSpec
from pypto.jit.artifact_cache.tree import (
    Tree,
    TreeError,
    close,
    descend,
    directory_below,
    open_directory,
    read_bounded,
    scan_tree,
)

T = TypeVar("T")

_REASON_LIMIT = 1000
_NAME_LIMIT = 200

_operations = SingleFlight()


class LookupStatus(enum.Enum):
    """What a lookup found."""

    HIT = "hit"
    MISS = "miss"
    INVALID = "invalid"
    STORAGE_ERROR = "storage_error"


class BuildStatus(enum.Enum):
    """Where the result of `get_or_build` stands."""

    HIT = "hit"
    PUBLISHED = "published"
    PRIVATE = "private"


class BuildFailure(enum.Enum):
    """Why a build stayed private although the store is writable, or an entry could not be used."""

    INVALID = "invalid"
    STORAGE = "storage"
    LOCK = "lock"
    PUBLICATION = "publication"


class BuildOutputError(ValueError):
    """A builder left out a required file or wrote something that no artifact may hold; the message names it."""


@dataclass(frozen=True)
class LookupResult:
    """Status, the handle of a hit, and the reason of anything that is not a plain hit or miss."""

    status: LookupStatus
    handle: ArtifactHandle | None = None
    reason: str | None = None


@dataclass(frozen=True)
class ArtifactBuild(Generic[T]):
    """Result of `get_or_build`.

    handle: the entry, for HIT and PUBLISHED. value, private_directory: what the builder returned and where it wrote,
    for PUBLISHED and PRIVATE; the caller removes the directory when nothing refers to it any more.
    reason, failure: why a build is PRIVATE; both None for a plain read-only miss.
    """

    status: BuildStatus
    handle: ArtifactHandle | None = None
    value: T | None = None
    private_directory: Path | None = None
    reason: str | None = None
    failure: BuildFailure | None = None


_LOOKUP_FAILURES = {
    LookupStatus.INVALID: BuildFailure.INVALID,
    LookupStatus.STORAGE_ERROR: BuildFailure.STORAGE,
}


class ArtifactStore:
    """Artifacts below one root.

    Args:
        root: the cache root; resolved once, need not exist.
        readonly: never write below the root.
        private_root: where private builds go; outside the root, made when absent. A writable store without it builds
            beside the root; a read-only one cannot build.

    Raises:
        ValueError: the private root lies in the root.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        readonly: bool = False,
        private_root: str | os.PathLike[str] | None = None,
    ) -> None:
        self.root = Path(os.path.realpath(root))
        self.readonly = readonly
        self.private_root = None if private_root is None else Path(os.path.realpath(private_root))
        self._check_private_root()

    def lookup(self, key: ArtifactKey, spec: ArtifactSpec, *, load: bool = False) -> LookupResult:
        """Validate the entry of one key and spec: every byte is read and hashed; nothing is written.

        With `load`, the handle keeps the bytes that were hashed, so that using them reads nothing again.
        """
        parts = entry_parts(key, spec)
        try:
            try:
                entry = descend(open_directory(self.root), parts)
            except FileNotFoundError:
                return LookupResult(LookupStatus.MISS)
            try:
                tree = _validate(entry, key, spec, load)
            except FileNotFoundError as error:
                raise TreeError(f"{error.filename} is missing") from None
            finally:
                close(entry)
        except TreeError as error:
            return LookupResult(LookupStatus.INVALID, reason=_reason(self.root.joinpath(*parts), error))
        except OSError as error:
            return LookupResult(LookupStatus.STORAGE_ERROR, reason=_reason(self.root.joinpath(*parts), error))
        return LookupResult(LookupStatus.HIT, ArtifactHandle(self.root, key, spec, tree.files, tree.payload))

    def get_or_build(
        self,
        key: ArtifactKey,
        spec: ArtifactSpec,
        builder: Callable[[Path], T],
        *,
        load: bool = False,
    ) -> ArtifactBuild[T]:
        """The entry, or what `builder(private_directory)` makes of an empty private directory.

        Overlapping calls of this process that agree in root, private root, read-only policy, key and spec share one
        operation and its result. Across processes the key's lock lets one build and the others find its result.

        Raises:
            Whatever the builder raises, to every sharing caller.
            BuildOutputError: a required file is missing, or the output holds a link or a special file.
            OSError: the private directory cannot be made, or a read-only store has none.
            RuntimeError: a builder asks for its own key.
        """
        operation = (str(self.root), str(self.private_root), self.readonly, key.digest, spec.digest)
        run = _operations.run(operation, lambda: self._get_or_build(key, spec, builder, load))
        result = cast("ArtifactBuild[T]", run)
        if load and result.handle is not None and result.handle.payload is None:
            # Joined an operation that was asked for no bytes.
            again = self.lookup(key, spec, load=True)
            if again.handle is not None:
                return replace(result, handle=again.handle)
        return result

    def _get_or_build(
        self, key: ArtifactKey, spec: ArtifactSpec, builder: Callable[[Path], T], load: bool
    ) -> ArtifactBuild[T]:
        found = self.lookup(key, spec, load=load)
        if found.status is LookupStatus.HIT:
            return ArtifactBuild(BuildStatus.HIT, found.handle)
        if self.readonly:
            return self._build_private(spec, builder, found, None)
        lock = key_lock(self.root, key.digest)
        problem = None
        try:
            lock.__enter__()
        except LockUnavailable as error:
            problem = str(error)
        if problem is not None:
            # Not while the error is being handled: what the builder raises has nothing to do with it.
            return self._build_private(spec, builder, found, problem)
        try:
            found = self.lookup(key, spec, load=load)
            if found.status is LookupStatus.HIT:
                return ArtifactBuild(BuildStatus.HIT, found.handle)
            if found.status is not LookupStatus.MISS:
                return self._build_private(spec, builder, found, None)
            return self._build_and_publish(key, spec, builder, load)
        finally:
            lock.__exit__(None, None, None)

    def _build_private(
        self, spec: ArtifactSpec, builder: Callable[[Path], T], found: LookupResult, lock_problem: str | None
    ) -> ArtifactBuild[T]:
        directory, value, _ = self._build(spec, builder)
        failure = _LOOKUP_FAILURES.get(found.status)
        reason = found.reason
        if failure is None and lock_problem is not None:
            failure, reason = BuildFailure.LOCK, lock_problem
        return ArtifactBuild(BuildStatus.PRIVATE, None, value, directory, reason, failure)

    def _build_and_publish(
        self, key: ArtifactKey, spec: ArtifactSpec, builder: Callable[[Path], T], load: bool
    ) -> ArtifactBuild[T]:
        directory, value, built = self._build(spec, builder)
        try:
            tree = publish(self.root, Manifest(key, spec, built.files), directory, keep=load)
        except PublicationFailed as error:
            return ArtifactBuild(BuildStatus.PRIVATE, None, value, directory, str(error), BuildFailure.PUBLICATION)
        handle = ArtifactHandle(self.root, key, spec, tree.files, tree.payload)
        return ArtifactBuild(BuildStatus.PUBLISHED, handle, value, directory)

    def _build(self, spec: ArtifactSpec, builder: Callable[[Path], T]) -> tuple[Path, T, Tree]:
        directory = self._make_private_directory()
        maker = os.getpid()
        try:
            value = builder(directory)
            if os.getpid() != maker:
                raise RuntimeError("a builder returned in a process that it forked; end such a process with os._exit")
            return directory, value, _check_output(directory, spec)
        except BaseException:
            # A forked child that unwinds to here must leave its parent's directory alone.
            if os.getpid() == maker:
                shutil.rmtree(directory, ignore_errors=True)
            raise

    def _make_private_directory(self) -> Path:
        self._check_private_root()
        if self.private_root is not None:
            parent = self.private_root
        elif self.readonly:
            raise OSError(
                errno.EROFS,
                f"the artifact is not in the read-only store {self.root}, and no private_root to build in was given",
            )
        else:
            parent = self.root.parent
        os.makedirs(parent, exist_ok=True)
        # Names have at most 255 bytes, of which the root's own may take all.
        name = os.fsdecode(os.fsencode(self.root.name)[:_NAME_LIMIT])
        return Path(tempfile.mkdtemp(prefix=f".{name}.private.", dir=parent))

    def _check_private_root(self) -> None:
        if self.private_root is not None and Path(os.path.realpath(self.private_root)).is_relative_to(self.root):
            raise ValueError(
                f"private_root {self.private_root} lies in the cache root {self.root}; give one outside it"
            )


def _validate(directory: int, key: ArtifactKey, spec: ArtifactSpec, load: bool) -> Tree:
    marker = read_bounded(directory, MARKER_NAME, MARKER_LIMIT)
    if len(marker) > MARKER_LIMIT:
        raise TreeError(f"{MARKER_NAME} is larger than {MARKER_LIMIT} bytes")
    tree = scan_tree(directory, skip=MARKER_NAME, keep=load, expected=lambda: _stated_sizes(marker))
    expected = Manifest(key, spec, tree.files)
    if marker != expected.encode():
        raise TreeError(_difference(marker, expected))
    _check_required(tree, spec)
    return tree


def _stated_sizes(marker: bytes) -> dict[str, int]:
    try:
        return {file.path: file.size for file in Manifest.decode(marker).files}
    except ValueError as error:
        raise TreeError(str(error)) from None


def _check_required(tree: Tree, spec: ArtifactSpec) -> None:
    present = {file.path for file in tree.files}
    for path in spec.required_files:
        if path not in present:
            raise TreeError(f"the required file {path!r} is missing")


def _reason(place: Path, error: Exception) -> str:
    """One line; what a damaged marker says can be megabytes."""
    text = str(error)
    return f"{place}: {text if len(text) <= _REASON_LIMIT else text[:_REASON_LIMIT] + '...'}"


def _difference(marker: bytes, expected: Manifest) -> str:
    """Why a marker is not the one that the tree and the request ask for."""
    try:
        stated = Manifest.decode(marker)
    except ValueError as error:
        return str(error)
    if stated.key != expected.key:
        return f"{MARKER_NAME}: the entry of another key"
    if stated.spec != expected.spec:
        return f"{MARKER_NAME}: the entry of another spec"
    listed = {file.path: file for file in stated.files}
    present = {file.path: file for file in expected.files}
    for path in sorted(listed.keys() | present.keys()):
        if path not in present:
            return f"{path} is missing"
        if path not in listed:
            return f"{path} is not in the manifest"
        if listed[path] != present[path]:
            names = ("size", "sha256", "executable")
            wrong = [name for name in names if getattr(listed[path], name) != getattr(present[path], name)]
            return f"{path} differs from the manifest in {', '.join(wrong)}"
    return f"{MARKER_NAME} does not describe this entry"


def _check_output(directory: Path, spec: ArtifactSpec) -> Tree:
    try:
        with directory_below(directory, ()) as descriptor:
            tree = scan_tree(descriptor)
        if any(file.path == MARKER_NAME for file in tree.files):
            raise TreeError(f"it holds {MARKER_NAME}, the store's own file")
        _check_required(tree, spec)
    except TreeError as error:
        raise BuildOutputError(f"the build output in {directory} cannot be an artifact: {error}") from None
    return tree
