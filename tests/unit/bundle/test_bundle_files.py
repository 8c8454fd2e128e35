"""Writing, opening and verifying bundles."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from artifact_samples import sample_environment, sample_key, snapshot
from bundle_samples import GENERATED, READY, make_bundle, seal_input

from pypto._identity import canonical_json
from pypto.bundle import (
    Bundle,
    BundleDamaged,
    BundleIncompatible,
    UnknownKernel,
    import_bundle,
    import_into_store,
    open_bundle,
    write_bundle,
)
from pypto.bundle.importing import ImportCounts, ImportFailed
from pypto.jit.artifact_cache import ArtifactKey, ArtifactStore, BuildStatus, LookupStatus

MARKER = "artifact_manifest.json"


def files(root: Path) -> dict[str, bytes]:
    return {path: data for path, (mode, _, data) in snapshot(root).items() if (root / path).is_file()}


def check(path: Path) -> Bundle:
    bundle = import_bundle(path)
    bundle.verify()
    return bundle


def test_content(bundle_path: Path) -> None:
    bundle = check(bundle_path)
    assert bundle.names() == ["add", "mul"]
    record = json.loads((bundle_path / "bundle.json").read_bytes())
    assert set(record) == {"schema", "environment", "target", "schemas", "entries", "digest"}
    assert record["target"] == {
        "backend_type": "Ascend910B", "execution_mode": "sim", "runtime": "host_build_graph", "runtime_abi": 1,
    }  # fmt: skip
    assert record["schemas"] == {"source": 1, "specialization": 1, "artifact": 1}
    assert record["environment"] == sample_environment().to_record()
    digest = record.pop("digest")
    assert digest == bundle.digest == hashlib.sha256(canonical_json(record)).hexdigest()
    for entry in record["entries"]:
        assert set(entry) == {
            "name", "key", "source_digest", "specialization_digest", "generated", "ready", "params",
        }  # fmt: skip
        for stage in ("generated", "ready"):
            place = (
                bundle_path
                / "artifacts"
                / str(sample_environment().digest)
                / entry["key"]
                / entry[stage]["spec"]
                / stage
            )
            assert hashlib.sha256((place / MARKER).read_bytes()).hexdigest() == entry[stage]["manifest"]


def test_equal_inputs_give_equal_bundles(tmp_path: Path) -> None:
    """Order of the inputs, modes, folders and links do not count."""
    first = make_bundle(tmp_path / "one.bundle", tmp_path / "one")
    inputs = [
        seal_input(tmp_path / "two/a", "add", "3", 32),
        seal_input(tmp_path / "two/b", "add", "2", 64),
        seal_input(tmp_path / "two/c", "mul", "1", "S"),
    ]
    for folder, _, names in os.walk(tmp_path / "two"):
        for name in names:
            file = Path(folder, name)
            file.chmod(0o644)
            moved = tmp_path / "store" / hashlib.sha256(str(file).encode()).hexdigest()
            moved.parent.mkdir(exist_ok=True)
            file.rename(moved)
            file.symlink_to(moved)
    write_bundle(tmp_path / "two.bundle", sample_environment(), inputs)
    assert files(first) == files(tmp_path / "two.bundle")
    assert not any((tmp_path / "two.bundle" / path).is_symlink() for path in snapshot(tmp_path / "two.bundle"))


def test_artifacts_are_those_of_a_store(bundle_path: Path, tmp_path: Path) -> None:
    """Byte for byte: imported from the bundle, or built by the store itself from directories with their own modes."""
    bundle = check(bundle_path)
    imported = ArtifactStore(tmp_path / "imported")
    assert import_into_store(bundle, imported) == ImportCounts(published=6, present=0)
    assert import_into_store(bundle, imported) == ImportCounts(published=0, present=6)
    assert files(imported.root / "artifacts") == files(bundle_path / "artifacts")
    built = ArtifactStore(tmp_path / "built")

    def build(directory: Path, source: Path) -> None:
        shutil.copytree(source, directory, dirs_exist_ok=True)
        for path in directory.rglob("*"):
            path.chmod(0o755 if path.is_dir() or path.suffix == ".so" else 0o644)

    for name, letter, folder in (("mul", "1", "mul"), ("add", "2", "add64"), ("add", "3", "add32")):
        key = sample_key(specialization=letter)
        for spec, stage in ((GENERATED, "generated"), (READY, "ready")):
            source = tmp_path / "inputs" / folder / stage
            result = built.get_or_build(key, spec, lambda d, s=source: build(d, s))
            assert result.status is BuildStatus.PUBLISHED, name
    assert files(built.root / "artifacts") == files(bundle_path / "artifacts")
    assert [p for p in tmp_path.iterdir() if "private" in p.name and "imported" in p.name] == []


def test_imported_entries_have_the_modes_of_the_manifest(bundle_path: Path, tmp_path: Path) -> None:
    for path in bundle_path.rglob("*"):
        path.chmod(0o555)
    store = ArtifactStore(tmp_path / "store")
    import_into_store(check(bundle_path), store)
    key = sample_key(specialization="1")
    handle = store.lookup(key, READY).handle
    assert handle is not None
    found = {p.name: p.stat().st_mode & 0o777 for p in handle.directory.rglob("*") if p.is_file() and p.name != MARKER}
    assert found == {
        "k.so": 0o700, "o.so": 0o700, "binary_manifest.json": 0o600, "kernel_config.json": 0o600, "k.pto": 0o600,
    }  # fmt: skip


def test_import_that_a_store_does_not_take(bundle_path: Path, tmp_path: Path) -> None:
    bundle = check(bundle_path)
    with pytest.raises(ValueError, match="read-only"):
        import_into_store(bundle, ArtifactStore(tmp_path / "store", readonly=True))
    store = ArtifactStore(tmp_path / "store")
    entry = bundle.entries[0]
    damaged = store.root.joinpath("artifacts", entry.key.environment_digest, entry.key.digest, READY.digest, "ready")
    damaged.mkdir(parents=True)
    with pytest.raises(ImportFailed, match=entry.key.digest):
        import_into_store(bundle, store)
    assert store.lookup(entry.key, READY).status is LookupStatus.INVALID


def test_modes_and_links_of_a_bundle_do_not_count(bundle_path: Path, tmp_path: Path) -> None:
    """The trap: Bazel marks its outputs 0555 and shows them as links in sandboxes and runfiles."""
    digest = check(bundle_path).digest
    for path in bundle_path.rglob("*"):
        path.chmod(0o555)
    assert check(bundle_path).digest == digest
    linked = tmp_path / "runfiles/sample.bundle"
    for path in files(bundle_path):
        (linked / path).parent.mkdir(parents=True, exist_ok=True)
        (linked / path).symlink_to(bundle_path / path)
    assert check(linked).digest == digest
    (tmp_path / "whole").symlink_to(bundle_path)
    assert check(tmp_path / "whole").digest == digest
    assert {p: check(linked).entries[0].ready.read(p) for p in ("ptoas/k.pto",)} == {"ptoas/k.pto": b"module {}"}


def test_a_bundle_is_moved_and_read_only(bundle_path: Path, tmp_path: Path) -> None:
    before = snapshot(bundle_path)
    for path in [bundle_path, *bundle_path.rglob("*")]:
        path.chmod(0o500 if path.is_dir() else 0o400)
    check(bundle_path)
    for path in bundle_path.rglob("*"):
        path.chmod(0o700)
    assert {p: v[2] for p, v in snapshot(bundle_path).items()} == {p: v[2] for p, v in before.items()}
    bundle_path.rename(tmp_path / "moved")
    check(tmp_path / "moved")


def test_finding_entries(bundle_path: Path) -> None:
    bundle = check(bundle_path)
    key = sample_key(specialization="2")
    entry = bundle.find(key)
    assert entry is not None
    assert entry == bundle.find(key.digest) == bundle.find_request("b" * 64, "2" * 64)
    assert (entry.name, entry.key, entry.ready.spec, entry.generated.spec) == ("add", key, READY, GENERATED)
    assert entry.ready.load()["prebuilt/kernels/k.so"] == b"\x7fELF add 64"
    assert bundle.find(sample_key(specialization="9")) is None
    assert bundle.find_request("c" * 64, "2" * 64) is None
    assert [e.key.specialization_digest[0] for e in bundle.specializations("add")] in (["2", "3"], ["3", "2"])
    with pytest.raises(UnknownKernel, match="add, mul"):
        bundle.load("sub")


def test_each_byte_is_read_and_hashed_once(bundle_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = check(bundle_path)
    opened: list[str] = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda p, *a, **k: opened.append(str(p)) or real(p, *a, **k))
    payload = bundle.entries[0].ready.load()
    assert len(opened) == len(payload) == len(set(opened))


def _edit(path: Path, change: Callable[[dict[str, Any]], Any], reseal: bool = False) -> None:
    """Change bundle.json; with `reseal`, make its own digest fit again."""
    record = json.loads((path / "bundle.json").read_bytes())
    change(record)
    if reseal:
        record.pop("digest")
        record["digest"] = hashlib.sha256(canonical_json(record)).hexdigest()
    (path / "bundle.json").chmod(0o600)
    (path / "bundle.json").write_bytes(canonical_json(record))


def test_every_flipped_byte_truncation_and_loss_is_found(tmp_path: Path) -> None:
    """Every file of a bundle with one entry; the error names the file."""
    path = tmp_path / "b"
    write_bundle(path, sample_environment(), [seal_input(tmp_path / "in", "mul", "1", "S")])
    tried = 0
    for name, original in files(path).items():
        file = path / name
        step = 1 if len(original) < 100 else 23
        for index in range(0, len(original), step):
            for damaged in (original[:index] + bytes([original[index] ^ 1]) + original[index + 1 :], original[:index]):
                file.write_bytes(damaged)
                with pytest.raises((BundleDamaged, BundleIncompatible), match=os.path.basename(name)):
                    check(path)
                tried += 1
        file.write_bytes(original + b"\n")
        with pytest.raises(BundleDamaged, match=os.path.basename(name)):
            check(path)
        file.unlink()
        with pytest.raises(BundleDamaged, match=os.path.basename(name)):
            check(path)
        file.write_bytes(original)
    check(path)
    assert tried > 400


@pytest.mark.parametrize(
    "where", ["extra", "artifacts/extra", "entry/extra", "entry/prebuilt/kernels/extra.so", ".hidden"]
)
def test_extra_files(bundle_path: Path, where: str) -> None:
    bundle = check(bundle_path)
    entry = bundle.specializations("mul")[0].ready
    place = entry.directory / where.removeprefix("entry/") if where.startswith("entry/") else bundle_path / where
    place.write_bytes(b"")
    with pytest.raises(BundleDamaged, match=r"extra|hidden"):
        import_bundle(bundle_path).verify()
    if where.startswith("entry/"):
        with pytest.raises(BundleDamaged, match="extra"):
            entry.load()


def test_special_files_and_broken_links(bundle_path: Path) -> None:
    file = check(bundle_path).entries[0].ready.directory / "prebuilt/kernels/k.so"
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(BundleDamaged, match=r"k\.so"):
        check(bundle_path)
    file.unlink()
    file.symlink_to("nowhere")
    with pytest.raises(BundleDamaged, match=r"k\.so"):
        check(bundle_path)


def test_swapped_manifests(bundle_path: Path) -> None:
    """Valid manifests in each other's place."""
    bundle = check(bundle_path)
    first, second = (bundle.entries[i].ready.directory / MARKER for i in (0, 1))
    one, two = first.read_bytes(), second.read_bytes()
    first.write_bytes(two)
    second.write_bytes(one)
    with pytest.raises(BundleDamaged, match=MARKER):
        import_bundle(bundle_path)

    def swap(record: dict[str, Any]) -> None:
        a, b = record["entries"][0]["ready"], record["entries"][1]["ready"]
        a["manifest"], b["manifest"] = b["manifest"], a["manifest"]

    _edit(bundle_path, swap, reseal=True)
    with pytest.raises(BundleDamaged, match="another artifact"):
        import_bundle(bundle_path)


def test_pinned_digest(bundle_path: Path) -> None:
    digest = check(bundle_path).digest
    assert import_bundle(bundle_path, digest=digest).digest == digest
    with pytest.raises(BundleIncompatible, match=digest):
        import_bundle(bundle_path, digest="0" * 64)
    for wrong in ("0" * 63, digest.upper(), f"sha256:{digest}"):
        with pytest.raises(ValueError, match="digest"):
            import_bundle(bundle_path, digest=wrong)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r["target"].update(runtime_abi=2), "runtime ABI is 2"),
        (lambda r: r["target"].update(backend_type="Ascend000"), "Ascend000"),
        (lambda r: r["target"].update(execution_mode="cloud"), "cloud"),
        (lambda r: r["schemas"].update(source=2), "source schema is 2"),
        (lambda r: r["schemas"].update(specialization=2), "specialization schema is 2"),
        (lambda r: r["schemas"].update(artifact=2), "artifact schema is 2"),
        (lambda r: r.update(schema=2), "bundle schema 2"),
    ],
)
def test_bundles_of_another_pypto(bundle_path: Path, change: Callable[[dict[str, Any]], Any], message: str) -> None:
    _edit(bundle_path, change, reseal=True)
    with pytest.raises(BundleIncompatible, match=message):
        import_bundle(bundle_path)
    if "bundle schema" not in message:
        open_bundle(bundle_path).verify()


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r.update(more=1), lambda r: r.pop("target"), lambda r: r["entries"].reverse(),
        lambda r: r["entries"].append(r["entries"][-1]), lambda r: r["entries"][0].update(key="0" * 64),
        lambda r: r["entries"][0].update(name=1), lambda r: r["entries"][0]["ready"].update(spec="../.."),
        lambda r: r["entries"][0].update(source_digest="0" * 64), lambda r: r["environment"].update(schema=99),
        lambda r: r["target"].update(runtime_abi=True), lambda r: r["entries"][0]["params"][0].update(shape=[1.5]),
        lambda r: r["entries"][0]["params"][0].pop("dtype"),
    ],
)  # fmt: skip
def test_malformed_descriptions(bundle_path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Even with a digest that fits."""
    try:
        _edit(bundle_path, change, reseal=True)
    except TypeError:
        (bundle_path / "bundle.json").write_bytes(b'{"float":1.5}')
    with pytest.raises(BundleDamaged, match=r"bundle\.json"):
        import_bundle(bundle_path)


def test_what_is_no_bundle(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path, message in (
        (tmp_path / "absent", "no such"),
        (tmp_path, "no bundle.json"),
        (tmp_path / "file", "directory"),
    ):
        with pytest.raises(BundleDamaged, match=message):
            import_bundle(path)


def test_what_cannot_be_sealed(tmp_path: Path) -> None:
    good = seal_input(tmp_path / "good", "mul", "1", "S")
    other = seal_input(tmp_path / "other", "add", "2", 8, backend_type="Ascend950")
    incomplete = seal_input(tmp_path / "incomplete", "sub", "3", 8)
    (incomplete.ready / "binary_manifest.json").unlink()
    bare = seal_input(tmp_path / "bare", "bare", "4", 8)
    (bare.generated / "kernel_config.json").unlink()
    marked = seal_input(tmp_path / "marked", "marked", "5", 8)
    (marked.ready / MARKER).write_bytes(b"{}")
    for inputs, message in (
        ([], "at least one"), ([good, good], "'mul' is given twice"), ([good, other], "one target"),
        ([good, incomplete], "binary_manifest"), ([bare], "kernel_config"), ([marked], MARKER),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            write_bundle(tmp_path / "out", sample_environment(), inputs)
        assert list((tmp_path / "out").iterdir()) == [] if (tmp_path / "out").exists() else True
    (tmp_path / "full").mkdir()
    (tmp_path / "full/x").write_text("x")
    with pytest.raises(ValueError, match="not empty"):
        write_bundle(tmp_path / "full", sample_environment(), [good])
    assert (tmp_path / "full/x").exists()


def test_keys_are_those_of_the_environment(bundle_path: Path) -> None:
    bundle = check(bundle_path)
    for entry in bundle.entries:
        again = ArtifactKey(bundle.description.environment, entry.key.source_digest, entry.key.specialization_digest)
        assert again == entry.key
