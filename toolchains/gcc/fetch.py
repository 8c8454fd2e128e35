"""Fetches the pinned GCC: ``fetch.py ROOT EXTRA``, or moves the pin of its C compiler: ``fetch.py lock``.

ROOT becomes the tool set that kernels are compiled with. EXTRA gets what Bazel's own C and C++ rules need besides; it
stays out of the set, so that its identity is that of every other installation. All of it is from the packages of the
set, but for the C compiler, whose package `extra.json` pins.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

from pypto.toolchain.apt import Apt
from pypto.toolchain.archives import deb_members
from pypto.toolchain.errors import ToolchainError
from pypto.toolchain.fetch import fetch_set, files_folder
from pypto.toolchain.lock import LockedFile, LockedSet, load_lock
from pypto.toolchain.progress import say
from pypto.toolchain.unpack import unpack_set

LOCK = Path(__file__).with_name("extra.json")
PACKAGE = "cpp-12"

_GCC = "usr/lib/gcc/x86_64-linux-gnu/12"
EXTRA = {
    **{f"usr/bin/x86_64-linux-gnu-{name}": f"bin/{name}" for name in ("ar", "nm", "objcopy", "objdump", "strip")},
    f"{_GCC}/cc1": "lib/cc1",
    # So that what is built runs where no C++ library is installed.
    f"{_GCC}/libstdc++.a": "lib/libstdc++.a",
}


def fetch(root: Path, extra: Path) -> None:
    """Fill both folders.

    Raises:
        ToolchainError: the packages cannot be fetched or are not what was expected.
    """
    locked = load_lock().sets["gcc"]
    additional = LockedSet("gcc_extra", locked.version, (LockedFile(**json.loads(LOCK.read_bytes())),))
    scratch = root / ".fetching"
    scratch.mkdir()
    try:
        files = fetch_set(locked, scratch, files_folder(None))
        more = scratch / "extra"
        more.mkdir()
        files |= fetch_set(additional, more, files_folder(None))
        say("unpacking gcc")
        unpack_set(locked, files, root)
        missing = dict(EXTRA)
        for file in (*locked.of("deb"), *additional.files):
            for member in deb_members(files[file.file], lambda path: path in missing):
                path = extra / missing.pop(member.path)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(member.data)
                path.chmod(0o755 if member.executable else 0o644)
        if missing:
            raise ToolchainError(f"the pinned packages hold no {', '.join(sorted(missing))}")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def lock() -> None:
    """Pin the version of the C compiler's package that the set's own packages have.

    Raises:
        ToolchainError: the archive carries another version, or cannot be read.
    """
    (beside,) = (file for file in load_lock().sets["gcc"].files if file.name == "g++-12")
    with tempfile.TemporaryDirectory() as folder:
        apt = Apt(Path(folder), beside.where["architecture"], beside.where["suite"])
        apt.open()
        stanza = apt.newest([PACKAGE])[PACKAGE]
    if stanza["Version"] != beside.version:
        raise ToolchainError(
            f"the archive carries {PACKAGE} {stanza['Version']}, and the lock g++-12 {beside.version}: "
            "run `python -m pypto.toolchain lock` first"
        )
    record = {
        "file": f"{PACKAGE}_{stanza['Version']}_{stanza['Architecture']}.deb",
        "kind": "deb",
        "name": PACKAGE,
        "sha256": stanza["SHA256"],
        "size": int(stanza["Size"]),
        "version": stanza["Version"],
        "where": dict(beside.where),
    }
    LOCK.write_text(json.dumps(record, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    try:
        if sys.argv[1:] == ["lock"]:
            lock()
        else:
            fetch(Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute())
    except ToolchainError as error:
        sys.exit(f"pypto: error: {error}")
