"""The runtime's side of a store: compiled objects bound to entries, promotion to READY, loading from validated bytes.

Internal: the request flow of the JIT uses it, and whoever has a store and a key of his own may. The caller supplies a
complete key, the entry that belongs to it, and keeps published files where and as they are while objects use them. A
private directory that a failed publication left is the caller's to remove, once nothing uses it any more.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto._identity.records import parse_canonical_json
from pypto.build.layout import CONFIG, chips_of, is_generated, write_file
from pypto.build.specs import ready_spec
from pypto.jit.artifact_cache.handle import ArtifactHandle
from pypto.jit.artifact_cache.spec import ArtifactSpec, ArtifactState
from pypto.jit.artifact_cache.store import ArtifactBuild, ArtifactStore, LookupStatus
from pypto.runtime.compiled import CompiledKernel, Origin, ReadyFiles
from pypto.runtime.forks import ForkSafeLock
from pypto.runtime.places import Locate
from pypto.runtime.program import CompiledProgram


def _build(generated: Path, out: Path, scratch: Path) -> tuple[str, ...]:
    from pypto.build.binaries import build_binaries
    from pypto.toolchain import in_force

    return build_binaries(generated, in_force(), out, scratch)


@dataclass(frozen=True)
class Promotion:
    """How binaries are built, and who is told what came of it.

    Attributes:
        build: from a generated directory, an empty one to fill, and a folder for scratch folders; returns the files
            that a compiler read and no identity covers.
        finished: told the outcome of the store's transaction.
        refused: told why the binaries must not be shared.
    """

    build: Callable[[Path, Path, Path], tuple[str, ...]] = _build
    finished: Callable[[ArtifactBuild[Any]], None] = lambda _: None
    refused: Callable[[str], None] = lambda _: None


class _MustStayPrivate(Exception):
    """Built, but of files that no identity covers; says which, and where the result was kept."""

    def __init__(self, reason: str, directory: Path) -> None:
        super().__init__(reason)
        self.directory = directory


class ArtifactRuntime:
    """The binaries of one bound object, built when they are first asked for.

    Attributes:
        handle: the READY entry, or the GENERATED one as long as no READY entry was published.
        directory: the entry's directory, or that of private binaries.
        run_directory: where runs put what they leave behind; outside of the store.
    """

    def __init__(
        self,
        store: ArtifactStore,
        handle: ArtifactHandle,
        run_directory: str | os.PathLike[str],
        *,
        promotion: Promotion | None = None,
    ) -> None:
        if Path(os.path.realpath(run_directory)).is_relative_to(store.root):
            raise ValueError(f"run_directory {os.fspath(run_directory)} lies in the store {store.root}")
        if handle.root != store.root:
            raise ValueError(f"the entry {handle.directory} is not one of the store {store.root}")
        self.handle = handle
        self.directory = handle.directory
        self.run_directory = Path(os.path.abspath(run_directory))
        self._store = store
        self._promotion = promotion or Promotion()
        self._spec: ArtifactSpec | None = None
        self._known: ReadyFiles | None = None
        self._chips: dict[str, CompiledProgram] | None = None
        self._lock = ForkSafeLock()

    @property
    def known(self) -> ReadyFiles | None:
        """The READY artifact, if it is known to exist."""
        return self._known

    def validate(self) -> None:
        """Check the entry against its manifest, unless its validated bytes are at hand; reads its configuration.

        Raises:
            ValueError: the entry is damaged, lacks a file that its configuration names, or is of an unsupported kind.
            OSError: it is gone or cannot be read.
        """
        if self._spec is None:
            self.handle = _validated(self._store, self.handle)
            self._spec = _ready_spec(self.handle)
        if self._known is None and self.handle.spec.state is ArtifactState.BINARY_READY:
            self._known = _from_handle(self.handle)

    def files(self) -> ReadyFiles:
        """The READY artifact; built and published if there is none yet. Nothing is executed.

        Raises:
            ToolError, ToolchainNotInstalled: the binaries cannot be built; the request may be repeated.
            ValueError, OSError: as `validate`.
        """
        known = self._known
        if known is not None:
            return known
        with self._lock:
            self.validate()
            if self._known is None:
                self._known = self._promote()
            return self._known

    def load_chips(self, *, locate: Locate | None = None) -> dict[str, CompiledProgram]:
        """The live programs of a distributed program by the directory of each chip; all are checked before one is made.

        Raises:
            LoadError: a chip is missing, or damaged.
            ValueError: it is the program of a single chip.
        """
        ready = self.files()
        if not chips_of(_config(ready.files)):
            raise ValueError(f"{self.directory} is the program of a single chip")
        with self._lock:
            if self._chips is None:
                from pypto.runtime.distributed.manifest import chip_files
                from pypto.runtime.prebuilt import check, load

                chips = chip_files(ready.files)
                digests = {chip: _below(chip, ready.digests) for chip in chips}
                for chip, files in chips.items():
                    check(files, digests[chip])
                self._chips = {chip: load(files, digests=digests[chip]) for chip, files in chips.items()}
            return self._chips

    def _promote(self) -> ReadyFiles:
        from pypto.toolchain.cleanup import ended_by_sigterm

        assert self._spec is not None
        try:
            with ended_by_sigterm():
                built = self._store.get_or_build(self.handle.key, self._spec, self._builder, load=True)
        except _MustStayPrivate as private:
            self._promotion.refused(str(private))
            return self._private(private.directory)
        self._promotion.finished(built)
        if built.handle is None:
            assert built.private_directory is not None
            return self._private(built.private_directory)
        if built.private_directory is not None:
            # Only the directory itself: its parent is where another process may be about to build.
            shutil.rmtree(built.private_directory, ignore_errors=True)
        self.handle, self.directory = built.handle, built.handle.directory
        return _from_handle(built.handle)

    def _builder(self, directory: Path) -> None:
        parent = directory.parent
        with tempfile.TemporaryDirectory(prefix=".generated.", dir=parent, ignore_cleanup_errors=True) as scratch:
            generated = Path(scratch, "generated")
            _copy(self.handle, generated)
            uncovered = self._promotion.build(generated, directory, parent)
        if uncovered:
            kept = Path(tempfile.mkdtemp(prefix="uncovered-", dir=parent), "ready")
            shutil.move(directory, kept)
            more = f" and {len(uncovered) - 1} more" if len(uncovered) > 1 else ""
            raise _MustStayPrivate(f"a compiler read {uncovered[0]}{more}, which no identity covers", kept)

    def _private(self, directory: Path) -> ReadyFiles:
        assert self._spec is not None
        self.directory = directory
        files = {name: (directory / name).read_bytes() for name in self._spec.required_files}
        return ReadyFiles(files, Origin.PRIVATE, directory)


def bind_artifact(
    compiled: CompiledKernel,
    store: ArtifactStore,
    generated_handle: ArtifactHandle,
    run_directory: str | os.PathLike[str],
    *,
    promotion: Promotion | None = None,
) -> None:
    """Let a compiled object use a GENERATED entry: that directory becomes its own, its binaries are promoted to READY.

    The whole entry is hashed once, here, unless the handle carries its validated bytes. Nothing of it is executed.

    Args:
        compiled: a newly compiled object, which keeps its live program.
        store: the store of the entry; its ``private_root`` is where binaries are built.
        generated_handle: the validated entry of the very inputs that the object was compiled from.
        run_directory: outside of the store, and this object's own.

    Raises:
        ValueError: the entry is damaged, incomplete or no GENERATED one, has several orchestrations, or the run
            directory lies in the store.
        OSError: the entry is gone or cannot be read.
        RuntimeError: the object is bound already.
    """
    if generated_handle.spec.state is not ArtifactState.GENERATED:
        raise ValueError(f"{generated_handle.directory} is no GENERATED entry; use restore_artifact for a READY one")
    runtime = ArtifactRuntime(store, generated_handle, run_directory, promotion=promotion)
    runtime.validate()
    compiled.bind(runtime)


def restore_artifact(
    store: ArtifactStore,
    ready_handle: ArtifactHandle,
    run_directory: str | os.PathLike[str],
    *,
    specialization: object | None = None,
    locate: Locate | None = None,
) -> CompiledKernel:
    """A compiled object of a READY entry, without live program. Loading it compiles, locks and writes nothing.

    Args:
        store: the store of the entry; may be read-only.
        ready_handle: the entry.
        run_directory: outside of the store, and this object's own.
        specialization, locate: what the caller knows of the kernel's source, for messages.

    Raises:
        ValueError: as `bind_artifact`, or the entry is no READY one.
        OSError: the entry is gone or cannot be read.
    """
    if ready_handle.spec.state is not ArtifactState.BINARY_READY:
        raise ValueError(f"{ready_handle.directory} is no READY entry; bind it to a compiled object to promote it")
    runtime = ArtifactRuntime(store, ready_handle, run_directory)
    runtime.validate()
    compiled = CompiledKernel(
        specialization,
        origin=Origin.SHARED,
        directory=runtime.directory,
        locate=locate,
        key=ready_handle.key.digest,
    )
    compiled.bind(runtime)
    return compiled


def _validated(store: ArtifactStore, handle: ArtifactHandle) -> ArtifactHandle:
    """The entry; a READY one with the bytes that were hashed, a GENERATED one is checked again when it is copied."""
    if handle.payload is not None:
        return handle
    found = store.lookup(handle.key, handle.spec, load=handle.spec.state is ArtifactState.BINARY_READY)
    if found.handle is not None:
        return found.handle
    if found.status is LookupStatus.INVALID:
        raise ValueError(found.reason)
    if found.status is LookupStatus.MISS:
        raise FileNotFoundError(errno.ENOENT, "the entry is not in the store", str(handle.directory))
    raise OSError(errno.EIO, found.reason)


def _ready_spec(handle: ArtifactHandle) -> ArtifactSpec:
    """The READY spec of an entry, which must declare the configuration of every chip and hold every file they name."""
    where = str(handle.directory)
    present = {record.path for record in handle.records}
    config = _object(handle, CONFIG)
    chips = {chip: _object(handle, f"{chip}/{CONFIG}") for chip in chips_of(config)}
    declared = set(handle.spec.required_files)
    for name in sorted(present):
        if name.rpartition("/")[2] == CONFIG and name not in declared:
            raise ValueError(f"{where}: {name} is there, but the entry's spec does not declare it")
    for name in (CONFIG, *(f"{chip}/{CONFIG}" for chip in chips)):
        if name not in declared:
            raise ValueError(f"{where}: the entry's spec does not declare {name}")
    if not chips and not isinstance(config.get("orchestration"), dict):
        raise ValueError(f"{where}: a program of one chip has one orchestration; store its parts one by one")
    try:
        spec = ready_spec(config, chips)
        complete = is_generated(config, chips, present)
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{where}: {CONFIG} is damaged: {error}") from None
    if handle.spec.state is ArtifactState.BINARY_READY:
        if handle.spec != spec:
            raise ValueError(f"{where}: its files are not those that its configuration names")
    elif not complete:
        raise ValueError(f"{where}: it does not hold exactly the generated files that its configuration names")
    return spec


def _object(handle: ArtifactHandle, name: str) -> Mapping[str, Any]:
    value = parse_canonical_json(handle.read(name), f"{handle.directory}/{name}")
    if not isinstance(value, dict):
        raise ValueError(f"{handle.directory}/{name} is not an object")
    return value


def _config(files: Mapping[str, bytes]) -> Mapping[str, Any]:
    config: Mapping[str, Any] = parse_canonical_json(files[CONFIG], CONFIG)
    return config


def _copy(handle: ArtifactHandle, directory: Path) -> None:
    if handle.payload is None:
        handle.materialize(directory)
        return
    # From the bytes that were validated: the entry itself may be gone by now.
    directory.mkdir()
    for name, data in handle.payload.items():
        write_file(directory, name, data)


def _from_handle(handle: ArtifactHandle) -> ReadyFiles:
    assert handle.payload is not None
    digests = {record.path: record.sha256 for record in handle.records}
    return ReadyFiles(handle.payload, Origin.SHARED, handle.directory, digests)


def _below(chip: str, digests: Mapping[str, str] | None) -> dict[str, str] | None:
    if digests is None:
        return None
    return {name.removeprefix(f"{chip}/"): each for name, each in digests.items() if name.startswith(f"{chip}/")}
