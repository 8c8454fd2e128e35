"""Finding entries without their spec (REQ-45 to REQ-53, REQ-58, REQ-59)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from artifact_samples import FILES, GENERATED, READY, Builder, sample_key

from pypto.jit.artifact_cache import (
    ArtifactSpec,
    ArtifactState,
    ArtifactStore,
    BuildKind,
    LookupStatus,
    find_generated,
    find_ready,
)
from pypto.jit.artifact_cache import discovery as discovery_module

KEY = sample_key()


def slots(store: ArtifactStore) -> Path:
    return store.root / "artifacts" / KEY.environment_digest / KEY.digest


def test_one_entry_is_found_with_its_bytes(store: ArtifactStore, builder: Builder) -> None:
    assert find_ready(store, KEY).status is LookupStatus.MISS
    store.get_or_build(KEY, GENERATED, builder)
    assert find_ready(store, KEY).status is LookupStatus.MISS
    store.get_or_build(KEY, READY, builder)
    found = find_ready(store, KEY, load=True)
    assert found.handle is not None
    assert (found.handle.spec, found.handle.payload) == (READY, FILES)
    generated = find_generated(store, KEY).handle
    assert generated is not None and generated.spec == GENERATED


def test_limit(store: ArtifactStore, builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    """REQ-45 to REQ-50, REQ-59: 32 folders are looked at, with the 33rd none is; links and other names do not count."""
    store.get_or_build(KEY, READY, builder)
    for index in range(31):
        (slots(store) / f"{index:064x}").mkdir()
    for index in range(50):
        (slots(store) / f"other{index}").mkdir()
        (slots(store) / f"{index + 1000:064x}").symlink_to(READY.digest)
    assert find_ready(store, KEY).status is LookupStatus.HIT
    (slots(store) / f"{99:064x}").mkdir()
    verified: list[Any] = []
    monkeypatch.setattr(ArtifactStore, "lookup", lambda *a, **k: verified.append(a))
    monkeypatch.setattr(discovery_module, "read_bounded", lambda *a: verified.append(a))
    result = find_ready(store, KEY)
    assert (result.status, verified) == (LookupStatus.MISS, [])
    assert "32" in str(result.reason)


def test_nothing_is_read_beyond_the_limit(
    store: ArtifactStore, builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REQ-47."""
    store.get_or_build(KEY, READY, builder)
    for index in range(200):
        (slots(store) / f"{index:064x}").mkdir()
    seen = []
    real = discovery_module.is_digest
    monkeypatch.setattr(discovery_module, "is_digest", lambda name: seen.append(name) or real(name))
    assert find_ready(store, KEY).status is LookupStatus.MISS
    assert len(seen) == 33


def test_folder_must_fit_its_content(store: ArtifactStore, builder: Builder) -> None:
    """REQ-51."""
    store.get_or_build(KEY, READY, builder)
    (slots(store) / READY.digest).rename(slots(store) / ("0" * 64))
    result = find_ready(store, KEY)
    assert result.status is LookupStatus.INVALID
    assert f"its files are those of the spec {READY.digest}" in str(result.reason)


def test_candidates_are_validated_completely(store: ArtifactStore, builder: Builder) -> None:
    """REQ-52."""
    handle = store.get_or_build(KEY, READY, builder).handle
    assert handle is not None
    (handle.directory / "empty").write_text("x")
    result = find_ready(store, KEY)
    assert result.status is LookupStatus.INVALID
    assert "empty" in str(result.reason)


def test_several_valid_entries_are_refused(store: ArtifactStore, builder: Builder) -> None:
    """REQ-53, REQ-58."""
    other = ArtifactSpec(ArtifactState.BINARY_READY, BuildKind.SINGLE_CHIP, ("empty",))
    for spec in (READY, other):
        store.get_or_build(KEY, spec, builder)
    result = find_ready(store, KEY)
    assert result.status is LookupStatus.MISS
    assert "2 valid" in str(result.reason)
    (slots(store) / other.digest / "ready/empty").write_text("damaged")
    assert find_ready(store, KEY).status is LookupStatus.HIT


def test_storage_that_cannot_be_searched(
    store: ArtifactStore, builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.get_or_build(KEY, READY, builder)
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", lambda *a: (_ for _ in ()).throw(OSError(5, "Input/output error")))
        assert find_ready(store, KEY).status is LookupStatus.STORAGE_ERROR
    shutil.move(slots(store), store.root / "moved")
    slots(store).symlink_to(store.root / "moved")
    assert find_ready(store, KEY).status is LookupStatus.INVALID
