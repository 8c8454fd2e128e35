"""Reading Debian packages and wheels with the standard library alone."""

from __future__ import annotations

import posixpath
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pypto.toolchain.errors import UnpackError

_AR_MAGIC = b"!<arch>\n"


@dataclass(frozen=True)
class Member:
    """A file of an archive: normalised relative path, bytes, executable bit; for a link the path it leads to."""

    path: str
    data: bytes
    executable: bool
    link: str | None = None


def deb_members(path: Path, wanted: Callable[[str], bool]) -> Iterator[Member]:
    """Files and links of a Debian package whose path `wanted` accepts.

    Raises:
        UnpackError: the package is damaged, or holds an unsafe path.
    """
    try:
        with open(path, "rb") as package:
            name, start, _ = _data_member(package)
            package.seek(start)
            with tarfile.open(fileobj=package, mode="r|xz" if name.endswith(".xz") else "r|*") as archive:
                for entry in archive:
                    inside = _inside(entry.name, path)
                    if not wanted(inside):
                        continue
                    if entry.issym():
                        folder = posixpath.dirname(inside)
                        leads = posixpath.normpath(posixpath.join("/" + folder, entry.linkname)).lstrip("/")
                        yield Member(inside, b"", False, leads)
                    elif entry.islnk():
                        yield Member(inside, b"", False, _inside(entry.linkname, path))
                    elif entry.isreg():
                        content = archive.extractfile(entry)
                        assert content is not None
                        yield Member(inside, content.read(), bool(entry.mode & 0o100))
    except (OSError, EOFError, tarfile.TarError) as error:
        raise UnpackError(f"{path.name} cannot be unpacked: {error}") from None


def wheel_members(path: Path, wanted: Callable[[str], bool]) -> Iterator[Member]:
    """Files of a wheel whose path `wanted` accepts, by path.

    Raises:
        UnpackError: the wheel is damaged, or holds an unsafe path.
    """
    try:
        with zipfile.ZipFile(path) as wheel:
            for entry in sorted(wheel.infolist(), key=lambda info: info.filename):
                inside = _inside(entry.filename, path)
                if not entry.is_dir() and wanted(inside):
                    yield Member(inside, wheel.read(entry), bool(entry.external_attr >> 16 & 0o100))
    except (OSError, zipfile.BadZipFile, NotImplementedError) as error:
        raise UnpackError(f"{path.name} cannot be unpacked: {error}") from None


def _data_member(package: BinaryIO) -> tuple[str, int, int]:
    """Name, offset and size of the `data.tar.*` member of a Debian package (an `ar` archive)."""
    if package.read(len(_AR_MAGIC)) != _AR_MAGIC:
        raise tarfile.ReadError("not a Debian package")
    at = len(_AR_MAGIC)
    while len(header := package.read(60)) == 60 and header[58:] == b"`\n":
        name, size = header[:16].decode("ascii").strip().rstrip("/"), int(header[48:58])
        at += 60
        if name.startswith("data.tar"):
            return name, at, size
        at += size + size % 2
        package.seek(at)
    raise tarfile.ReadError("no data member")


def _inside(name: str, archive: Path) -> str:
    path = posixpath.normpath(name)
    if path.startswith(("/", "../")) or path == "..":
        raise UnpackError(f"{archive.name} holds an unsafe path: {name}")
    return path
