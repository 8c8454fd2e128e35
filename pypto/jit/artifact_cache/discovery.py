"""Finding an entry of a key without knowing its spec."""

from __future__ import annotations

import os

from pypto._identity.records import is_digest
from pypto.jit.artifact_cache.handle import slot_parts
from pypto.jit.artifact_cache.key import ArtifactKey
from pypto.jit.artifact_cache.manifest import MARKER_LIMIT, MARKER_NAME, Manifest
from pypto.jit.artifact_cache.spec import ArtifactSpec, ArtifactState
from pypto.jit.artifact_cache.store import ArtifactStore, LookupResult, LookupStatus
from pypto.jit.artifact_cache.tree import TreeError, directory_below, read_bounded

SPEC_LIMIT = 32
"""Most spec folders of one key that a search looks at; with more, it finds nothing."""


def find_ready(store: ArtifactStore, key: ArtifactKey, *, load: bool = False) -> LookupResult:
    """The one valid READY entry of a key, whatever its spec; a MISS with a reason for none, several or too many.

    The entry is validated completely, as by `ArtifactStore.lookup`; `load` as there.
    """
    return _find(store, key, ArtifactState.BINARY_READY, load)


def find_generated(store: ArtifactStore, key: ArtifactKey, *, load: bool = False) -> LookupResult:
    """The one valid GENERATED entry of a key, whatever its spec; as `find_ready`."""
    return _find(store, key, ArtifactState.GENERATED, load)


def _find(store: ArtifactStore, key: ArtifactKey, state: ArtifactState, load: bool) -> LookupResult:
    try:
        specs = _candidates(store, key, state)
        if specs is None:
            return LookupResult(LookupStatus.MISS, reason=f"more than {SPEC_LIMIT} specs of key {key.digest}")
    except FileNotFoundError:
        return LookupResult(LookupStatus.MISS)
    except TreeError as error:
        return LookupResult(LookupStatus.INVALID, reason=f"{store.root}: {error}")
    except OSError as error:
        return LookupResult(LookupStatus.STORAGE_ERROR, reason=f"{store.root}: {error}")
    results = [store.lookup(key, spec, load=load) for spec in specs]
    hits = [result for result in results if result.status is LookupStatus.HIT]
    if len(hits) == 1:
        return hits[0]
    if hits:
        return LookupResult(LookupStatus.MISS, reason=f"{len(hits)} valid {state.value} entries of key {key.digest}")
    reasons = [result.reason for result in results if result.reason]
    return LookupResult(LookupStatus.MISS, reason=reasons[0] if reasons else None)


def _candidates(store: ArtifactStore, key: ArtifactKey, state: ArtifactState) -> list[ArtifactSpec] | None:
    """Specs that the entries themselves state, where they fit their folder; None for too many folders."""
    with directory_below(store.root, slot_parts(key, "")[:-1]) as directory:
        names: list[str] = []
        with os.scandir(directory) as entries:
            for entry in entries:
                if is_digest(entry.name) and entry.is_dir(follow_symlinks=False):
                    if len(names) == SPEC_LIMIT:
                        return None
                    names.append(entry.name)
    specs = []
    for name in sorted(names):
        try:
            with directory_below(store.root, (*slot_parts(key, name), state.value)) as directory:
                stated = Manifest.decode(read_bounded(directory, MARKER_NAME, MARKER_LIMIT))
        except (OSError, ValueError):
            continue
        if stated.spec.digest == name and stated.spec.state is state:
            specs.append(stated.spec)
    return specs
