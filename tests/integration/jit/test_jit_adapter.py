"""Real entries bound and restored by hand: from validated bytes, without tools; distributed parents of two chips."""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pypto.toolchain
from pypto._identity.records import canonical_json
from pypto.jit.artifact_cache import ArtifactSpec, ArtifactState, ArtifactStore, BuildKind
from pypto.jit.artifact_cache.handle import ArtifactHandle
from pypto.jit.artifact_cache.manifest import Manifest
from pypto.jit.artifact_cache.store import LookupStatus
from pypto.jit.config import CacheConfig
from pypto.runtime import RunConfig, abi, binary_manifest, kernel_compiler, prebuilt, shared_objects
from pypto.runtime._artifact_runtime import ArtifactRuntime, bind_artifact, restore_artifact
from pypto.runtime.compiled import CompiledKernel, Origin
from pypto.runtime.errors import LoadError

NAMES = ("kernel_config.json", "chips/0/kernel_config.json", "chips/1/kernel_config.json")


def handle_of(root: Path, state: str) -> ArtifactHandle:
    (marker,) = root.rglob(f"{state}/artifact_manifest.json")
    manifest = Manifest.decode(marker.read_bytes())
    found = ArtifactStore(root, readonly=True).lookup(manifest.key, manifest.spec)
    assert found.handle is not None
    return found.handle


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def refuse(*_arguments: Any, **_options: Any) -> Any:
        raise AssertionError("a compiler was asked for")

    monkeypatch.setattr(kernel_compiler.KernelCompiler, "__init__", refuse)
    monkeypatch.setattr(pypto.toolchain.selection, "current", refuse)
    # A READY load takes no lock in the store.
    monkeypatch.setattr(fcntl, "flock", refuse)
    yield


def computes(program: Any) -> None:
    x = np.arange(16 * 64, dtype=np.float32).reshape(16, 64)
    out = np.zeros_like(x)
    program(x, 3.0, out)
    np.testing.assert_array_equal(out, x * np.float32(3))


@pytest.mark.parametrize("readonly", [True, False])
def test_rt_19_20_55_58_to_64_bin_17_18_19_25_kc_41_a_ready_entry_loads_without_tools_and_writes_nothing(
    cache: Path, tmp_path: Path, no_compiler: None, readonly: bool
) -> None:
    before = {path: path.stat().st_mtime_ns for path in cache.rglob("*")}
    restored = restore_artifact(ArtifactStore(cache, readonly=readonly), handle_of(cache, "ready"), tmp_path / "run")
    computes(restored.load())
    assert restored.program is None
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*")} == before


def test_rt_68_72_75_inner_metadata_that_does_not_fit_is_refused(cache: Path, tmp_path: Path) -> None:
    handle = handle_of(cache, "ready")
    files = {record.path: handle.read(record.path) for record in handle.records}
    files["binary_manifest.json"] = files["binary_manifest.json"].replace(b'"size":', b'"size":1', 1)
    digests = {record.path: record.sha256 for record in handle.records}
    with pytest.raises(LoadError, match="size is"):
        prebuilt.load(files, digests=digests)
    with pytest.raises(LoadError, match="sha256 is"):
        prebuilt.load(
            {**files, "binary_manifest.json": handle.read("binary_manifest.json")},
            digests={name: "0" * 64 for name in files},
        )


def test_rt_32_a_program_of_one_chip_there_and_back(cache: Path, tmp_path: Path, no_compiler: None) -> None:
    """Bound to its GENERATED entry; the READY one that is there already is taken, and nothing is built."""
    compiled = CompiledKernel("scaled", origin=Origin.PRIVATE, directory=None)
    store = ArtifactStore(cache, private_root=tmp_path / "private")
    bind_artifact(compiled, store, handle_of(cache, "generated"), tmp_path / "run")
    computes(compiled.load())
    runtime = compiled._artifact_runtime
    assert isinstance(runtime, ArtifactRuntime)
    assert runtime.handle == handle_of(cache, "ready")
    again = restore_artifact(ArtifactStore(cache, readonly=True), runtime.handle, tmp_path / "other")
    computes(again.load())


def test_rt_65_another_runtime_is_told_from_this_one(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    restored = restore_artifact(ArtifactStore(cache, readonly=True), handle_of(cache, "ready"), tmp_path / "run")
    speaks = binary_manifest.RUNTIME_ABI
    monkeypatch.setattr(binary_manifest, "RUNTIME_ABI", speaks + 1)
    with pytest.raises(
        LoadError, match=f"built for runtime ABI {speaks}, this PyPTO speaks {speaks + 1}; build it again"
    ):
        restored.load()


@pytest.mark.parametrize("version", [b'"schema":1,', b'"schema":"2",', b'"schema":3,', b""])
def test_rt_54_95_another_version_of_the_inner_manifest(
    cache: Path, monkeypatch: pytest.MonkeyPatch, version: bytes
) -> None:
    """A whole number; any other value is refused before anything is loaded."""
    monkeypatch.setattr(shared_objects, "load", lambda *_: pytest.fail("a binary was loaded"))
    handle = handle_of(cache, "ready")
    files = {record.path: handle.read(record.path) for record in handle.records}
    changed = files["binary_manifest.json"]
    assert b'"schema":2}' in changed
    changed = changed.replace(b',"schema":2}', b"," + version.rstrip(b",") + b"}" if version else b"}")
    with pytest.raises(LoadError, match="has a schema that this PyPTO does not read"):
        prebuilt.load({**files, "binary_manifest.json": changed})


def test_bin_22_there_is_one_store(world: Any, cache: Path) -> None:
    """Everything that is kept for other processes lies in the root's store; nothing is kept anywhere else."""
    assert {path.name for path in cache.iterdir()} == {"artifacts", "locks", "records"}
    assert not (world.folder / ".cache").exists()
    stores = [
        f"{module.__name__}.{name}"
        for module in list(sys.modules.values())
        if getattr(module, "__name__", "").startswith("pypto.")
        for name, value in vars(module).items()
        if isinstance(value, type) and name.endswith("Store") and value.__module__ == module.__name__
    ]
    assert stores == ["pypto.jit.artifact_cache.store.ArtifactStore"]


def generated_files(cache: Path) -> dict[str, bytes]:
    handle = handle_of(cache, "generated")
    return {record.path: handle.read(record.path) for record in handle.records}


def publish(root: Path, private: Path, files: Mapping[str, bytes], cache: Path) -> tuple[ArtifactStore, ArtifactHandle]:
    store = ArtifactStore(root, private_root=private)
    spec = ArtifactSpec(ArtifactState.GENERATED, BuildKind.DISTRIBUTED, NAMES)

    def build(directory: Path) -> None:
        for name, data in files.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    built = store.get_or_build(handle_of(cache, "generated").key, spec, build)
    assert built.handle is not None
    return store, built.handle


@pytest.fixture
def parent(cache: Path, descriptor: Path, tmp_path: Path) -> tuple[ArtifactStore, ArtifactHandle]:
    """A GENERATED entry of a distributed program whose two chips are the kernel of the tests."""
    chip = generated_files(cache)
    config = {
        "schema": 1,
        "entry": "both",
        "build_kind": "distributed",
        "chips": ["chips/0", "chips/1"],
        "backend_type": "Ascend910B",
        "execution_mode": "sim",
        "runtime": "host_build_graph",
        "runtime_abi": 1,
    }
    files = {"kernel_config.json": canonical_json(config)}
    files |= {f"chips/{number}/{name}": data for number in (0, 1) for name, data in chip.items()}
    return publish(tmp_path / "root", tmp_path / "private", files, cache)


def test_rt_29_30_31_33_39_57_a_distributed_program(
    parent: tuple[ArtifactStore, ArtifactHandle], tmp_path: Path
) -> None:
    store, handle = parent
    compiled = CompiledKernel("both", origin=Origin.PRIVATE, directory=None)
    bind_artifact(compiled, store, handle, tmp_path / "run")
    runtime = compiled._artifact_runtime
    assert isinstance(runtime, ArtifactRuntime)
    chips = runtime.load_chips()
    assert list(chips) == ["chips/0", "chips/1"]
    for program in chips.values():
        computes(program)
    with pytest.raises(ValueError, match="is a distributed program"):
        compiled.load()
    ready = runtime.handle
    paths = {record.path for record in ready.records}
    assert not [path for path in paths if path.endswith((".o", ".so")) and "/prebuilt/" not in path]
    assert not [path for path in paths if "cache/" in path]

    again = restore_artifact(ArtifactStore(store.root, readonly=True), ready, tmp_path / "other")
    restored = again._artifact_runtime
    assert isinstance(restored, ArtifactRuntime)
    computes(restored.load_chips()["chips/1"])


def test_rt_55_57_all_chips_are_checked_before_one_is_loaded(
    parent: tuple[ArtifactStore, ArtifactHandle], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, handle = parent
    runtime = ArtifactRuntime(store, handle, tmp_path / "run")
    ready = runtime.files()
    files = dict(ready.files)
    manifest = files.pop("chips/1/binary_manifest.json")
    loaded: list[int] = []
    monkeypatch.setattr(prebuilt, "load", lambda *_a, **_k: loaded.append(1))
    for damaged, message in (
        (files, "the chip chips/1 has no binary_manifest.json"),
        ({**files, "chips/1/binary_manifest.json": manifest + b" "}, "does not fit its chips: chips differs"),
    ):
        runtime._known = type(ready)(damaged, ready.origin, ready.directory, None)
        with pytest.raises(LoadError, match=message):
            runtime.load_chips()
    broken = "chips/1/" + next(n.removeprefix("chips/1/") for n in files if n.startswith("chips/1/prebuilt/kernels"))
    runtime._known = type(ready)({**ready.files, broken: b""}, ready.origin, ready.directory, None)
    with pytest.raises(LoadError):
        runtime.load_chips()
    assert loaded == []


def test_rt_27_a_missing_chip_configuration(cache: Path, parent: tuple[ArtifactStore, ArtifactHandle]) -> None:
    store, handle = parent
    (handle.directory / "chips/1/kernel_config.json").unlink()
    assert store.lookup(handle.key, handle.spec).status is LookupStatus.INVALID
    shutil.rmtree(store.root)


def test_rt_24_42_to_52_54_56_101_to_107_what_a_ready_entry_holds(cache: Path) -> None:
    handle = handle_of(cache, "ready")
    files = {record.path: handle.read(record.path) for record in handle.records}
    config = json.loads(files["kernel_config.json"])
    marker = json.loads(files["binary_manifest.json"])
    assert (marker["schema"], marker["platform"], marker["runtime"]) == (2, "a2a3sim", config["runtime"])
    binaries = {entry["path"]: entry for entry in marker["binaries"]}
    assert set(binaries) == {path for path in files if path.endswith(".so")}
    assert all(path.startswith("prebuilt/") for path in binaries)
    for path, entry in binaries.items():
        assert path in handle.spec.required_files
        assert (entry["size"], entry["sha256"]) == (len(files[path]), hashlib.sha256(files[path]).hexdigest())
        assert sum(data == files[path] for data in files.values()) == 1
    (kernel,) = config["kernels"]
    assert binaries[kernel["binary"]]["function_id"] == kernel["id"]
    assert binaries[kernel["binary"]]["name"] == kernel["name"]
    entry = binaries[config["orchestration"]["binary"]]
    assert (entry["name"], entry["signature"]) == ("scaled", ["in FP32[16,64]", "in FP32", "out FP32[16,64]"])
    assert {kernel["source"], kernel["pto"], config["orchestration"]["source"]} <= set(files)


def test_cfg_46_a_launch_is_not_told_of_the_cache(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = restore_artifact(ArtifactStore(cache, readonly=True), handle_of(cache, "ready"), tmp_path / "run").load()
    launched: list[dict[str, Any]] = []
    real = abi.Orchestration.run

    def run(self: abi.Orchestration, *arguments: Any, **options: Any) -> Any:
        launched.append(options)
        return real(self, *arguments, **options)

    monkeypatch.setattr(abi.Orchestration, "run", run)
    x = np.zeros((16, 64), np.float32)
    program(x, 1.0, x.copy(), config=RunConfig(cache_config=CacheConfig(enabled=True, root=tmp_path / "none")))
    assert launched == [{"threads": 0, "ring": None}]
    assert not (tmp_path / "none").exists()


def test_req_43_44_kc_41_a_restored_kernel_computes_with_what_was_loaded(world: Any, cache: Path) -> None:
    code = """
import sys
import numpy as np
kernel = scaled.warmup()
program = kernel.load()
x = np.ones((16, 64), np.float32)
out = np.zeros_like(x)
program(x, 4.0, out)
assert (out == 4).all()
words = ("worker", "comm", "kernel_compiler", "complete", "binary_context")
assert not [m for m in sys.modules if m.startswith("pypto.") and any(word in m for word in words)]
"""
    assert world.counts(code, PYPTO_CACHE="1", PYPTO_CACHE_DIR=cache) == {"requests": 1, "ready_hits": 1}
