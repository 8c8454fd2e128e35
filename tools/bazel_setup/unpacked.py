"""Make unpacked Debian packages run where they lie.

The programs are newer than the machine's C library. So their ELF interpreter and library search path are
pointed into the tree itself, and it is checked that every library they load is found there.
"""

from __future__ import annotations

import os
import shutil
import stat
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

from .common import Failure, run

DISPENSABLE = (
    "usr/share/man",
    "usr/share/locale",
    "usr/share/lintian",
    "usr/share/maven-repo",
    "usr/share/info",
    "usr/share/gdb",
    "usr/share/bug",
    "usr/include",
    "var",
)


class Machine(NamedTuple):
    """How Debian names one machine type."""

    arch: str
    triplet: str
    loader: str


MACHINES = {
    "x86_64": Machine("amd64", "x86_64-linux-gnu", "ld-linux-x86-64.so.2"),
    "aarch64": Machine("arm64", "aarch64-linux-gnu", "ld-linux-aarch64.so.1"),
}


def unpack(debs: Iterable[Path], root: Path) -> None:
    root.mkdir(parents=True)
    for part in ("bin", "lib", "lib64", "sbin"):  # the merged layout the packages assume
        (root / "usr" / part).mkdir(parents=True, exist_ok=True)
        (root / part).symlink_to(f"usr/{part}")
    for deb in debs:
        run(["dpkg-deb", "-x", deb, root])


def prune(root: Path) -> None:
    """Drop what no run of Bazel reads; licences stay."""
    for part in DISPENSABLE:
        shutil.rmtree(root / part, ignore_errors=True)
    for path in (root / "usr/share/doc").glob("*/*"):
        if path.name != "copyright":
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    for part in ("gconv", "perl-base"):
        for path in (root / "usr/lib").glob(f"*/{part}"):
            shutil.rmtree(path, ignore_errors=True)
    # Class data archives for unusual JVM flags; classes.jsa, the usual one, stays.
    for path in (root / "usr/lib/jvm").glob("*/lib/server/classes_*.jsa"):
        path.unlink()


def relink(root: Path) -> None:
    """Make absolute symlinks to something inside the tree relative, or they would lead into the host."""
    for folder, dirs, files in os.walk(root):
        for name in dirs + files:
            path = Path(folder, name)
            if not path.is_symlink() or not os.readlink(path).startswith("/"):
                continue
            target = os.readlink(path)
            inside = root / target.lstrip("/")
            if inside.exists() or inside.is_symlink() or target.startswith("/etc/ssl"):
                path.unlink()
                path.symlink_to(os.path.relpath(inside, path.parent))


def elf_kind(path: Path) -> Literal["program", "library"] | None:
    """Whether the loader starts this file or loads it into a program; 64-bit little-endian only."""
    with open(path, "rb") as file:
        head = file.read(64)
        if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
            return None
        (kind,) = struct.unpack_from("<H", head, 16)
        (offset,) = struct.unpack_from("<Q", head, 32)
        size, count = struct.unpack_from("<HH", head, 54)
        if kind not in (2, 3) or not count:  # ET_EXEC, ET_DYN
            return None
        file.seek(offset)
        table = file.read(size * count)
    types = {struct.unpack_from("<I", table, i * size)[0] for i in range(count)}
    if 3 in types:  # PT_INTERP
        return "program"
    return "library" if 2 in types else None  # PT_DYNAMIC


def java_home(root: Path) -> Path:
    homes = sorted((root / "usr/lib/jvm").glob("java-*-openjdk-*"))
    found = next((p for p in homes if p.is_dir() and not p.is_symlink()), None)
    if found is None:
        raise Failure("the suite's Java package has an unknown layout\n  name an installed Bazel with PYPTO_BAZEL")
    return found


def patch(root: Path, final: Path, machine: Machine, tool_root: Path) -> int:
    """Point every program and library into the tree, which will lie at `final`. Returns how many.

    patchelf comes from the suite as well, and runs through the tree's own loader.
    """
    libs = root / "usr/lib" / machine.triplet
    tool_libs = tool_root / "usr/lib" / machine.triplet
    tool: list[str | Path] = [
        libs / machine.loader,
        "--library-path",
        f"{libs}:{tool_libs}",
        tool_root / "usr/bin/patchelf",
    ]
    jvm = java_home(root)
    count = 0
    for base in (root / "usr/bin/bazel", root / "usr/libexec" / machine.triplet / "bazel", jvm):
        for path in [base] if base.is_file() else sorted(base.rglob("*")):
            kind = None if path.is_symlink() or not path.is_file() else elf_kind(path)
            if not kind:
                continue
            search = [libs]
            if jvm in path.parents:
                search = [path.parent, jvm / "lib", jvm / "lib/server", libs]
            rpath = ":".join(f"$ORIGIN/{os.path.relpath(s, path.parent)}" for s in search)
            mode = path.stat().st_mode
            path.chmod(mode | stat.S_IWUSR)
            run([*tool, "--force-rpath", "--set-rpath", rpath, path])
            if kind == "program":
                run([*tool, "--set-interpreter", final / "root/usr/lib" / machine.triplet / machine.loader, path])
            path.chmod(mode)
            count += 1
    return count


def check_libraries(root: Path, machine: Machine) -> None:
    """Every program finds all its libraries inside the tree, none on the host."""
    libs = root / "usr/lib" / machine.triplet
    jvm = java_home(root)
    programs = [
        root / "usr/bin/bazel",
        *sorted((root / "usr/libexec" / machine.triplet / "bazel").iterdir()),
        jvm / "bin/java",
        jvm / "lib/jspawnhelper",
        *(jvm / "lib" / name for name in ("server/libjvm.so", "libnio.so", "libnet.so", "libzip.so")),
    ]
    search = f"{libs}:{jvm / 'lib'}:{jvm / 'lib/server'}"
    for path in programs:
        said = run([libs / machine.loader, "--library-path", search, "--list", path], check=False)
        bad = [
            line.strip()
            for line in said.stdout.splitlines()
            if "not found" in line or ("=> /" in line and str(root) not in line.split("=>")[1])
        ]
        if bad or said.returncode:
            raise Failure(
                f"{path.name} of this suite needs libraries that were not unpacked: {bad or said.stderr.strip()}\n"
                "  the suite has changed; name an installed Bazel with PYPTO_BAZEL=/path/to/bazel"
            )
