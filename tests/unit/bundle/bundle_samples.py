"""Inputs of `write_bundle` and a bundle made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from artifact_samples import sample_environment

from pypto._identity import canonical_json
from pypto.bundle import SealInput, write_bundle
from pypto.jit.artifact_cache import ArtifactSpec, ArtifactState, BuildKind

GENERATED = ArtifactSpec(ArtifactState.GENERATED, BuildKind.SINGLE_CHIP, ("kernel_config.json",))
READY = ArtifactSpec(
    ArtifactState.BINARY_READY,
    BuildKind.SINGLE_CHIP,
    ("binary_manifest.json", "kernel_config.json", "prebuilt/kernels/k.so", "prebuilt/orchestration/o.so"),
)


def config(name: str, length: int | str, **changed: Any) -> dict[str, Any]:
    tensors = [("x", "in"), ("y", "out")]
    return {
        "schema": 1,
        "entry": name,
        "build_kind": "single_chip",
        "runtime": "host_build_graph",
        "runtime_abi": 1,
        "backend_type": "Ascend910B",
        "execution_mode": "sim",
        "params": [
            *({"name": n, "kind": "tensor", "direction": d, "dtype": "FP32", "shape": [length, 8]} for n, d in tensors),
            {"name": "n", "kind": "scalar", "direction": "in", "dtype": "INT32"},
        ],
        "returns": [],
        "orchestration": {"source": "orchestration/o.cpp", "binary": "prebuilt/orchestration/o.so"},
        "kernels": [],
        **changed,
    }


def seal_input(folder: Path, name: str, letter: str, length: int | str, **changed: Any) -> SealInput:
    """Directories of one specialization, with the modes that Bazel gives its outputs."""
    generated = {"kernel_config.json": canonical_json(config(name, length, **changed)), "ptoas/k.pto": b"module {}"}
    ready = {
        **generated,
        "binary_manifest.json": b"{}",
        "prebuilt/kernels/k.so": f"\x7fELF {name} {length}".encode(),
        "prebuilt/orchestration/o.so": b"\x7fELF o",
    }
    for stage, files in (("generated", generated), ("ready", ready)):
        for path, data in files.items():
            file = folder / stage / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
            file.chmod(0o555)
    return SealInput(name, "b" * 64, letter * 64, folder / "generated", GENERATED, folder / "ready", READY)


def make_bundle(out: Path, folder: Path, kernels: int = 3) -> Path:
    """A bundle of the first `kernels` of three specializations."""
    inputs = [
        seal_input(folder / "mul", "mul", "1", "S"),
        seal_input(folder / "add64", "add", "2", 64),
        seal_input(folder / "add32", "add", "3", 32),
    ]
    write_bundle(out, sample_environment(), inputs[:kernels])
    return out
