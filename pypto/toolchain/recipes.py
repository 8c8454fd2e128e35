"""What each tool set is made of: which files of the packages, where they go, and what is mended on the way."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pypto.toolchain import elf
from pypto.toolchain.archives import Member, deb_members, wheel_members
from pypto.toolchain.descriptor import ToolFile
from pypto.toolchain.errors import UnpackError
from pypto.toolchain.lock import LockedSet
from pypto.toolchain.tree import Tree


@dataclass(frozen=True)
class Contents:
    """What a recipe says about the tree it made; see `ToolSet`."""

    tools: Mapping[str, ToolFile]
    includes: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)


Recipe = Callable[[LockedSet, Mapping[str, Path], Tree], Contents]

# What every host has and the tools may take from it: the C library. Its version decides no output.
_HOST_LIBRARIES = re.compile(r"(libc|libm|libdl|libpthread|librt)\.so\.\d+|ld-linux-x86-64\.so\.2")


@dataclass(frozen=True)
class _Gcc:
    """A GCC in Debian's packages.

    Attributes:
        folder: where the compiler keeps its own files.
        library: where the C++ library for the programs that it makes lies.
        tools: by name, the path in the packages and the path in the set.
        keep: paths in the packages that are taken as they are.
        scripts: those that are linker scripts.
        includes: header folders in search order.
    """

    folder: str
    library: str
    tools: Mapping[str, tuple[str, str]]
    keep: re.Pattern[str]
    scripts: tuple[str, ...]
    includes: tuple[str, ...]


_GCC = "usr/lib/gcc/x86_64-linux-gnu/12"
_LIB = "usr/lib/x86_64-linux-gnu"
# Every library of the host, for what the programs themselves need, and those that the kept names are links to.
_ANY_LIBRARY = re.compile(r"usr/(lib/x86_64-linux-gnu|aarch64-linux-gnu/lib)/lib[^/]*\.so[^/]*")

_GCC_TOOLS = {
    # name: (path in the packages, path in the set). gcc looks for "as" and "ld" by these names.
    "g++": ("usr/bin/x86_64-linux-gnu-g++-12", "usr/bin/x86_64-linux-gnu-g++-12"),
    "cc1plus": (f"{_GCC}/cc1plus", f"{_GCC}/cc1plus"),
    "collect2": (f"{_GCC}/collect2", f"{_GCC}/collect2"),
    "as": ("usr/bin/x86_64-linux-gnu-as", "usr/bin/as"),
    "ld": ("usr/bin/x86_64-linux-gnu-ld.bfd", "usr/bin/ld"),
}

# Start files, libraries and headers that compiling and linking C++ needs. Left out: other front ends, LTO, sanitizers,
# static C and C++ libraries, device interfaces of the kernel, and everything that is only read by people.
_GCC_KEEP = re.compile(
    rf"""(
      {_GCC}/(liblto_plugin\.so|crt(begin|end)S?\.o|libgcc(_eh)?\.a|libgcc_s\.so) |
      {_GCC}/include/.* |
      {_LIB}/(libc\.so|libm\.so|libc\.so\.6|libm\.so\.6|libmvec\.so\.1|libgcc_s\.so\.1|ld-linux-x86-64\.so\.2) |
      {_LIB}/(S?crt1\.o|crt[in]\.o|libc_nonshared\.a|lib(pthread|dl|rt)\.a) |
      usr/include/c\+\+/12/(?!ext/pb_ds/).* |
      usr/include/(linux|asm-generic|x86_64-linux-gnu/asm)/[^/]* |
      usr/include/x86_64-linux-gnu/(bits|c\+\+|gnu|sys)/.* |
      usr/include/(arpa|bits|gnu|net|netinet|sys)/.* |
      usr/include/[^/]* | usr/include/x86_64-linux-gnu/[^/]*
    )""",
    re.VERBOSE,
)
_LINKER_SCRIPTS = (f"{_LIB}/libc.so", f"{_LIB}/libm.so")
_GCC_INCLUDES = (
    "usr/include/c++/12",
    "usr/include/x86_64-linux-gnu/c++/12",
    "usr/include/c++/12/backward",
    f"{_GCC}/include",
    "usr/include/x86_64-linux-gnu",
    "usr/include",
)
_NATIVE = _Gcc(_GCC, _LIB, _GCC_TOOLS, _GCC_KEEP, _LINKER_SCRIPTS, _GCC_INCLUDES)

_CROSS_GCC = "usr/lib/gcc-cross/aarch64-linux-gnu/12"
_CROSS_ROOT = "usr/aarch64-linux-gnu"
_CROSS = _Gcc(
    folder=_CROSS_GCC,
    library=f"{_CROSS_ROOT}/lib",
    tools={
        "g++": ("usr/bin/aarch64-linux-gnu-g++-12", "usr/bin/aarch64-linux-gnu-g++-12"),
        "cc1plus": (f"{_CROSS_GCC}/cc1plus", f"{_CROSS_GCC}/cc1plus"),
        "collect2": (f"{_CROSS_GCC}/collect2", f"{_CROSS_GCC}/collect2"),
        "as": ("usr/bin/aarch64-linux-gnu-as", f"{_CROSS_ROOT}/bin/as"),
        "ld": ("usr/bin/aarch64-linux-gnu-ld.bfd", f"{_CROSS_ROOT}/bin/ld"),
    },
    keep=re.compile(
        rf"""(
          {_CROSS_GCC}/(liblto_plugin\.so|crt(begin|end)S?\.o|libgcc(_eh)?\.a|libgcc_s\.so) |
          {_CROSS_GCC}/include/.* |
          {_CROSS_ROOT}/lib/(libc\.so|libm\.so|libc\.so\.6|libm\.so\.6|libgcc_s\.so\.1|libstdc\+\+\.so\.6) |
          {_CROSS_ROOT}/lib/(ld-linux-aarch64\.so\.1|S?crt1\.o|crt[in]\.o|libc_nonshared\.a|lib(pthread|dl|rt)\.a) |
          {_CROSS_ROOT}/include/c\+\+/12/(?!ext/pb_ds/).* |
          {_CROSS_ROOT}/include/(linux|asm-generic|asm|arpa|bits|gnu|net|netinet|sys)/.* |
          {_CROSS_ROOT}/include/[^/]*
        )""",
        re.VERBOSE,
    ),
    scripts=(f"{_CROSS_ROOT}/lib/libc.so",),
    includes=(
        f"{_CROSS_ROOT}/include/c++/12",
        f"{_CROSS_ROOT}/include/c++/12/aarch64-linux-gnu",
        f"{_CROSS_ROOT}/include/c++/12/backward",
        f"{_CROSS_GCC}/include",
        f"{_CROSS_ROOT}/include",
    ),
)


def gcc(locked: LockedSet, files: Mapping[str, Path], tree: Tree) -> Contents:
    """GCC 12 for x86-64 with its sysroot, from Debian packages."""
    return _unpack_gcc(_NATIVE, locked, files, tree)


def gcc_aarch64(locked: LockedSet, files: Mapping[str, Path], tree: Tree) -> Contents:
    """GCC 12 on x86-64 for AArch64 with its sysroot, from Debian packages."""
    return _unpack_gcc(_CROSS, locked, files, tree)


def _unpack_gcc(kind: _Gcc, locked: LockedSet, files: Mapping[str, Path], tree: Tree) -> Contents:
    members: dict[str, Member] = {}
    sources = {source for source, _ in kind.tools.values()}
    for file in locked.of("deb"):
        for member in deb_members(files[file.file], lambda path: not path.startswith(("usr/share/", "etc/"))):
            path = _merged(member.path)
            if path in sources or kind.keep.fullmatch(path) or _ANY_LIBRARY.fullmatch(path):
                members[path] = member
    for source, target in kind.tools.values():
        tree.add(target, _content(members, source), True)
    for path in sorted(members):
        if path in sources or not kind.keep.fullmatch(path):
            continue
        data = _content(members, path)
        tree.add(path, sysroot_linker_script(data, path) if path in kind.scripts else data, _is_library(path, data))
    tree.add(f"{kind.folder}/libstdc++.so", _content(members, f"{kind.library}/libstdc++.so.6"), True)
    for name, data in _closure([_content(members, source) for source in sorted(sources)], members).items():
        tree.add(f"hostlib/{name}", data, True)
    tools = {name: tree.tool(target) for name, (_, target) in kind.tools.items()}
    return Contents(tools, includes=kind.includes, libraries=("hostlib",))


def _is_library(path: str, data: bytes) -> bool:
    return ".so" in posixpath.basename(path) and elf.is_elf(data)


def _merged(path: str) -> str:
    """A package's path in the merged layout: everything below `usr`."""
    return f"usr/{path}" if path.startswith(("lib/", "bin/")) else path


def _content(members: Mapping[str, Member], path: str) -> bytes:
    """Bytes of a file, through at most a few links."""
    at = path
    for _ in range(8):
        member = members.get(at)
        if member is None:
            break
        if member.link is None:
            return member.data
        at = _merged(member.link)
    raise UnpackError(f"the locked packages hold no {path}")


def _closure(programs: list[bytes], members: Mapping[str, Member]) -> dict[str, bytes]:
    """The shared libraries that programs need, directly and indirectly, by name; the host's C library is left out."""
    found: dict[str, bytes] = {}
    todo = list(programs)
    while todo:
        for name in elf.needed(todo.pop()):
            if name not in found and not _HOST_LIBRARIES.fullmatch(name):
                found[name] = _content(members, f"{_LIB}/{name}")
                todo.append(found[name])
    return dict(sorted(found.items()))


def sysroot_linker_script(script: bytes, path: str) -> bytes:
    """A linker script without the folders in its library lists, so that the linker searches the sysroot.

    ld puts the sysroot in front of an absolute path only if the script's real path lies in the sysroot, which is not so
    where files are links; it would silently take the host's C library.

    Raises:
        UnpackError: the file lists no libraries.
    """
    lines = script.split(b"\n")
    lists = [at for at, line in enumerate(lines) if re.match(rb" *(GROUP|INPUT)\b", line)]
    if not lists:
        raise UnpackError(f"{path} is not the linker script it was expected to be")
    for at in lists:
        lines[at] = re.sub(rb"/[^ ()]*/", b"", lines[at])
    return b"\n".join(lines)


# Libraries of LLVM's own tests and debugging aids. ptoas names them, its wheel does not carry them, and it never calls
# into them; the loader is satisfied with empty ones.
_PTOAS_NEVER_CALLED = re.compile(
    r"libMLIR(\w*Test\w*|MlirOptMain|OptLib|Reduce|Debug|Observers|PluginsLib|DerivedAttributeOpInterface)\.so\.[\d.]+"
)
_RENAMED = re.compile(r"ptoas\.libs/((lib[^/]+)-[0-9a-f]{8}(\.so[\d.]*))")


def ptoas(locked: LockedSet, files: Mapping[str, Path], tree: Tree) -> Contents:
    """The assembler, with its libraries under the names that it asks for."""
    (wheel,) = locked.of("wheel")
    program_path = f"{wheel.name}-{wheel.version}.data/scripts/ptoas"
    packed = {
        member.path: member.data
        for member in wheel_members(
            files[wheel.file], lambda path: path == program_path or _RENAMED.fullmatch(path) is not None
        )
    }
    if program_path not in packed:
        raise UnpackError(f"{wheel.file} holds no {program_path}")
    program = packed.pop(program_path)
    names = {}
    for path in packed:
        match = _RENAMED.fullmatch(path)
        assert match is not None
        names[match[1]] = match[2] + match[3]
    carried = {names[posixpath.basename(path)]: elf.rename_libraries(data, names) for path, data in packed.items()}
    for file in locked.of("deb"):
        for member in deb_members(files[file.file], lambda path: re.search(r"/lib[^/]+\.so", path) is not None):
            if member.link is None:
                carried[_soname(member.path)] = member.data

    tree.add("bin/ptoas", program, True)
    todo = [program]
    stubs = []
    while todo:
        for name in elf.needed(todo.pop()):
            path = f"lib/{name}"
            if path in tree or _HOST_LIBRARIES.fullmatch(name):
                continue
            if name in carried:
                todo.append(carried[name])
                tree.add(path, carried[name], True)
            elif _PTOAS_NEVER_CALLED.fullmatch(name):
                stubs.append(name)
                tree.add(path, elf.empty_library(name), True)
            else:
                raise UnpackError(f"ptoas needs {name}, which the locked files do not carry")
    return Contents({"ptoas": tree.tool("bin/ptoas")}, libraries=("lib",), facts={"empty_libraries": str(len(stubs))})


def _soname(path: str) -> str:
    """libstdc++.so.6.0.30 -> libstdc++.so.6, as GCC names its libraries."""
    match = re.fullmatch(r"(lib[^/]+\.so\.\d+)[\d.]*", posixpath.basename(path))
    return match[1] if match else posixpath.basename(path)


_ISA_FOLDER = "tilelang/3rdparty/pto-isa/include/"
MENDED = "pto/cpu/TReduceIdx.hpp"
_MEND_FROM = b'static_assert(false, "Unsupport element cmp.");'
_MEND_TO = b'static_assert(sizeof(DType) == 0, "Unsupport element cmp.");'


def mend(header: bytes) -> bytes | None:
    """The header `MENDED` of PTO-ISA as GCC 12 can read it; None if it is not the one that needs mending."""
    return header.replace(_MEND_FROM, _MEND_TO) if header.count(_MEND_FROM) == 1 else None


def isa(locked: LockedSet, files: Mapping[str, Path], tree: Tree) -> Contents:
    """The PTO-ISA headers, and in front of them a folder with the one header that GCC 12 cannot read, mended."""
    (wheel,) = locked.of("wheel")
    for member in wheel_members(files[wheel.file], lambda path: path.startswith(_ISA_FOLDER)):
        path = member.path.removeprefix(_ISA_FOLDER)
        if path.endswith(".md"):
            continue
        tree.add(f"include/{path}", member.data)
        if path == MENDED:
            # GCC allows a condition that is always false only from version 13 on; this one depends on the template.
            mended = mend(member.data)
            if mended is None:
                raise UnpackError(f"{path} of {wheel.file} is not the header that the overlay mends")
            tree.add(f"overlay/{path}", mended)
    if f"overlay/{MENDED}" not in tree or "include/pto/pto-inst.hpp" not in tree:
        raise UnpackError(f"{wheel.file} does not hold the PTO-ISA headers where they were expected")
    return Contents(
        {},
        includes=("overlay", "include", "include/pto"),
        facts={"overlay": tree.sha256(f"overlay/{MENDED}")},
    )


RECIPES: Mapping[str, Recipe] = {"gcc": gcc, "gcc_aarch64": gcc_aarch64, "isa": isa, "ptoas": ptoas}

DEBIAN_PACKAGES: Mapping[str, tuple[str, ...]] = {
    "gcc": (
        "binutils-x86-64-linux-gnu",
        "g++-12",
        "gcc-12",
        "libbinutils",
        "libc6",
        "libc6-dev",
        "libctf-nobfd0",
        "libctf0",
        "libgcc-12-dev",
        "libgcc-s1",
        "libgmp10",
        "libisl23",
        "libjansson4",
        "libmpc3",
        "libmpfr6",
        "libstdc++-12-dev",
        "libstdc++6",
        "libzstd1",
        "linux-libc-dev",
        "zlib1g",
    ),
    "gcc_aarch64": (
        "binutils-aarch64-linux-gnu",
        "g++-12-aarch64-linux-gnu",
        "gcc-12-aarch64-linux-gnu",
        "libbinutils",
        "libc6-arm64-cross",
        "libc6-dev-arm64-cross",
        "libgcc-12-dev-arm64-cross",
        "libgcc-s1-arm64-cross",
        "libgmp10",
        "libisl23",
        "libjansson4",
        "libmpc3",
        "libmpfr6",
        "libstdc++-12-dev-arm64-cross",
        "libstdc++6-arm64-cross",
        "libzstd1",
        "linux-libc-dev-arm64-cross",
        "zlib1g",
    ),
    "isa": (),
    "ptoas": ("libgcc-s1", "libstdc++6", "zlib1g"),
}
"""The Debian packages of each set: only those that a recipe takes a file from."""
