"""The immutable artifact store: keys, specs, manifests, validated reading, locked publication.

Internal: not public API. Nothing here imports the compiler, or imports or runs what the store holds.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypto.jit.artifact_cache.discovery import find_generated, find_ready
    from pypto.jit.artifact_cache.handle import ArtifactDamaged, ArtifactHandle
    from pypto.jit.artifact_cache.key import ARTIFACT_SCHEMA, ArtifactKey
    from pypto.jit.artifact_cache.manifest import MARKER_NAME, FileRecord, Manifest
    from pypto.jit.artifact_cache.spec import ArtifactSpec, ArtifactState, BuildKind
    from pypto.jit.artifact_cache.store import (
        ArtifactBuild,
        ArtifactStore,
        BuildFailure,
        BuildOutputError,
        BuildStatus,
        LookupResult,
        LookupStatus,
    )

_MODULES = {
    "find_generated": "discovery",
    "find_ready": "discovery",
    "ArtifactDamaged": "handle",
    "ArtifactHandle": "handle",
    "ARTIFACT_SCHEMA": "key",
    "ArtifactKey": "key",
    "MARKER_NAME": "manifest",
    "FileRecord": "manifest",
    "Manifest": "manifest",
    "ArtifactSpec": "spec",
    "ArtifactState": "spec",
    "BuildKind": "spec",
    "ArtifactBuild": "store",
    "ArtifactStore": "store",
    "BuildFailure": "store",
    "BuildOutputError": "store",
    "BuildStatus": "store",
    "LookupResult": "store",
    "LookupStatus": "store",
}

__all__ = [
    "ARTIFACT_SCHEMA",
    "MARKER_NAME",
    "ArtifactBuild",
    "ArtifactDamaged",
    "ArtifactHandle",
    "ArtifactKey",
    "ArtifactSpec",
    "ArtifactState",
    "ArtifactStore",
    "BuildFailure",
    "BuildKind",
    "BuildOutputError",
    "BuildStatus",
    "FileRecord",
    "LookupResult",
    "LookupStatus",
    "Manifest",
    "find_generated",
    "find_ready",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)
