"""Questions to git about a checkout, with nothing of the caller's configuration that could bend the answers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

_LIMIT = 60.0
_REVISION = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
# A monitor or a stat cache that leaves fields out may call a changed file unchanged; a hook may run anything.
_SETTINGS = (
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.trustctime=true",
    "core.checkStat=default",
    "core.hooksPath=/dev/null",
    "core.quotePath=true",
    "status.relativePaths=false",
    "status.showUntrackedFiles=normal",
)


@dataclass(frozen=True)
class TreeState:
    """A checkout's HEAD, and the first path that HEAD does not account for (None: there is none)."""

    revision: str
    unaccounted: str | None


def is_revision(text: str) -> bool:
    """Whether `text` is a complete commit id."""
    return _REVISION.fullmatch(text) is not None


def tree_state(root: str, variables: Mapping[str, str], *, ignored: bool) -> TreeState | None:
    """State of the checkout whose top folder is `root`; None if git gives no usable answer.

    Args:
        ignored: let ignored paths count as not accounted for, too.
    """
    if not os.path.lexists(os.path.join(root, ".git")):
        # Inside another checkout git would answer for that one.
        return None
    command = ["status", "--porcelain=v2", "--branch", "--ignore-submodules=none", "-z"]
    status = run_git(root, [*command, *(["--ignored"] if ignored else [])], variables)
    flags = run_git(root, ["ls-files", "-v", "-z"], variables)
    if status is None or flags is None:
        return None
    revision, unaccounted = None, None
    for field in status.split("\0"):
        if field.startswith("# branch.oid "):
            revision = field.removeprefix("# branch.oid ")
        elif field and not field.startswith("# ") and unaccounted is None:
            unaccounted = field
    if revision is None or not is_revision(revision):
        return None
    # Lower case: assumed unchanged; S: skipped. Status never looks at such files.
    hidden = next((item for item in flags.split("\0") if item and (item[0].islower() or item[0] == "S")), None)
    return TreeState(revision, unaccounted or hidden)


def run_git(root: str | None, arguments: list[str], variables: Mapping[str, str]) -> str | None:
    """Standard output of a git command in `root`; None if there is no git, it fails, or takes longer than a minute."""
    git = shutil.which("git", path=variables.get("PATH", os.defpath))
    if git is None:
        return None
    environment = {name: value for name, value in variables.items() if not name.startswith("GIT_")}
    environment |= {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_REPLACE_OBJECTS": "1", "GIT_TERMINAL_PROMPT": "0"}
    settings = [part for setting in _SETTINGS for part in ("-c", setting)]
    try:
        done = subprocess.run(
            [git, *settings, *arguments],
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LIMIT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "surrogateescape") if done.returncode == 0 else None
