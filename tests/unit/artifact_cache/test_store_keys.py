"""Keys, specs and paths (KEY, SPC)."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from artifact_samples import GENERATED, READY, Builder, sample_environment, sample_key

from pypto._identity import ToolchainIdentity, canonical_json
from pypto._identity.identity import COMPONENT_NAMES
from pypto.jit.artifact_cache import ArtifactKey, ArtifactSpec, ArtifactState, ArtifactStore, BuildKind, LookupStatus
from pypto.jit.artifact_cache import key as key_module

ROOT = Path(__file__).parents[3]
GOOD = "b" * 64


def test_key_needs_a_usable_identity_of_the_current_schema() -> None:
    """KEY-1, KEY-2, KEY-8, KEY-13."""
    unusable = ToolchainIdentity.of({n: "a" * 64 for n in COMPONENT_NAMES[1:]}, {COMPONENT_NAMES[0]: "gone"})
    old = dataclasses.replace(sample_environment(), schema=0)
    future = dataclasses.replace(sample_environment(), schema=99)
    for environment in (None, unusable, old, future, "a" * 64):
        with pytest.raises(ValueError):
            ArtifactKey(environment, GOOD, GOOD)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "digest",
    ["b" * 63, "b" * 16, "b" * 65, "g" * 64, "B" * 64, "sha256:" + "b" * 57, "", None, b"b" * 64, "b" * 63 + "\n"],
)
@pytest.mark.parametrize("field", ["source_digest", "specialization_digest"])
def test_malformed_digests(digest: Any, field: str) -> None:
    """KEY-3, KEY-4, KEY-9, KEY-10, KEY-14."""
    fields = {"source_digest": GOOD, "specialization_digest": GOOD, field: digest}
    with pytest.raises(ValueError, match=field):
        ArtifactKey(sample_environment(), **fields)


def test_record_keeps_every_part() -> None:
    """KEY-5, KEY-6, KEY-15."""
    key = sample_key()
    record = key.to_record()
    assert record["environment"]["components"] == {name: "a" * 64 for name in COMPONENT_NAMES}
    assert (record["source_digest"], record["specialization_digest"]) == ("b" * 64, "c" * 64)
    assert ArtifactKey.from_record(json.loads(json.dumps(record))) == key
    assert key.digest == hashlib.sha256(canonical_json(record)).hexdigest()
    with pytest.raises(dataclasses.FrozenInstanceError):
        key.source_digest = GOOD  # type: ignore[misc]


def test_every_part_moves_the_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    """KEY-7, KEY-16."""
    keys = [sample_key(), sample_key(source="d"), sample_key(specialization="d"), sample_key(environment="d")]
    for name in COMPONENT_NAMES:
        components = {n: ("e" if n == name else "a") * 64 for n in COMPONENT_NAMES}
        keys.append(ArtifactKey(ToolchainIdentity.of(components), "b" * 64, "c" * 64))
    digests = {key.digest for key in keys}
    monkeypatch.setattr(key_module, "ARTIFACT_SCHEMA", 2)
    digests.add(sample_key().digest)
    assert len(digests) == len(keys) + 1


def test_digest_is_the_same_in_another_process() -> None:
    """KEY-16."""
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); from artifact_samples import *;"
        "print(sample_key().digest, READY.digest)"
    )
    done = subprocess.run(
        [sys.executable, "-O", "-c", script, str(Path(__file__).parent)],
        env={"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "5"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == [sample_key().digest, READY.digest]


def test_golden_digests() -> None:
    """Whoever moves these raises the artifact schema (and empties every cache)."""
    assert sample_key().digest == "f671e86c862abdbf43ab52b5ba2592712a7fe5663931fed320984dca18578867"
    assert (
        GENERATED.digest
        == hashlib.sha256(
            b'{"build_kind":"single_chip","required_files":["kernel_config.json"],"state":"generated"}'
        ).hexdigest()
    )


def test_spec_fields() -> None:
    """SPC-1 to SPC-3, SPC-7, SPC-19."""
    spec = ArtifactSpec(state=ArtifactState.GENERATED, build_kind=BuildKind.DISTRIBUTED, required_files=("b", "a/c"))
    assert spec.required_files == ("a/c", "b")
    assert {state.value for state in ArtifactState} == {"generated", "ready"}
    assert spec == ArtifactSpec(ArtifactState.GENERATED, BuildKind.DISTRIBUTED, ("a/c", "b"))


def test_each_part_of_a_spec_moves_its_digest() -> None:
    """SPC-6, SPC-7."""
    made = [
        ArtifactSpec(state, kind, files)
        for state in ArtifactState
        for kind in BuildKind
        for files in (("a",), ("a", "b"), ("a/b",))
    ]
    assert len({spec.digest for spec in made}) == len(made)
    assert ArtifactSpec(ArtifactState.GENERATED, BuildKind.SINGLE_CHIP, ("b", "a")).digest in {s.digest for s in made}


@pytest.mark.parametrize(
    "files",
    [(), ("a", "a"), ("/a",), ("a/../b",), ("../a",), ("./a",), ("a/./b",), ("a//b",), ("a/",), ("a\\b",), ("",),
     (".",), ("a\0b",), ("\ud800",), (1,), (None,), "abc", ("artifact_manifest.json",)],
    ids=repr,
)  # fmt: skip
def test_unsafe_required_files(files: Any) -> None:
    """SPC-4, SPC-5, SPC-16, SPC-17, SPC-18, MAN-29 to MAN-32."""
    with pytest.raises(ValueError):
        ArtifactSpec(ArtifactState.GENERATED, BuildKind.SINGLE_CHIP, files)


def test_states_and_kinds_are_enums() -> None:
    for state, kind in (("ready", BuildKind.SINGLE_CHIP), (ArtifactState.GENERATED, "single_chip")):
        with pytest.raises(ValueError):
            ArtifactSpec(state, kind, ("a",))  # type: ignore[arg-type]


def test_another_spec_is_another_slot(store: ArtifactStore, key: ArtifactKey, builder: Builder) -> None:
    """SPC-8 to SPC-11, SPC-20, LIM-12."""
    other = ArtifactSpec(ArtifactState.BINARY_READY, BuildKind.SINGLE_CHIP, ("kernel_config.json", "empty"))
    first = store.get_or_build(key, READY, builder).handle
    assert store.lookup(key, other).status is LookupStatus.MISS
    assert store.lookup(key, GENERATED).status is LookupStatus.MISS
    second = store.get_or_build(key, other, builder).handle
    assert first is not None and second is not None
    assert first.directory != second.directory
    assert store.lookup(key, READY).status is LookupStatus.HIT
    assert "empty" in {file.path for file in first.files()}
    assert builder.calls == 2


def test_the_module_stands_alone() -> None:
    """STO-1 to STO-5, LIM-11: few names, and no compiler, NumPy or toolchain is loaded by using all of them."""
    script = (
        "import sys, pypto.jit.artifact_cache as cache\n"
        "for name in cache.__all__: getattr(cache, name)\n"
        "print(len(cache.__all__), *sorted({m.split('.')[1] for m in sys.modules if m.startswith('pypto.')}),"
        " 'numpy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONPATH": str(ROOT)}, check=True, capture_output=True, text=True
    )
    count, *rest = done.stdout.split()
    assert int(count) <= 20
    assert rest == ["_identity", "jit", "False"]


def test_a_key_reads_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """KEY-11: form only; no source or tool is looked at."""
    monkeypatch.setattr(os, "open", lambda *a, **k: pytest.fail("a file was opened"))
    monkeypatch.setattr("builtins.open", lambda *a, **k: pytest.fail("a file was opened"))
    assert len(ArtifactKey(sample_environment(), "0" * 64, "1" * 64).digest) == 64
