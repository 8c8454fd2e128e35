"""A request that the persistent cache answers, or that fills it."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto.jit.artifact_cache.handle import ArtifactHandle
from pypto.jit.artifact_cache.key import ArtifactKey
from pypto.jit.artifact_cache.store import ArtifactBuild, ArtifactStore, BuildFailure, BuildStatus, LookupStatus
from pypto.jit.lookup import StoredEntries
from pypto.jit.private import new_run_directory, private_parent
from pypto.jit.records import keep_records
from pypto.jit.request import Request
from pypto.jit.stats import count, count_bypass, timing
from pypto.runtime._artifact_runtime import Promotion, bind_artifact, restore_artifact
from pypto.runtime.compiled import CompiledKernel, Origin
from pypto.runtime.errors import UnsupportedArtifactInput

if TYPE_CHECKING:
    from pypto.ir.nodes import Program
    from pypto.toolchain.host import Tools


class _StaysPrivate(Exception):
    """A build whose result the key does not identify completely; says why and where the result was kept."""

    def __init__(self, reason: str, directory: Path, program: Program) -> None:
        super().__init__(reason)
        self.directory = directory
        self.program = program


class StoredRequest:
    """One request against one store; ``tools`` are those that the key was made of."""

    def __init__(self, request: Request, key: ArtifactKey, tools: Tools | None) -> None:
        self.request = request
        self.key = key
        self.tools = tools
        self._reported: set[LookupStatus] = set()

    def obtain(self) -> CompiledKernel:
        """Look READY and GENERATED up, else generate and publish."""
        policy = self.request.policy
        with timing("lookup_ns"):
            store = ArtifactStore(policy.root, policy.readonly)
            entries = StoredEntries(store, self.key, load=True, distributed=self.request.distributed)
            ready = entries.ready()
            restored = None if ready is None else self._restored(store, ready)
            generated = None if restored is not None else entries.generated()
        for refused in entries.refused:
            self._note(refused.status)
        if restored is not None:
            count("ready_hits")
            return restored
        if generated is not None:
            count("generated_hits")
            return self._bound(generated, None)
        count("misses")
        return self._generate()

    def _restored(self, store: ArtifactStore, ready: ArtifactHandle) -> CompiledKernel | None:
        """The object of a validated entry; ``None`` for one that is intact and yet not what this PyPTO makes."""
        request = self.request
        try:
            return restore_artifact(
                store, ready, self._run_directory(), specialization=request.specialization, locate=request.locate
            )
        except ValueError:
            self._note(LookupStatus.INVALID)
            return None

    def _generate(self) -> CompiledKernel:
        from pypto.toolchain.cleanup import ended_by_sigterm

        request = self.request
        parent = private_parent(request.policy.root)
        store = ArtifactStore(request.policy.root, request.policy.readonly, parent)
        spec = request.generated_spec
        try:
            with ended_by_sigterm():
                built = store.get_or_build(self.key, spec, lambda d: self._build(d, parent), load=True)
        except _StaysPrivate as private:
            from pypto.jit.building import private_kernel

            count_bypass(str(private))
            return private_kernel(request, private.directory, private.program, key=self.key.digest, reusable=False)
        self._note_failure(built)
        if built.status is BuildStatus.PUBLISHED:
            keep_records(store.root, request.identity_parts(self.key.environment))
        if built.handle is not None:
            _discard(built.private_directory)
            return self._bound(built.handle, built.value)
        from pypto.jit.building import private_kernel

        assert built.private_directory is not None and built.value is not None
        kept = _nested(built.private_directory)
        return private_kernel(request, kept, built.value, key=self.key.digest)

    def _build(self, directory: Path, parent: Path) -> Program:
        """Generate, pack, look at the sources again: in this order, so that what was packed is what was looked at."""
        from pypto.build.generate import pack_sources
        from pypto.jit.building import new_private_directory, run_generation

        request = self.request
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

    def _bound(self, generated: ArtifactHandle, program: Program | None) -> CompiledKernel:
        """An object whose binaries are built, and published if possible, when they are first needed."""
        from pypto.jit.building import run_binaries

        policy = self.request.policy
        kernel = CompiledKernel(
            self.request.specialization,
            origin=Origin.SHARED,
            directory=generated.directory,
            locate=self.request.locate,
            program=program,
            key=self.key.digest,
        )
        promotion = Promotion(
            functools.partial(run_binaries, closure=self.request.closure, tools=self.tools),
            self._note_failure,
            count_bypass,
        )
        store = ArtifactStore(policy.root, policy.readonly, private_parent(policy.root))
        bind_artifact(kernel, store, generated, self._run_directory(), promotion=promotion)
        return kernel

    def _run_directory(self) -> Path:
        return new_run_directory(self.request.policy.root, self.request.function.name)

    def _note(self, status: LookupStatus) -> None:
        """Count a refused entry or a storage error, once per request."""
        if status in self._reported:
            return
        self._reported.add(status)
        if status is LookupStatus.INVALID:
            count("invalid_entries")
        elif status is LookupStatus.STORAGE_ERROR:
            count("storage_errors")

    def _note_failure(self, built: ArtifactBuild[Any]) -> None:
        if built.status is not BuildStatus.PRIVATE:
            return
        if built.failure in (BuildFailure.LOCK, BuildFailure.PUBLICATION):
            count("storage_errors")
        elif built.failure is BuildFailure.STORAGE:
            self._note(LookupStatus.STORAGE_ERROR)
        elif built.failure is BuildFailure.INVALID:
            self._note(LookupStatus.INVALID)


def _discard(directory: Path | None) -> None:
    """Remove what was published; its parent stays, since another process may be about to build in it."""
    if directory is not None:
        shutil.rmtree(directory, ignore_errors=True)


def _nested(directory: Path) -> Path:
    """Move a private generated directory one level down, so that its binaries can stand beside it."""
    aside = directory.with_name(f"{directory.name}.generated")
    directory.rename(aside)
    directory.mkdir(mode=0o700)
    aside.rename(directory / "generated")
    return directory
