"""Fetches the pinned GCC: ``fetch.py ROOT EXTRA``.

ROOT becomes the tool set that kernels are compiled with. EXTRA gets the programs that Bazel's own C++ rules need
besides, from the same packages: they stay out of the set, so that its identity is that of every other installation.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from pypto.toolchain.archives import deb_members
from pypto.toolchain.errors import ToolchainError
from pypto.toolchain.fetch import fetch_set, files_folder
from pypto.toolchain.lock import load_lock
from pypto.toolchain.progress import say
from pypto.toolchain.unpack import unpack_set

EXTRA = {f"usr/bin/x86_64-linux-gnu-{name}": f"bin/{name}" for name in ("ar", "nm", "objcopy", "objdump", "strip")}


def fetch(root: Path, extra: Path) -> None:
    """Fill both folders.

    Raises:
        ToolchainError: the packages cannot be fetched or are not what was expected.
    """
    locked = load_lock().sets["gcc"]
    scratch = root / ".fetching"
    scratch.mkdir()
    try:
        files = fetch_set(locked, scratch, files_folder(None))
        say("unpacking gcc")
        unpack_set(locked, files, root)
        missing = dict(EXTRA)
        for file in locked.of("deb"):
            for member in deb_members(files[file.file], lambda path: path in missing):
                path = extra / missing.pop(member.path)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(member.data)
                path.chmod(0o755)
        if missing:
            raise ToolchainError(f"the pinned packages hold no {', '.join(sorted(missing))}")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    try:
        fetch(Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute())
    except ToolchainError as error:
        sys.exit(f"pypto: error: {error}")
