"""What a binary's own headers say: machine, functions, size of its code, GNU Build-ID. Reads bytes, loads nothing."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from pypto.toolchain.elf import build_id_of_notes

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_EXECUTABLE, _SHARED_OBJECT = 2, 3
_SYMTAB, _DYNSYM, _SECTION_NOTE, _NO_BITS = 2, 11, 7, 8
_NO_TYPE, _FUNCTION = 0, 2

MACHINES = {62: "x86_64", 183: "aarch64"}


class NotASharedObject(ValueError):
    """The bytes are no complete 64-bit little-endian ELF shared object."""


class NotAProgram(ValueError):
    """The bytes are no complete 64-bit little-endian linked ELF program."""


@dataclass(frozen=True)
class SharedObjectFacts:
    """``machine`` as `platform.machine` spells it, exported functions, and the Build-ID in hex or ``None``."""

    machine: str
    functions: frozenset[str]
    build_id: str | None


@dataclass(frozen=True)
class ProgramFacts:
    """Defined symbols, bytes of ``.text``, and the Build-ID in hex or ``None``."""

    symbols: frozenset[str]
    text_size: int
    build_id: str | None


def read_shared_object(data: bytes) -> SharedObjectFacts:
    """The facts of a shared object.

    Raises:
        NotASharedObject: something else, truncated or contradictory bytes; says which.
    """
    try:
        elf = _Elf(data)
        if elf.kind != _SHARED_OBJECT:
            raise ValueError("it is an ELF file, but no shared object")
        functions = frozenset(elf.symbols(_DYNSYM, (_FUNCTION,)))
        return SharedObjectFacts(MACHINES.get(elf.machine, f"machine {elf.machine}"), functions, elf.build_id())
    except (struct.error, IndexError, OverflowError):
        raise NotASharedObject("its ELF headers are truncated or contradict each other") from None
    except ValueError as error:
        raise NotASharedObject(str(error)) from None


def read_program(data: bytes) -> ProgramFacts:
    """The facts of a linked program, for whatever machine.

    Raises:
        NotAProgram: something else, truncated or contradictory bytes; says which.
    """
    try:
        elf = _Elf(data)
        if elf.kind not in (_EXECUTABLE, _SHARED_OBJECT):
            raise ValueError("it is an ELF file, but it is not linked")
        symbols = frozenset(elf.symbols(_SYMTAB, (_NO_TYPE, _FUNCTION)))
        return ProgramFacts(symbols, elf.size(".text"), elf.build_id())
    except (struct.error, IndexError, OverflowError):
        raise NotAProgram("its ELF headers are truncated or contradict each other") from None
    except ValueError as error:
        raise NotAProgram(str(error)) from None


@dataclass(frozen=True)
class _Section:
    name: int
    kind: int
    offset: int
    length: int
    link: int


class _Elf:
    def __init__(self, data: bytes) -> None:
        if data[:4] != b"\x7fELF":
            raise ValueError("it is empty" if not data else "it is no ELF file")
        if data[4:6] != b"\x02\x01":
            raise ValueError("it is no 64-bit little-endian ELF file")
        header = _HEADER.unpack_from(data)
        self._data = data
        self.kind, self.machine = header[1], header[2]
        table, count, self._names = header[6], header[12], header[13]
        self._sections = []
        for index in range(count):
            name, kind, _, _, offset, length, link, _, _, _ = _SECTION.unpack_from(data, table + index * header[11])
            if kind != _NO_BITS and offset + length > len(data):
                raise ValueError("it is truncated")
            self._sections.append(_Section(name, kind, offset, length, link))

    def symbols(self, table: int, kinds: tuple[int, ...]) -> Iterator[str]:
        for section in self._sections:
            if section.kind != table:
                continue
            names = self._sections[section.link].offset
            for at in range(section.offset, section.offset + section.length - _SYMBOL.size + 1, _SYMBOL.size):
                name, info, _, home, _, _ = _SYMBOL.unpack_from(self._data, at)
                if home and info & 0xF in kinds:
                    yield self._text(names + name)

    def size(self, name: str) -> int:
        if not self._sections:
            return 0
        names = self._sections[self._names].offset
        return sum(s.length for s in self._sections if s.kind != _NO_BITS and self._text(names + s.name) == name)

    def build_id(self) -> str | None:
        notes = (self._data[s.offset : s.offset + s.length] for s in self._sections if s.kind == _SECTION_NOTE)
        return next((found for found in map(build_id_of_notes, notes) if found), None)

    def _text(self, at: int) -> str:
        return self._data[at : self._data.index(b"\0", at)].decode("ascii", "replace")
