"""Where private builds go: ``build_output`` below the working directory, unless that lies in the cache root."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_OUTPUT = "build_output"


def private_parent(cache_root: Path) -> Path:
    """Folder for private builds; outside the cache root, made when absent.

    When ``build_output`` lies in the cache root or cannot be made, it is a new folder with an unpredictable name and
    mode 0700 that is never removed.
    """
    root = Path(os.path.realpath(cache_root))
    parent = Path(os.path.realpath(_OUTPUT))
    if not parent.is_relative_to(root):
        with contextlib.suppress(OSError):
            parent.mkdir(exist_ok=True)
            if os.access(parent, os.W_OK | os.X_OK):
                return parent
    import tempfile

    from pypto.toolchain.cleanup import temporary_folders

    for folder in temporary_folders():
        if not Path(folder).is_relative_to(root):
            with contextlib.suppress(OSError):
                return Path(tempfile.mkdtemp(prefix="pypto-private-", dir=folder))
    raise OSError(
        f"no folder for a private build: {parent} and the folder for temporary files cannot be written or lie in the "
        f"cache root {root}; run in another directory or set TMPDIR"
    )


def new_run_directory(cache_root: Path, name: str) -> Path:
    """Where one compiled object's runs may put files: outside the cache root, and not made yet.

    Only when ``build_output`` lies in the cache root its parent has to be made, since its name must not be guessed.
    """
    unused = f"{name}-run-{os.urandom(8).hex()}"
    parent = Path(os.path.realpath(_OUTPUT))
    if parent.is_relative_to(os.path.realpath(cache_root)):
        parent = private_parent(cache_root)
    return parent / unused
