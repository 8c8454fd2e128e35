"""Looks at one tool set as it is installed on this machine: ``probe.py SET --into DIR [--path PATH] [--revision REV]``.

Writes the set's record to ``DIR/set.json`` and prints one JSON object: ``version``, ``folder`` (where the tools lie;
empty when everything was copied to DIR) and ``watch`` (files that say when the installation is another one). When
something is missing, everything that is missing is said at once.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pypto._identity.records import canonical_json, digest_record
from pypto.toolchain import elf
from pypto.toolchain.cann import read_cann
from pypto.toolchain.descriptor import SET_FILE, ToolFile, ToolSet
from pypto.toolchain.errors import DescriptorError
from pypto.toolchain.tree import listing_digest, measure


class NotFound(Exception):
    """What was needed, where it was looked for and what was there."""

    def __init__(self, what: str, needed: str, looked_for: Sequence[str], found: Sequence[str], mend: str) -> None:
        lines = [f"{what} cannot be used.", f"  needed:     {needed}"]
        for name, texts in (("looked for", looked_for), ("found", found), ("to mend it", [mend])):
            lines += [f"  {name + ':':<12}{texts[0]}", *(f"              {text}" for text in texts[1:])]
        super().__init__("\n".join(lines))


@dataclass(frozen=True)
class Found:
    """An installation.

    Attributes:
        tools: its record.
        folder: absolute path of its root; empty when it was copied.
        watch: files that say when it is another one.
    """

    tools: ToolSet
    folder: str
    watch: tuple[str, ...] = ()


def tool_file(root: Path, path: str) -> ToolFile:
    """The record of one program."""
    data = (root / path).read_bytes()
    try:
        build_id = elf.build_id(data) if elf.is_elf(data) else None
    except elf.NotElf:
        build_id = None
    return ToolFile(path, hashlib.sha256(data).hexdigest(), build_id)


def local_lock(name: str, facts: Mapping[str, str]) -> str:
    """What stands for the digest of a lock entry: a local set must never have the record of a downloaded one."""
    return digest_record({"local": name, "facts": dict(sorted(facts.items()))})


def listed(root: Path, folders: Iterable[str]) -> list[tuple[str, bool, str]]:
    """Path, executable bit and SHA-256 of every file below some folders."""
    entries = {}
    for folder in folders:
        for place, _, names in os.walk(root / folder):
            for name in names:
                path = Path(place, name)
                if path.is_file():
                    relative = path.relative_to(root).as_posix()
                    entries[relative] = (relative, False, hashlib.sha256(path.read_bytes()).hexdigest())
    return list(entries.values())


def run(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> tuple[int, str, str]:
    """Status, standard output and standard error of a program; status 127 when it cannot be started."""
    try:
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 127, "", str(error)
    return done.returncode, done.stdout, done.stderr


def gcc(into: Path, path: str, revision: str) -> Found:
    """A g++ of this machine."""
    mend = 'gcc.local(path = "/usr/bin/g++-12") in MODULE.bazel, or no tag at all to download one'
    looked = [path or "g++ on PATH"]
    driver = shutil.which(path or "g++")
    if driver is None:
        raise NotFound("The local GCC", "a g++, version 12 or newer", looked, ["no such program"], mend)
    driver = os.path.realpath(driver)
    environment = {"LC_ALL": "C", "PATH": os.environ.get("PATH", os.defpath)}
    status, version, said = run([driver, "-dumpfullversion"], environment)
    version = version.strip()
    if status != 0 or not re.fullmatch(r"\d+\.\d+\.\d+", version) or int(version.split(".")[0]) < 12:
        shown = version or said.strip()[:200] or f"status {status}"
        raise NotFound("The local GCC", "a g++, version 12 or newer", looked, [f"{driver}: {shown}"], mend)
    programs = {"g++": driver}
    missing = []
    for name in ("cc1plus", "collect2", "as", "ld"):
        printed = run([driver, f"-print-prog-name={name}"], environment)[1].strip()
        program = printed if os.path.isabs(printed) else shutil.which(printed)
        if program is None or not os.path.exists(program):
            missing.append(f"no {name}")
        else:
            programs[name] = os.path.normpath(program)
    _, _, said = run([driver, "-E", "-x", "c++", "-", "-v"], environment)
    match = re.search(r"search starts here:\n(?:#include <.*\n)?((?: /.*\n)+)End of search list", said)
    includes = [os.path.normpath(line.strip()) for line in match[1].splitlines()] if match else []
    if not any((Path(folder) / "vector").is_file() for folder in includes):
        missing.append("no C++ standard library headers")
    if missing:
        needed = "g++ with cc1plus, as, ld and the headers of the C++ library"
        raise NotFound("The local GCC", needed, [driver], missing, mend)
    root = Path("/")
    tools = {name: tool_file(root, program[1:]) for name, program in sorted(programs.items())}
    inside = [folder[1:] for folder in includes]
    libraries = []
    for name in ("libstdc++.so", "libgcc.a", "libc.so.6", "libm.so.6", "crt1.o", "crti.o", "crtbeginS.o"):
        printed = run([driver, f"-print-file-name={name}"], environment)[1].strip()
        if os.path.isabs(printed) and os.path.isfile(printed):
            libraries.append((printed[1:], False, hashlib.sha256(Path(printed).read_bytes()).hexdigest()))
    listing = [(tool.path, True, tool.sha256) for tool in tools.values()] + libraries + listed(root, inside)
    facts = {"local": "1", "machine": run([driver, "-dumpmachine"], environment)[1].strip()}
    tree = listing_digest(listing)
    record = ToolSet("gcc", version, local_lock("gcc", facts), tree, len(listing), 0, tools, tuple(inside), (), facts)
    return Found(record, "/", tuple(programs.values()))


# Where the three generations of ptoas have the program: a launcher script of the shell, the program itself, and a
# launcher beside an interpreter of its own.
PTOAS_LAYOUTS = (("ptoas.sh", "bundled interpreter"), ("ptoas", "shell launcher"), ("bin/ptoas", "program"))


def ptoas(into: Path, path: str, revision: str) -> Found:
    """An installation of ptoas."""
    needed = "ptoas with its libraries"
    mend = 'ptoas.local(path = "/opt/ptoas") in MODULE.bazel, or no tag at all to download it'
    if not path:
        raise NotFound("The local ptoas", needed, ["path of ptoas.local", "PTOAS_ROOT"], ["neither is set"], mend)
    root = Path(path)
    looked = [f"{path}/{name} ({kind})" for name, kind in PTOAS_LAYOUTS]
    found = []
    for name, kind in PTOAS_LAYOUTS:
        if not os.access(root / name, os.X_OK) or not (root / name).is_file():
            continue
        libraries = ("lib",) if (root / "lib").is_dir() else ()
        # As actions start it: nothing of the caller's environment, no PATH.
        environment = {
            "LC_ALL": "C",
            "LD_LIBRARY_PATH": ":".join(str(root / folder) for folder in libraries),
            "PATH": "/nonexistent",
            "TZ": "UTC",
        }
        status, version, said = run([str(root / name), "--version"], environment)
        number = re.search(r"\d+\.\d+(?:\.\d+)?", version)
        if status != 0 or number is None:
            problem = (said or version).strip().splitlines()[-1:] or [f"status {status}"]
            found.append(f"{path}/{name} does not start in a closed environment: {problem[0][:200]}")
            continue
        digest, files, size = measure(root)
        facts = {"layout": kind, "local": "1", "reported": version.strip()}
        record = ToolSet(
            "ptoas", number[0], local_lock("ptoas", facts), digest, files, size,
            {"ptoas": tool_file(root, name)}, (), libraries, facts,
        )  # fmt: skip
        return Found(record, os.path.abspath(root), (str(root / name),))
    raise NotFound("The local ptoas", needed, looked, found or ["none of them is an executable file"], mend)


_MENDED = "pto/cpu/TReduceIdx.hpp"
_ALWAYS_FALSE = b"static_assert(false,"


def isa(into: Path, path: str, revision: str) -> Found:
    """A checkout of PTO-ISA; its headers are copied."""
    needed = "a git checkout of PTO-ISA at the pinned revision, without changes"
    mend = 'pto_isa.local(path = "/src/pto-isa", revision = "<40 digits>") in MODULE.bazel, or no tag to download it'
    what = "The local PTO-ISA"
    if not path:
        raise NotFound(what, needed, ["path of pto_isa.local", "PTO_ISA_ROOT"], ["neither is set"], mend)
    root = Path(path)
    if not (root / "include/pto/pto-inst.hpp").is_file():
        raise NotFound(what, needed, [f"{path}/include/pto/pto-inst.hpp"], ["no such file"], mend)
    # Whose repository it is does not matter: nothing of it is run.
    git = ["git", "-c", f"safe.directory={os.path.realpath(root)}", "-C", str(root)]
    status, head, said = run([*git, "rev-parse", "HEAD"])
    if status != 0:
        raise NotFound(what, needed, [path], [f"no git checkout: {said.strip()[:200]}"], mend)
    head = head.strip()
    if not re.fullmatch(r"[0-9a-f]{40}", revision):
        pin = f'pto_isa.local(path = "{path}", revision = "{head}")'
        raise NotFound(what, needed, ["revision of pto_isa.local"], [f"{revision!r} is no full revision"], pin)
    if head != revision:
        checkout = f"git -C {path} checkout {revision}"
        raise NotFound(what, needed, [f"{path} at {revision}"], [f"{head} is checked out"], checkout)
    changed = run([*git, "status", "--porcelain", "--", "include"])[1].splitlines()
    if changed:
        found = [f"{len(changed)} changed files:", *(line[3:] for line in changed[:10])]
        raise NotFound(what, needed, [f"{path}/include without changes"], found, f"git -C {path} stash")
    shutil.copytree(root / "include", into / "include", ignore=shutil.ignore_patterns("*.md", ".git*"))
    includes: tuple[str, ...] = ("include", "include/pto")
    header = into / "include" / _MENDED
    if header.is_file() and _ALWAYS_FALSE in header.read_bytes():
        # GCC allows a condition that is always false only from version 13 on; this one depends on the template.
        mended = into / "overlay" / _MENDED
        mended.parent.mkdir(parents=True)
        mended.write_bytes(header.read_bytes().replace(_ALWAYS_FALSE, b"static_assert(sizeof(DType) == 0,"))
        includes = ("overlay", *includes)
    digest, files, size = measure(into)
    facts = {"revision": head}
    record = ToolSet("isa", head, local_lock("isa", facts), digest, files, size, {}, includes, (), facts)
    return Found(record, "", (str(root / "include/pto/pto-inst.hpp"),))


CANN_REQUIRED = ("bin/ccec", "bin/ld.lld", "<architecture>-linux/ascend_toolkit_install.info")


def cann(into: Path, path: str, revision: str) -> Found:
    """A CANN toolkit."""
    needed = "a CANN toolkit with ccec and ld.lld"
    mend = 'cann.local(path = "/usr/local/Ascend/ascend-toolkit/latest") in MODULE.bazel, or source CANN\'s set_env.sh'
    if not path:
        raise NotFound("CANN", needed, ["path of cann.local", "ASCEND_HOME_PATH"], ["neither is set"], mend)
    root = Path(path)
    missing = [f"no {name}" for name in CANN_REQUIRED[:2] if not os.access(root / name, os.X_OK)]
    if not list(root.glob("*-linux/ascend_toolkit_install.info")):
        missing.append(f"no {CANN_REQUIRED[2]}")
    if missing:
        raise NotFound("CANN", needed, [f"{path}/{name}" for name in CANN_REQUIRED], missing, mend)
    try:
        record = read_cann(root)
    except DescriptorError as error:
        raise NotFound("CANN", needed, [path], [str(error)], mend) from None
    info = sorted(root.glob("*-linux/ascend_toolkit_install.info"))
    local = os.path.abspath(root) if root.resolve() != into.resolve() else ""
    return Found(record, local, (*(str(file) for file in info), *(str(root / name) for name in CANN_REQUIRED[:2])))


PROBES: Mapping[str, Callable[[Path, str, str], Found]] = {"cann": cann, "gcc": gcc, "isa": isa, "ptoas": ptoas}


def main(arguments: Sequence[str] | None = None) -> int:
    ask = argparse.ArgumentParser()
    ask.add_argument("set", choices=sorted(PROBES))
    ask.add_argument("--into", type=Path, required=True)
    ask.add_argument("--path", default="")
    ask.add_argument("--revision", default="")
    given = ask.parse_args(arguments)
    if given.path and not os.path.isabs(given.path):
        print(f"pypto: error: path = {given.path!r} is no absolute path", file=sys.stderr)
        return 1
    try:
        found = PROBES[given.set](given.into, given.path, given.revision)
    except NotFound as error:
        print(f"pypto: error: {error}", file=sys.stderr)
        return 1
    (given.into / SET_FILE).write_bytes(canonical_json(found.tools.record()))
    watch = sorted({os.path.abspath(name) for name in found.watch})
    print(json.dumps({"version": found.tools.version, "folder": found.folder, "watch": watch}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
