"""Fetches the wheels of a lock with pip and unpacks what running needs: ``fetch_wheels.py LOCK FOLDER 3.11...``."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pypto.toolchain.archives import wheel_members
from pypto.toolchain.errors import ToolchainError
from pypto.toolchain.fetch import fetch_set, files_folder
from pypto.toolchain.lock import LockedFile, LockedSet

# Tests, type stubs, headers and build helpers: a test that runs kernels imports none of them.
_LEFT_OUT = re.compile(r"(.*/)?(tests|f2py|distutils|include|_pyinstaller)/.*|.*\.(pyi|pxd|pyx|a|h|txt|md)")


def fetch(lock: Path, into: Path, pythons: Sequence[str]) -> None:
    """Fill ``into`` with one folder for each of the Pythons.

    Raises:
        ToolchainError: a wheel cannot be fetched, or is not the one that the lock names.
    """
    entries = json.loads(lock.read_bytes())["wheels"]
    for python in pythons:
        tag = f"cp{python.replace('.', '')}"
        wheels = LockedSet("wheels", python, tuple(_locked(record) for record in entries[tag]))
        with tempfile.TemporaryDirectory(dir=into) as scratch:
            files = fetch_set(wheels, Path(scratch), files_folder(None))
            for path in files.values():
                _unpack(path, into / tag)


def _locked(record: Mapping[str, Any]) -> LockedFile:
    fields = dict(record)
    where = {name: fields.pop(name) for name in ("platform", "python")}
    return LockedFile(kind="wheel", where=where, **fields)


def _unpack(path: Path, into: Path) -> None:
    for member in wheel_members(path, lambda name: _LEFT_OUT.fullmatch(name) is None):
        file = into / member.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(member.data)
        file.chmod(0o755 if member.executable else 0o644)


if __name__ == "__main__":
    try:
        fetch(Path(sys.argv[1]), Path(sys.argv[2]).absolute(), sys.argv[3:])
    except ToolchainError as error:
        sys.exit(f"pypto: error: {error}")
