"""The few things the toolchain does with ELF files, for 64-bit little-endian ones; no tool needed.

Reads a program's Build-ID and the libraries it asks for, gives renamed libraries their first names back, and writes
empty shared objects.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_PROGRAM = struct.Struct("<IIQQQQQQ")
_DYNAMIC = struct.Struct("<qQ")

_PT_LOAD, _PT_DYNAMIC, _PT_NOTE = 1, 2, 4
_DT_NEEDED, _DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ, _DT_SYMENT, _DT_SONAME = 1, 4, 5, 6, 10, 11, 14
_NT_GNU_BUILD_ID = 3
_MACHINES = {"x86_64": 62, "aarch64": 183}


class NotElf(ValueError):
    """The bytes are no well-formed 64-bit little-endian ELF file."""


@dataclass(frozen=True)
class _Segment:
    kind: int
    flags: int
    offset: int
    address: int
    size: int


def is_elf(data: bytes) -> bool:
    return data[:4] == b"\x7fELF"


def build_id(data: bytes) -> str | None:
    """The GNU Build-ID in hex, or None if the file carries none."""
    notes = (data[s.offset : s.offset + s.size] for s in _segments(data) if s.kind == _PT_NOTE)
    return next((found for found in map(build_id_of_notes, notes) if found), None)


def build_id_of_notes(notes: bytes, order: str = "<") -> str | None:
    """The GNU Build-ID in hex among the notes of one segment or section; None if there is none.

    Args:
        order: byte order as `struct` spells it.

    Raises:
        NotElf: the Build-ID is empty or truncated.
    """
    at = 0
    while at + 12 <= len(notes):
        name_size, size, kind = struct.unpack_from(f"{order}III", notes, at)
        name_at = at + 12
        body_at = name_at + _round4(name_size)
        if kind == _NT_GNU_BUILD_ID and notes[name_at : name_at + name_size] == b"GNU\0":
            if not size or body_at + size > len(notes):
                raise NotElf("the Build-ID note is empty or truncated")
            return notes[body_at : body_at + size].hex()
        # Notes of other owners may be aligned to 8 bytes; among those no Build-ID is found.
        at = body_at + _round4(size)
    return None


def needed(data: bytes) -> list[str]:
    """The libraries that the file asks the loader for, in its order."""
    return [_text(data, at) for kind, at in _dynamic_strings(data) if kind == _DT_NEEDED]


def rename_libraries(data: bytes, names: Mapping[str, str]) -> bytes:
    """`data` with every library name it carries (own and needed) replaced by `names`, where listed.

    A new name may not be longer than the old one: names are replaced in place, the rest is filled with zeros.
    """
    out = bytearray(data)
    for _, at in _dynamic_strings(data):
        old = _text(data, at)
        if (new := names.get(old)) is None or new == old:
            continue
        if len(new) > len(old):
            raise ValueError(f"{new} does not fit into the place of {old}")
        out[at : at + len(old)] = new.encode("ascii").ljust(len(old), b"\0")
    return bytes(out)


def empty_library(soname: str, machine: str = "x86_64") -> bytes:
    """A shared object that defines and needs nothing and is known as `soname`; the same bytes on every host."""
    strings = b"\0" + soname.encode("ascii") + b"\0"
    symbols = bytes(24)  # the obligatory null symbol
    table = struct.pack("<IIII", 1, 1, 0, 0)  # one bucket, one chain, both empty
    programs = 3
    at = _HEADER.size + programs * _PROGRAM.size
    symbols_at = at
    table_at = symbols_at + len(symbols)
    strings_at = table_at + len(table)
    dynamic_at = (strings_at + len(strings) + 7) & ~7
    dynamic = b"".join(
        _DYNAMIC.pack(kind, value)
        for kind, value in (
            (_DT_SONAME, 1),
            (_DT_HASH, table_at),
            (_DT_STRTAB, strings_at),
            (_DT_SYMTAB, symbols_at),
            (_DT_STRSZ, len(strings)),
            (_DT_SYMENT, 24),
            (0, 0),
        )
    )
    size = dynamic_at + len(dynamic)
    ident = b"\x7fELF" + bytes((2, 1, 1, 0)) + bytes(8)
    header = _HEADER.pack(
        ident, 3, _MACHINES[machine], 1, 0, _HEADER.size, 0, 0, _HEADER.size, _PROGRAM.size, programs, 64, 0, 0
    )
    readable, writable = 4, 6
    # The loader writes into the dynamic section, so the one segment is writable.
    load = _PROGRAM.pack(_PT_LOAD, writable, 0, 0, 0, size, size, 0x1000)
    section = _PROGRAM.pack(_PT_DYNAMIC, writable, dynamic_at, dynamic_at, dynamic_at, len(dynamic), len(dynamic), 8)
    # Without this header the loader takes the object to ask for an executable stack.
    stack = _PROGRAM.pack(0x6474E551, readable | 2, 0, 0, 0, 0, 0, 16)
    body = header + load + section + stack + symbols + table + strings
    return body.ljust(dynamic_at, b"\0") + dynamic


def _segments(data: bytes) -> list[_Segment]:
    if len(data) < _HEADER.size or data[:6] != b"\x7fELF\x02\x01":
        raise NotElf("not a 64-bit little-endian ELF file")
    fields = _HEADER.unpack_from(data)
    start, size, count = fields[5], fields[9], fields[10]
    if count and size != _PROGRAM.size:
        raise NotElf("the program header has an unknown size")
    if start + size * count > len(data):
        raise NotElf("the program headers are truncated")
    found = []
    for index in range(count):
        kind, flags, offset, address, _, in_file, _, _ = _PROGRAM.unpack_from(data, start + index * size)
        if kind in (_PT_LOAD, _PT_DYNAMIC, _PT_NOTE) and offset + in_file > len(data):
            raise NotElf("a segment is truncated")
        found.append(_Segment(kind, flags, offset, address, in_file))
    return found


def _dynamic_strings(data: bytes) -> Iterator[tuple[int, int]]:
    """(kind, file offset) of every library name in the dynamic section."""
    segments = _segments(data)
    dynamic = next((s for s in segments if s.kind == _PT_DYNAMIC), None)
    if dynamic is None:
        return
    entries = []
    for at in range(dynamic.offset, dynamic.offset + dynamic.size - _DYNAMIC.size + 1, _DYNAMIC.size):
        kind, value = _DYNAMIC.unpack_from(data, at)
        if kind == 0:
            break
        entries.append((kind, value))
    address = dict(entries).get(_DT_STRTAB)
    if address is None:
        raise NotElf("the dynamic section names no strings")
    strings = next(
        (s.offset + address - s.address for s in segments if s.kind == _PT_LOAD and 0 <= address - s.address < s.size),
        None,
    )
    if strings is None:
        raise NotElf("the dynamic strings lie outside the file")
    for kind, value in entries:
        if kind in (_DT_NEEDED, _DT_SONAME):
            yield kind, strings + value


def _text(data: bytes, at: int) -> str:
    end = data.find(b"\0", at)
    if end < 0:
        raise NotElf("a dynamic string has no end")
    return data[at:end].decode("ascii")


def _round4(size: int) -> int:
    return (size + 3) & ~3
