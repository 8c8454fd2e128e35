"""buildifier, the formatter and linter of Starlark files, from npm where npm is there."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import platform
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from .environment import Failure, cache_folder

PACKAGE = "@bazel/buildifier@8.2.1"
INTEGRITY = "sha512-eZ/Aq+2r4PcJa6LbPCT6ffgIJfTU/gYilqIzoX2OLM4nNkbQC6tTMPZNn7aHHjhGPxbNLv41zm4Xqt1olCLgXw=="
"""What npm's index says about the archive; checked here again, over the bytes that arrived."""
BINARIES = {"x86_64": "buildifier-linux_amd64", "aarch64": "buildifier-linux_arm64"}


def ensure() -> Path | None:
    """The program, fetched if need be; None where npm is missing or the machine has no binary in the package."""
    name = BINARIES.get(platform.machine())
    npm = shutil.which("npm")
    if not name:
        return None
    program = cache_folder() / "buildifier" / hashlib.sha256(INTEGRITY.encode()).hexdigest()[:16] / name
    if program.exists():
        return program
    if not npm:
        return None
    with tempfile.TemporaryDirectory(prefix="pypto-npm-") as tmp:
        done = subprocess.run(
            [npm, "pack", "--json", "--silent", PACKAGE], cwd=tmp, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise Failure(f"npm could not fetch {PACKAGE}:\n{done.stderr.strip()}")
        archive = Path(tmp, json.loads(done.stdout)[0]["filename"])
        digest = "sha512-" + base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if digest != INTEGRITY:
            raise Failure(f"npm served another {PACKAGE} than expected: {digest}, not {INTEGRITY}")
        with tarfile.open(archive) as packed:
            member = packed.extractfile(f"package/{name}")
            if member is None:
                raise Failure(f"{PACKAGE} holds no {name}")
            content = member.read()
    program.parent.mkdir(parents=True, exist_ok=True)
    part = program.with_name(f"{name}.{os.getpid()}")
    part.write_bytes(content)
    part.chmod(0o755)
    part.rename(program)
    return program
