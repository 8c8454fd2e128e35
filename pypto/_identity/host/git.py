"""Questions to git about a checkout, with nothing of the caller's configuration that could bend the answers."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from pypto._identity.host.probes import Answer, ProcessProbes

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
    status = ["status", "--porcelain=v2", "--branch", "--ignore-submodules=none", "-z"]
    answers = _run(
        root,
        [
            [*status, *(["--ignored"] if ignored else [])],
            ["ls-files", "-v", "-z"],
            ["config", "-z", "--get-regexp", r"^core\.(autocrlf|eol)$"],
            ["rev-parse", "--git-path", "info/attributes"],
        ],
        variables,
    )
    # Status 1 of `config`: no such setting.
    if answers is None or [answer.status for answer in answers] not in ([0, 0, 0, 0], [0, 0, 1, 0]):
        return None
    said, listed, settings, attributes = (answer.stdout.decode("utf-8", "surrogateescape") for answer in answers)
    revision, unaccounted = None, None
    for field in said.split("\0"):
        if field.startswith("# branch.oid "):
            revision = field.removeprefix("# branch.oid ")
        elif field and not field.startswith("# ") and unaccounted is None:
            unaccounted = field
    if revision is None or not is_revision(revision):
        return None
    # Lower case: assumed unchanged; S: skipped. Status never looks at such files.
    hidden = next((item for item in listed.split("\0") if item and (item[0].islower() or item[0] == "S")), None)
    return TreeState(
        revision, unaccounted or hidden or _conversion(settings, os.path.join(root, attributes.removesuffix("\n")))
    )


def run_git(root: str, arguments: list[str], variables: Mapping[str, str]) -> str | None:
    """Standard output of a git command in `root`; None if there is no git, it fails, or takes longer than a minute."""
    answers = _run(root, [arguments], variables)
    if answers is None or answers[0].status != 0:
        return None
    return answers[0].stdout.decode("utf-8", "surrogateescape")


def _run(root: str, commands: list[list[str]], variables: Mapping[str, str]) -> list[Answer] | None:
    git = shutil.which("git", path=variables.get("PATH", os.defpath))
    if git is None:
        return None
    environment = {name: value for name, value in variables.items() if not name.startswith("GIT_")}
    environment |= {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_REPLACE_OBJECTS": "1", "GIT_TERMINAL_PROMPT": "0"}
    settings = [part for setting in _SETTINGS for part in ("-c", setting)]
    return ProcessProbes(environment, root, _LIMIT)([[git, *settings, *command] for command in commands])


def _conversion(settings: str, attributes: str) -> str | None:
    """What lets files of a checkout have other bytes than the commit's, though git calls them unchanged."""
    for setting in settings.split("\0"):
        name, _, value = setting.partition("\n")
        if (name, value.lower()) in (("core.autocrlf", "true"), ("core.eol", "crlf")):
            return f"{name}={value}"
    return attributes if os.path.lexists(attributes) else None
