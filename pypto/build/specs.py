"""The artifact specs of the two stages, as both doors use them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pypto._identity.records import parse_canonical_json
from pypto.build.layout import CONFIG, chips_of, ready_files, tree_files
from pypto.jit.artifact_cache.spec import ArtifactSpec, ArtifactState, BuildKind

# A generated stage is asked for before anything is known but the key, so its spec cannot list files that only the
# generator knows: the configuration names all others, and whoever reads a generated stage checks that they are there.
GENERATED_SPEC = ArtifactSpec(ArtifactState.GENERATED, BuildKind.SINGLE_CHIP, (CONFIG,))


def generated_spec(chips: Iterable[str]) -> ArtifactSpec:
    """The spec of the GENERATED stage: of a distributed program's with every chip's configuration.

    Args:
        chips: directories of the chips; none for the program of a single chip.
    """
    configs = [f"{chip}/{CONFIG}" for chip in chips]
    if not configs:
        return GENERATED_SPEC
    return ArtifactSpec(ArtifactState.GENERATED, BuildKind.DISTRIBUTED, tuple(sorted((CONFIG, *configs))))


def ready_spec(config: Mapping[str, Any], chips: Mapping[str, Mapping[str, Any]] | None = None) -> ArtifactSpec:
    """The spec of the READY stage that belongs to a ``kernel_config.json``: every file of it is required.

    Args:
        chips: configurations of a distributed program's chips by directory.
    """
    files = tree_files(config, chips or {}, ready_files)
    return ArtifactSpec(ArtifactState.BINARY_READY, BuildKind(config["build_kind"]), files)


def stated_ready_spec(read: Callable[[str], bytes]) -> ArtifactSpec:
    """The READY spec that the configuration files of an entry name, GENERATED or READY; no Python code is run.

    Args:
        read: reads one file of it by its relative path.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: a configuration is damaged. Otherwise as `read`.
    """
    config = parse_canonical_json(read(CONFIG), CONFIG)
    chips = {chip: parse_canonical_json(read(f"{chip}/{CONFIG}"), f"{chip}/{CONFIG}") for chip in chips_of(config)}
    return ready_spec(config, chips)
