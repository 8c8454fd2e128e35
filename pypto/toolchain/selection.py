"""Which toolchain is in force: chosen by the process, by the environment, or the installed one."""

from __future__ import annotations

import functools
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pypto.toolchain.descriptor import DESCRIPTOR_FILE, Toolchain
from pypto.toolchain.errors import ToolchainError, ToolchainNotInstalled
from pypto.toolchain.lock import load_lock, prefix_name

if TYPE_CHECKING:
    from pypto.toolchain.host import Tools

ENVIRONMENT_VARIABLE = "PYPTO_TOOLCHAIN_DESCRIPTOR"
WORLD_VARIABLE = "PYPTO_TOOLCHAIN"
HOST = "host"
"""Instead of a descriptor: the tools of this machine."""

_guard = threading.Lock()
_chosen: Path | None = None
_host_chosen = False
_loaded: tuple[tuple[str, int, int, int], Toolchain] | None = None


def use(path: str | os.PathLike[str] | None) -> None:
    """Choose the descriptor file for this process; None returns to the environment variables or the installed tools.

    Args:
        path: the file; `"host"` chooses the tools of this machine instead (a file of that name is `"./host"`).

    Raises:
        DescriptorError: the file or the bindings beside it cannot be used.
    """
    global _chosen, _host_chosen
    host = path == HOST
    if path is not None and not host:
        Toolchain.load(path)
    with _guard:
        _chosen = None if path is None or host else Path(os.path.abspath(path))
        _host_chosen = host


def is_host_chosen() -> bool:
    """Whether builds take the tools of this machine: `use("host")`, else `PYPTO_TOOLCHAIN=host`.

    Raises:
        ToolchainError: the variable says anything else, or contradicts `PYPTO_TOOLCHAIN_DESCRIPTOR`.
    """
    if _host_chosen or _chosen is not None:
        return _host_chosen
    named = os.environ.get(WORLD_VARIABLE)
    if not named:
        return False
    if named != HOST:
        raise ToolchainError(
            f"{WORLD_VARIABLE}={named!r}: the only value is {HOST!r}, the tools of this machine; a descriptor is named "
            f"with {ENVIRONMENT_VARIABLE}"
        )
    if os.environ.get(ENVIRONMENT_VARIABLE):
        raise ToolchainError(f"{WORLD_VARIABLE} and {ENVIRONMENT_VARIABLE} are both set; unset one of them")
    return True


def in_force() -> Tools:
    """What a call of a kernel builds with: the tools of this machine if they are chosen, else `current()`.

    Raises:
        ToolchainError: as `is_host_chosen` and `current`.
    """
    if not is_host_chosen():
        return current()
    from pypto.toolchain.host import HostTools

    return HostTools.capture()


def current() -> Toolchain:
    """The toolchain in force: `use(path)`, else `PYPTO_TOOLCHAIN_DESCRIPTOR`, else the installed one.

    Reads two small files, and only again when the descriptor file changed. Never downloads.

    Raises:
        ToolchainNotInstalled: nothing was chosen and nothing is installed; names the command that installs.
        DescriptorError: the chosen or installed files cannot be used.
        ToolchainError: the tools of this machine are chosen, which have no descriptor.
    """
    global _loaded
    if is_host_chosen():
        raise ToolchainError(
            "the tools of this machine are chosen, which have no descriptor; for an installed toolchain unset "
            f"{WORLD_VARIABLE} or call pypto.toolchain.use(None)"
        )
    path = descriptor_path()
    try:
        at = path.stat()
    except OSError:
        raise ToolchainNotInstalled(_missing(path)) from None
    stamp = (str(path), at.st_ino, at.st_size, at.st_mtime_ns)
    with _guard:
        if _loaded is not None and _loaded[0] == stamp:
            return _loaded[1]
    toolchain = Toolchain.load(path)
    with _guard:
        _loaded = (stamp, toolchain)
    return toolchain


@dataclass(frozen=True)
class Selected:
    """The toolchain that `current` returns as long as `is_selected` says so."""

    toolchain: Toolchain
    chosen: Path | None
    path: str
    stamp: tuple[int, int, int]


def selected() -> Selected | None:
    """The toolchain in force and what tells that it is; ``None`` without one, or if this machine's tools are chosen."""
    if is_host_chosen():
        return None
    chosen, path = _chosen, str(descriptor_path())
    try:
        toolchain = current()
        at = os.stat(path)
    except (OSError, ToolchainError):
        return None
    return Selected(toolchain, chosen, path, (at.st_ino, at.st_size, at.st_mtime_ns))


def is_selected(selected: Selected) -> bool:
    """Whether `current` still returns that toolchain, if environment and working directory are the same."""
    if _chosen is not selected.chosen or _host_chosen:
        return False
    try:
        at = os.stat(selected.path)
    except OSError:
        return False
    return (at.st_ino, at.st_size, at.st_mtime_ns) == selected.stamp


def descriptor_path() -> Path:
    """The descriptor file that `current` reads; it need not exist."""
    if _chosen is not None:
        return _chosen
    named = os.environ.get(ENVIRONMENT_VARIABLE)
    if named:
        return Path(os.path.abspath(named))
    return default_prefix() / DESCRIPTOR_FILE


def default_prefix() -> Path:
    """Where `install` puts the tools of the packaged lock: `<cache>/pypto/toolchains/<digest of lock and recipes>`."""
    return Path(os.path.join(cache_folder(), "pypto", "toolchains", _packaged_name()))


@functools.lru_cache(maxsize=1)
def _packaged_name() -> str:
    return prefix_name(load_lock())


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME`, else `~/.cache`.

    Raises:
        ToolchainError: neither the environment nor the user database names a home folder.
    """
    named = os.environ.get("XDG_CACHE_HOME")
    if named and os.path.isabs(named):
        return Path(named)
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        raise ToolchainError("this user has no home folder: set HOME or XDG_CACHE_HOME to a writable folder")
    return Path(home) / ".cache"


def _missing(path: Path) -> str:
    if _chosen is not None:
        return f"the toolchain descriptor chosen with pypto.toolchain.use() is gone: {path}"
    if os.environ.get(ENVIRONMENT_VARIABLE):
        return f"{ENVIRONMENT_VARIABLE} names a file that does not exist: {path}"
    return (
        "no toolchain is installed, and a kernel must be built\n"
        f"  looked for: {path}\n"
        "  install it: python -m pypto.toolchain install\n"
        f"  or name one: {ENVIRONMENT_VARIABLE}=/path/to/descriptor.json\n"
        f"  or choose the tools of this machine: {WORLD_VARIABLE}={HOST}"
    )
