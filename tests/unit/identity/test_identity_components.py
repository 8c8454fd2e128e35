"""Component inputs, tool chain identities and the hermetic identity (INS, VER, REP, MEM)."""

from __future__ import annotations

import dataclasses
import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pypto
from pypto._identity import (
    ComponentInputs,
    ContentRoot,
    IdentitySettings,
    InstallationIdentityCache,
    ToolchainIdentity,
    ToolchainInputs,
    content,
    hermetic_identity,
    source_digest,
    specialization_digest,
)
from pypto._identity.identity import COMPONENT_NAMES, IDENTITY_SCHEMA
from pypto._identity.policy import POLICIES
from pypto._identity.toolchain_inputs import WORLDS
from pypto.jit.artifact_cache.key import ArtifactKey

ROOT = Path(__file__).parents[3]


def available(**fields: Any) -> ComponentInputs:
    return ComponentInputs(unavailable_reason=None, **fields)


def inputs(policy: str = "content", **changed: ComponentInputs) -> ToolchainInputs:
    parts = {name: available(reported_version=f"{name} 1") for name in COMPONENT_NAMES}
    return ToolchainInputs(**{**parts, **changed}, settings=IdentitySettings(policy))


def capture(value: ToolchainInputs) -> ToolchainIdentity:
    return InstallationIdentityCache().capture(value)


def test_five_components_none_with_a_default() -> None:
    """INS-03, INS-30."""
    fields = {field.name: field for field in dataclasses.fields(ToolchainInputs)}
    assert set(fields) - {"world", "settings"} == set(COMPONENT_NAMES)
    with pytest.raises(TypeError):
        ToolchainInputs(pypto=ComponentInputs())  # type: ignore[call-arg]


@pytest.mark.parametrize("name", COMPONENT_NAMES)
def test_each_component_moves_the_identity_alone(name: str) -> None:
    """INS-04 to INS-08."""
    before = capture(inputs())
    after = capture(inputs(**{name: available(reported_version="2")}))
    assert before.digest != after.digest
    assert {part for part in COMPONENT_NAMES if before.components[part] != after.components[part]} == {name}


def test_unavailable_by_default(tmp_path: Path) -> None:
    """INS-09 to INS-11, INS-21, LIM-03: known paths alone are no complete list."""
    (tmp_path / "f").write_text("x")
    for component in (ComponentInputs(), ComponentInputs(roots=(ContentRoot(tmp_path / "f"),))):
        identity = capture(inputs(ptoas=component))
        assert not identity.usable
        assert identity.digest is None
        assert set(identity.reasons) == {"ptoas"}


def test_every_unavailable_component_is_reported(tmp_path: Path) -> None:
    """INS-22 to INS-25, VER-18, REP-16, REP-22."""
    missing = (ContentRoot(tmp_path / "missing"),)
    identity = capture(
        inputs(
            pypto=ComponentInputs(verified_revision="r", reported_version="v", unavailable_reason="first"),
            ptoas=available(roots=missing, reported_version="good"),
        )
    )
    assert (identity.usable, identity.digest) == (False, None)
    assert set(identity.reasons) == {"pypto", "ptoas"}
    assert identity.reasons["pypto"] == "first"
    assert "missing" in identity.reasons["ptoas"]


def test_no_key_comes_from_an_incomplete_identity() -> None:
    """INS-26, INS-31, INS-32, IDB-06: digests of the good components are kept for people, never for a key."""
    identity = capture(inputs(ptoas=ComponentInputs()))
    other = capture(inputs(ptoas=ComponentInputs(unavailable_reason="another reason")))
    assert len(identity.components) == 4
    for broken in (identity, other):
        with pytest.raises(ValueError, match="ptoas"):
            ArtifactKey(broken, "0" * 64, "0" * 64)
    good = capture(inputs())
    assert (good.schema, good.usable) == (IDENTITY_SCHEMA, True)
    assert ArtifactKey(good, "0" * 64, "0" * 64).environment_digest == good.digest


def test_versions_tell_installations_apart() -> None:
    """REP-01, REP-02, REP-12: a development build is not its release."""
    texts = ("1.2.3", "1.2.3.dev4", "1.2.3\n", "1.2.4")
    assert len({digest_of(available(reported_version=text)) for text in texts}) == len(texts)


def test_the_module_is_internal() -> None:
    """LIM-11."""
    assert not [name for name in pypto.__all__ if "identity" in name.lower()]


def test_an_empty_list_of_inputs_is_no_evidence(tmp_path: Path) -> None:
    """CNT-19."""
    (tmp_path / "empty").mkdir()
    assert "empty" in capture(inputs(runtime=available())).reasons["runtime"]
    assert "empty" in capture(inputs(runtime=available(roots=(ContentRoot(tmp_path / "empty"),)))).reasons["runtime"]


def test_labels_of_evidence_never_meet() -> None:
    """VER-19 to VER-21, REP-13, REP-14, INS-29: one text under each label, component, world and policy."""
    text = "a" * 64
    digests = set()
    for field, name, policy, world in itertools.product(
        ("verified_revision", "reported_version", "evidence"), COMPONENT_NAMES, POLICIES, WORLDS
    ):
        wanted = inputs(policy, **{name: available(**{field: text})})
        digests.add(capture(dataclasses.replace(wanted, world=world)).components[name])
    assert len(digests) == 3 * 5 * 2 * 2


def digest_of(component: ComponentInputs) -> str | None:
    return capture(inputs(pypto=component)).components.get("pypto")


def test_versions_add_to_roots_and_never_replace_them(tmp_path: Path) -> None:
    """VER-24, VER-25, REP-17, REP-20, REP-21."""
    (tmp_path / "f").write_text("1")
    roots = (ContentRoot(tmp_path / "f"),)
    made = [
        available(roots=roots),
        available(roots=roots, reported_version="1"),
        available(roots=roots, reported_version="2"),
        available(roots=roots, verified_revision="1"),
        available(roots=roots, verified_revision="1", reported_version="1"),
    ]
    before = [digest_of(component) for component in made]
    (tmp_path / "f").write_text("2")
    after = [digest_of(component) for component in made]
    assert None not in before
    assert len({*before, *after}) == 10


def test_a_verified_revision_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """VER-01, REP-01."""
    monkeypatch.setattr(content.os, "open", lambda *a, **k: pytest.fail("a file was opened"))
    assert capture(inputs(pto_isa=available(verified_revision="abc"))).usable


@pytest.mark.parametrize("field", ["verified_revision", "reported_version", "unavailable_reason"])
def test_empty_texts_are_refused(field: str) -> None:
    """INS-34, VER-26."""
    with pytest.raises(ValueError, match=field):
        ComponentInputs(**{field: ""})


def test_inputs_cannot_be_changed_afterwards() -> None:
    """INS-33."""
    record = {"version": [1]}
    component = available(evidence=record)
    before = digest_of(component)
    record["version"].append(2)
    assert digest_of(component) == before
    with pytest.raises(dataclasses.FrozenInstanceError):
        component.reported_version = "x"  # type: ignore[misc]


def test_reads_are_remembered_and_failures_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MEM-01, MEM-02, MEM-05, MEM-06, MEM-09."""
    file = tmp_path / "tool"
    cache = InstallationIdentityCache()
    reads = []
    real = content.os.read
    monkeypatch.setattr(content.os, "read", lambda *a: reads.append(1) or real(*a))
    wanted = inputs(ptoas=available(roots=(ContentRoot(file),)))
    assert not cache.capture(wanted).usable
    file.write_text("1")
    first = cache.capture(wanted)
    assert first.usable
    count = len(reads)
    file.write_text("2")
    assert cache.capture(wanted) == first
    assert len(reads) == count
    assert InstallationIdentityCache().capture(wanted) != first


def test_records_of_identities_are_strict() -> None:
    """KEY-2 begins here: other schemas and damaged records are refused."""
    identity = capture(inputs())
    record = identity.to_record()
    assert ToolchainIdentity.from_record(record) == identity
    wrong: list[Any] = [
        None, [], {}, {**record, "schema": IDENTITY_SCHEMA + 1}, {**record, "schema": True}, {**record, "more": 1},
        {**record, "digest": "0" * 64}, {**record, "components": {**record["components"], "ptoas": "0" * 64}},
        {**record, "components": {n: d for n, d in record["components"].items() if n != "ptoas"}},
        {**record, "components": {**record["components"], "ptoas": "0" * 63}},
        {**record, "components": {**record["components"], "ptoas": "A" * 64}},
        {**record, "components": {**record["components"], "sixth": "0" * 64}}, {**record, "components": []},
    ]  # fmt: skip
    for value in wrong:
        with pytest.raises(ValueError):
            ToolchainIdentity.from_record(value)
    with pytest.raises(ValueError, match="not available"):
        capture(inputs(ptoas=ComponentInputs())).to_record()


SETS = {"gcc": {"version": "12"}, "isa": {"version": "1", "files": ["a"]}, "ptoas": {"version": "0.4"}}


def test_hermetic_identity_follows_the_descriptor() -> None:
    """The sets go to their components; what stands beside them does not count."""
    base = hermetic_identity({"sets": SETS})
    assert base.usable
    assert hermetic_identity({"sets": SETS, "schema": 7}) == base
    for name, component in (("gcc", "device_toolchain"), ("isa", "pto_isa"), ("ptoas", "ptoas")):
        other = hermetic_identity({"sets": {**SETS, name: {"version": "other"}}})
        assert {part for part in COMPONENT_NAMES if other.components[part] != base.components[part]} == {component}
        missing = hermetic_identity({"sets": {n: s for n, s in SETS.items() if n != name}})
        assert set(missing.reasons) == {component}


def test_cann_counts_in_device_mode_only() -> None:
    with_cann = {"sets": {**SETS, "cann": {"innerversion": "V1"}}}
    assert hermetic_identity(with_cann) == hermetic_identity({"sets": SETS})
    device = hermetic_identity(with_cann, device=True)
    assert device.components["device_toolchain"] != hermetic_identity(with_cann).components["device_toolchain"]
    assert set(hermetic_identity({"sets": SETS}, device=True).reasons) == {"device_toolchain"}


def test_hermetic_identity_is_the_same_under_every_python_and_flag(tmp_path: Path) -> None:
    """The interpreter, its flags, the hash seed, the locale and the folder do not enter."""
    for name in ("a.py", "runtime/b.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    call = f"hermetic_identity({{'sets': {SETS!r}}}, {str(tmp_path)!r})"
    script = f"from pypto._identity import hermetic_identity; print({call}.digest)"
    expected = hermetic_identity({"sets": SETS}, tmp_path).digest
    for executable, flags, seed in itertools.product({sys.executable}, ([], ["-O"]), ("0", "7")):
        done = subprocess.run(
            [executable, *flags, "-c", script],
            env={"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed, "LC_ALL": "C", "LD_LIBRARY_PATH": "/rubbish"},
            cwd="/",
            check=True,
            capture_output=True,
            text=True,
        )
        assert done.stdout.strip() == expected


def test_request_digests_are_typed_and_apart() -> None:
    record = {"shape": [1, 2], "option": True}
    assert specialization_digest(record) != specialization_digest({**record, "option": 1})
    assert source_digest(record) != specialization_digest(record)
    assert source_digest(record) == source_digest(dict(reversed(record.items())))
    with pytest.raises(TypeError):
        source_digest({"value": object()})


def test_the_encoder_loads_nothing_else() -> None:
    """Reading a record must not import the compiler, NumPy or the rest of the identity."""
    script = (
        "import sys, pypto._identity.records as r; r.digest_record(1);"
        "print(sorted(m for m in sys.modules if m.startswith(('pypto', 'numpy'))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONPATH": str(ROOT)}, check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "['pypto', 'pypto._identity', 'pypto._identity.records']"
