"""Where Bazel modules come from, for a Bazel that is not our own.

Bazel reads `rules_python` and its like from a public registry. Without a way to it, the modules of the
private prefix stand in: a fragment beside `.bazelrc`, which that file imports if it is there, names them.
The fragment is the whole state, written and removed here; nobody edits it.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from .common import Failure, run, say

if TYPE_CHECKING:
    from .launch import Launcher

FRAGMENT = ".bazelrc.modules"
PACKAGED = (8,)
"""The packaged modules were made for the Bazel they are packaged with: 7."""
NO_MODULES = frozenset(
    {"version", "help", "shutdown", "clean", "license", "info", "dump", "canonicalize-flags", "analyze-profile"}
)
"""Commands that succeed without any module."""
VALUED = frozenset(
    {"bazelrc", "command_port", "connect_timeout_secs", "digest_function", "failure_detail_out", "host_jvm_args"}
    | {"host_jvm_profile", "install_base", "install_md5", "invocation_policy", "io_nice_level", "macos_qos_class"}
    | {"local_startup_timeout_secs", "max_idle_secs", "output_base", "output_user_root", "server_javabase"}
    | {"server_jvm_out", "unix_digest_hash_attribute_name"}
)
"""Startup options that may have their value in the next argument."""
UNREACHABLE = re.compile(
    r"Error accessing registry|Unknown host|Connection refused|Connect timed out|Network is unreachable", re.I
)


def split_startup(arguments: Sequence[str]) -> tuple[list[str], str]:
    """Bazel's startup options, and its command ('' if there is none)."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-"):
        name = arguments[at].lstrip("-")
        at += 2 if name in VALUED else 1
    return list(arguments[:at]), arguments[at] if at < len(arguments) else ""


def settle(launcher: Launcher, program: str, version: tuple[int, ...], arguments: Sequence[str]) -> None:
    """Make the workspace's fragment right for this Bazel: absent with a registry, present without."""
    root = launcher.workspace
    if root is None or not _imports_fragment(root):
        return
    path = os.path.join(root, FRAGMENT)
    mode = launcher.env.get("PYPTO_BAZEL_MODULES") or "auto"
    if mode not in ("auto", "registry", "packaged"):
        raise Failure(f"PYPTO_BAZEL_MODULES={mode}: must be auto, registry or packaged")
    mark = f"# for Bazel {'.'.join(map(str, version))}"
    if mode == "registry":
        _remove(path)
        return
    if _serves(path, mark):
        return
    startup, command = split_startup(arguments)
    if mode == "auto":
        if not command or command in NO_MODULES:
            return
        _remove(path)  # made for another Bazel: it must not answer for this one
        key = _question(root, mark)
        if launcher.notes.get(key) == "registry":
            return
        answer = _ask_registry(launcher, program, startup, root)
        if answer == "resolved":
            launcher.notes.put(key, "registry")
        if answer != "unreachable":
            return
    if version >= PACKAGED:
        raise Failure(
            f"the public module registry cannot be reached, and the packaged modules are for Bazel 7, not "
            f"{'.'.join(map(str, version))} ({program})\n"
            "  unset PYPTO_BAZEL and let tools/bazel set up its own, or point --registry at a mirror in .bazelrc.user"
        )
    from . import stamp

    launcher.own()
    folder = stamp.default_prefix(launcher.cache or "")
    text = (
        "# Written by tools/bazel: modules packaged on this machine, since the public registry was out of reach.\n"
        "# Remove this file to have it try the registry again.\n"
        f"{mark}\n"
        f"try-import {folder}/overrides.bazelrc\n"
    )
    part = f"{path}.{os.getpid()}"
    try:
        with open(part, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(part, path)
    except OSError as trouble:
        raise Failure(
            f"cannot write {path}: {trouble.strerror}\n  it must name the packaged modules, since the public "
            "registry cannot be reached; make the checkout writable, or unset PYPTO_BAZEL to use tools/bazel's own"
        ) from None
    say(f"using packaged Bazel modules from now on ({path})")


def _imports_fragment(root: str) -> bool:
    try:
        with open(os.path.join(root, ".bazelrc"), encoding="utf-8") as file:
            return FRAGMENT in file.read()
    except (OSError, UnicodeDecodeError):
        return False


def _serves(path: str, mark: str) -> bool:
    """Is the fragment there, for this Bazel, with modules that still exist?"""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError):
        return False
    named = [line.partition(" ")[2] for line in lines if line.startswith("try-import ")]
    return mark in lines and bool(named) and all(os.path.isfile(n) for n in named)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as trouble:
        raise Failure(f"cannot remove {path}: {trouble.strerror}\n  it is out of date; remove it") from None


def _question(root: str, mark: str) -> str:
    """What the answer of the registry depends on: this Bazel, and what the workspace asks for."""
    asked = hashlib.sha256(mark.encode())
    for name in ("MODULE.bazel", ".bazelrc", ".bazelrc.user"):
        try:
            with open(os.path.join(root, name), "rb") as file:
                asked.update(b"\0" + hashlib.sha256(file.read()).digest())
        except OSError:
            asked.update(b"\0absent")
    return f"modules {root} {asked.hexdigest()}"


def _ask_registry(
    launcher: Launcher, program: str, startup: Sequence[str], root: str
) -> Literal["resolved", "unreachable", "unclear"]:
    """Let this Bazel resolve the workspace's modules, which it would do next anyway, and see what it says.

    Trouble other than the network's is unclear: the user's own command will report it.
    """
    say("asking the module registry (once per Bazel and MODULE.bazel)")
    env = {**launcher.env, "BAZELISK_SKIP_WRAPPER": "1"}
    env.pop("BAZEL_REAL", None)
    done = run([program, *startup, "mod", "graph", "--noshow_progress"], env=env, cwd=root, check=False)
    if done.returncode == 0:
        return "resolved"
    return "unreachable" if UNREACHABLE.search(done.stderr) else "unclear"
