"""The lock file."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from pypto.toolchain.errors import LockError
from pypto.toolchain.lock import PACKAGED_LOCK, Lock, load_lock, parse_lock, prefix_name
from pypto.toolchain.recipes import DEBIAN_PACKAGES


def test_packaged_lock_is_in_its_one_spelling() -> None:
    assert load_lock().to_bytes() == PACKAGED_LOCK.read_bytes()


def test_packaged_lock_pins_what_the_recipes_take() -> None:
    lock = load_lock()
    for name, packages in DEBIAN_PACKAGES.items():
        assert {file.name for file in lock.sets[name].of("deb")} == set(packages)
    assert lock.sets["ptoas"].version == "0.1.1"
    assert [(f.name, f.version) for f in lock.sets["isa"].of("wheel")] == [("tilelang-ascend", "0.1.4")]
    assert lock.sets["gcc"].version.startswith("12.")


def test_an_edited_lock_is_refused() -> None:
    with pytest.raises(LockError, match="edited by hand"):
        parse_lock(PACKAGED_LOCK.read_bytes() + b"\n")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("sha256", "12", "needs a size and a SHA-256"),
        ("size", 0, "needs a size and a SHA-256"),
        ("name", "--index-url", "bad name"),
        ("version", "1 --extra", "bad version"),
        ("file", "../x.whl", "bad file"),
        ("kind", "exe", "unknown kind"),
    ],
)
def test_a_bad_entry_is_named(field: str, value: object, message: str) -> None:
    data = json.loads(PACKAGED_LOCK.read_bytes())
    data["sets"]["ptoas"]["files"][-1][field] = value
    with pytest.raises(LockError, match=message):
        parse_lock(json.dumps(data).encode())


def test_a_missing_set_and_another_schema_are_named() -> None:
    data = json.loads(PACKAGED_LOCK.read_bytes())
    with pytest.raises(LockError, match="schema 7"):
        parse_lock(json.dumps({**data, "schema": 7}).encode())
    del data["sets"]["isa"]
    with pytest.raises(LockError, match="lacks 'isa'"):
        parse_lock(json.dumps(data).encode())
    with pytest.raises(LockError, match="malformed"):
        parse_lock(b"{")


def test_every_locked_byte_changes_the_prefix() -> None:
    lock = load_lock()
    gcc = lock.sets["gcc"]
    moved = replace(gcc, files=(replace(gcc.files[0], sha256="0" * 64), *gcc.files[1:]))
    assert prefix_name(Lock({**lock.sets, "gcc": moved})) != prefix_name(lock)
    assert prefix_name(load_lock()) == prefix_name(lock)
