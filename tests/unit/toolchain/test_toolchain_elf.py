"""ELF reading and writing without tools."""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from toolchain_stand_ins import program

from pypto.toolchain import elf


def test_empty_library_is_loaded_by_the_real_loader(tmp_path: Path) -> None:
    path = tmp_path / "libany.so"
    path.write_bytes(elf.empty_library("libMLIRTestIR.so.19.1"))
    ctypes.CDLL(str(path), mode=os.RTLD_NOW)
    assert elf.needed(path.read_bytes()) == []


def test_empty_library_satisfies_a_library_that_needs_it(tmp_path: Path) -> None:
    """The loader finds the empty library by file name and accepts it in place of the real one."""
    (tmp_path / "libempty.so.7").write_bytes(elf.empty_library("libempty.so.7"))
    code = "import ctypes, sys; ctypes.CDLL('libempty.so.7'); ctypes.CDLL('libempty.so.7'); print('loaded')"
    env = {"LD_LIBRARY_PATH": str(tmp_path), "PATH": "/nonexistent"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.stdout == "loaded\n", done.stderr


def test_empty_library_does_not_ask_for_an_executable_stack() -> None:
    data = elf.empty_library("liba.so.1")
    headers = [struct.unpack_from("<II", data, 64 + 56 * index) for index in range(3)]
    assert dict(headers)[0x6474E551] & 1 == 0


def test_empty_library_has_the_same_bytes_every_time() -> None:
    assert elf.empty_library("liba.so.1") == elf.empty_library("liba.so.1")
    assert elf.empty_library("liba.so.1") != elf.empty_library("libb.so.1")


def test_needed_lists_names_in_order() -> None:
    assert elf.needed(program("x", ["libb.so.1", "liba.so.1"])) == ["libb.so.1", "liba.so.1"]


def test_rename_libraries_changes_own_and_needed_names() -> None:
    data = program("libX-0123abcd.so.19.1", ["libY-89ab4567.so.19.1", "libc.so.6"])
    names = {"libX-0123abcd.so.19.1": "libX.so.19.1", "libY-89ab4567.so.19.1": "libY.so.19.1"}
    renamed = elf.rename_libraries(data, names)
    assert elf.needed(renamed) == ["libY.so.19.1", "libc.so.6"]
    assert len(renamed) == len(data)
    assert b"0123abcd" not in renamed and b"libX.so.19.1\0" in renamed


def test_rename_libraries_refuses_a_longer_name() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        elf.rename_libraries(program("a", ["libc.so.6"]), {"libc.so.6": "libc-long.so.6"})


def test_build_id_is_found_among_other_notes() -> None:
    """Build a note by hand: the reader must find it among others."""
    other = struct.pack("<III", 4, 4, 5) + b"GNU\0" + b"\1\2\3\4"
    note = other + struct.pack("<III", 4, 20, 3) + b"GNU\0" + bytes(range(20))
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01" + bytes(9), 3, 62, 1, 0, 64, 0, 0, 64, 56, 1, 64, 0, 0
    )
    segment = struct.pack("<IIQQQQQQ", 4, 4, 120, 120, 120, len(note), len(note), 4)
    assert elf.build_id(header + segment + note) == bytes(range(20)).hex()
    assert elf.build_id(elf.empty_library("liba.so.1")) is None


@pytest.mark.parametrize("cut", [10, 64, 100])
def test_a_truncated_file_is_not_elf(cut: int) -> None:
    with pytest.raises(elf.NotElf):
        elf.needed(elf.empty_library("liba.so.1")[:cut])
