"""Copying the artifacts of a bundle into a store."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from pypto.bundle.reading import Bundle, BundleArtifact
from pypto.jit.artifact_cache.store import ArtifactStore, BuildStatus


class ImportFailed(Exception):
    """A store did not take an artifact; the message says which one and why."""


@dataclass(frozen=True)
class ImportCounts:
    """How many artifacts (stages of entries) were published, and how many the store had already."""

    published: int
    present: int


def import_into_store(bundle: Bundle, store: ArtifactStore) -> ImportCounts:
    """Publish every artifact of `bundle` in `store`: fresh files with the modes of their manifests, all checked.

    Raises:
        BundleDamaged: naming the file; artifacts before it stay published.
        ImportFailed: the store cannot be written, or holds a damaged entry in that place.
        ValueError: the store is read-only.
    """
    if store.readonly:
        raise ValueError(f"the store {store.root} is read-only; open it writable to import into it")
    published = present = 0
    for artifact in bundle.artifacts():
        if _publish(artifact, store):
            published += 1
        else:
            present += 1
    return ImportCounts(published, present)


def _publish(artifact: BundleArtifact, store: ArtifactStore) -> bool:
    def copy(directory: Path) -> None:
        artifact.materialize(directory)

    build = store.get_or_build(artifact.key, artifact.spec, copy)
    if build.private_directory is not None:
        shutil.rmtree(build.private_directory, ignore_errors=True)
    if build.status is BuildStatus.PRIVATE:
        raise ImportFailed(f"the store {store.root} did not take the artifact {artifact.key.digest}: {build.reason}")
    return build.status is BuildStatus.PUBLISHED
