"""The Python environment of the tests: a venv outside the checkout, made from a lock with hashes.

One per checkout, lock and interpreter; the checkout is on its path, so that `pypto` is importable from any
folder and with any environment variables, as it would be if it were installed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

RECIPE = 1
"""Counts changes in how the environment is made."""
UNUSED = 14 * 86400
"""Seconds after which another environment of the same checkout is removed."""


class Failure(Exception):
    """A condition the user can mend; its text says how."""


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        home = os.environ.get("HOME", "")
        if not os.path.isabs(home):
            raise Failure("HOME is not set to an absolute path\n  set HOME or XDG_CACHE_HOME")
        base = os.path.join(home, ".cache")
    return Path(base, "pypto")


def ensure(root: Path, lock: Path) -> Path:
    """The environment's Python, after making what is missing. Safe against other runs and against being killed."""
    about = [str(RECIPE), sys.version, os.path.realpath(sys.executable), lock.read_text()]
    checkout = hashlib.sha256(str(root).encode()).hexdigest()[:12]
    digest = hashlib.sha256("\0".join(about).encode()).hexdigest()[:16]
    folder = cache_folder() / "test-env" / f"{checkout}-{digest}"
    python, complete = folder / "bin/python", folder / "complete"
    if not complete.exists():
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            held = open(folder.parent / f".{folder.name}.lock", "w")  # noqa: SIM115 - it is the lock, held below
        except OSError as trouble:
            raise Failure(f"cannot write to {folder.parent}: {trouble.strerror}\n  set XDG_CACHE_HOME") from None
        with held:
            fcntl.flock(held, fcntl.LOCK_EX)
            if not complete.exists():
                shutil.rmtree(folder, ignore_errors=True)
                make(folder, root, lock)
                complete.touch()
    os.utime(complete)
    for other in folder.parent.glob(f"{checkout}-*"):
        mark = other / "complete"
        if mark.exists() and time.time() - mark.stat().st_mtime > UNUSED:
            shutil.rmtree(other, ignore_errors=True)
    return python


def make(folder: Path, root: Path, lock: Path) -> None:
    try:
        import ensurepip  # noqa: F401 - Debian ships it apart from Python
    except ImportError:
        raise Failure(
            f"{sys.executable} cannot make virtual environments\n"
            "  on Debian: install python3-venv (as root: apt-get install python3-venv)"
        ) from None
    version = ".".join(map(str, sys.version_info[:3]))
    print(f"tools/test: making the test environment for Python {version} in {folder}", flush=True)
    start = time.monotonic()
    step([sys.executable, "-m", "venv", str(folder)], "python -m venv failed")
    pip = [str(folder / "bin/python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    step(
        [*pip, "--require-hashes", "--only-binary", ":all:", "-r", str(lock)],
        f"pip could not install {lock.name}\n"
        "  no network, a package index that lacks a version, or one that serves other files than the lock names",
    )
    paths = sysconfig.get_paths("venv", vars={"base": str(folder), "platbase": str(folder)})
    Path(paths["purelib"], "pypto_checkout.pth").write_text(f"{root}\n")
    size = sum(p.lstat().st_size for p in folder.rglob("*") if p.is_file() and not p.is_symlink())
    print(f"tools/test: ready after {time.monotonic() - start:.0f} s, {size / 1e6:.0f} MB on disk", flush=True)


def step(argv: list[str], trouble: str) -> None:
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX")}
    code = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL).returncode
    if code:
        raise Failure(f"{trouble} (exit code {code}; its output is above)")


def relock(source: Path, lock: Path) -> None:
    """Make the lock anew: the newest versions that serve every supported Python, with the hashes of all files."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="pypto-lock-") as tmp:
        step([sys.executable, "-m", "venv", tmp], "python -m venv failed")
        step([f"{tmp}/bin/python", "-m", "pip", "install", "--quiet", "uv"], "pip could not install uv")
        options = "--universal --python-version=3.11 --generate-hashes --upgrade --quiet --no-header --no-annotate"
        # Addresses of package indexes are the user's, not the project's.
        options += " --no-emit-index-url --no-emit-find-links"
        out = f"--output-file={lock}"
        step([f"{tmp}/bin/uv", "pip", "compile", *options.split(), out, str(source)], "uv found no solution")
