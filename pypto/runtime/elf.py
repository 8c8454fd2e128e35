"""What a shared object's own headers say: machine, exported functions, GNU Build-ID. Reads bytes, loads nothing."""

from __future__ import annotations

import struct
from dataclasses import dataclass

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_NOTE = struct.Struct("<III")
_SHARED_OBJECT = 3
_DYNSYM, _SECTION_NOTE = 11, 7
_BUILD_ID = 3
_FUNCTION = 2

MACHINES = {62: "x86_64", 183: "aarch64"}


class NotASharedObject(ValueError):
    """The bytes are no complete 64-bit little-endian ELF shared object."""


@dataclass(frozen=True)
class SharedObjectFacts:
    """``machine`` as `platform.machine` spells it, exported functions, and the Build-ID in hex or ``None``."""

    machine: str
    functions: frozenset[str]
    build_id: str | None


def read_shared_object(data: bytes) -> SharedObjectFacts:
    """The facts of a shared object.

    Raises:
        NotASharedObject: something else, truncated or contradictory bytes; says which.
    """
    try:
        return _read(data)
    except (struct.error, IndexError, OverflowError):
        raise NotASharedObject("its ELF headers are truncated or contradict each other") from None


def _read(data: bytes) -> SharedObjectFacts:
    if data[:4] != b"\x7fELF":
        raise NotASharedObject("it is empty" if not data else "it is no ELF file")
    if data[4:6] != b"\x02\x01":
        raise NotASharedObject("it is no 64-bit little-endian ELF file")
    header = _HEADER.unpack_from(data)
    if header[1] != _SHARED_OBJECT:
        raise NotASharedObject("it is an ELF file, but no shared object")
    table, size, count = header[6], header[11], header[12]
    sections = [_SECTION.unpack_from(data, table + index * size) for index in range(count)]
    functions: set[str] = set()
    build_id = None
    for _, kind, _, _, offset, length, link, _, _, _ in sections:
        if kind in (_DYNSYM, _SECTION_NOTE) and offset + length > len(data):
            raise NotASharedObject("it is truncated")
        if kind == _DYNSYM:
            names = sections[link][4]
            for at in range(offset, offset + length - _SYMBOL.size + 1, _SYMBOL.size):
                name, info, _, section, _, _ = _SYMBOL.unpack_from(data, at)
                if section and info & 0xF == _FUNCTION:
                    begin = names + name
                    functions.add(data[begin : data.index(b"\0", begin)].decode("ascii", "replace"))
        elif kind == _SECTION_NOTE:
            build_id = _note(data[offset : offset + length]) or build_id
    return SharedObjectFacts(MACHINES.get(header[2], f"machine {header[2]}"), frozenset(functions), build_id)


def _note(notes: bytes) -> str | None:
    at = 0
    while at + _NOTE.size <= len(notes):
        name_size, value_size, kind = _NOTE.unpack_from(notes, at)
        value = at + _NOTE.size + (name_size + 3) // 4 * 4
        if kind == _BUILD_ID and notes[at + _NOTE.size : at + _NOTE.size + name_size] == b"GNU\0":
            return notes[value : value + value_size].hex() or None
        at = value + (value_size + 3) // 4 * 4
    return None
