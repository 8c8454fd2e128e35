"""What every module here uses: one kind of error, messages on stderr, the cache folder, child processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

OLDEST = (7, 7)
"""The oldest Bazel the rules work with."""
NEWEST = (9,)
"""The first Bazel they are not meant for."""


class Failure(Exception):
    """A condition the user can mend; its text says how. Shown without a traceback."""


def say(message: str) -> None:
    """Report progress. On stderr, since stdout belongs to Bazel (`tools/bazel query ... | sort`)."""
    print(f"tools/bazel: {message}", file=sys.stderr, flush=True)


def mb(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def cache_folder(env: Mapping[str, str]) -> str:
    """The folder for what pypto keeps about Bazel on this machine. Not created here.

    HOME is not guessed from the user database: where it is unset (containers, service managers) that
    entry often names a folder which is missing or another user's.
    """
    base = env.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the XDG specification says to ignore a relative one
        home = env.get("HOME", "")
        if not os.path.isabs(home):
            raise Failure(
                "no folder to keep Bazel in: HOME is not set to an absolute path\n"
                "  set HOME or XDG_CACHE_HOME, or name an installed Bazel with PYPTO_BAZEL=/path/to/bazel"
            )
        base = os.path.join(home, ".cache")
    return os.path.join(base, "pypto", "bazel")


def run(
    argv: Sequence[str | os.PathLike[str]],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end and return what it wrote; with `check`, a failing one is a `Failure`."""
    import subprocess

    shown = " ".join(str(a) for a in argv[:6])
    try:
        done = subprocess.run(
            [str(a) for a in argv],
            env=env,
            cwd=cwd,
            text=True,
            capture_output=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
        )
    except OSError as trouble:
        raise Failure(f"`{shown}` cannot be run: {trouble.strerror or trouble}") from None
    if check and done.returncode:
        tail = "\n  ".join((done.stderr + done.stdout).strip().splitlines()[-15:])
        raise Failure(f"`{shown}` failed ({done.returncode}):\n  {tail}")
    return done
