"""Moves the pins of `wheels.json`: ``python3 third_party/python/lock_wheels.py numpy==2.4.6 ml_dtypes==0.6.0``.

Each package is fetched through pip for every Python that pypto supports. Run it in the root of the repository.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pypto.toolchain.errors import ToolchainError
from pypto.toolchain.pip import run_pip_download

LOCK = Path(__file__).with_name("wheels.json")
PLATFORM = "manylinux_2_28_x86_64"
PYTHONS = ("3.11", "3.12", "3.13")


def locked(requirements: list[str], python: str) -> list[dict[str, str | int]]:
    """The entries of one Python, sorted by file.

    Raises:
        ToolchainError: pip found no wheel.
    """
    entries: list[dict[str, str | int]] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        done = run_pip_download(requirements, {"platform": PLATFORM, "python": python}, folder, folder)
        if done.status != 0:
            raise ToolchainError(f"pip could not fetch {' '.join(requirements)} for Python {python}{done.lines()}")
        for path in sorted(folder.glob("*.whl")):
            name, version = path.name.split("-")[:2]
            data = path.read_bytes()
            entries.append(
                {
                    "file": path.name,
                    "name": name,
                    "platform": PLATFORM,
                    "python": python,
                    "sha256": hashlib.sha256(data).hexdigest(),
                    "size": len(data),
                    "version": version,
                }
            )
    return entries


def main(requirements: list[str]) -> int:
    """Write the lock; returns the exit status."""
    if not requirements or not all("==" in requirement for requirement in requirements):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        wheels = {f"cp{python.replace('.', '')}": locked(requirements, python) for python in PYTHONS}
    except ToolchainError as error:
        print(f"pypto: error: {error}", file=sys.stderr)
        return 1
    LOCK.write_text(json.dumps({"schema": 1, "wheels": wheels}, indent=2, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
