"""Fetches the wheels of a lock with pip and unpacks what running needs: ``fetch_wheels.py LOCK FOLDER``."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path

from pypto.toolchain.archives import wheel_members
from pypto.toolchain.errors import ToolchainError
from pypto.toolchain.fetch import files_folder
from pypto.toolchain.lock import LockedFile
from pypto.toolchain.pip import download_wheel
from pypto.toolchain.progress import Progress

# Tests, type stubs, headers and build helpers: a test that runs kernels imports none of them.
_LEFT_OUT = re.compile(r"(.*/)?(tests|f2py|distutils|include|_pyinstaller)/.*|.*\.(pyi|pxd|pyx|a|h|txt|md)")


def fetch(lock: Path, into: Path) -> None:
    """Fill ``into`` with one folder for each Python of the lock.

    Raises:
        ToolchainError: a wheel cannot be fetched, or is not the one that the lock names.
    """
    given = files_folder(None)
    with tempfile.TemporaryDirectory(dir=into) as temporary:
        scratch = Path(temporary)
        for tag, wheels in sorted(json.loads(lock.read_bytes())["wheels"].items()):
            for record in wheels:
                where = {"platform": record.pop("platform"), "python": record.pop("python")}
                wheel = LockedFile(kind="wheel", where=where, **record)
                if given is not None and (given / wheel.file).is_file():
                    path = given / wheel.file
                else:
                    with Progress(f"downloading {wheel.file}", wheel.size) as progress:
                        path = download_wheel(wheel, scratch, scratch, progress)
                _unpack(wheel, path, into / tag)
            shutil.rmtree(scratch / "pip-tmp", ignore_errors=True)


def _unpack(wheel: LockedFile, path: Path, into: Path) -> None:
    if hashlib.sha256(path.read_bytes()).hexdigest() != wheel.sha256:
        raise ToolchainError(f"{path} is not the file that the lock names: its SHA-256 is not {wheel.sha256}")
    for member in wheel_members(path, lambda name: _LEFT_OUT.fullmatch(name) is None):
        file = into / member.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(member.data)
        file.chmod(0o755 if member.executable else 0o644)


if __name__ == "__main__":
    try:
        fetch(Path(sys.argv[1]), Path(sys.argv[2]).absolute())
    except ToolchainError as error:
        sys.exit(f"pypto: error: {error}")
