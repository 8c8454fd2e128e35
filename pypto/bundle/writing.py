"""Writing a sealed bundle from generated and READY directories."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto._identity.identity import ToolchainIdentity
from pypto._identity.records import parse_canonical_json
from pypto._identity.roles import is_executable
from pypto._identity.source import SOURCE_SCHEMA, SPECIALIZATION_SCHEMA
from pypto.bundle.description import (
    BUNDLE_FILE,
    BundleDescription,
    EntryDescription,
    Schemas,
    Stage,
    Target,
    parameter_from_record,
)
from pypto.bundle.files import list_files, read_file
from pypto.jit.artifact_cache.handle import entry_parts
from pypto.jit.artifact_cache.key import ARTIFACT_SCHEMA, ArtifactKey
from pypto.jit.artifact_cache.manifest import MARKER_NAME, FileRecord, Manifest
from pypto.jit.artifact_cache.spec import ArtifactSpec, ArtifactState
from pypto.jit.artifact_cache.tree import open_directory
from pypto.jit.artifact_cache.write import write_file

CONFIG_FILE = "kernel_config.json"


@dataclass(frozen=True)
class SealInput:
    """One specialization to seal: its two digests, and both of its stages as directories with their specs.

    Every file of the directories goes into the bundle. Links are followed and modes ignored: a build system may show
    its files as links and mark them all executable.
    """

    name: str
    source_digest: str
    specialization_digest: str
    generated: Path
    generated_spec: ArtifactSpec
    ready: Path
    ready_spec: ArtifactSpec


def write_bundle(
    out_dir: str | os.PathLike[str], environment: ToolchainIdentity, inputs: Sequence[SealInput]
) -> BundleDescription:
    """Write a bundle into `out_dir`, which is absent or empty, and return its description.

    The artifacts are byte for byte those that a store would hold for the same keys and specs.

    Raises:
        ValueError: nothing to seal, a key twice, inputs for different targets, a directory without its configuration
            or a required file, an unusable environment, or an output directory that is not empty.
        OSError: something cannot be read or written; what was written so far is removed.
    """
    if not inputs:
        raise ValueError("a bundle needs at least one kernel")
    out = Path(out_dir)
    out.mkdir(parents=True, exist_ok=True)
    if any(out.iterdir()):
        raise ValueError(f"{out} is not empty; a bundle is written into a new directory")
    try:
        return _write(out, environment, inputs)
    except BaseException:
        (out / BUNDLE_FILE).unlink(missing_ok=True)
        for item in out.iterdir():
            shutil.rmtree(item, ignore_errors=True)
        raise


def _write(out: Path, environment: ToolchainIdentity, inputs: Sequence[SealInput]) -> BundleDescription:
    targets: dict[Target, str] = {}
    entries: dict[str, EntryDescription] = {}
    for item in inputs:
        config = _read_config(item)
        target = Target(
            *(config.get(name) for name in ("backend_type", "execution_mode", "runtime", "runtime_abi"))  # type: ignore[arg-type]
        )
        targets.setdefault(target, item.name)
        key = ArtifactKey(environment, item.source_digest, item.specialization_digest)
        if key.digest in entries:
            raise ValueError(f"the kernel {item.name!r} is given twice (key {key.digest}); a bundle holds each once")
        entries[key.digest] = EntryDescription(
            name=item.name,
            key=key,
            generated=_write_stage(out, key, item.generated_spec, ArtifactState.GENERATED, item.generated),
            ready=_write_stage(out, key, item.ready_spec, ArtifactState.BINARY_READY, item.ready),
            params=tuple(parameter_from_record(parameter) for parameter in config["params"]),
        )
    if len(targets) > 1:
        listed = "; ".join(
            f"{name}: {target.backend_type}, {target.execution_mode}, {target.runtime}"
            for target, name in targets.items()
        )
        raise ValueError(f"a bundle is for one target, these are for {len(targets)}: {listed}")
    description = BundleDescription(
        environment,
        next(iter(targets)),
        Schemas(SOURCE_SCHEMA, SPECIALIZATION_SCHEMA, ARTIFACT_SCHEMA),
        tuple(sorted(entries.values(), key=lambda entry: (entry.name, entry.key.digest))),
    )
    data = description.encode()
    # What is written must be what will be read: a malformed target or parameter shows here, not at the user's.
    BundleDescription.decode(data)
    (out / BUNDLE_FILE).write_bytes(data)
    return description


def _read_config(item: SealInput) -> dict[str, Any]:
    path = item.generated / CONFIG_FILE
    try:
        config = parse_canonical_json(path.read_bytes(), str(path))
    except FileNotFoundError:
        raise ValueError(f"{item.generated} has no {CONFIG_FILE}: it is no generated directory") from None
    if not isinstance(config, dict) or not isinstance(config.get("params"), list):
        raise ValueError(f"{path} is no kernel configuration")
    return config


def _write_stage(out: Path, key: ArtifactKey, spec: ArtifactSpec, state: ArtifactState, source: Path) -> Stage:
    if spec.state is not state:
        raise ValueError(f"{source}: the spec is for {spec.state.value}, the directory for {state.value}")
    files = list_files(source)
    missing = next((path for path in spec.required_files if path not in files), None)
    if missing is not None:
        raise ValueError(f"{source} lacks the required file {missing!r}")
    if MARKER_NAME in files:
        raise ValueError(f"{source} holds {MARKER_NAME}, which belongs to stores and bundles only")
    directory = out.joinpath(*entry_parts(key, spec))
    directory.mkdir(parents=True)
    output = open_directory(directory)
    try:
        records = []
        for path in files:
            data = read_file(source, path)
            executable = is_executable(path)
            write_file(output, path, data, executable=executable)
            records.append(FileRecord(path, len(data), hashlib.sha256(data).hexdigest(), executable))
    finally:
        os.close(output)
    marker = Manifest(key, spec, tuple(records)).encode()
    (directory / MARKER_NAME).write_bytes(marker)
    return Stage(spec.digest, hashlib.sha256(marker).hexdigest())
