"""Making the lock: what the user's package index and Debian archive carry now."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pypto.toolchain.apt import Apt
from pypto.toolchain.errors import FetchError
from pypto.toolchain.lock import LOCKED, Lock, LockedFile, LockedSet
from pypto.toolchain.pip import run_pip_download
from pypto.toolchain.progress import say
from pypto.toolchain.recipes import DEBIAN_PACKAGES

SUITE = "bookworm"
ARCHITECTURE = "amd64"

# The set's wheel, its version and pip's tags. The PTO-ISA headers are the same for every machine; their wheel exists
# for one only. What code generation knows about a tool holds for this version, so a newer one is a decision.
WHEELS: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "isa": ("tilelang-ascend", "0.1.4", {"platform": "manylinux2014_aarch64", "python": "3.11"}),
    "ptoas": ("ptoas", "0.1.1", {"platform": "manylinux_2_34_x86_64", "python": "3.11"}),
}


# The Debian package whose version is the set's.
VERSION_OF: Mapping[str, str] = {"gcc": "g++-12", "gcc_aarch64": "g++-12-aarch64-linux-gnu"}


def make_lock(versions: Mapping[str, str]) -> Lock:
    """Resolve every set: the newest Debian packages of the suite, wheels in their pinned or the given versions.

    Args:
        versions: wheel name to version, in place of the pinned one.

    Raises:
        FetchError: a package is not to be had, or a client is missing.
    """
    unknown = sorted(set(versions) - {name for name, _, _ in WHEELS.values()})
    if unknown:
        raise FetchError(f"no tool set is made from a wheel {unknown[0]!r}")
    with tempfile.TemporaryDirectory(prefix="pypto-lock-") as folder:
        scratch = Path(folder)
        apt = Apt(scratch / "apt", ARCHITECTURE, SUITE)
        apt.open()
        stanzas = apt.newest(sorted({name for names in DEBIAN_PACKAGES.values() for name in names}))
        sets = {}
        for name in LOCKED:
            files = [_deb(package, stanzas[package]) for package in sorted(DEBIAN_PACKAGES[name])]
            if name in WHEELS:
                wheel, pinned, tags = WHEELS[name]
                files.append(_wheel(wheel, versions.get(wheel, pinned), tags, scratch))
                version = files[-1].version
            else:
                version = stanzas[VERSION_OF[name]]["Version"]
            sets[name] = LockedSet(name, version, tuple(files))
    return Lock(sets)


def _deb(name: str, stanza: Mapping[str, str]) -> LockedFile:
    version, architecture = stanza["Version"], stanza["Architecture"]
    # The name that apt gives a downloaded package: the archive's own leaves the epoch out.
    file = f"{name}_{version.replace(':', '%3a')}_{architecture}.deb"
    where = {"architecture": ARCHITECTURE, "suite": SUITE}
    return LockedFile("deb", name, version, file, stanza["SHA256"], int(stanza["Size"]), where)


def _wheel(name: str, version: str, tags: Mapping[str, str], scratch: Path) -> LockedFile:
    say(f"reading {name} {version}")
    into = scratch / f"wheel-{name}"
    into.mkdir()
    done = run_pip_download([f"{name}=={version}"], tags, into, scratch)
    found = sorted(into.glob("*.whl"))
    if done.status or len(found) != 1:
        raise FetchError(f"pip could not fetch {name} {version}{done.lines()}")
    data = found[0].read_bytes()
    return LockedFile("wheel", name, version, found[0].name, hashlib.sha256(data).hexdigest(), len(data), dict(tags))
