"""Finding the entries of a key: by the hint, by the bounded search, and what is refused on the way."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pypto._identity.records import canonical_json, parse_canonical_json
from pypto.build.layout import ready_files
from pypto.jit import flow, request
from pypto.jit.artifact_cache import (
    ArtifactKey,
    ArtifactSpec,
    ArtifactState,
    ArtifactStore,
    BuildKind,
    discovery,
    find_ready,
)
from pypto.jit.cli.explain import _look
from pypto.jit.config import CacheConfig
from pypto.runtime.compiled import Origin
from pypto.runtime.config import RunConfig

Counts = Callable[[], dict[str, Any]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def enabled(root: Path) -> RunConfig:
    return RunConfig(cache_config=CacheConfig(enabled=True, root=root))


def slot(root: Path) -> Path:
    """The folder of the only key."""
    (folder,) = root.glob("artifacts/*/*")
    return folder


def lose_hint(root: Path) -> None:
    for folder in slot(root).glob("*/generated"):
        shutil.rmtree(folder)


def strangers(root: Path, number: int) -> None:
    for index in range(number):
        (slot(root) / f"{index:064x}").mkdir()


@pytest.mark.parametrize(("others", "hit"), [(30, True), (31, False)])
def test_req_45_46_49_50_58_59_at_most_32_specs_are_looked_at(
    kernels: ModuleType, builds: Any, enabled: RunConfig, root: Path, counts: Any, others: int, hit: bool
) -> None:
    kernels.annotated.warmup(config=enabled)
    lose_hint(root)
    strangers(root, others)
    (slot(root) / "not a digest").mkdir()
    (slot(root) / ("f" * 64)).symlink_to("nowhere")
    builds.forget_objects()
    made = kernels.annotated.warmup(config=enabled)
    assert counts().get("ready_hits", 0) == int(hit)
    assert counts()["misses"] == (1 if hit else 2)
    assert made.state == "READY"


def test_req_47_48_the_search_stops_at_the_33rd_match(
    kernels: ModuleType, builds: Any, enabled: RunConfig, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels.annotated.warmup(config=enabled)
    lose_hint(root)
    strangers(root, 100)
    consumed: list[str] = []
    real = os.scandir

    class Counting:
        def __init__(self, folder: Any) -> None:
            self.inner = real(folder)

        def __enter__(self) -> Counting:
            return self

        def __exit__(self, *_: object) -> None:
            self.inner.close()

        def __iter__(self) -> Any:
            for entry in self.inner:
                consumed.append(entry.name)
                yield entry

    monkeypatch.setattr(discovery.os, "scandir", Counting)
    monkeypatch.setattr(ArtifactStore, "lookup", lambda *_a, **_k: pytest.fail("a candidate was validated"))
    key = flow.artifact_key(request.capture(kernels.annotated, (), {}, enabled), flow.current_toolchain())
    found = discovery.find_ready(ArtifactStore(root, readonly=True), key)
    assert found.reason is not None and "more than 32 specs" in found.reason
    assert len(consumed) == 33


def test_req_51_52_a_candidate_must_be_what_its_folder_says(
    kernels: ModuleType, builds: Any, enabled: RunConfig, root: Path, counts: Any
) -> None:
    kernels.annotated.warmup(config=enabled)
    lose_hint(root)
    (ready,) = slot(root).glob("*/ready")
    ready.parent.rename(slot(root) / ("e" * 64))
    builds.forget_objects()
    kernels.annotated.compile(config=enabled)
    assert "ready_hits" not in counts()


def key_of(kernels: ModuleType, config: RunConfig) -> ArtifactKey:
    return flow.artifact_key(request.capture(kernels.annotated, (), {}, config), flow.current_toolchain())


def another_ready(key: ArtifactKey, root: Path, *, honest: bool) -> None:
    """Another intact READY entry of the key; ``honest``: its configuration names its files, as it must."""
    (ready,) = slot(root).glob("*/ready")
    config = parse_canonical_json((ready / "kernel_config.json").read_bytes(), "config")
    config["orchestration"]["binary"] = "prebuilt/orchestration/other.so"
    names = ready_files(config)

    def copy(directory: Path) -> None:
        shutil.copytree(ready, directory, dirs_exist_ok=True)
        (directory / "artifact_manifest.json").unlink()
        binaries = directory / "prebuilt/orchestration"
        (binaries / "main.so").rename(binaries / "other.so")
        if honest:
            (directory / "kernel_config.json").write_bytes(canonical_json(config))

    ArtifactStore(root).get_or_build(key, ArtifactSpec(ArtifactState.BINARY_READY, BuildKind.SINGLE_CHIP, names), copy)


def test_req_12_13_53_58_several_valid_candidates_need_the_hint(
    kernels: ModuleType, builds: Any, enabled: RunConfig, root: Path, counts: Counts
) -> None:
    first = kernels.annotated.warmup(config=enabled)
    another_ready(key_of(kernels, enabled), root, honest=True)
    builds.forget_objects()
    hinted = kernels.annotated.compile(config=enabled)
    assert (hinted.state, hinted.binary_dir) == ("READY", first.binary_dir)
    lose_hint(root)
    builds.forget_objects()
    assert _look(root, key_of(kernels, enabled))[0] == "miss"
    made = kernels.annotated.compile(config=enabled)
    assert (counts()["ready_hits"], counts()["misses"]) == (1, 2)
    assert made.program is not None


def test_req_51_a_candidate_whose_own_json_names_another_spec_is_none(
    kernels: ModuleType, builds: Any, enabled: RunConfig, root: Path, counts: Counts
) -> None:
    """REQ-51: its manifest is that of its folder, its ``kernel_config.json`` is not; so the true entry stands alone."""
    first = kernels.annotated.warmup(config=enabled)
    key = key_of(kernels, enabled)
    another_ready(key, root, honest=False)
    assert find_ready(ArtifactStore(root), key).handle is None
    lose_hint(root)
    builds.forget_objects()
    assert _look(root, key)[0] == "ready hit"
    assert kernels.annotated.compile(config=enabled).binary_dir == first.binary_dir
    assert (counts()["ready_hits"], counts()["misses"]) == (1, 1)


@pytest.mark.parametrize("damage", ["json of another entry", "not canonical", "no object", "chips elsewhere", "a link"])
def test_req_16_a_hint_that_leads_nowhere_is_searched_around(
    kernels: ModuleType, builds: Any, enabled: RunConfig, root: Path, counts: Counts, damage: str
) -> None:
    """REQ-16, REQ-45: the slot of the GENERATED entry is damaged, however well its hint reads."""
    kernels.annotated.warmup(config=enabled)
    (hint,) = slot(root).glob("*/generated/kernel_config.json")
    data = hint.read_bytes()
    if damage == "json of another entry":
        hint.write_bytes(data.replace(b"main.so", b"else.so"))
    elif damage == "not canonical":
        hint.write_bytes(data + b"\n")
    elif damage == "no object":
        hint.write_bytes(b"[]")
    elif damage == "chips elsewhere":
        record = parse_canonical_json(data, "config")
        hint.write_bytes(canonical_json({**record, "build_kind": "distributed", "chips": ["../../.."]}))
    else:
        (root / "aside.json").write_bytes(data)
        hint.unlink()
        hint.symlink_to(root / "aside.json")
    builds.forget_objects()
    assert _look(root, key_of(kernels, enabled))[0] == "ready hit"
    restored = kernels.annotated.compile(config=enabled)
    assert (restored.state, restored.origin, restored.program) == ("READY", Origin.SHARED, None)
    found = counts()
    assert (found["ready_hits"], found["misses"], found["generation_builds"]) == (1, 1, 1)


@pytest.mark.parametrize("lost", [False, True])
def test_sta_11_34_a_refused_entry_counts_once_however_it_was_found(
    kernels: ModuleType, builds: Any, enabled: RunConfig, root: Path, counts: Counts, lost: bool
) -> None:
    """STA-11, STA-34: by the hint or by the search; beside it the outcome of the request, and again by the next one."""
    first = kernels.annotated.warmup(config=enabled)
    assert first.binary_dir is not None
    (first.binary_dir / "binary_manifest.json").write_bytes(b"[]")
    if lost:
        lose_hint(root)
    outcome = "misses" if lost else "generated_hits"
    for number in (1, 2):
        builds.forget_objects()
        before = counts()
        made = kernels.annotated.warmup(config=enabled)
        found = counts()
        assert made.origin is Origin.PRIVATE
        assert found["invalid_entries"] == number
        expected = 1 if lost and number == 1 else 0
        assert found["generation_builds"] - before["generation_builds"] == expected
        assert found[outcome] - before.get(outcome, 0) == (1 if not lost or number == 1 else 0)


def test_req_39_the_hint_reads_no_more_than_its_own_entry(
    kernels: ModuleType, builds: Any, enabled: RunConfig, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chip's name that leads out of the entry is not followed."""
    kernels.annotated.warmup(config=enabled)
    (hint,) = slot(root).glob("*/generated/kernel_config.json")
    record = parse_canonical_json(hint.read_bytes(), "config")
    hint.write_bytes(canonical_json({**record, "build_kind": "distributed", "chips": ["../../../../.."]}))
    (root / "kernel_config.json").write_bytes(b"{}")
    opened: list[str] = []
    real = os.open

    def watching(path: Any, *arguments: Any, **options: Any) -> int:
        opened.append(str(path))
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "open", watching)
    assert _look(root, key_of(kernels, enabled))[0] == "ready hit"
    assert ".." not in opened
