"""Compiled objects bound to entries of a store: what is validated when, promotion, what fails before anything runs."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from adapter_stand_ins import (
    CHIP,
    CONFIGS,
    Builds,
    bound,
    chip_files,
    distributed,
    kernel,
    key,
    publish,
    runtime_of,
    write,
)

from pypto.build.specs import ready_spec
from pypto.jit.artifact_cache import ArtifactSpec, ArtifactState, ArtifactStore, BuildKind
from pypto.jit.artifact_cache.handle import ArtifactHandle
from pypto.jit.artifact_cache.store import BuildFailure, BuildStatus, LookupStatus
from pypto.runtime import prebuilt
from pypto.runtime._artifact_runtime import ArtifactRuntime, bind_artifact, restore_artifact
from pypto.runtime._artifact_sources import UnsupportedArtifactInput, package_generated_sources
from pypto.runtime.compiled import CompiledKernel, Origin


def test_rt_15_16_17_dia_01_05_06_07_binding_and_promotion(
    store: ArtifactStore, builds: Builds, tmp_path: Path
) -> None:
    handle = publish(store, chip_files())
    compiled = kernel()
    program, identity = compiled.program, hash(compiled)
    bind_artifact(compiled, store, handle, tmp_path / "run", promotion=builds.promotion())
    assert (compiled.output_dir, compiled.state, compiled.origin) == (handle.directory, "GENERATED", Origin.SHARED)
    compiled.ensure_ready()
    runtime = runtime_of(compiled)
    assert runtime.handle.spec.state is ArtifactState.BINARY_READY
    assert compiled.program is program
    assert (compiled.output_dir, hash(compiled)) == (handle.directory, identity)
    assert compiled.binary_dir == runtime.directory == runtime.handle.directory
    readonly = ArtifactStore(store.root, readonly=True)
    assert readonly.lookup(key(), ready_spec(CHIP)).status is LookupStatus.HIT
    assert builds.finished == [BuildStatus.PUBLISHED]
    assert list((tmp_path / "private").iterdir()) == []


def test_rt_18_dia_02_restoring_from_a_readonly_store(store: ArtifactStore, builds: Builds, tmp_path: Path) -> None:
    compiled = bound(store, publish(store, chip_files()), builds, tmp_path)
    compiled.ensure_ready()
    readonly = ArtifactStore(store.root, readonly=True)
    found = readonly.lookup(key(), ready_spec(CHIP))
    assert found.handle is not None
    restored = restore_artifact(readonly, found.handle, tmp_path / "other run")
    assert (restored.program, restored.state, restored.origin) == (None, "READY", Origin.SHARED)
    assert restored.run_directory == tmp_path / "other run"
    assert not (tmp_path / "other run").exists()
    assert len(builds.generated) == 1


@pytest.mark.parametrize("place", ["root/run", "link/run"])
def test_rt_13_92_a_run_directory_in_the_store(
    store: ArtifactStore, builds: Builds, tmp_path: Path, place: str
) -> None:
    handle = publish(store, chip_files())
    (tmp_path / "link").symlink_to("root")
    with pytest.raises(ValueError, match="lies in the store"):
        bind_artifact(kernel(), store, handle, tmp_path / place)
    compiled = bound(store, handle, builds, tmp_path)
    compiled.ensure_ready()
    with pytest.raises(ValueError, match="lies in the store"):
        restore_artifact(store, runtime_of(compiled).handle, tmp_path / place)


def test_rt_94_dia_26_states_and_second_bindings(store: ArtifactStore, builds: Builds, tmp_path: Path) -> None:
    handle = publish(store, chip_files())
    with pytest.raises(ValueError, match="is no READY entry"):
        restore_artifact(store, handle, tmp_path / "run")
    compiled = bound(store, handle, builds, tmp_path)
    with pytest.raises(RuntimeError, match="is bound to an artifact already"):
        bind_artifact(compiled, store, handle, tmp_path / "run")
    compiled.ensure_ready()
    with pytest.raises(ValueError, match="is no GENERATED entry"):
        bind_artifact(kernel(), store, runtime_of(compiled).handle, tmp_path / "run")


def test_rt_25_76_80_81_93_binding_validates_anew(store: ArtifactStore, builds: Builds, tmp_path: Path) -> None:
    handle = publish(store, chip_files())
    bound(store, handle, builds, tmp_path)
    (handle.directory / "orchestration/main.cpp").write_bytes(b"int MAIN;")
    with pytest.raises(ValueError, match=r"orchestration/main.cpp differs from the manifest in sha256"):
        bind_artifact(kernel(), store, handle, tmp_path / "run")
    shutil.rmtree(handle.directory)
    with pytest.raises(FileNotFoundError):
        bind_artifact(kernel(), store, handle, tmp_path / "run")


def test_rt_66_a_file_that_was_damaged_since_binding(store: ArtifactStore, builds: Builds, tmp_path: Path) -> None:
    handle = publish(store, chip_files())
    compiled = bound(store, handle, builds, tmp_path)
    (handle.directory / "orchestration/main.cpp").write_bytes(b"int MAIN;")
    with pytest.raises(ValueError, match=r"main\.cpp"):
        compiled.ensure_ready()
    assert builds.generated == []


def test_rt_70_73_a_ready_entry_is_hashed_once(
    store: ArtifactStore, builds: Builds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = bound(store, publish(store, chip_files()), builds, tmp_path)
    compiled.ensure_ready()
    handle = runtime_of(compiled).handle
    hashed: list[int] = []
    real = hashlib.sha256

    def counting(data: bytes = b"", **options: Any) -> Any:
        hashed.append(len(data))
        return real(data, **options)

    monkeypatch.setattr(hashlib, "sha256", counting)
    found = store.lookup(handle.key, handle.spec)
    payloads = len(hashed)
    assert found.handle is not None
    hashed.clear()
    restored = restore_artifact(store, found.handle, tmp_path / "run")
    assert len(hashed) == payloads
    hashed.clear()
    ready = runtime_of(restored).files()
    assert hashed == []
    assert ready.digests is not None
    assert set(ready.digests) == set(ready.files)


def test_rt_74_a_runtime_that_was_made_directly_validates_at_its_first_load(
    store: ArtifactStore, builds: Builds, tmp_path: Path
) -> None:
    compiled = bound(store, publish(store, chip_files()), builds, tmp_path)
    compiled.ensure_ready()
    handle = runtime_of(compiled).handle
    binary = handle.directory / "prebuilt/orchestration/main.so"
    direct = ArtifactRuntime(store, ArtifactHandle(handle.root, handle.key, handle.spec, handle.records), tmp_path)
    binary.write_bytes(b"BAD")
    with pytest.raises(ValueError, match=r"main\.so"):
        direct.files()


def test_rt_40_41_bin_13_15_planted_binaries_reach_no_build(
    store: ArtifactStore, builds: Builds, tmp_path: Path
) -> None:
    from pypto.build.layout import generated_files

    handle = publish(store, {**chip_files(), "cache/main.so": b"planted", "orchestration/main.o": b"planted"})
    bound(store, handle, builds, tmp_path).ensure_ready()
    assert set(generated_files(CHIP)) == {"kernel_config.json", "orchestration/main.cpp"}
    assert "prebuilt/orchestration/main.so" not in builds.generated[0]
    assert not {"cache/main.so", "orchestration/main.o"} & set(ready_spec(CHIP).required_files)


def test_rt_83_84_85_86_89_a_failed_publication_keeps_the_private_binaries(
    store: ArtifactStore, builds: Builds, tmp_path: Path
) -> None:
    handle = publish(store, chip_files())
    compiled = bound(store, handle, builds, tmp_path)
    slot = store.root.joinpath("artifacts", key().environment_digest, key().digest, ready_spec(CHIP).digest)
    # Something in the place of the slot: the entry cannot be published there.
    slot.write_text("")
    compiled.ensure_ready()
    runtime = runtime_of(compiled)
    assert runtime.handle.spec.state is ArtifactState.GENERATED
    assert (compiled.state, compiled.origin) == ("READY", Origin.PRIVATE)
    assert runtime.directory.is_relative_to(tmp_path / "private")
    assert (runtime.directory / "prebuilt/orchestration/main.so").read_bytes() == b"ELF"
    assert builds.finished == [BuildStatus.PRIVATE]
    directory = runtime.directory
    del compiled, runtime
    assert directory.is_dir()


def test_what_no_identity_covers_stays_private(store: ArtifactStore, builds: Builds, tmp_path: Path) -> None:
    builds.uncovered = ("/strange.h", "/x.h")
    compiled = bound(store, publish(store, chip_files()), builds, tmp_path)
    compiled.ensure_ready()
    assert (compiled.state, compiled.origin) == ("READY", Origin.PRIVATE)
    assert builds.refused == ["a compiler read /strange.h and 1 more, which no identity covers"]
    assert store.lookup(key(), ready_spec(CHIP)).status is LookupStatus.MISS


def test_rt_98_promotion_over_a_readonly_store(store: ArtifactStore, builds: Builds, tmp_path: Path) -> None:
    handle = publish(store, chip_files())
    readonly = ArtifactStore(store.root, readonly=True, private_root=tmp_path / "private")
    compiled = bound(readonly, handle, builds, tmp_path)
    compiled.ensure_ready()
    assert compiled.origin is Origin.PRIVATE
    homeless = bound(ArtifactStore(store.root, readonly=True), handle, builds, tmp_path)
    with pytest.raises(OSError, match="no private_root to build in was given"):
        homeless.ensure_ready()


def test_rt_53_81_a_failing_build_publishes_nothing_and_may_be_repeated(
    store: ArtifactStore, builds: Builds, tmp_path: Path
) -> None:
    compiled = bound(store, publish(store, chip_files()), builds, tmp_path)

    def fail(_: Path) -> None:
        raise RuntimeError("no compiler")

    builds.meanwhile = fail
    with pytest.raises(RuntimeError, match="no compiler"):
        compiled.ensure_ready()
    assert store.lookup(key(), ready_spec(CHIP)).status is LookupStatus.MISS
    builds.meanwhile = lambda _: None
    compiled.ensure_ready()
    assert compiled.origin is Origin.SHARED


def test_rt_87_overlapping_promotions_share_one_build(store: ArtifactStore, builds: Builds, tmp_path: Path) -> None:
    handle = publish(store, chip_files())
    compiled = [bound(store, handle, builds, tmp_path) for _ in range(4)]
    started = threading.Event()

    def wait(_: Path) -> None:
        started.wait(5)

    builds.meanwhile = wait
    threads = [threading.Thread(target=one.ensure_ready) for one in compiled]
    for thread in threads:
        thread.start()
    started.set()
    for thread in threads:
        thread.join(10)
    assert len(builds.generated) == 1
    assert {one.origin for one in compiled} == {Origin.SHARED}


def test_rt_34_91_several_orchestrations(store: ArtifactStore, tmp_path: Path) -> None:
    config = {**CHIP, "orchestration": [CHIP["orchestration"], CHIP["orchestration"]]}
    handle = publish(store, chip_files(config=config))
    with pytest.raises(ValueError, match="has one orchestration; store its parts one by one"):
        bind_artifact(kernel(), store, handle, tmp_path / "run")


def test_rt_69_a_binary_marker_is_not_enough(store: ArtifactStore, tmp_path: Path) -> None:
    handle = publish(store, {**chip_files(), "binary_manifest.json": b"{}"})
    with pytest.raises(ValueError, match="does not hold exactly the generated files"):
        bind_artifact(kernel(), store, handle, tmp_path / "run")


def test_rt_21_22_23_28_29_33_97_a_parent_with_chips(store: ArtifactStore, builds: Builds, tmp_path: Path) -> None:
    handle = publish(store, distributed(), *CONFIGS, kind=BuildKind.DISTRIBUTED)
    compiled = bound(store, handle, builds, tmp_path)
    assert builds.generated == []
    compiled.ensure_ready()
    spec = runtime_of(compiled).handle.spec
    assert spec.build_kind is BuildKind.DISTRIBUTED
    markers = [name for name in spec.required_files if name.endswith("binary_manifest.json")]
    assert markers == ["binary_manifest.json", "chips/0/binary_manifest.json", "chips/1/binary_manifest.json"]
    assert "chips/1/prebuilt/orchestration/main.so" in spec.required_files
    assert len(builds.generated) == 1


@pytest.mark.parametrize(
    ("required", "message"),
    [
        (CONFIGS[:2], "chips/1/kernel_config.json is there, but the entry's spec does not declare it"),
        (CONFIGS[1:], "kernel_config.json is there, but the entry's spec does not declare it"),
    ],
)
def test_rt_26_108_every_chip_is_declared(
    store: ArtifactStore, tmp_path: Path, required: tuple[str, ...], message: str
) -> None:
    handle = publish(store, distributed(), *required, kind=BuildKind.DISTRIBUTED)
    with pytest.raises(ValueError, match=message):
        bind_artifact(kernel(), store, handle, tmp_path / "run")


def test_rt_62_64_100_bin_18_19_25_restoring_writes_nothing(
    store: ArtifactStore, builds: Builds, tmp_path: Path
) -> None:
    compiled = bound(store, publish(store, chip_files()), builds, tmp_path)
    compiled.ensure_ready()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    for policy in (ArtifactStore(store.root, readonly=True), ArtifactStore(store.root)):
        found = policy.lookup(key(), ready_spec(CHIP))
        assert found.handle is not None
        restore_artifact(policy, found.handle, tmp_path / "run").ensure_ready()
        assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    assert os.listdir(store.root / "locks") == [f"{key().digest}.lock"]


def test_rt_36_37_38_96_bin_14_21_the_key_is_locked_while_its_copy_is_built(
    store: ArtifactStore, builds: Builds, tmp_path: Path
) -> None:
    handle = publish(store, chip_files())
    compiled = bound(store, handle, builds, tmp_path)
    held: list[bool] = []

    def look(out: Path) -> None:
        descriptor = os.open(store.root / "locks" / f"{key().digest}.lock", os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held.append(False)
        except BlockingIOError:
            held.append(True)
        finally:
            os.close(descriptor)

    builds.meanwhile = look
    compiled.ensure_ready()
    assert held == [True]
    # Built of a copy: the entry itself is as it was.
    assert store.lookup(key(), handle.spec).status is LookupStatus.HIT
    assert set(builds.generated[0]) == {"kernel_config.json", "orchestration/main.cpp"}


def test_rt_77_78_a_validation_holds_for_the_bound_object_only(
    store: ArtifactStore, builds: Builds, tmp_path: Path
) -> None:
    compiled = bound(store, publish(store, chip_files()), builds, tmp_path)
    compiled.ensure_ready()
    handle = runtime_of(compiled).handle
    (handle.directory / "prebuilt/orchestration/main.so").write_bytes(b"BAD")
    assert runtime_of(compiled).files().files["prebuilt/orchestration/main.so"] == b"ELF"
    bare = ArtifactHandle(handle.root, handle.key, handle.spec, handle.records)
    with pytest.raises(ValueError, match=r"main\.so"):
        restore_artifact(store, bare, tmp_path / "run")


def test_rt_82_errors_of_a_run_are_not_retried(
    store: ArtifactStore, builds: Builds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = bound(store, publish(store, chip_files()), builds, tmp_path)
    calls: list[int] = []

    def run(*_arguments: Any, **_options: Any) -> None:
        calls.append(1)
        raise RuntimeError("the device failed")

    monkeypatch.setattr(prebuilt, "load", lambda *_a, **_k: run)
    with pytest.raises(RuntimeError, match="the device failed"):
        compiled(1, 2)
    assert calls == [1]


def test_rt_88_other_processes_have_their_own_private_folders(
    store: ArtifactStore, builds: Builds, tmp_path: Path
) -> None:
    handle = publish(store, chip_files())
    readonly = ArtifactStore(store.root, readonly=True, private_root=tmp_path / "private")
    folders = []
    for _ in range(2):
        compiled = bound(readonly, handle, builds, tmp_path)
        compiled.ensure_ready()
        folders.append(compiled.binary_dir)
    assert folders[0] != folders[1]
    assert len(builds.generated) == 2


def test_dia_03_04_the_directory_is_reset_once_before_anyone_can_register_the_object(
    store: ArtifactStore, builds: Builds, tmp_path: Path
) -> None:
    handle = publish(store, chip_files())
    compiled = CompiledKernel("sample", origin=Origin.PRIVATE, directory=tmp_path / "before")
    bind_artifact(compiled, store, handle, tmp_path / "run", promotion=builds.promotion())
    registry = {compiled: compiled.output_dir}
    compiled.ensure_ready()
    assert registry[compiled] == compiled.output_dir == handle.directory


def test_dia_16_to_21_24_27_failures_are_told_by_their_kind() -> None:
    assert [each.name for each in BuildFailure] == ["INVALID", "STORAGE", "LOCK", "PUBLICATION"]


def test_ext_34_the_adapter_compiles_nothing_when_packing_is_refused(
    store: ArtifactStore, builds: Builds, tmp_path: Path
) -> None:
    (tmp_path / "a.cpp").write_text("#include X")
    kernel_entry = {
        "name": "add",
        "core": "aiv",
        "source": str(tmp_path / "a.cpp"),
        "binary": "prebuilt/kernels/add.so",
        "extern": {"include_dirs": [], "files": []},
    }
    spec = ArtifactSpec(ArtifactState.GENERATED, BuildKind.SINGLE_CHIP, ("kernel_config.json",))

    def build(directory: Path) -> None:
        write(directory, chip_files(config={**CHIP, "kernels": [kernel_entry]}))
        package_generated_sources(directory, "single_chip")

    with pytest.raises(UnsupportedArtifactInput, match="is decided by a macro"):
        store.get_or_build(key(), spec, build)
    assert builds.generated == []
    assert store.lookup(key(), spec).status is LookupStatus.MISS
