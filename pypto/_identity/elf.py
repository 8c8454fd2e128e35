"""GNU Build-ID of an ELF file, read with a few small reads and no tool."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path

from pypto.toolchain.elf import NotElf, build_id_of_notes

_PT_NOTE = 4
_SHT_NOTE = 7
_PN_XNUM = 0xFFFF
_MAX_NOTES = 1 << 20
_MAX_HEADERS = 1 << 16


class MalformedElf(ValueError):
    """The file begins like an ELF file but its headers contradict its size or each other."""


@dataclass(frozen=True)
class _Layout:
    order: str
    header: str
    program: str
    program_fields: tuple[int, int, int]
    section: str
    section_fields: tuple[int, int, int]


def read_build_id(path: str | os.PathLike[str]) -> str | None:
    """The GNU Build-ID as lower-case hexadecimal digits; None for no ELF file, or one without Build-ID.

    Raises:
        MalformedElf: a truncated or contradictory ELF file.
        OSError: the file cannot be read.
    """
    with Path(path).open("rb", buffering=0) as file:
        return _Reader(file.fileno(), os.fspath(path)).build_id()


class _Reader:
    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor = descriptor
        self._name = name
        self._size = os.fstat(descriptor).st_size

    def build_id(self) -> str | None:
        ident = os.pread(self._descriptor, 16, 0)
        if ident[:4] != b"\x7fELF":
            return None
        if len(ident) < 16 or ident[4] not in (1, 2) or ident[5] not in (1, 2):
            raise MalformedElf(f"{self._name}: unknown ELF class or byte order")
        layout = _layout(wide=ident[4] == 2, order="<" if ident[5] == 1 else ">")
        fields = self._unpack(layout.order + layout.header, 16)
        program_offset, section_offset = fields[4], fields[5]
        program_size, program_count, section_size, section_count = fields[8], fields[9], fields[10], fields[11]
        if program_count == _PN_XNUM:
            raise MalformedElf(f"{self._name}: too many program headers")
        for kind, table, entry_size, count, entry, places in (
            (_PT_NOTE, program_offset, program_size, program_count, layout.program, layout.program_fields),
            (_SHT_NOTE, section_offset, section_size, section_count, layout.section, layout.section_fields),
        ):
            if not table or not count:
                continue
            form = layout.order + entry
            if entry_size < struct.calcsize(form) or count > _MAX_HEADERS:
                raise MalformedElf(f"{self._name}: impossible table of headers")
            for index in range(count):
                values = self._unpack(form, table + index * entry_size)
                kind_at, offset_at, size_at = places
                if values[kind_at] == kind:
                    found = self._notes(layout.order, values[offset_at], values[size_at])
                    if found is not None:
                        return found
        return None

    def _notes(self, order: str, offset: int, size: int) -> str | None:
        if size > _MAX_NOTES:
            raise MalformedElf(f"{self._name}: notes of {size} bytes")
        try:
            return build_id_of_notes(self._read(offset, size), order)
        except NotElf as error:
            raise MalformedElf(f"{self._name}: {error}") from None

    def _unpack(self, form: str, offset: int) -> tuple[int, ...]:
        return struct.unpack(form, self._read(offset, struct.calcsize(form)))

    def _read(self, offset: int, size: int) -> bytes:
        if offset + size > self._size:
            raise MalformedElf(f"{self._name}: truncated: {size} bytes at {offset} of {self._size}")
        data = os.pread(self._descriptor, size, offset)
        if len(data) != size:
            raise MalformedElf(f"{self._name}: truncated while it was being read")
        return data


def _layout(*, wide: bool, order: str) -> _Layout:
    # Header fields after e_ident; (type, offset, size) positions in the program and section headers.
    if wide:
        return _Layout(order, "HHIQQQIHHHHHH", "IIQQQQQQ", (0, 2, 5), "IIQQQQIIQQ", (1, 4, 5))
    return _Layout(order, "HHIIIIIHHHHHH", "IIIIIIII", (0, 1, 4), "IIIIIIIIII", (1, 4, 5))
