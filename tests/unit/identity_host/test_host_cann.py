"""CANN on stand-in toolkits: which build it is, and what has no identity."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from host_world import BUILD, CONTENT, World, build_id, elf, program, write

from pypto._identity.host import device
from pypto._identity.host.cann import build_version
from pypto._identity.host.probes import Answer

INFO = "aarch64-linux/ascend_toolkit_install.info"


@pytest.fixture
def cann(world: World, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A toolkit; GCC's inventory, which needs a compiler that runs, is left out."""
    root = world.device()
    host = write(world.folder / "host/libc.so.6", "libc")
    monkeypatch.setattr(device, "gcc_files", lambda gcc, selection, probes: [gcc.driver])
    monkeypatch.setattr(device, "closure", lambda programs, probes: [*programs, str(host)])
    return root


def test_evidence(world: World, cann: Path) -> None:
    """IDB-102, IDB-103, REP-23: build, compiler and linker."""
    record = world.evidence("device_toolchain")["cann"]
    assert record == {
        "compiler": {
            "path": str(cann / "bin/ccec"), "native": {"build_id": build_id("ccec").hex(), "sha256": None}
        },
        "compiler_version": "stand-in ccec 1.0\n",
        "linker": {
            "path": str(cann / "bin/ld.lld"), "native": {"build_id": build_id("ld.lld").hex(), "sha256": None}
        },
        "field": "innerversion",
        "build": "V100R001C20B123",
    }  # fmt: skip


def test_innerversion_comes_before_version(world: World, cann: Path) -> None:
    """REP-24, REP-25: two builds of one release differ; the release number alone is not looked at."""
    before = world.digest()
    write(cann / INFO, "version=8.1\ninnerversion=V100R001C20B123\n")
    assert world.digest() == before
    write(cann / INFO, "version=8.1\ninnerversion=V100R001C20B124\n")
    assert world.digest() != before


def test_version_without_innerversion(world: World, cann: Path) -> None:
    """REP-33: the field is part of the record, so that one text in two fields is two builds."""
    write(cann / INFO, "version=X\n")
    one = world.digest()
    assert world.evidence("device_toolchain")["cann"]["field"] == "version"
    write(cann / INFO, "innerversion=X\n")
    assert world.digest() != one


def test_a_link_to_the_architecture_is_no_second_file(cann: Path) -> None:
    """REP-26, REP-27: files are counted, not paths; a link in the other direction and a hard link too."""
    assert os.path.islink(cann / "arm64-linux")
    assert build_version(str(cann)) == (("innerversion", "V100R001C20B123"), None)
    (cann / "x86_64-linux").mkdir()
    os.link(cann / INFO, cann / "x86_64-linux/ascend_toolkit_install.info")
    assert build_version(str(cann)) == (("innerversion", "V100R001C20B123"), None)


def no_info(root: Path) -> str:
    (root / INFO).unlink()
    return f"no ascend_toolkit_install.info in {root}"


def two_infos(root: Path) -> str:
    other = write(root / "x86_64-linux/ascend_toolkit_install.info", (root / INFO).read_text())
    return f"different info files: {root / INFO}, {other}"


def empty_value(root: Path) -> str:
    write(root / INFO, "version=8.0\ninnerversion=  \n")
    return f"{root / INFO} has an empty innerversion"


def no_value(root: Path) -> str:
    write(root / INFO, "path=/x\n")
    return f"{root / INFO} has neither innerversion nor version"


def twice(root: Path) -> str:
    write(root / INFO, "innerversion=a\ninnerversion=b\n")
    return f"{root / INFO} gives innerversion twice"


def binary(root: Path) -> str:
    write(root / INFO, b"\xff\xfe\0innerversion=a\n")
    return f"{root / INFO} cannot be read"


def folder(root: Path) -> str:
    (root / INFO).unlink()
    (root / INFO).mkdir()
    return f"{root / INFO} cannot be read"


def dangling(root: Path) -> str:
    (root / INFO).unlink()
    (root / INFO).symlink_to("gone")
    return f"{root / INFO}: No such file or directory"


def other_layout(root: Path) -> str:
    (root / "compiler/ccec_compiler").mkdir(parents=True)
    (root / "bin").rename(root / "compiler/ccec_compiler/bin")
    return f"{root} has a layout that is not recognised"


UNKNOWN_BUILDS = [no_info, two_infos, empty_value, no_value, twice, binary, folder, dangling, other_layout]


@pytest.mark.parametrize("change", UNKNOWN_BUILDS, ids=lambda change: change.__name__)
def test_without_a_build_there_is_no_identity(world: World, cann: Path, change) -> None:  # type: ignore[no-untyped-def]
    """IDB-108, REP-35: missing, two different ones, empty, malformed, unknown layout; the reason says which."""
    said = change(cann)
    for name in ("bin/ccec", "compiler/ccec_compiler/bin/ccec"):
        world.answers.versions[str(cann / name)] = Answer(0, b"x")
    reason = world.reason("device_toolchain")
    assert reason is not None
    assert reason.startswith(f"CANN reports no build version: {said}")
    assert world.identity().digest is None


@pytest.mark.parametrize("change", UNKNOWN_BUILDS[:-2], ids=lambda change: change.__name__)
def test_content_reads_everything_instead(world: World, cann: Path, change) -> None:  # type: ignore[no-untyped-def]
    """REP-28 to REP-32: every file of the toolkit counts, no version is recorded."""
    write(cann / "lib/libx.so", "one")
    change(cann)
    inputs = world.components(CONTENT)["device_toolchain"]
    assert inputs.unavailable_reason is None
    assert inputs.reported_version is None
    assert str(cann) in [root.path for root in inputs.roots]
    before = world.component("device_toolchain", CONTENT)
    write(cann / "lib/libx.so", "two")
    assert world.component("device_toolchain", CONTENT) != before


def test_content_of_another_layout_is_read(world: World, cann: Path) -> None:
    """REP-31."""
    other_layout(cann)
    inputs = world.components(CONTENT)["device_toolchain"]
    assert (inputs.reported_version, inputs.unavailable_reason) == (None, None)
    assert str(cann) in [root.path for root in inputs.roots]


def test_content_of_a_toolkit_with_a_broken_link_is_unavailable(world: World, cann: Path) -> None:
    """REP-32, CNT-22: reading everything fails visibly."""
    dangling(cann)
    assert "the link cannot be followed" in (world.reason("device_toolchain", CONTENT) or "")


def test_content_keeps_the_shortcut(world: World, cann: Path) -> None:
    """IDC-09, REP-17 to REP-21: CANN by its build, files of the host by content."""
    inputs = world.components(CONTENT)["device_toolchain"]
    assert inputs.reported_version == "innerversion=V100R001C20B123"
    roots = [root.path for root in inputs.roots]
    assert not [path for path in roots if path.startswith(str(cann))]
    before = world.component("device_toolchain", CONTENT)
    program(cann / "bin/ccec", "other")
    assert world.component("device_toolchain", CONTENT) == before, "CANN's files are not read when its build is known"
    write(world.folder / "host/libc.so.6", "other libc")
    changed = world.component("device_toolchain", CONTENT)
    assert changed != before
    write(cann / INFO, "innerversion=other\n")
    assert world.component("device_toolchain", CONTENT) not in (before, changed)


def test_host_files_that_cannot_be_read(world: World, cann: Path) -> None:
    """REP-22: no version makes up for them."""
    (world.folder / "host/libc.so.6").unlink()
    assert "libc.so.6" in (world.reason("device_toolchain", CONTENT) or "")


@pytest.mark.parametrize(
    ("name", "what"), [("ccec", "the CCEC compiler"), ("ld.lld", "the device linker")]
)  # fmt: skip
class TestPrograms:
    def test_script(self, world: World, cann: Path, name: str, what: str) -> None:
        """IDB-106, IDB-107: a compiler or linker replaced by a script."""
        path = write(cann / "bin" / name, '#!/bin/sh\nexec real "$@"\n', executable=True)
        for settings in (BUILD, CONTENT):
            assert world.reason("device_toolchain", settings) == f"{what} {path} is a start-up script, no ELF file"

    def test_not_executable(self, world: World, cann: Path, name: str, what: str) -> None:
        """IDB-109, IDB-110."""
        (cann / "bin" / name).chmod(0o644)
        assert world.reason("device_toolchain") == f"{what} {cann}/bin/{name} is not executable"

    def test_missing(self, world: World, cann: Path, name: str, what: str) -> None:
        (cann / "bin" / name).unlink()
        assert world.reason("device_toolchain") == f"{what} is missing: {cann}/bin/{name}"

    def test_no_build_id(self, world: World, cann: Path, name: str, what: str) -> None:
        """IDB-111: content then."""
        write(cann / "bin" / name, elf(None, b"one"), executable=True)
        before = world.digest()
        write(cann / "bin" / name, elf(None, b"two"), executable=True)
        assert world.digest() != before

    def test_build_id(self, world: World, cann: Path, name: str, what: str) -> None:
        """IDB-102, IDB-103."""
        before = world.digest()
        program(cann / "bin" / name, "another build")
        assert world.digest() != before


def test_compiler_version(world: World, cann: Path) -> None:
    """IDB-98: the whole output, and none is no evidence."""
    before = world.digest()
    ccec = str(cann / "bin/ccec")
    world.answers.versions[ccec] = Answer(0, b"stand-in ccec 1.0\n(patched)\n")
    assert world.digest() != before
    for answer in (Answer(1, b"x"), Answer(0, b"", b"x"), Answer(None)):
        world.answers.versions[ccec] = answer
        assert world.reason("device_toolchain") == f"the CCEC compiler {ccec} reports no version"


def test_root(world: World, cann: Path) -> None:
    world.set(ASCEND_HOME_PATH=str(cann / "gone"))
    assert world.reason("device_toolchain") == f"ASCEND_HOME_PATH names no folder: {cann}/gone"
    world.set(ASCEND_HOME_PATH="")
    assert world.reason("device_toolchain") == "ASCEND_HOME_PATH is not set, which names CANN"


def test_relative_root(world: World, cann: Path) -> None:
    """IDB-33: relative to the project root."""
    world.set(ASCEND_HOME_PATH=os.path.relpath(cann, world.cwd))
    world.answers.versions[str(world.cwd / world.selection.variables["ASCEND_HOME_PATH"] / "bin/ccec")] = Answer(
        0, b"x"
    )
    assert world.evidence("device_toolchain")["cann"]["build"] == "V100R001C20B123"
