"""Finding an entry of a key without knowing its spec."""

from __future__ import annotations

import os
from collections.abc import Callable

from pypto._identity.records import is_digest
from pypto.jit.artifact_cache.handle import slot_parts
from pypto.jit.artifact_cache.key import ArtifactKey
from pypto.jit.artifact_cache.manifest import MARKER_LIMIT, MARKER_NAME, Manifest
from pypto.jit.artifact_cache.spec import ArtifactSpec, ArtifactState, check_relative_path
from pypto.jit.artifact_cache.store import ArtifactStore, LookupResult, LookupStatus
from pypto.jit.artifact_cache.tree import TreeError, directory_below, read_bounded

ReadFile = Callable[[str], bytes]
"""Reads one file of an entry's folder by its relative path; nothing is validated. Raises OSError or TreeError."""
StatedSpec = Callable[[ReadFile], ArtifactSpec]
"""The spec that an entry's own files state. Raises ValueError, TypeError, KeyError, AttributeError for damaged ones."""

SPEC_LIMIT = 32
"""Most spec folders of one key that a search looks at; with more, it finds nothing."""


def find_ready(
    store: ArtifactStore, key: ArtifactKey, *, load: bool = False, stated: StatedSpec | None = None
) -> LookupResult:
    """The one valid READY entry of a key, whatever its spec; a MISS with a reason for several or too many.

    Without a valid one, INVALID or STORAGE_ERROR says that one was refused, and why.

    Args:
        load: as of `ArtifactStore.lookup`, which validates every candidate completely.
        stated: how an entry's files tell its spec, which must be that of its folder; default, its manifest says it.
    """
    return _find(store, key, ArtifactState.BINARY_READY, load, stated or _manifest_spec)


def find_generated(store: ArtifactStore, key: ArtifactKey, *, load: bool = False) -> LookupResult:
    """The one valid GENERATED entry of a key, whatever its spec; as `find_ready`."""
    return _find(store, key, ArtifactState.GENERATED, load, _manifest_spec)


def read_in_entry(store: ArtifactStore, folders: tuple[str, ...], limit: int = MARKER_LIMIT) -> ReadFile:
    """How files of one entry are read without validating it; `folders` lead to it from the store's root."""

    def read(name: str) -> bytes:
        *below, last = check_relative_path(name).split("/")
        with directory_below(store.root, (*folders, *below)) as directory:
            return read_bounded(directory, last, limit)

    return read


def _manifest_spec(read: ReadFile) -> ArtifactSpec:
    return Manifest.decode(read(MARKER_NAME)).spec


def _find(store: ArtifactStore, key: ArtifactKey, state: ArtifactState, load: bool, stated: StatedSpec) -> LookupResult:
    try:
        names = _candidates(store, key)
    except FileNotFoundError:
        return LookupResult(LookupStatus.MISS)
    except TreeError as error:
        return LookupResult(LookupStatus.INVALID, reason=f"{store.root}: {error}")
    except OSError as error:
        return LookupResult(LookupStatus.STORAGE_ERROR, reason=f"{store.root}: {error}")
    if names is None:
        return LookupResult(LookupStatus.MISS, reason=f"more than {SPEC_LIMIT} specs of key {key.digest}")
    results = [_look(store, key, name, state, load, stated) for name in names]
    hits = [result for result in results if result.status is LookupStatus.HIT]
    if len(hits) == 1:
        return hits[0]
    if hits:
        return LookupResult(LookupStatus.MISS, reason=f"{len(hits)} valid {state.value} entries of key {key.digest}")
    refused = [result for result in results if result.status is not LookupStatus.MISS]
    return refused[0] if refused else LookupResult(LookupStatus.MISS)


def _candidates(store: ArtifactStore, key: ArtifactKey) -> list[str] | None:
    """Names of the spec folders of a key, sorted; None for too many."""
    names: list[str] = []
    with directory_below(store.root, slot_parts(key, "")[:-1]) as directory, os.scandir(directory) as entries:
        for entry in entries:
            if is_digest(entry.name) and entry.is_dir(follow_symlinks=False):
                if len(names) == SPEC_LIMIT:
                    return None
                names.append(entry.name)
    return sorted(names)


def _look(
    store: ArtifactStore, key: ArtifactKey, name: str, state: ArtifactState, load: bool, stated: StatedSpec
) -> LookupResult:
    """The entry of one spec folder; a MISS where there is none, or none that states its spec."""
    folders = (*slot_parts(key, name), state.value)
    place = store.root.joinpath(*folders)
    try:
        spec = stated(read_in_entry(store, folders))
    except FileNotFoundError:
        return LookupResult(LookupStatus.MISS)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        return LookupResult(LookupStatus.INVALID, reason=f"{place}: {error}")
    except OSError as error:
        return LookupResult(LookupStatus.STORAGE_ERROR, reason=f"{place}: {error}")
    if spec.digest != name or spec.state is not state:
        return LookupResult(LookupStatus.INVALID, reason=f"{place}: its files are those of the spec {spec.digest}")
    return store.lookup(key, spec, load=load)
