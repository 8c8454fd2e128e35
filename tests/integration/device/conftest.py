"""A stand-in for a CANN toolkit, made by the pinned compiler, and the real compiler for AArch64."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from pypto.toolchain import Toolchain, describe
from pypto.toolchain.apt import Apt
from pypto.toolchain.archives import deb_members
from pypto.toolchain.errors import FetchError
from pypto.toolchain.install import fetch_and_unpack
from pypto.toolchain.lock import load_lock
from pypto.toolchain.selection import default_prefix
from pypto.toolchain.tools import Command, gcc_shared_object, private_root

BUILD = "8.5.0.1.231"


def make_cann(toolchain: Toolchain, root: Path) -> None:
    """Write the toolkit's layout around the stand-in programs."""
    command = gcc_shared_object(toolchain.descriptor.sets["gcc"], [], "w/stand_in.cpp", "w/stand_in")
    argv = [part for part in command.argv if part not in ("-shared", "-fPIC", "-w")]
    with private_root(toolchain) as private:
        shutil.copy(Path(__file__).with_name("stand_in.cpp"), private.work)
        private.run(Command((*argv, "-Wall", "-Wextra", "-Werror"), command.env), "compile the stand-in")
        program = (private.work / "stand_in").read_bytes()
    hcc = "tools/hcc/bin/aarch64-target-linux-gnu-"
    for name in ("bin/ccec", "bin/ld.lld", f"{hcc}gcc", f"{hcc}g++"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(program)
        path.chmod(0o755)
    (root / "aarch64-linux").mkdir()
    info = f"package_name=Ascend-cann-toolkit\nversion=8.5.0\ninnerversion={BUILD}\n"
    (root / "aarch64-linux/ascend_toolkit_install.info").write_text(info)
    os.symlink("aarch64-linux", root / "arm64-linux")


@pytest.fixture(scope="session")
def cann(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("cann")
    make_cann(toolchain, root)
    return root


@pytest.fixture(scope="session")
def gcc_aarch64() -> Path:
    """The folder of the real set, fetched once into the cache folder; the installed toolchain stays as it is."""
    locked = load_lock().sets["gcc_aarch64"]
    folder = default_prefix().parent / f"gcc_aarch64-{locked.digest[:32]}"
    if not (folder / "set.json").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        fetch_and_unpack(locked, folder)
    return folder


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """qemu for AArch64 programs: this machine's, else Debian's, unpacked into the cache folder."""
    for name in ("qemu-aarch64-static", "qemu-aarch64"):
        if found := shutil.which(name):
            return Path(found)
    cached = default_prefix().parent / "qemu-aarch64-static"
    if not cached.is_file():
        scratch = tmp_path_factory.mktemp("qemu")
        try:
            apt = Apt(scratch / "apt", "amd64", "bookworm")
            apt.open()
            version = apt.newest(["qemu-user-static"])["qemu-user-static"]["Version"]
            failed = apt.download({"qemu-user-static": version}, scratch, None)
        except FetchError as error:
            pytest.skip(f"no qemu-user here, and none to be had: {error}")
        if failed is not None:
            pytest.skip(f"no qemu-user here, and none to be had:{failed.lines()}")
        (package,) = scratch.glob("*.deb")
        (program,) = deb_members(package, lambda path: path == "usr/bin/qemu-aarch64-static")
        part = cached.with_suffix(f".{os.getpid()}")
        part.write_bytes(program.data)
        part.chmod(0o755)
        part.rename(cached)
    return cached


@pytest.fixture(scope="session")
def device_toolchain(toolchain: Toolchain, cann: Path) -> Toolchain:
    """The pinned tools and the stand-in toolkit."""
    return describe({**toolchain.bindings.roots, "cann": cann})
