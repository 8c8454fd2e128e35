"""The sets that only builds for a device use: a CANN toolkit where the user has it, and gcc_aarch64 on request."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from toolchain_stand_ins import Packages, make_deb, program

from pypto.toolchain import DescriptorError, Toolchain, elf
from pypto.toolchain.cann import cann_folder, read_cann
from pypto.toolchain.cli import main
from pypto.toolchain.descriptor import ROOTS
from pypto.toolchain.install import check, install
from pypto.toolchain.lock import load_lock, prefix_name

INFO = "aarch64-linux/ascend_toolkit_install.info"
CROSS = "usr/lib/gcc-cross/aarch64-linux-gnu/12"


@pytest.fixture
def cann(tmp_path: Path) -> Path:
    root = tmp_path / "cann"
    for path in ("bin/ccec", "bin/ld.lld", "tools/hcc/bin/aarch64-target-linux-gnu-g++"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(elf.empty_library(path))
    (root / "aarch64-linux").mkdir()
    (root / INFO).write_text("version=8.5.0\ninnerversion=8.5.0.1.231\n")
    return root


@pytest.fixture
def with_cross(packages: Packages) -> Packages:
    """The stand-ins, with a little of the AArch64 compiler in its packages."""
    content: dict[str, dict[str, bytes | str]] = {
        "g++-12-aarch64-linux-gnu": {
            "usr/bin/aarch64-linux-gnu-g++-12": program("g++", []),
            f"{CROSS}/cc1plus": program("cc1plus", ["libgmp.so.10", "libc.so.6"]),
        },
        "gcc-12-aarch64-linux-gnu": {f"{CROSS}/collect2": program("collect2", [])},
        "binutils-aarch64-linux-gnu": {
            "usr/bin/aarch64-linux-gnu-as": program("as", []),
            "usr/bin/aarch64-linux-gnu-ld.bfd": program("ld", []),
        },
        "libc6-dev-arm64-cross": {
            "usr/aarch64-linux-gnu/lib/libc.so": b"GROUP ( /usr/aarch64-linux-gnu/lib/libc.so.6 )\n",
            "usr/aarch64-linux-gnu/lib/libm.so": "libm.so.6",
            "usr/aarch64-linux-gnu/include/stdio.h": b"// stdio\n",
        },
        "libc6-arm64-cross": {"usr/aarch64-linux-gnu/lib/libm.so.6": elf.empty_library("libm.so.6", "aarch64")},
        "libstdc++6-arm64-cross": {
            "usr/aarch64-linux-gnu/lib/libstdc++.so.6": elf.empty_library("libstdc++.so.6", "aarch64")
        },
    }
    for file in load_lock().sets["gcc_aarch64"].files:
        if file.name in content:
            make_deb(packages.folder / file.file, content[file.name])
    return packages.relocked()


def test_the_toolkit_is_known_by_its_build(cann: Path) -> None:
    """REP-23: innerversion before version; its programs with digest and Build-ID, by paths inside the toolkit."""
    found = read_cann(cann)
    assert (found.name, found.version, found.lock) == ("cann", "8.5.0.1.231", None)
    assert found.facts == {"innerversion": "8.5.0.1.231"}
    assert {name: tool.path for name, tool in found.tools.items()} == {
        "ccec": "bin/ccec",
        "ld.lld": "bin/ld.lld",
        "aarch64-g++": "tools/hcc/bin/aarch64-target-linux-gnu-g++",
    }
    (cann / INFO).write_text("version=8.5.0\n")
    assert read_cann(cann).facts == {"version": "8.5.0"}


def test_one_info_file_under_two_names(cann: Path) -> None:
    """REP-26: arm64-linux is a link to aarch64-linux."""
    before = read_cann(cann)
    os.symlink("aarch64-linux", cann / "arm64-linux")
    assert read_cann(cann).version == before.version
    (cann / "x86_64-linux").mkdir()
    (cann / "x86_64-linux/ascend_toolkit_install.info").write_text("version=9\n")
    with pytest.raises(DescriptorError, match="holds more than one CANN: "):
        read_cann(cann)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("bin/ccec", "no complete CANN toolkit: it has no bin/ccec"),
        (INFO, "does not say which build of CANN it is"),
    ],
)
def test_an_incomplete_toolkit(cann: Path, path: str, words: str) -> None:
    (cann / path).unlink()
    with pytest.raises(DescriptorError, match=words):
        read_cann(cann)


def test_an_info_file_without_a_version(cann: Path) -> None:
    (cann / INFO).write_text("package_name=x\n")
    with pytest.raises(DescriptorError, match="has no line innerversion= or version="):
        read_cann(cann)


def test_which_folder(cann: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASCEND_HOME_PATH", raising=False)
    with pytest.raises(DescriptorError, match="or set ASCEND_HOME_PATH"):
        cann_folder(None)
    monkeypatch.setenv("ASCEND_HOME_PATH", str(cann))
    assert cann_folder(None) == cann
    with pytest.raises(DescriptorError, match="none is no folder"):
        cann_folder(cann / "none")


def test_installing_with_a_toolkit_and_upgrading_it(packages: Packages, cann: Path, tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    plain = install(packages.lock, prefix, packages.folder)
    toolchain = install(packages.lock, prefix, packages.folder, cann=cann)
    assert toolchain.root("cann") == cann
    assert {name: toolchain.descriptor.sets[name] for name in ROOTS} == plain.descriptor.sets
    assert install(packages.lock, prefix, packages.folder).root("cann") == cann, "a later install keeps it"
    assert check(toolchain) == []
    (cann / "bin/ccec").write_bytes(b"#!/bin/sh\n")
    assert check(toolchain) == ["cann"]
    (cann / INFO).write_text("innerversion=9.0.0\n")
    with pytest.raises(DescriptorError, match=r"is now 9\.0\.0, recorded is 8\.5\.0\.1\.231; run .*install --cann"):
        Toolchain.load(prefix / "descriptor.json")
    assert install(packages.lock, prefix, packages.folder, cann=cann).descriptor.sets["cann"].version == "9.0.0"
    os.rename(cann, tmp_path / "gone")
    with pytest.raises(DescriptorError, match=r"'cann' does not exist: .*toolchain install` goes on"):
        Toolchain.load(prefix / "descriptor.json")
    assert install(packages.lock, prefix, packages.folder).descriptor == plain.descriptor


def test_the_command_line(
    packages: Packages, cann: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`install --cann` takes ASCEND_HOME_PATH, `describe --cann` a folder; both write the same set."""
    (tmp_path / "lock.json").write_bytes(packages.lock.to_bytes())
    prefix = tmp_path / "prefix"
    command = ["install", "--prefix", str(prefix), "--lock", str(tmp_path / "lock.json")]
    command += ["--files", str(packages.folder), "--cann"]
    monkeypatch.setenv("ASCEND_HOME_PATH", str(cann))
    assert main(command) == 0
    folders = [text for name in ROOTS for text in (f"--{name}", str(prefix / name))]
    described = tmp_path / "described.json"
    assert main(["describe", *folders, "--cann", str(cann), "--out", str(described)]) == 0
    assert described.read_bytes() == (prefix / "descriptor.json").read_bytes()
    monkeypatch.setenv("ASCEND_HOME_PATH", str(cann / "none"))
    assert main(command) == 1
    assert "none is no folder" in capsys.readouterr().err


def test_gcc_aarch64_is_fetched_on_request(with_cross: Packages, tmp_path: Path) -> None:
    """And stays: neither its presence nor its absence changes the other sets or the folder's name."""
    prefix = tmp_path / "prefix"
    plain = install(with_cross.lock, prefix, with_cross.folder)
    assert set(plain.descriptor.sets) == set(ROOTS)
    toolchain = install(with_cross.lock, prefix, with_cross.folder, optional=["gcc_aarch64"])
    cross = toolchain.descriptor.sets["gcc_aarch64"]
    assert cross.tools["as"].path == "usr/aarch64-linux-gnu/bin/as"
    assert cross.includes[-1] == "usr/aarch64-linux-gnu/include"
    assert {name: toolchain.descriptor.sets[name] for name in ROOTS} == plain.descriptor.sets
    folder = prefix / "gcc_aarch64"
    assert sorted(os.listdir(folder / "hostlib")) == ["libgmp.so.10"]
    assert (folder / "usr/aarch64-linux-gnu/lib/libc.so").read_bytes() == b"GROUP ( libc.so.6 )\n"
    assert (folder / "usr/aarch64-linux-gnu/lib/libm.so").read_bytes()[:4] == b"\x7fELF"
    assert (folder / CROSS / "libstdc++.so").read_bytes() == elf.empty_library("libstdc++.so.6", "aarch64")
    assert install(with_cross.lock, prefix, tmp_path).descriptor == toolchain.descriptor


def test_the_packaged_lock_keeps_the_folder_of_the_sets_that_all_have() -> None:
    lock = load_lock()
    without = type(lock)({name: lock.sets[name] for name in ROOTS})
    assert prefix_name(lock) == prefix_name(without)
    assert json.loads(lock.to_bytes())["sets"].keys() == {*ROOTS, "gcc_aarch64"}
