"""Layout, manifest and validation (MAN)."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from artifact_samples import FILES, READY, Builder, sample_key, snapshot
from hypothesis import given, settings
from hypothesis import strategies as st

from pypto._identity import canonical_json
from pypto.jit.artifact_cache import (
    ArtifactDamaged,
    ArtifactKey,
    ArtifactSpec,
    ArtifactState,
    ArtifactStore,
    BuildFailure,
    BuildKind,
    BuildStatus,
    FileRecord,
    LookupStatus,
    Manifest,
)
from pypto.jit.artifact_cache import store as store_module

MARKER = "artifact_manifest.json"
KERNEL = "prebuilt/kernels/k.so"


def status(store: ArtifactStore) -> LookupStatus:
    result = store.lookup(sample_key(), READY)
    assert (result.handle is not None) == (result.status is LookupStatus.HIT)
    assert bool(result.reason) == (result.status in (LookupStatus.INVALID, LookupStatus.STORAGE_ERROR))
    return result.status


def test_layout(published: Path, store: ArtifactStore, key: ArtifactKey, spec: ArtifactSpec) -> None:
    """KEY-17, MAN-1 to MAN-3, MAN-6, MAN-8."""
    assert published == store.root / "artifacts" / str(key.environment.digest) / key.digest / spec.digest / "ready"
    assert (store.root / "locks" / f"{key.digest}.lock").is_file()
    assert sorted(str(p.relative_to(published)) for p in published.rglob("*") if p.is_file()) == sorted(
        [*FILES, MARKER]
    )


def test_marker_holds_everything(published: Path, key: ArtifactKey, spec: ArtifactSpec) -> None:
    """MAN-9 to MAN-19, MAN-42, MAN-49."""
    data = (published / MARKER).read_bytes()
    record = json.loads(data)
    assert set(record) == {"schema", "key", "components", "state", "build_kind", "required_files", "files"}
    assert record["key"] == key.digest
    assert record["components"] == key.to_record()
    assert (record["state"], record["build_kind"]) == ("ready", "single_chip")
    assert record["required_files"] == list(spec.required_files)
    assert record["files"] == [
        {
            "path": path,
            "size": len(FILES[path]),
            "sha256": hashlib.sha256(FILES[path]).hexdigest(),
            "executable": path.endswith(".so"),
        }
        for path in sorted(FILES)
    ]
    assert Manifest.decode(data).encode() == data == canonical_json(record)


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\\\0"), min_size=1, max_size=12).filter(
            lambda name: name not in (".", "..", MARKER)
        ),
        st.tuples(st.integers(0, 1 << 62), st.text("0123456789abcdef", min_size=64, max_size=64), st.booleans()),
        min_size=1,
        max_size=5,
    )
)
def test_markers_are_canonical_json(files: dict[str, tuple[int, str, bool]]) -> None:
    """MAN-49: the marker is joined from parts; it equals the canonical JSON of its record, and reads back."""
    records = tuple(FileRecord(path, *files[path]) for path in sorted(files))
    manifest = Manifest(sample_key(), ArtifactSpec(READY.state, BuildKind.DISTRIBUTED, (records[0].path,)), records)
    data = manifest.encode()
    assert canonical_json(json.loads(data)) == data
    assert Manifest.decode(data) == manifest


def test_equal_builds_publish_equal_bytes(
    tmp_path: Path, key: ArtifactKey, spec: ArtifactSpec, builder: Builder
) -> None:
    """MAN-42."""
    trees = []
    for name in ("one", "two"):
        ArtifactStore(tmp_path / name).get_or_build(key, spec, builder)
        trees.append({path: (mode, data) for path, (mode, _, data) in snapshot(tmp_path / name).items()})
    assert trees[0] == trees[1]


def test_hit_keeps_the_bytes_that_were_hashed(
    published: Path, store: ArtifactStore, key: ArtifactKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A warm hit reads and hashes every byte once: reading from the handle opens nothing."""
    handle = store.lookup(key, READY, load=True).handle
    assert handle is not None
    monkeypatch.setattr(os, "open", lambda *a, **k: pytest.fail("a file was opened"))
    assert {file.path: handle.read(file.path) for file in handle.files()} == FILES


def test_handle_checks_what_it_reads_later(published: Path, store: ArtifactStore, key: ArtifactKey) -> None:
    handle = store.lookup(key, READY).handle
    assert handle is not None
    assert handle.read(KERNEL) == FILES[KERNEL]
    (published / KERNEL).write_bytes(b"\x7fELF Kernel")
    with pytest.raises(ArtifactDamaged, match=r"k\.so"):
        handle.read(KERNEL)
    (published / KERNEL).write_bytes(b"longer than before")
    with pytest.raises(ArtifactDamaged, match=r"k\.so"):
        handle.read(KERNEL)
    with pytest.raises(ArtifactDamaged, match="no file"):
        handle.read("../../x")


def _fifo(entry: Path) -> None:
    (entry / KERNEL).unlink()
    os.mkfifo(entry / KERNEL, 0o700)


def _socket(entry: Path) -> None:
    (entry / "empty").unlink()
    here = os.getcwd()
    os.chdir(entry)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("empty")
    finally:
        os.chdir(here)


def _link(entry: Path) -> None:
    shutil.copy(entry / KERNEL, entry.parent / "outside")
    (entry / KERNEL).unlink()
    (entry / KERNEL).symlink_to(entry.parent / "outside")


def _link_folder(entry: Path) -> None:
    (entry / "prebuilt").rename(entry.parent / "moved")
    (entry / "prebuilt").symlink_to(entry.parent / "moved")


def _link_marker(entry: Path) -> None:
    (entry / MARKER).rename(entry.parent / "marker")
    (entry / MARKER).symlink_to(entry.parent / "marker")


def _same_size_and_times(entry: Path) -> None:
    times = (entry / KERNEL).stat()
    (entry / KERNEL).write_bytes(b"\x7fELF Kernel")
    os.utime(entry / KERNEL, ns=(times.st_atime_ns, times.st_mtime_ns))


def _marker(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def apply(entry: Path) -> None:
        (entry / MARKER).write_bytes(change((entry / MARKER).read_bytes()))

    return apply


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "extra file": lambda e: (e / "extra").write_bytes(b""),
    "extra file in a new folder": lambda e: ((e / "new").mkdir(), (e / "new/extra").write_bytes(b"")),
    "missing file": lambda e: (e / "empty").unlink(),
    "missing required file": lambda e: (e / KERNEL).unlink(),
    "missing marker": lambda e: (e / MARKER).unlink(),
    "empty entry": lambda e: (shutil.rmtree(e), e.mkdir()),
    "entry is a file": lambda e: (shutil.rmtree(e), e.write_bytes(b"")),
    "renamed file": lambda e: (e / "empty").rename(e / "Empty"),
    "same size and times": _same_size_and_times,
    "file became a folder": lambda e: ((e / "empty").unlink(), (e / "empty").mkdir()),
    "fifo": _fifo,
    "socket": _socket,
    "link to equal bytes": _link,
    "folder behind a link": _link_folder,
    "marker behind a link": _link_marker,
    "marker is a fifo": lambda e: ((e / MARKER).unlink(), os.mkfifo(e / MARKER)),
    "owner may execute": lambda e: (e / "empty").chmod(0o700),
    "owner may not execute": lambda e: (e / KERNEL).chmod(0o600),
    "backslash in a name": lambda e: (e / "a\\b").write_bytes(b""),
    "name that is no text": lambda e: Path(os.fsdecode(os.fsencode(e) + b"/\xff")).write_bytes(b""),
    "marker repeats a field": _marker(lambda d: d.replace(b'"schema":1,', b'"schema":1,"schema":1,')),
    "marker re-indented": _marker(lambda d: json.dumps(json.loads(d), indent=1).encode()),
    "marker ends with a newline": _marker(lambda d: d + b"\n"),
    "marker has one more field": _marker(lambda d: canonical_json({**json.loads(d), "more": 1})),
    "marker is no object": _marker(lambda d: b"[]"),
    "marker is no text": _marker(lambda d: b"\xff"),
    "marker is empty": _marker(lambda d: b""),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_invalid_and_never_repaired(
    published: Path, store: ArtifactStore, builder: Builder, name: str
) -> None:
    """MAN-22 to MAN-27, MAN-35, MAN-36, MAN-39, MAN-46, MAN-47, MAN-50 (decided otherwise), PUB-27 to PUB-29."""
    DAMAGES[name](published)
    assert status(store) is LookupStatus.INVALID
    before = snapshot(store.root)
    for _ in range(2):
        build = store.get_or_build(sample_key(), READY, builder)
        assert (build.status, build.failure) == (BuildStatus.PRIVATE, BuildFailure.INVALID)
        assert build.reason
        assert build.handle is None
    assert snapshot(store.root) == before
    if published.is_dir():
        shutil.rmtree(published)
    else:
        published.unlink()
    assert store.get_or_build(sample_key(), READY, builder).status is BuildStatus.PUBLISHED


HARMLESS: dict[str, Callable[[Path], Any]] = {
    "empty folder": lambda e: (e / "void/inner").mkdir(parents=True),
    "times": lambda e: os.utime(e / KERNEL, (1, 1)),
    "group and others may read and execute": lambda e: [(e / n).chmod(0o755 if n == KERNEL else 0o644) for n in FILES],
    "others may execute": lambda e: (e / "empty").chmod(0o611),
    "owner may not write": lambda e: [(e / n).chmod(0o500 if n == KERNEL else 0o400) for n in FILES],
    "hard link": lambda e: os.link(e / KERNEL, e.parent / "second"),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_does_not_count(published: Path, store: ArtifactStore, name: str) -> None:
    """MAN-22, MAN-28, MAN-39 to MAN-41, MAN-45."""
    HARMLESS[name](published)
    assert status(store) is LookupStatus.HIT


def test_every_field_of_the_marker_counts(published: Path, store: ArtifactStore) -> None:
    """MAN-21, MAN-25: each leaf changed in turn."""
    original = (published / MARKER).read_bytes()

    def leaves(value: Any, path: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        return [leaf for key, item in items for leaf in leaves(item, (*path, key))] or [path]

    paths = leaves(json.loads(original), ())
    assert len(paths) > 20
    for path in paths:
        record = json.loads(original)
        place = record
        for step in path[:-1]:
            place = place[step]
        old = place[path[-1]]
        place[path[-1]] = (not old) if isinstance(old, bool) else old + 1 if isinstance(old, int) else "x" + old[1:]
        (published / MARKER).write_bytes(canonical_json(record))
        assert status(store) is LookupStatus.INVALID, path
    (published / MARKER).write_bytes(original)
    assert status(store) is LookupStatus.HIT


def test_every_flipped_byte_and_every_truncation(published: Path, store: ArtifactStore) -> None:
    """No damaged byte of any file ever hits."""
    count = 0
    for name in [*FILES, MARKER]:
        file = published / name
        original = file.read_bytes()
        step = 1 if len(original) < 200 else 7
        for index in range(0, len(original), step):
            file.write_bytes(original[:index] + bytes([original[index] ^ 0x20]) + original[index + 1 :])
            assert status(store) is LookupStatus.INVALID, (name, index)
            file.write_bytes(original[:index])
            assert status(store) is LookupStatus.INVALID, (name, index)
            count += 2
        file.write_bytes(original + b"x")
        assert status(store) is LookupStatus.INVALID, name
        file.write_bytes(original)
    assert status(store) is LookupStatus.HIT
    assert count > 250


def test_an_entry_of_another_request_is_invalid(published: Path, store: ArtifactStore) -> None:
    """MAN-21: a valid entry in the wrong place."""
    for wrong in (
        (sample_key(source="d"), READY),
        (sample_key(), ArtifactSpec(READY.state, BuildKind.DISTRIBUTED, ("empty",))),
    ):
        slot = store.root / "artifacts" / wrong[0].environment_digest / wrong[0].digest / wrong[1].digest
        slot.mkdir(parents=True)
        shutil.copytree(published, slot / "ready")
        assert "another" in str(store.lookup(*wrong).reason)


@pytest.mark.parametrize("level", range(5))
def test_links_below_the_root_are_not_followed(
    published: Path, store: ArtifactStore, tmp_path: Path, level: int
) -> None:
    """MAN-37, MAN-48."""
    place = [published, *published.parents][level]
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    assert status(store) is LookupStatus.INVALID


def test_a_folder_that_is_exchanged_while_it_is_read(
    published: Path, store: ArtifactStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MAN-35, MAN-37: whenever a folder becomes a link, before it is opened or after, nothing outside is opened."""
    shutil.copytree(published / "prebuilt", tmp_path / "outside")
    outside = {path.stat().st_ino for path in (tmp_path / "outside").rglob("*")}
    real = os.open
    calls = 0

    def exchange() -> None:
        (published / "prebuilt").rename(tmp_path / "away")
        (published / "prebuilt").symlink_to(tmp_path / "outside")

    def opening(path: Any, *arguments: Any, moment: int, **options: Any) -> int:
        nonlocal calls
        calls += 1
        if calls == moment:
            exchange()
        descriptor = real(path, *arguments, **options)
        assert os.fstat(descriptor).st_ino not in outside
        return descriptor

    seen = set()
    for moment in range(1, 13):
        calls = 0
        with monkeypatch.context() as patch:
            patch.setattr(os, "open", partial(opening, moment=moment))
            seen.add(store.lookup(sample_key(), READY).status)
        assert calls >= moment
        (published / "prebuilt").unlink()
        (tmp_path / "away").rename(published / "prebuilt")
    assert seen == {LookupStatus.INVALID, LookupStatus.HIT}


def test_root_is_resolved_once(published: Path, store: ArtifactStore, tmp_path: Path) -> None:
    """MAN-38."""
    (tmp_path / "alias").symlink_to(store.root)
    aliased = ArtifactStore(tmp_path / "alias")
    assert aliased.root == store.root
    assert status(aliased) is LookupStatus.HIT


def test_marker_limit(published: Path, store: ArtifactStore, key: ArtifactKey, monkeypatch: pytest.MonkeyPatch) -> None:
    """MAN-20, MAN-43, MAN-44."""
    size = (published / MARKER).stat().st_size
    monkeypatch.setattr(store_module, "MARKER_LIMIT", size)
    assert status(store) is LookupStatus.HIT
    monkeypatch.setattr(store_module, "MARKER_LIMIT", size - 1)
    result = store.lookup(key, READY)
    assert result.status is LookupStatus.INVALID
    assert "larger" in str(result.reason)


def test_paths_of_the_manifest_are_never_opened(
    published: Path, store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MAN-33: a marker that names outside files opens none of them."""
    record = json.loads((published / MARKER).read_bytes())
    for path in ("/etc/passwd", "../../../../../../etc/passwd"):
        record["files"][0]["path"] = path
        (published / MARKER).write_bytes(canonical_json(record))
        opened: list[str] = []
        real = os.open
        monkeypatch.setattr(os, "open", lambda p, *a, _r=real, _o=opened, **k: _o.append(str(p)) or _r(p, *a, **k))
        assert status(store) is LookupStatus.INVALID
        monkeypatch.setattr(os, "open", real)
        assert opened
        assert not [name for name in opened if "passwd" in name]


def test_states_of_a_lookup(store: ArtifactStore, tmp_path: Path) -> None:
    """STO-26 to STO-28, STO-49, STO-54."""
    assert status(store) is LookupStatus.MISS
    store.root.mkdir()
    assert status(store) is LookupStatus.MISS
    (tmp_path / "file").write_text("x")
    assert status(ArtifactStore(tmp_path / "file")) is LookupStatus.STORAGE_ERROR


def test_unreadable_storage(published: Path, store: ArtifactStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """STO-28, STO-54: an error of the file system is no verdict on the entry; injected, since root reads everything."""
    real = os.open
    for name in ("ready", MARKER, "k.so"):

        def failing(path: Any, *arguments: Any, _name: str = name, **options: Any) -> int:
            if os.fsdecode(path) == _name:
                raise OSError(5, "Input/output error", path)
            return real(path, *arguments, **options)

        monkeypatch.setattr(os, "open", failing)
        result = store.lookup(sample_key(), READY)
        assert result.status is LookupStatus.STORAGE_ERROR, name
        assert "Input/output error" in str(result.reason)


def test_manifest_refuses_contradictions(published: Path) -> None:
    """MAN-29 to MAN-32 and the order of the lists, in the decoder that bundles rely on."""
    good = json.loads((published / MARKER).read_bytes())
    file = good["files"][0]
    wrong: list[dict[str, Any]] = [
        {"files": good["files"][::-1]}, {"files": [file, file]}, {"files": [{**file, "path": MARKER}]},
        {"files": [{**file, "size": -1}]}, {"files": [{**file, "size": True}]}, {"files": [{**file, "executable": 1}]},
        {"files": [{**file, "sha256": "0"}]}, {"files": []}, {"required_files": good["required_files"][::-1]},
        {"required_files": []}, {"schema": 2}, {"schema": True}, {"key": "0" * 64}, {"state": "other"},
        {"build_kind": []},
        {"files": [{**file, "path": "/a"}]}, {"files": [{**file, "path": "a/../b"}]}, {"files": {}},
        {"files": [{**file, "path": "./a"}]}, {"files": [{**file, "path": "a\\b"}]},
    ]  # fmt: skip
    for change in wrong:
        with pytest.raises(ValueError):
            Manifest.decode(canonical_json({**good, **change}))
    assert ArtifactState(good["state"]) is ArtifactState.BINARY_READY
