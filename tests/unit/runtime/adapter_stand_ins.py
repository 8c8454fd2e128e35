"""Entries with stand-ins for binaries, and the objects that are bound to them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pypto._identity import ToolchainIdentity
from pypto._identity.identity import COMPONENT_NAMES
from pypto._identity.records import canonical_json
from pypto.jit.artifact_cache import ArtifactKey, ArtifactSpec, ArtifactState, ArtifactStore, BuildKind
from pypto.jit.artifact_cache.handle import ArtifactHandle
from pypto.jit.artifact_cache.store import BuildStatus
from pypto.runtime._artifact_runtime import ArtifactRuntime, Promotion, bind_artifact
from pypto.runtime.compiled import CompiledKernel, Origin

CHIP = {
    "schema": 1,
    "entry": "main",
    "build_kind": "single_chip",
    "orchestration": {"source": "orchestration/main.cpp", "binary": "prebuilt/orchestration/main.so"},
    "kernels": [],
}
PARENT = {"schema": 1, "entry": "all", "build_kind": "distributed", "chips": ["chips/0", "chips/1"]}


def key() -> ArtifactKey:
    return ArtifactKey(ToolchainIdentity.of({name: "a" * 64 for name in COMPONENT_NAMES}), "b" * 64, "c" * 64)


def write(root: Path, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o755 if name.endswith(".so") else 0o644)


def chip_files(prefix: str = "", config: Mapping[str, Any] = CHIP) -> dict[str, bytes]:
    return {f"{prefix}kernel_config.json": canonical_json(config), f"{prefix}orchestration/main.cpp": b"int main;"}


class Builds:
    """A binary stage that writes stand-ins, and what it was asked for."""

    def __init__(self) -> None:
        self.generated: list[dict[str, bytes]] = []
        self.uncovered: tuple[str, ...] = ()
        self.refused: list[str] = []
        self.finished: list[BuildStatus] = []
        self.meanwhile: Callable[[Path], None] = lambda _: None

    def promotion(self) -> Promotion:
        return Promotion(self.build, lambda built: self.finished.append(built.status), self.refused.append)

    def build(self, generated: Path, out: Path, scratch: Path) -> tuple[str, ...]:
        found = {str(p.relative_to(generated)): p.read_bytes() for p in generated.rglob("*") if p.is_file()}
        self.generated.append(found)
        shutil.copytree(generated, out, dirs_exist_ok=True)
        for config in list(out.rglob("kernel_config.json")):
            if b'"single_chip"' in config.read_bytes():
                write(config.parent, {"prebuilt/orchestration/main.so": b"ELF"})
            write(config.parent, {"binary_manifest.json": b"{}"})
        self.meanwhile(out)
        return self.uncovered


def publish(
    store: ArtifactStore, files: Mapping[str, bytes], *required: str, kind: BuildKind = BuildKind.SINGLE_CHIP
) -> ArtifactHandle:
    spec = ArtifactSpec(ArtifactState.GENERATED, kind, required or ("kernel_config.json",))
    built = store.get_or_build(key(), spec, lambda directory: write(directory, files))
    assert built.handle is not None and built.private_directory is not None
    shutil.rmtree(built.private_directory)
    return built.handle


def kernel() -> CompiledKernel:
    return CompiledKernel("sample", origin=Origin.PRIVATE, directory=None, program=object())


def bound(store: ArtifactStore, handle: ArtifactHandle, builds: Builds, tmp_path: Path) -> CompiledKernel:
    compiled = kernel()
    bind_artifact(compiled, store, handle, tmp_path / "run", promotion=builds.promotion())
    return compiled


def runtime_of(compiled: CompiledKernel) -> ArtifactRuntime:
    runtime = compiled._artifact_runtime
    assert isinstance(runtime, ArtifactRuntime)
    return runtime


CONFIGS = ("kernel_config.json", "chips/0/kernel_config.json", "chips/1/kernel_config.json")


def distributed() -> dict[str, bytes]:
    files = {"kernel_config.json": canonical_json(PARENT), "chips/notes.txt": b"no chip"}
    return {**files, **chip_files("chips/0/"), **chip_files("chips/1/")}
