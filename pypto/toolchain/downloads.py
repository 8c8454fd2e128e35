"""Files of locks that were fetched before, kept for the user's next install and for every Bazel output base.

They lie in `$XDG_CACHE_HOME/pypto/downloads` under their own names, so that the folder also serves as `--files DIR` on
a machine without a network. Keeping is best effort: what cannot be kept is fetched again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import uuid
from pathlib import Path

from pypto.toolchain.errors import ToolchainError
from pypto.toolchain.lock import LockedFile
from pypto.toolchain.selection import cache_folder


def kept(file: LockedFile) -> Path | None:
    """The file as an earlier fetch left it, compared with the lock; None if it is not there or not that file."""
    try:
        path = _folder() / file.file
        if path.stat().st_size != file.size:
            return None
        with open(path, "rb") as data:
            same = hashlib.file_digest(data, "sha256").hexdigest() == file.sha256
    except (OSError, ToolchainError):
        return None
    return path if same else None


def keep(file: LockedFile, path: Path) -> None:
    """Keep a file whose bytes were compared with the lock. It appears under its name at once, or not at all."""
    with contextlib.suppress(OSError, ToolchainError):
        folder = _folder()
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f".{uuid.uuid4().hex}"
        try:
            shutil.copyfile(path, part)
            os.replace(part, folder / file.file)
        finally:
            part.unlink(missing_ok=True)


def _folder() -> Path:
    return cache_folder() / "pypto" / "downloads"
