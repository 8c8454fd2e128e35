"""``binary_manifest.json``: which binaries a READY directory holds, and for what they were built."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any

from pypto._identity.records import canonical_json, parse_canonical_json
from pypto.runtime.config import BackendType, ExecutionMode, platform_name
from pypto.runtime.device_object import check_device_kernel
from pypto.runtime.elf import NotASharedObject, SharedObjectFacts, read_shared_object
from pypto.runtime.errors import LoadError
from pypto.runtime.kernel_config import MANIFEST_FILE, RUNTIME_ABI, KernelConfig
from pypto.runtime.targets import target

MANIFEST_SCHEMA = 2

KERNEL_FUNCTIONS = frozenset({"kernel_entry", "pypto_kernel_begin", "pypto_kernel_op", "pypto_kernel_error"})
ORCHESTRATION_FUNCTIONS = frozenset({"pypto_abi_version", "pypto_parameter_count", "pypto_run"})


def write_manifest(config: KernelConfig, binaries: Mapping[str, bytes]) -> bytes:
    """The manifest of the binaries that ``config`` names.

    Args:
        binaries: content by relative path.

    Raises:
        LoadError: a binary is missing or not what the configuration says it is.
    """
    return canonical_json(_record(config, binaries))


def validate_binaries(
    config: KernelConfig, files: Mapping[str, bytes], digests: Mapping[str, str] | None = None
) -> None:
    """Check the files of a READY directory against their manifest, and the manifest against the configuration.

    Args:
        digests: SHA-256 by path, for bytes that were hashed and compared already; they are not hashed again.

    Raises:
        LoadError: the manifest is missing or not the one of these files; a binary is missing, was changed, is built for
            another machine or runtime, or lacks a function.
    """
    data = files.get(MANIFEST_FILE)
    if data is None:
        raise LoadError(f"{MANIFEST_FILE} is missing")
    try:
        manifest = parse_canonical_json(data, MANIFEST_FILE)
    except ValueError as error:
        raise LoadError(str(error)) from None
    if not isinstance(manifest, dict) or manifest.get("schema") != MANIFEST_SCHEMA:
        raise LoadError(f"{MANIFEST_FILE} has a schema that this PyPTO does not read")
    expected = _record(config, files, digests)
    for name, value in expected.items():
        if name != "binaries" and manifest.get(name) != value:
            raise LoadError(f"{MANIFEST_FILE} says {name} {manifest.get(name)!r}, the configuration says {value!r}")
    recorded = manifest.get("binaries")
    entries = recorded if isinstance(recorded, list) else []
    listed = {entry.get("path"): entry for entry in entries if isinstance(entry, dict)}
    for entry in expected["binaries"]:
        if listed.get(entry["path"]) != entry:
            difference = _difference(listed, entry)
            raise LoadError(f"{entry['path']} is not the binary that {MANIFEST_FILE} lists: {difference}")
    if manifest != expected:
        raise LoadError(f"{MANIFEST_FILE} lists something that the configuration does not have")


def check_loadable(config: KernelConfig, files: Mapping[str, bytes]) -> None:
    """Check that this process can load the binaries: machine and runtime ABI.

    Raises:
        LoadError: it cannot; says what was built for what.
    """
    if config.runtime_abi != RUNTIME_ABI:
        raise LoadError(
            f"'{config.entry}' was built for runtime ABI {config.runtime_abi}, this PyPTO speaks {RUNTIME_ABI}; "
            "build it again"
        )
    here = os.uname().machine
    for path in config.binaries:
        built_for = read_shared_object(files[path]).machine
        if built_for != here:
            raise LoadError(f"{path} is built for {built_for}, this machine is {here}")


def check_shared_object(
    path: str, data: bytes, functions: frozenset[str], *, machine: str | None = None
) -> SharedObjectFacts:
    """Check that bytes are a shared object with a Build-ID that exports ``functions``, for ``machine`` if given.

    Raises:
        LoadError: they are not; ``path`` names them.
    """
    try:
        facts = read_shared_object(data)
    except NotASharedObject as error:
        raise LoadError(f"{path} is no shared object: {error}") from None
    missing = sorted(functions - facts.functions)
    if missing:
        raise LoadError(f"{path} does not export {', '.join(missing)}")
    if facts.build_id is None:
        raise LoadError(f"{path} has no GNU Build-ID")
    if machine is not None and facts.machine != machine:
        raise LoadError(f"{path} is built for {facts.machine}, {machine} was expected")
    return facts


def _record(
    config: KernelConfig, files: Mapping[str, bytes], digests: Mapping[str, str] | None = None
) -> dict[str, Any]:
    binaries = [
        _binary(
            config, files, digests, kernel.binary, "kernel", name=kernel.name, function_id=kernel.id, core=kernel.core
        )
        for kernel in config.kernels
    ]
    path = config.orchestration_binary
    binaries.append(
        _binary(config, files, digests, path, "orchestration", name=config.entry, function_id=None, core=None)
    )
    return {
        "schema": MANIFEST_SCHEMA,
        "platform": platform_name(BackendType(config.backend_type), ExecutionMode(config.execution_mode)),
        "runtime": config.runtime,
        "runtime_abi": config.runtime_abi,
        "binaries": sorted(binaries, key=lambda binary: binary["path"]),
    }


def _binary(
    config: KernelConfig,
    files: Mapping[str, bytes],
    digests: Mapping[str, str] | None,
    path: str,
    kind: str,
    *,
    name: str,
    function_id: int | None,
    core: str | None,
) -> dict[str, Any]:
    data = files.get(path)
    if data is None:
        raise LoadError(f"{path} is missing")
    declared = target(config.backend_type, config.execution_mode)
    build_id: str | None
    if kind == "orchestration":
        on_device = declared.orchestration_compiler(config.runtime) == "aarch64"
        machine = "aarch64" if on_device else None
        build_id = check_shared_object(path, data, ORCHESTRATION_FUNCTIONS, machine=machine).build_id
    elif declared.is_device:
        build_id = check_device_kernel(path, data).build_id
    else:
        build_id = check_shared_object(path, data, KERNEL_FUNCTIONS).build_id
    return {
        "path": path,
        "size": len(data),
        "sha256": digest if (digest := (digests or {}).get(path)) is not None else hashlib.sha256(data).hexdigest(),
        "build_id": build_id,
        "kind": kind,
        "name": name,
        "function_id": function_id,
        "core": core,
        "signature": _signature(config) if kind == "orchestration" else None,
    }


def _signature(config: KernelConfig) -> list[str]:
    """What the program takes, one word for each parameter: its direction, dtype and, for a tensor, shape."""
    return [
        f"{p.direction} {p.dtype}" + (f"[{','.join(map(str, p.shape))}]" if p.kind == "tensor" else "")
        for p in config.params
    ]


def _difference(listed: Mapping[Any, Mapping[str, Any]], entry: Mapping[str, Any]) -> str:
    found = listed.get(entry["path"])
    if found is None:
        return "it is not listed"
    name = next((name for name in entry if found.get(name) != entry[name]), None)
    return f"{name} is {entry[name]!r}, listed is {found.get(name)!r}" if name else "the entry has unknown fields"
