"""A request that the persistent cache answers, or that fills it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto._identity.records import parse_canonical_json
from pypto.build.layout import BINARY_MANIFEST, CONFIG, generated_files, read_config, write_file
from pypto.build.specs import GENERATED_SPEC, ready_spec
from pypto.jit.artifact_cache.discovery import find_ready
from pypto.jit.artifact_cache.handle import ArtifactHandle, entry_parts
from pypto.jit.artifact_cache.key import ArtifactKey
from pypto.jit.artifact_cache.store import (
    ArtifactBuild,
    ArtifactStore,
    BuildFailure,
    BuildStatus,
    LookupResult,
    LookupStatus,
)
from pypto.jit.artifact_cache.tree import directory_below, read_bounded
from pypto.jit.compiled import CompiledKernel, Origin, ReadyFiles
from pypto.jit.private import private_parent
from pypto.jit.records import keep_records
from pypto.jit.request import Request
from pypto.jit.stats import count, count_bypass, timing
from pypto.runtime._include_scan import UnsupportedArtifactInput

if TYPE_CHECKING:
    from pypto.ir.nodes import Program

_HINT_LIMIT = 1 << 24


class _StaysPrivate(Exception):
    """A build whose result the key does not identify completely; says why and where the result was kept."""

    def __init__(self, reason: str, directory: Path, program: Program | None = None) -> None:
        super().__init__(reason)
        self.directory = directory
        self.program = program


class StoredRequest:
    """One request against one store."""

    def __init__(self, request: Request, key: ArtifactKey) -> None:
        self.request = request
        self.key = key
        self._reported: set[LookupStatus] = set()

    def obtain(self) -> CompiledKernel:
        """Look READY and GENERATED up, else generate and publish."""
        with timing("lookup_ns"):
            store = ArtifactStore(self.request.policy.root, self.request.policy.readonly)
            ready = self._find_ready(store)
            generated = None if ready is not None else self._find_generated(store)
        if ready is not None:
            count("ready_hits")
            return self._kernel(_from_handle(ready), None, Origin.SHARED, ready.directory)
        if generated is not None:
            count("generated_hits")
            return self._kernel(None, None, Origin.SHARED, generated.directory, generated=generated)
        count("misses")
        return self._generate()

    def _find_ready(self, store: ArtifactStore) -> ArtifactHandle | None:
        hint = self._hint(store)
        if hint is None:
            found = find_ready(store, self.key, load=True)
        else:
            found = store.lookup(self.key, ready_spec(hint), load=True)
        return self._noted(found)

    def _find_generated(self, store: ArtifactStore) -> ArtifactHandle | None:
        handle = self._noted(store.lookup(self.key, GENERATED_SPEC, load=True))
        if handle is None or not _is_complete(handle):
            return None
        return handle

    def _hint(self, store: ArtifactStore) -> Mapping[str, Any] | None:
        """The configuration of the GENERATED entry, not validated: it only tells which READY entry to look for."""
        try:
            with directory_below(store.root, entry_parts(self.key, GENERATED_SPEC)) as directory:
                hint = parse_canonical_json(read_bounded(directory, CONFIG, _HINT_LIMIT), CONFIG)
            ready_spec(hint)
        except (OSError, ValueError, TypeError, KeyError):
            return None
        return hint

    def _generate(self) -> CompiledKernel:
        request = self.request
        parent = private_parent(request.policy.root)

        def builder(directory: Path) -> Program:
            from pypto.build.generate import pack_sources
            from pypto.jit.building import new_private_directory, run_generation

            program = run_generation(request, directory)
            try:
                pack_sources(program, directory)
                reason = "sources changed while the kernel was being built" if request.sources_changed() else None
            except UnsupportedArtifactInput as unsupported:
                reason = f"hand-written sources cannot be packed: {unsupported}"
            if reason is not None:
                kept = new_private_directory(parent, request.function.name)
                shutil.move(directory, kept / "generated")
                raise _StaysPrivate(reason, kept, program)
            return program

        store = ArtifactStore(request.policy.root, request.policy.readonly, parent)
        try:
            built = store.get_or_build(self.key, GENERATED_SPEC, builder, load=True)
        except _StaysPrivate as private:
            from pypto.jit.building import private_kernel

            count_bypass(str(private))
            return private_kernel(request, private.directory, private.program, reusable=False)
        self._note_failure(built)
        if built.status is BuildStatus.PUBLISHED:
            keep_records(store.root, request.identity_parts(self.key.environment))
        if built.handle is not None:
            _discard(built.private_directory)
            return self._kernel(None, built.value, Origin.SHARED, built.handle.directory, generated=built.handle)
        return self._kernel(
            None, built.value, Origin.PRIVATE, built.private_directory, generated=built.private_directory
        )

    def _complete(self, generated: ArtifactHandle | Path) -> ReadyFiles:
        """The binary transaction: the store's READY entry, or a private build that is published if possible."""
        request = self.request
        parent = private_parent(request.policy.root)
        config = _config_of(generated)

        def builder(directory: Path) -> None:
            from pypto.jit.building import new_private_directory, run_binaries

            if isinstance(generated, Path):
                unknown = run_binaries(generated, directory, parent)
            else:
                scratch = new_private_directory(parent, ".generated")
                try:
                    _write_payload(generated, scratch)
                    unknown = run_binaries(scratch, directory, parent)
                finally:
                    shutil.rmtree(scratch, ignore_errors=True)
            if unknown:
                kept = new_private_directory(parent, request.function.name)
                shutil.move(directory, kept / "ready")
                raise _StaysPrivate(_uncovered(unknown), kept / "ready")

        store = ArtifactStore(request.policy.root, request.policy.readonly, parent)
        try:
            built = store.get_or_build(self.key, ready_spec(config), builder, load=True)
        except _StaysPrivate as private:
            from pypto.jit.building import read_ready

            count_bypass(str(private))
            return ReadyFiles(read_ready(private.directory), Origin.PRIVATE, private.directory)
        self._note_failure(built)
        if built.handle is not None:
            _discard(built.private_directory)
            return _from_handle(built.handle)
        from pypto.jit.building import read_ready

        assert built.private_directory is not None
        return ReadyFiles(read_ready(built.private_directory), Origin.PRIVATE, built.private_directory)

    def _kernel(
        self,
        ready: ReadyFiles | None,
        program: Program | None,
        origin: Origin,
        directory: Path | None,
        *,
        generated: ArtifactHandle | Path | None = None,
    ) -> CompiledKernel:
        def complete() -> ReadyFiles:
            assert generated is not None
            return self._complete(generated)

        return CompiledKernel(
            self.request.specialization,
            self.request.closure,
            complete=complete,
            origin=origin,
            directory=directory,
            program=program,
            key=self.key.digest,
            ready=ready,
        )

    def _noted(self, found: LookupResult) -> ArtifactHandle | None:
        """The handle of a hit; a refused entry or a storage error is counted once per request."""
        if found.status is LookupStatus.HIT:
            return found.handle
        if found.status not in self._reported:
            self._reported.add(found.status)
            if found.status is LookupStatus.INVALID:
                count("invalid_entries")
            elif found.status is LookupStatus.STORAGE_ERROR:
                count("storage_errors")
        return None

    def _note_failure(self, built: ArtifactBuild[Any]) -> None:
        if built.status is not BuildStatus.PRIVATE:
            return
        if built.failure in (BuildFailure.LOCK, BuildFailure.PUBLICATION):
            count("storage_errors")
        elif built.failure is BuildFailure.STORAGE and LookupStatus.STORAGE_ERROR not in self._reported:
            self._reported.add(LookupStatus.STORAGE_ERROR)
            count("storage_errors")
        elif built.failure is BuildFailure.INVALID and LookupStatus.INVALID not in self._reported:
            self._reported.add(LookupStatus.INVALID)
            count("invalid_entries")


def _uncovered(files: tuple[str, ...]) -> str:
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return f"a compiler read {files[0]}{more}, which no identity covers"


def _discard(directory: Path | None) -> None:
    """Remove what was published; its parent stays, since another process may be about to build in it."""
    if directory is not None:
        shutil.rmtree(directory, ignore_errors=True)


def _write_payload(generated: ArtifactHandle, directory: Path) -> None:
    # From the bytes that were validated: the entry itself may be gone by now.
    assert generated.payload is not None
    for name, data in generated.payload.items():
        write_file(directory, name, data)


def _from_handle(handle: ArtifactHandle) -> ReadyFiles:
    assert handle.payload is not None
    return ReadyFiles(handle.payload, Origin.SHARED, handle.directory)


def _config_of(generated: ArtifactHandle | Path) -> Mapping[str, Any]:
    if isinstance(generated, Path):
        return read_config(generated)
    config: Mapping[str, Any] = parse_canonical_json(generated.read(CONFIG), CONFIG)
    return config


def _is_complete(generated: ArtifactHandle) -> bool:
    """Whether every file that the configuration names is there, and nothing that only a READY entry has."""
    try:
        names = generated_files(_config_of(generated))
    except (ValueError, TypeError, KeyError):
        return False
    present = {record.path for record in generated.files()}
    return set(names) <= present and BINARY_MANIFEST not in present
