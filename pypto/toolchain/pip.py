"""Wheels through the user's own pip, so that its index, proxy, certificates and credentials apply."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pypto.toolchain.client import Result, run_client
from pypto.toolchain.errors import FetchError
from pypto.toolchain.lock import LockedFile
from pypto.toolchain.progress import Progress


def pip_command() -> list[str]:
    """How to start pip here: this interpreter's, else the one on PATH.

    Raises:
        FetchError: there is none.
    """
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    for name in ("pip3", "pip"):
        if found := shutil.which(name):
            return [found]
    raise FetchError(
        f"no pip: neither as a module of {sys.executable} nor on PATH; install it (Debian: apt install python3-pip), "
        "or get the files elsewhere and name their folder with --files DIR"
    )


def download_wheel(wheel: LockedFile, into: Path, scratch: Path, progress: Progress | None) -> Path:
    """Fetch one locked wheel into `into`.

    Raises:
        FetchError: pip is missing or failed; the message names the wheel and the remedy.
    """
    requirement = scratch / f"{wheel.name}.txt"
    requirement.write_text(f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}\n")
    done = run_pip_download(["--require-hashes", "-r", str(requirement)], wheel.where, into, scratch, progress)
    path = into / wheel.file
    if done.status == 0 and path.is_file():
        return path
    wanted = f"{wheel.name} {wheel.version} ({wheel.file}, {wheel.size / 1e6:.1f} MB)"
    if re.search(r"DO NOT MATCH THE HASHES|Hash mismatch", done.output, re.I):
        raise FetchError(
            f"the package index serves other bytes for {wanted} than the lock names{done.lines(12)}\n"
            "  check pip's index settings (pip config list)"
        )
    if re.search(r"No matching distribution|Could not find a version", done.output) and not _unreachable(done):
        # pip says the same for a package it does not know and, without retries, for an index it cannot reach.
        silent = " (or the index cannot be reached)" if "(from versions: none)" in done.output else ""
        raise FetchError(
            f"the locked file {wheel.file} is not on the package index that pip uses{silent}{done.lines(3)}\n"
            f"  wanted: {wanted}, sha256 {wheel.sha256}\n"
            "  remedies: point pip to an index that carries it (pip config set global.index-url ...); or put the file "
            "into a folder and pass --files DIR; or move the lock to what the index has: python -m pypto.toolchain lock"
        )
    raise FetchError(
        f"pip could not fetch {wanted}{done.lines()}\n"
        "  remedies: check network and pip's index and proxy settings (pip config list); or put the file into a folder "
        "and pass --files DIR"
    )


def run_pip_download(
    arguments: Sequence[str], tags: Mapping[str, str], into: Path, scratch: Path, progress: Progress | None = None
) -> Result:
    """`pip download` of wheels only, without their dependencies, for pip's `platform` and `python` tags."""
    temporary = scratch / "pip-tmp"
    temporary.mkdir(exist_ok=True)
    argv = [
        *pip_command(),
        "download",
        "--no-deps",
        "--no-input",
        "--disable-pip-version-check",
        "--progress-bar=off",
        "--only-binary=:all:",
        f"--platform={tags['platform']}",
        f"--python-version={tags['python']}",
        "-d",
        str(into),
        *arguments,
    ]
    env = {**os.environ, "TMPDIR": str(temporary), "LC_ALL": "C"}
    return run_client(argv, env=env, watch=[temporary, into], progress=progress)


def _unreachable(done: Result) -> bool:
    return re.search(r"NewConnectionError|Temporary failure|ProxyError|timed out|SSLError", done.output) is not None
