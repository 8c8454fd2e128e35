"""All files that a native program is loaded from, as the dynamic loader itself lists them."""

from __future__ import annotations

import functools
import os
import re
import struct
import sys
from collections.abc import Iterable

from pypto._identity.host.files import Unidentified, is_elf, read_small
from pypto._identity.host.probes import Probes

_PT_INTERP, _PT_DYNAMIC = 3, 2
_LISTED = re.compile(r"\s*(?:(\S+) => )?(/\S.*?) \(0x[0-9a-f]+\)")
_MISSING = re.compile(
    r"^\s*(\S+) => not found$|loading shared libraries: (\S+): cannot open shared object", re.MULTILINE
)
_MAX_INTERP = 4096


def closure(programs: Iterable[str], probes: Probes) -> list[str]:
    """Paths of the native files `programs`, all libraries they are loaded with, and the loader; sorted.

    Raises:
        Unidentified: a library is not found, or a program cannot be examined.
    """
    found: set[str] = set()
    questions: list[tuple[str, list[str]]] = []
    for path in sorted(set(programs)):
        found.add(path)
        loader, dynamic = _headers(path)
        if dynamic:
            loader = loader or _own_loader()
            found.add(loader)
            questions.append((path, [loader, "--list", os.path.abspath(path)]))
    for (path, _), answer in zip(questions, probes([command for _, command in questions]), strict=True):
        text = answer.stdout.decode("utf-8", "surrogateescape")
        missing = _MISSING.search(f"{text}\n{answer.stderr.decode('utf-8', 'surrogateescape')}")
        if missing:
            raise Unidentified(f"{path} needs {missing[1] or missing[2]}, which is not found")
        if answer.status != 0:
            raise Unidentified(f"the libraries of {path} cannot be listed")
        found |= {match[2] for line in text.splitlines() if (match := _LISTED.fullmatch(line))}
    return sorted(found)


def _headers(path: str) -> tuple[str | None, bool]:
    """(loader that the file names, whether it is dynamically linked)."""
    if not is_elf(path):
        raise Unidentified(f"{path}: no ELF file")
    try:
        with open(path, "rb") as file:
            head = file.read(64)
            wide, order = head[4] == 2, "<" if head[5] == 1 else ">"
            table, entry, count = _program_table(head, wide, order)
            file.seek(table)
            headers = file.read(entry * count)
            loader, dynamic = None, False
            for at in range(0, len(headers), entry):
                kind, offset, size = _program_header(headers, at, wide, order)
                dynamic = dynamic or kind == _PT_DYNAMIC
                if kind == _PT_INTERP and size <= _MAX_INTERP:
                    file.seek(offset)
                    loader = os.fsdecode(file.read(size).rstrip(b"\0"))
            return loader, dynamic
    except (OSError, struct.error, IndexError, ValueError) as error:
        raise Unidentified(f"{path}: its program headers cannot be read: {error}") from None


def _program_table(head: bytes, wide: bool, order: str) -> tuple[int, int, int]:
    if wide:
        (table,), (entry, count) = struct.unpack_from(order + "Q", head, 32), struct.unpack_from(order + "HH", head, 54)
    else:
        (table,), (entry, count) = struct.unpack_from(order + "I", head, 28), struct.unpack_from(order + "HH", head, 42)
    if count and entry < (56 if wide else 32):
        raise ValueError("impossible table of headers")
    return table, entry, count


def _program_header(headers: bytes, at: int, wide: bool, order: str) -> tuple[int, int, int]:
    if wide:
        kind, _, offset, _, _, size = struct.unpack_from(order + "IIQQQQ", headers, at)
    else:
        kind, offset, _, _, size = struct.unpack_from(order + "IIIII", headers, at)
    return kind, offset, size


@functools.lru_cache(maxsize=1)
def _own_loader() -> str:
    """The loader of the running interpreter, with which a library without one of its own is listed."""
    loader, _ = _headers(os.path.realpath(sys.executable))
    if loader is None:
        raise Unidentified("the running interpreter names no dynamic loader")
    return loader


def script_interpreter(path: str) -> str | None:
    """The program that a script's first line names; None for no such line."""
    first = read_small(path, 1 << 24).partition(b"\n")[0]
    words = first[2:].split() if first.startswith(b"#!") else []
    return os.fsdecode(words[0]) if words else None
