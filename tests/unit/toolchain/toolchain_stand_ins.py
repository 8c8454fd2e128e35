"""Small stand-ins for the locked packages: same names and layout, no compiler and no network."""

from __future__ import annotations

import hashlib
import io
import struct
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pypto.toolchain import elf
from pypto.toolchain.lock import Lock, LockedFile, LockedSet, load_lock

LIB = "usr/lib/x86_64-linux-gnu"
GCC = "usr/lib/gcc/x86_64-linux-gnu/12"
SCRIPT = (
    b"/* GNU ld script */\nOUTPUT_FORMAT(elf64-x86-64)\n"
    b"GROUP ( /lib/x86_64-linux-gnu/libc.so.6 /usr/lib/x86_64-linux-gnu/libc_nonshared.a "
    b" AS_NEEDED ( /lib64/ld-linux-x86-64.so.2 ) )\n"
)


def program(name: str, needs: list[str]) -> bytes:
    """A 64-bit ELF file that names the libraries it needs: an empty library whose dynamic section is extended."""
    return elf.empty_library(name) if not needs else _with_needed(name, needs)


def _with_needed(name: str, needs: list[str]) -> bytes:
    """As `elf.empty_library`, with DT_NEEDED entries; by hand, so that the code under test does not test itself."""
    strings = b"\0" + b"".join(text.encode() + b"\0" for text in [name, *needs])
    offsets, at = [], 1
    for text in [name, *needs]:
        offsets.append(at)
        at += len(text) + 1
    base = 64 + 2 * 56
    dynamic_at = (base + len(strings) + 7) & ~7
    entries = [(14, offsets[0]), *((1, offset) for offset in offsets[1:]), (5, base), (10, len(strings)), (0, 0)]
    dynamic = b"".join(struct.pack("<qQ", *entry) for entry in entries)
    size = dynamic_at + len(dynamic)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01" + bytes(9), 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 64, 0, 0
    )
    load = struct.pack("<IIQQQQQQ", 1, 6, 0, 0, 0, size, size, 4096)
    section = struct.pack("<IIQQQQQQ", 2, 6, dynamic_at, dynamic_at, dynamic_at, len(dynamic), len(dynamic), 8)
    return (header + load + section + strings).ljust(dynamic_at, b"\0") + dynamic


def make_deb(path: Path, files: Mapping[str, bytes | str]) -> None:
    """A Debian package; a str value is a symbolic link's target."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:xz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo("./" + name)
            if isinstance(content, str):
                entry.type, entry.linkname = tarfile.SYMTYPE, content
                archive.addfile(entry)
            else:
                entry.size, entry.mode = len(content), 0o755
                archive.addfile(entry, io.BytesIO(content))
    members = [("debian-binary", b"2.0\n"), ("control.tar.xz", b"odd"), ("data.tar.xz", data.getvalue())]
    out = b"!<arch>\n"
    for name, content in members:
        out += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode() + content
        out += b"\n" * (len(content) % 2)
    path.write_bytes(out)


def make_wheel(path: Path, files: Mapping[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content in files.items():
            wheel.writestr(name, content)


@dataclass
class Packages:
    """A folder of stand-in packages and the lock that names them."""

    folder: Path
    lock: Lock

    def relocked(self) -> Packages:
        """The same with a lock that fits what the files hold now."""
        return Packages(self.folder, _lock(self.folder))


def make_packages(folder: Path) -> Packages:
    """Write stand-ins of all locked packages into an existing folder."""
    real = load_lock()
    gcc_files: dict[str, dict[str, bytes | str]] = {file.name: {} for file in real.sets["gcc"].files}
    gcc_files["g++-12"] = {
        "usr/bin/x86_64-linux-gnu-g++-12": program("g++", []),
        f"{GCC}/cc1plus": program("cc1plus", ["libisl.so.23", "libc.so.6"]),
        "usr/share/doc/g++-12/copyright": b"left out",
    }
    gcc_files["gcc-12"] = {f"{GCC}/collect2": program("collect2", []), f"{GCC}/lto1": b"left out"}
    gcc_files["binutils-x86-64-linux-gnu"] = {
        "usr/bin/x86_64-linux-gnu-as": program("as", []),
        "usr/bin/x86_64-linux-gnu-ld.bfd": program("ld", []),
    }
    gcc_files["libisl23"] = {
        f"{LIB}/libisl.so.23": "libisl.so.23.2.0",
        f"{LIB}/libisl.so.23.2.0": program("libisl.so.23", ["libgmp.so.10"]),
    }
    gcc_files["libgmp10"] = {
        f"{LIB}/libgmp.so.10": "libgmp.so.10.4.1",
        f"{LIB}/libgmp.so.10.4.1": program("libgmp.so.10", []),
    }
    gcc_files["libc6"] = {"lib/x86_64-linux-gnu/libc.so.6": program("libc.so.6", [])}
    gcc_files["libc6-dev"] = {f"{LIB}/libc.so": SCRIPT, f"{LIB}/libm.so": SCRIPT, "usr/include/stdio.h": b"// stdio\n"}
    gcc_files["libstdc++6"] = {
        f"{LIB}/libstdc++.so.6": "libstdc++.so.6.0.30",
        f"{LIB}/libstdc++.so.6.0.30": program("libstdc++.so.6", []),
    }
    for locked in real.sets.values():
        for file in locked.of("deb"):
            if not (folder / file.file).exists():
                make_deb(folder / file.file, gcc_files.get(file.name, {}))
    (isa,) = real.sets["isa"].of("wheel")
    base = "tilelang/3rdparty/pto-isa/include/"
    make_wheel(
        folder / isa.file,
        {
            f"{base}README.md": b"left out",
            f"{base}pto/pto-inst.hpp": b"// all\n",
            f"{base}pto/cpu/TReduceIdx.hpp": b'    static_assert(false, "Unsupport element cmp.");\n',
            "tilelang/other.py": b"left out",
        },
    )
    (ptoas,) = real.sets["ptoas"].of("wheel")
    make_wheel(
        folder / ptoas.file,
        {
            "ptoas-0.1.1.data/scripts/ptoas": program(
                "ptoas", ["libMLIRIR.so.19.1", "libMLIRTestIR.so.19.1", "libstdc++.so.6", "libc.so.6"]
            ),
            "ptoas.libs/libMLIRIR-0123abcd.so.19.1": program(
                "libMLIRIR-0123abcd.so.19.1", ["libLLVMSupport-89ab4567.so.19.1"]
            ),
            "ptoas.libs/libLLVMSupport-89ab4567.so.19.1": program("libLLVMSupport-89ab4567.so.19.1", []),
            "ptoas.libs/libLLVMUnused-89ab4567.so.19.1": program("libLLVMUnused-89ab4567.so.19.1", []),
        },
    )
    return Packages(folder, _lock(folder))


def _lock(folder: Path) -> Lock:
    return Lock({locked.name: _relock(locked, folder) for locked in load_lock().sets.values()})


def _relock(locked: LockedSet, folder: Path) -> LockedSet:
    files: list[LockedFile] = []
    for file in locked.files:
        data = (folder / file.file).read_bytes()
        files.append(replace(file, sha256=hashlib.sha256(data).hexdigest(), size=len(data)))
    return replace(locked, files=tuple(files))
