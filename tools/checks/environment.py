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


def clean_environment() -> dict[str, str]:
    """The caller's environment without what would lead pip elsewhere than into the venv it runs from."""
    return {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX")}


def step(argv: list[str], trouble: str, **more: str) -> None:
    """Run a program with its output shown; `more` is added to its environment."""
    code = subprocess.run(argv, env={**clean_environment(), **more}, stdin=subprocess.DEVNULL, check=False).returncode
    if code:
        raise Failure(f"{trouble} (exit code {code}; its output is above)")


def relock(source: Path, lock: Path) -> None:
    """Make the lock anew: the newest versions that serve every supported Python, with the hashes of all files."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="pypto-lock-") as tmp:
        step([sys.executable, "-m", "venv", tmp], "python -m venv failed")
        step([f"{tmp}/bin/python", "-m", "pip", "install", "--quiet", "uv"], "pip could not install uv")
        # uv does not read pip's configuration; the index and certificates shall be those the user configured.
        configured = {
            variable: value
            for variable, setting in (("UV_DEFAULT_INDEX", "index-url"), ("SSL_CERT_FILE", "cert"))
            if (value := pip_setting(f"{tmp}/bin/python", setting))
        }
        options = "--universal --python-version=3.11 --generate-hashes --upgrade --quiet --no-header --no-annotate"
        # Addresses of package indexes are the user's, not the project's.
        options += " --no-emit-index-url --no-emit-find-links --system-certs"
        argv = [f"{tmp}/bin/uv", "pip", "compile", *options.split(), f"--output-file={lock}", str(source)]
        step(argv, "uv found no solution", **configured)


def pip_setting(python: str, name: str) -> str:
    """What pip is configured to use, from the environment or else its configuration files; '' if nothing is said."""
    for section in (":env:", "global"):
        argv = [python, "-m", "pip", "--disable-pip-version-check", "config", "get", f"{section}.{name}"]
        done = subprocess.run(argv, env=clean_environment(), capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout.strip()
    return ""
