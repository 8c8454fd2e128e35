"""Descriptor, bindings, and which toolchain is in force."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from toolchain_stand_ins import Packages

from pypto._identity.records import canonical_json
from pypto.toolchain import selection
from pypto.toolchain.descriptor import Bindings, Toolchain, ToolchainDescriptor, describe, read_set
from pypto.toolchain.errors import DescriptorError, ToolchainError, ToolchainNotInstalled
from pypto.toolchain.install import install


@pytest.fixture
def prefix(packages: Packages, tmp_path: Path) -> Path:
    install(packages.lock, tmp_path / "prefix", packages.folder)
    return tmp_path / "prefix"


@pytest.fixture(autouse=True)
def no_choice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(selection.ENVIRONMENT_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    selection.use(None)


def test_two_places_give_the_same_descriptor(packages: Packages, prefix: Path, tmp_path: Path) -> None:
    other = tmp_path / "somewhere" / "else"
    install(packages.lock, other, packages.folder)
    data = (prefix / "descriptor.json").read_bytes()
    assert data == (other / "descriptor.json").read_bytes()
    assert str(tmp_path).encode() not in data
    assert all(not text.startswith("/") for text in strings(json.loads(data)))


def strings(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.items() for text in strings(list(item))]
    if isinstance(value, list):
        return [text for item in value for text in strings(item)]
    return [value] if isinstance(value, str) else []


def test_the_installer_and_describe_agree(prefix: Path) -> None:
    """Bazel describes sets that lie apart; the bytes are the installer's."""
    made = describe({name: prefix / name for name in ("gcc", "isa", "ptoas")})
    assert made.descriptor.to_bytes() == (prefix / "descriptor.json").read_bytes()


def test_bindings_are_relative_and_the_prefix_can_move(prefix: Path, tmp_path: Path) -> None:
    assert json.loads((prefix / "bindings.json").read_bytes())["roots"]["gcc"] == "gcc"
    os.rename(prefix, tmp_path / "moved")
    assert Toolchain.load(tmp_path / "moved/descriptor.json").root("isa") == tmp_path / "moved/isa"


def test_descriptor_round_trip(prefix: Path) -> None:
    data = (prefix / "descriptor.json").read_bytes()
    read = ToolchainDescriptor.from_bytes(data)
    assert read.to_bytes() == data
    assert read.sets["gcc"].tools["g++"].path == "usr/bin/x86_64-linux-gnu-g++-12"
    assert len(read.digest) == 64


def edited(prefix: Path, edit: str, value: object) -> bytes:
    record = json.loads((prefix / "descriptor.json").read_bytes())
    *path, last = edit.split("/")
    at = record
    for name in path:
        at = at[name]
    if value is None:
        del at[last]
    else:
        at[last] = value
    return canonical_json(record)


@pytest.mark.parametrize(
    ("edit", "value", "message"),
    [
        ("schema", 9, "has schema 9"),
        ("sets/gcc", None, "no entry for gcc"),
        ("sets/gcc/tree", None, "lacks the field 'tree'"),
        ("sets/gcc/extra", 1, "unknown field 'extra'"),
        ("sets/gcc/lock", "12", "lock is no SHA-256"),
        ("sets/gcc/tools/g++/path", "/usr/bin/g++", "not a normalised path"),
        ("sets/gcc/includes", ["usr/../../etc"], "not a normalised path"),
        ("sets/gcc/name", "ptoas", "describes the set 'ptoas'"),
        ("sets/gcc/version", 12, "wrong type int"),
    ],
)
def test_a_wrong_descriptor_is_one_clear_error(prefix: Path, edit: str, value: object, message: str) -> None:
    with pytest.raises(DescriptorError, match=message):
        ToolchainDescriptor.from_bytes(edited(prefix, edit, value))


def test_another_spelling_of_the_descriptor_is_refused(prefix: Path) -> None:
    data = (prefix / "descriptor.json").read_bytes()
    with pytest.raises(DescriptorError, match="canonical"):
        ToolchainDescriptor.from_bytes(data + b"\n")
    with pytest.raises(DescriptorError, match="not valid JSON"):
        ToolchainDescriptor.from_bytes(b"no")


def test_bindings_name_missing_and_unknown_roots(tmp_path: Path) -> None:
    with pytest.raises(DescriptorError, match="no folder for isa, ptoas"):
        Bindings({"gcc": tmp_path})
    with pytest.raises(DescriptorError, match="unknown root cuda"):
        Bindings({name: tmp_path for name in ("gcc", "isa", "ptoas", "cuda")})


def test_a_missing_root_folder_is_named(prefix: Path) -> None:
    os.rename(prefix / "isa", prefix / "gone")
    with pytest.raises(DescriptorError, match="folder of root 'isa' does not exist"):
        Toolchain.load(prefix / "descriptor.json")


def test_folders_in_the_wrong_place_are_named(prefix: Path) -> None:
    with pytest.raises(DescriptorError, match="holds the tool set 'isa', not 'gcc'"):
        describe({"gcc": prefix / "isa", "isa": prefix / "isa", "ptoas": prefix / "ptoas"})
    with pytest.raises(DescriptorError, match=r"set\.json cannot be read"):
        read_set(prefix)


def test_nothing_installed_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requirement: a call without installed tools downloads nothing and says how to install them."""
    monkeypatch.setattr(subprocess, "Popen", None)
    with pytest.raises(ToolchainNotInstalled, match=r"python -m pypto\.toolchain install"):
        selection.current()


def test_order_of_choice(prefix: Path, packages: Packages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other, third = tmp_path / "other", tmp_path / "third"
    for folder in (other, third):
        install(packages.lock, folder, packages.folder)
    monkeypatch.setattr(selection, "default_prefix", lambda: third)
    assert selection.current().root("gcc") == third / "gcc"
    monkeypatch.setenv(selection.ENVIRONMENT_VARIABLE, str(other / "descriptor.json"))
    assert selection.current().root("gcc") == other / "gcc"
    selection.use(prefix / "descriptor.json")
    assert selection.current().root("gcc") == prefix / "gcc"
    assert selection.current() is selection.current()
    selection.use(None)
    assert selection.current().root("gcc") == other / "gcc"


def test_a_chosen_file_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DescriptorError, match=r"nowhere\.json cannot be read"):
        selection.use(tmp_path / "nowhere.json")
    monkeypatch.setenv(selection.ENVIRONMENT_VARIABLE, str(tmp_path / "nowhere.json"))
    with pytest.raises(ToolchainNotInstalled, match=r"PYPTO_TOOLCHAIN_DESCRIPTOR names a file that does not exist"):
        selection.current()


def test_the_default_prefix_needs_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(ToolchainError, match="no home folder"):
        selection.default_prefix()


def test_importing_loads_no_fetching_code() -> None:
    code = "import sys, pypto.toolchain; print(sorted(m for m in sys.modules if m.startswith('pypto.toolchain.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "fetch" not in done.stdout and "pypto.toolchain.descriptor" in done.stdout
