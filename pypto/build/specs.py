"""The artifact specs of the two stages, as both doors use them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pypto.build.layout import CONFIG, ready_files, tree_files
from pypto.jit.artifact_cache.spec import ArtifactSpec, ArtifactState, BuildKind

# A generated stage is asked for before anything is known but the key, so its spec cannot list files that only the
# generator knows: the configuration names all others, and whoever reads a generated stage checks that they are there.
GENERATED_SPEC = ArtifactSpec(ArtifactState.GENERATED, BuildKind.SINGLE_CHIP, (CONFIG,))


def ready_spec(config: Mapping[str, Any], chips: Mapping[str, Mapping[str, Any]] | None = None) -> ArtifactSpec:
    """The spec of the READY stage that belongs to a ``kernel_config.json``: every file of it is required.

    Args:
        chips: configurations of a distributed program's chips by directory.
    """
    files = tree_files(config, chips or {}, ready_files)
    return ArtifactSpec(ArtifactState.BINARY_READY, BuildKind(config["build_kind"]), files)
