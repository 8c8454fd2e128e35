"""The parent's ``binary_manifest.json`` of a distributed program: which chips it has, and which binaries each."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from pypto._identity.records import canonical_json, parse_canonical_json
from pypto.runtime.config import BackendType, ExecutionMode, platform_name
from pypto.runtime.errors import LoadError
from pypto.runtime.kernel_config import CONFIG_FILE, MANIFEST_FILE

PARENT_SCHEMA = 1


def write_parent_manifest(config: Mapping[str, Any], manifests: Mapping[str, bytes]) -> bytes:
    """The marker of a parent from its configuration and the manifest of every chip, by the chip's directory."""
    return canonical_json(_record(config, manifests))


def chip_files(files: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    """The files of every chip of a distributed READY artifact by their path below the chip, checked for completeness.

    Raises:
        LoadError: the parent's marker is missing or damaged, or lists other chips or manifests than are there.
    """
    for name in (CONFIG_FILE, MANIFEST_FILE):
        if name not in files:
            raise LoadError(f"{name} is missing")
    try:
        config = parse_canonical_json(files[CONFIG_FILE], CONFIG_FILE)
        marker = parse_canonical_json(files[MANIFEST_FILE], MANIFEST_FILE)
        chips: Sequence[str] = config["chips"]
    except (ValueError, TypeError, KeyError) as error:
        raise LoadError(f"the parent of a distributed program is damaged: {error}") from None
    manifests = {}
    for chip in chips:
        data = files.get(f"{chip}/{MANIFEST_FILE}")
        if data is None:
            raise LoadError(f"the chip {chip} has no {MANIFEST_FILE}: the program is not complete")
        manifests[chip] = data
    expected = _record(config, manifests)
    if marker != expected:
        name = next((n for n in expected if not isinstance(marker, dict) or marker.get(n) != expected[n]), "a field")
        raise LoadError(f"{MANIFEST_FILE} of the parent does not fit its chips: {name} differs")
    return {
        chip: {name.removeprefix(f"{chip}/"): data for name, data in files.items() if name.startswith(f"{chip}/")}
        for chip in chips
    }


def _record(config: Mapping[str, Any], manifests: Mapping[str, bytes]) -> dict[str, Any]:
    platform = platform_name(BackendType(config["backend_type"]), ExecutionMode(config["execution_mode"]))
    return {
        "schema": PARENT_SCHEMA,
        "build_kind": "distributed",
        "platform": platform,
        "runtime": config["runtime"],
        "runtime_abi": config["runtime_abi"],
        "chips": [
            {"path": chip, "manifest_sha256": hashlib.sha256(data).hexdigest()}
            for chip, data in sorted(manifests.items())
        ],
    }
