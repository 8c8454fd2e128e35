"""Build-IDs of ELF files."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from pypto._identity.elf import MalformedElf, read_build_id

BUILD_ID = bytes(range(20))


def note(order: str, owner: bytes, kind: int, value: bytes) -> bytes:
    def padded(data: bytes) -> bytes:
        return data + b"\0" * (-len(data) % 4)

    return struct.pack(order + "III", len(owner), len(value), kind) + padded(owner) + padded(value)


def elf(*, wide: bool, order: str, notes: bytes, sections: bool = False) -> bytes:
    """A minimal ELF file with one note segment (or section)."""
    header_size = 64 if wide else 52
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2, 1]) + b"\0" * 9
    form = order + ("HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH")
    if sections:
        entry = order + ("IIQQQQIIQQ" if wide else "IIIIIIIIII")
        table = struct.pack(entry, 0, 7, 0, 0, header_size + struct.calcsize(entry), len(notes), 0, 0, 4, 0)
        places = (0, header_size)
        counts = (0, 0, len(table), 1)
    elif wide:
        at = header_size + 56
        table = struct.pack(order + "IIQQQQQQ", 4, 4, at, 0, 0, len(notes), len(notes), 4)
        places, counts = (header_size, 0), (56, 1, 0, 0)
    else:
        at = header_size + 32
        table = struct.pack(order + "IIIIIIII", 4, at, 0, 0, len(notes), len(notes), 4, 4)
        places, counts = (header_size, 0), (32, 1, 0, 0)
    header = struct.pack(form, 3, 62, 1, 0, *places, 0, header_size, *counts, 0)
    return ident + header + table + notes


@pytest.mark.parametrize("sections", [False, True])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("wide", [True, False])
def test_all_classes_and_byte_orders(tmp_path: Path, wide: bool, order: str, sections: bool) -> None:
    notes = note(order, b"Xen\0", 3, b"other") + note(order, b"GNU\0", 1, b"abi.") + note(order, b"GNU\0", 3, BUILD_ID)
    (tmp_path / "f").write_bytes(elf(wide=wide, order=order, notes=notes, sections=sections))
    assert read_build_id(tmp_path / "f") == BUILD_ID.hex()


def test_files_without_a_build_id(tmp_path: Path) -> None:
    for data in (b"", b"\x7fEL", b"#!/bin/sh\n", elf(wide=True, order="<", notes=note("<", b"GNU\0", 1, b"abi."))):
        (tmp_path / "f").write_bytes(data)
        assert read_build_id(tmp_path / "f") is None


def test_every_truncation_is_an_error_or_nothing_but_never_another_id(tmp_path: Path) -> None:
    whole = elf(wide=True, order="<", notes=note("<", b"GNU\0", 3, BUILD_ID))
    errors = 0
    for size in range(len(whole)):
        (tmp_path / "f").write_bytes(whole[:size])
        try:
            assert read_build_id(tmp_path / "f") is None
        except MalformedElf:
            errors += 1
    assert errors > 50


def test_every_changed_byte_ends_in_a_value_or_a_clear_error(tmp_path: Path) -> None:
    whole = elf(wide=False, order=">", notes=note(">", b"GNU\0", 3, BUILD_ID))
    for index in range(len(whole)):
        damaged = bytearray(whole)
        damaged[index] ^= 0xFF
        (tmp_path / "f").write_bytes(damaged)
        try:
            read_build_id(tmp_path / "f")
        except MalformedElf as error:
            assert str(tmp_path / "f") in str(error)
