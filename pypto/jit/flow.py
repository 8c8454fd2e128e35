"""The flow of one request: in-process object, sealed bundles, store, build, publication.

The order is fixed: sealed bundles (they need neither tools nor a cache), an object of this process, the store's READY
and GENERATED entries, and at last a build, which is shared by all who ask for it at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pypto.jit import stats
from pypto.jit.artifact_cache.flight import SingleFlight
from pypto.jit.request import IdentityUnavailable, Request, environment_identity
from pypto.jit.sealed import find_sealed
from pypto.jit.stats import count, count_bypass
from pypto.runtime.compiled import CompiledKernel, Origin, ReadyFiles
from pypto.runtime.forks import ForkSafeLock

if TYPE_CHECKING:
    from pypto.jit.artifact_cache.key import ArtifactKey
    from pypto.toolchain import Toolchain
    from pypto.toolchain.host import Tools

_flights = SingleFlight()
_objects: dict[Hashable, CompiledKernel] = {}
_objects_lock = ForkSafeLock()
_KEYS = 256
_latest_tools: tuple[Toolchain, str] | None = None
_keys: dict[tuple[str, str], ArtifactKey] = {}


def obtain(request: Request) -> CompiledKernel:
    """The compiled kernel that a request asks for, generated at least; counts the request.

    Raises:
        CompileError: the kernel is wrong. The request may be repeated.
        BundleDamaged, BundleIncompatible: a bundle in force cannot be used.
    """
    count("requests")
    if not request.policy.enabled:
        count("disabled_requests")
    if request.forced:
        from pypto.jit.forced import build_forced

        count("forced_rebuilds")
        return build_forced(request)
    sealed = _sealed(request)
    if sealed is not None:
        return sealed
    toolchain = current_toolchain()
    if not request.policy.enabled:
        return _private(request, toolchain)
    try:
        key = artifact_key(request, toolchain)
    except IdentityUnavailable as unavailable:
        count_bypass(str(unavailable))
        return _bypassed(request, toolchain)
    return _persistent(request, key, toolchain)


def find_object(request: Request) -> CompiledKernel | None:
    """The object of this process that answers a request, if there is one; counts nothing.

    Raises:
        IdentityUnavailable: nothing identifies the request, so no object does.
    """
    if request.bundles and (sealed := _objects.get(_sealed_name(request))) is not None:
        return sealed
    toolchain = current_toolchain()
    if request.policy.enabled:
        return _objects.get(_persistent_name(request, artifact_key(request, toolchain)))
    return _objects.get(_private_name(request, toolchain))


def _sealed_name(request: Request) -> Hashable:
    return ("sealed", request.bundles, *_request_key(request))


def _private_name(request: Request, toolchain: Tools | None) -> tuple[Hashable, ...]:
    # Tools that were exchanged make another object; their digest is enough, since nothing outlives the process.
    return ("private", None if toolchain is None else _digest_of(toolchain), *_request_key(request))


def _persistent_name(request: Request, key: ArtifactKey) -> Hashable:
    return ("persistent", request.policy.root, request.policy.readonly, key.digest)


def _sealed(request: Request) -> CompiledKernel | None:
    if not request.bundles:
        return None
    name = _sealed_name(request)
    known = _known(name)
    if known is not None:
        return known
    with stats.timing("lookup_ns"):
        found = find_sealed(request.bundles, request.source_digest, request.specialization_digest)
        if found is None:
            return None
        bundle, entry = found
        ready = ReadyFiles(entry.ready.load(), Origin.BUNDLE, entry.ready.directory)
    count("ready_hits")
    restored = CompiledKernel(
        request.specialization,
        origin=ready.origin,
        directory=ready.directory,
        ready=ready,
        locate=request.locate,
        key=entry.key.digest,
        bundle_digest=bundle.digest,
    )
    return _remember(name, restored)


def _private(request: Request, toolchain: Tools | None) -> CompiledKernel:
    name = _private_name(request, toolchain)
    return _known(name) or _in_flight(name, name, lambda: _build_privately(request))


def _bypassed(request: Request, toolchain: Tools | None) -> CompiledKernel:
    try:
        source = request.application_source_digest
    except IdentityUnavailable:
        # Nothing tells whether the application's inputs are those of a moment ago: only overlapping requests share.
        return _in_flight(("bypass", *_request_key(request)), None, lambda: _build_privately(request))
    # Tools without an identity for other processes are still the same tools for this one.
    name = ("bypass", source, *_private_name(request, toolchain))
    return _known(name) or _in_flight(name, name, lambda: _build_privately(request))


def _digest_of(toolchain: Tools) -> str:
    """The digest of the tools in force; installed ones stay one object until their files change."""
    global _latest_tools
    from pypto.toolchain import Toolchain

    if not isinstance(toolchain, Toolchain):
        return toolchain.selection_key()
    latest = _latest_tools
    if latest is None or latest[0] is not toolchain:
        _latest_tools = latest = (toolchain, toolchain.descriptor.digest)
    return latest[1]


def _persistent(request: Request, key: ArtifactKey, toolchain: Tools | None) -> CompiledKernel:
    name = _persistent_name(request, key)
    return _known(name) or _in_flight(name, name, lambda: _from_store(request, key, toolchain))


def _from_store(request: Request, key: ArtifactKey, toolchain: Tools | None) -> CompiledKernel:
    from pypto.jit.stored import StoredRequest

    return StoredRequest(request, key, toolchain).obtain()


def _build_privately(request: Request) -> CompiledKernel:
    from pypto.jit.building import build_private

    return build_private(request)


def current_toolchain() -> Tools | None:
    from pypto.toolchain import ToolchainNotInstalled, in_force

    try:
        return in_force()
    except ToolchainNotInstalled:
        return None


def artifact_key(request: Request, toolchain: Tools | None) -> ArtifactKey:
    from pypto.jit.artifact_cache.key import ArtifactKey

    if toolchain is None:
        raise IdentityUnavailable("no toolchain is installed; python -m pypto.toolchain install")
    environment = environment_identity(toolchain, request.specialization.options, request.policy.identity)
    source, specialization = request.application_source_digest, request.specialization_digest
    name = (source, specialization)
    # Keys are dear to make and asked for by every call; an environment stays the same object while its files do.
    latest = _keys.get(name)
    if latest is not None and latest.environment is environment:
        return latest
    made = ArtifactKey(environment, source, specialization)
    if len(_keys) >= _KEYS:
        _keys.clear()
    _keys[name] = made
    return made


def _request_key(request: Request) -> tuple[str, str]:
    return request.source_digest, request.specialization_digest


def _known(name: Hashable) -> CompiledKernel | None:
    with _objects_lock:
        found = _objects.get(name)
    if found is not None:
        count("object_hits")
    return found


def _remember(name: Hashable, made: CompiledKernel) -> CompiledKernel:
    with _objects_lock:
        return _objects.setdefault(name, made)


@dataclass
class _Led:
    """Whether this caller ran the shared operation itself."""

    led: bool = False


def _in_flight(flight: Hashable, name: Hashable | None, make: Callable[[], CompiledKernel]) -> CompiledKernel:
    """Run ``make`` once for all overlapping callers; keep the result under ``name`` unless it must not be reused."""
    mine = _Led()

    def operation() -> CompiledKernel:
        mine.led = True
        # Another caller may have finished between this one's look and its turn.
        if name is not None:
            with _objects_lock:
                found = _objects.get(name)
            if found is not None:
                mine.led = False
                return found
        made = make()
        return made if name is None or not made.reusable else _remember(name, made)

    result: CompiledKernel = _flights.run(flight, operation)
    if not mine.led and name is not None:
        count("object_hits")
    return result
