"""What the recipes make of packages."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from toolchain_stand_ins import GCC, LIB, SCRIPT, Packages, make_deb, make_wheel, program

from pypto._identity.records import canonical_json
from pypto.toolchain import elf
from pypto.toolchain.archives import deb_members
from pypto.toolchain.descriptor import ToolSet, read_set
from pypto.toolchain.errors import UnpackError
from pypto.toolchain.fetch import fetch_set
from pypto.toolchain.recipes import sysroot_linker_script
from pypto.toolchain.tree import measure
from pypto.toolchain.unpack import unpack_set


def unpack(packages: Packages, name: str, into: Path) -> ToolSet:
    into.mkdir(exist_ok=True)
    scratch = into.with_name(f"{into.name}-scratch")
    scratch.mkdir(exist_ok=True)
    locked = packages.lock.sets[name]
    return unpack_set(locked, fetch_set(locked, scratch, packages.folder), into)


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def test_gcc_set(packages: Packages, tmp_path: Path) -> None:
    made = unpack(packages, "gcc", tmp_path / "gcc")
    assert files(tmp_path / "gcc") == {
        "set.json",
        "usr/bin/x86_64-linux-gnu-g++-12",
        "usr/bin/as",
        "usr/bin/ld",
        f"{GCC}/cc1plus",
        f"{GCC}/collect2",
        f"{GCC}/libstdc++.so",
        f"{LIB}/libc.so",
        f"{LIB}/libm.so",
        f"{LIB}/libc.so.6",
        "usr/include/stdio.h",
        "hostlib/libisl.so.23",
        "hostlib/libgmp.so.10",
    }
    assert made.tools["g++"].path == "usr/bin/x86_64-linux-gnu-g++-12"
    assert made.libraries == ("hostlib",)
    assert made.includes[0] == "usr/include/c++/12" and made.includes[-1] == "usr/include"
    assert b"/" not in (tmp_path / "gcc" / LIB / "libc.so").read_bytes().partition(b"GROUP")[2]


def test_a_set_has_regular_files_with_fixed_modes(packages: Packages, tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        unpack(packages, "gcc", tmp_path / "gcc")
    finally:
        os.umask(old)
    found = [path for path in (tmp_path / "gcc").rglob("*") if not path.is_dir()]
    assert not [path for path in found if path.is_symlink()]
    modes = {path.name: path.stat().st_mode & 0o777 for path in found}
    assert modes["cc1plus"] == 0o755 and modes["stdio.h"] == 0o644 and modes["set.json"] == 0o644


def test_linker_script_loses_only_the_folders() -> None:
    assert sysroot_linker_script(SCRIPT, "libc.so") == (
        b"/* GNU ld script */\nOUTPUT_FORMAT(elf64-x86-64)\n"
        b"GROUP ( libc.so.6 libc_nonshared.a  AS_NEEDED ( ld-linux-x86-64.so.2 ) )\n"
    )
    with pytest.raises(UnpackError, match=r"libc\.so is not the linker script"):
        sysroot_linker_script(b"\x7fELF", "libc.so")


def test_a_library_that_no_package_holds_is_named(packages: Packages, tmp_path: Path) -> None:
    (isl,) = [file for file in packages.lock.sets["gcc"].files if file.name == "libisl23"]
    make_deb(packages.folder / isl.file, {})
    with pytest.raises(UnpackError, match=r"hold no usr/lib/x86_64-linux-gnu/libisl\.so\.23"):
        unpack(packages.relocked(), "gcc", tmp_path / "gcc")


def test_ptoas_set_has_the_names_that_ptoas_asks_for(packages: Packages, tmp_path: Path) -> None:
    made = unpack(packages, "ptoas", tmp_path / "ptoas")
    assert files(tmp_path / "ptoas") == {
        "set.json",
        "bin/ptoas",
        "lib/libMLIRIR.so.19.1",
        "lib/libLLVMSupport.so.19.1",
        "lib/libMLIRTestIR.so.19.1",
        "lib/libstdc++.so.6",
    }
    assert elf.needed((tmp_path / "ptoas/lib/libMLIRIR.so.19.1").read_bytes()) == ["libLLVMSupport.so.19.1"]
    assert (tmp_path / "ptoas/lib/libMLIRTestIR.so.19.1").read_bytes() == elf.empty_library("libMLIRTestIR.so.19.1")
    assert made.facts == {"empty_libraries": "1"}


def test_a_missing_library_that_ptoas_may_call_is_never_replaced(packages: Packages, tmp_path: Path) -> None:
    (wheel,) = packages.lock.sets["ptoas"].of("wheel")
    make_wheel(
        packages.folder / wheel.file,
        {"ptoas-0.1.1.data/scripts/ptoas": program("ptoas", ["libMLIRSCFDialect.so.19.1"])},
    )
    with pytest.raises(UnpackError, match=r"needs libMLIRSCFDialect\.so\.19\.1"):
        unpack(packages.relocked(), "ptoas", tmp_path / "ptoas")


def test_isa_set_puts_the_mended_header_in_front(packages: Packages, tmp_path: Path) -> None:
    made = unpack(packages, "isa", tmp_path / "isa")
    assert files(tmp_path / "isa") == {
        "set.json",
        "include/pto/pto-inst.hpp",
        "include/pto/cpu/TReduceIdx.hpp",
        "overlay/pto/cpu/TReduceIdx.hpp",
    }
    assert made.includes == ("overlay", "include", "include/pto")
    assert "static_assert(sizeof(DType) == 0" in (tmp_path / "isa/overlay/pto/cpu/TReduceIdx.hpp").read_text()
    assert "static_assert(false" in (tmp_path / "isa/include/pto/cpu/TReduceIdx.hpp").read_text()


def test_a_header_that_changed_is_not_mended_blindly(packages: Packages, tmp_path: Path) -> None:
    (wheel,) = packages.lock.sets["isa"].of("wheel")
    base = "tilelang/3rdparty/pto-isa/include/pto/"
    make_wheel(packages.folder / wheel.file, {f"{base}pto-inst.hpp": b"", f"{base}cpu/TReduceIdx.hpp": b"// other\n"})
    with pytest.raises(UnpackError, match="is not the header that the overlay mends"):
        unpack(packages.relocked(), "isa", tmp_path / "isa")
    assert files(tmp_path / "isa") == set()


def test_the_record_measures_the_tree(packages: Packages, tmp_path: Path) -> None:
    for name in ("gcc", "isa", "ptoas"):
        made = unpack(packages, name, tmp_path / name)
        assert measure(tmp_path / name) == (made.tree, made.files, made.size)
        assert read_set(tmp_path / name) == made
        assert (tmp_path / name / "set.json").read_bytes() == canonical_json(made.record())
    (tmp_path / "isa/include/pto/pto-inst.hpp").write_text("// changed\n")
    assert measure(tmp_path / "isa")[0] != read_set(tmp_path / "isa").tree


def test_a_package_with_an_unsafe_path_is_refused(tmp_path: Path) -> None:
    make_deb(tmp_path / "bad.deb", {"../../etc/passwd": b"x"})
    with pytest.raises(UnpackError, match=r"bad\.deb holds an unsafe path"):
        list(deb_members(tmp_path / "bad.deb", lambda path: True))


def test_a_damaged_package_is_named(tmp_path: Path) -> None:
    make_deb(tmp_path / "bad.deb", {"usr/a": random.Random(0).randbytes(4000)})
    data = (tmp_path / "bad.deb").read_bytes()
    (tmp_path / "bad.deb").write_bytes(data[:-2000])
    with pytest.raises(UnpackError, match=r"bad\.deb cannot be unpacked"):
        list(deb_members(tmp_path / "bad.deb", lambda path: True))
    (tmp_path / "bad.deb").write_bytes(b"!<arch>\n")
    with pytest.raises(UnpackError, match="no data member"):
        list(deb_members(tmp_path / "bad.deb", lambda path: True))
