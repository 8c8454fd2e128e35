"""Writing entries: fresh files with fixed modes, below a directory descriptor."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
from pathlib import Path

from pypto.jit.artifact_cache.tree import close, open_child, open_directory

_RENAME_NOREPLACE = 1
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_file(directory: int, relative: str, data: bytes, *, executable: bool, sync: bool = False) -> None:
    """Write one new file (mode 0700 or 0600 whatever the umask), making the folders above it.

    Raises:
        OSError: it exists already or cannot be written.
    """
    *folders, name = relative.encode("utf-8").split(b"/")
    opened = os.dup(directory)
    try:
        for folder in folders:
            child = make_directory(opened, folder)
            close(opened)
            opened = child
        descriptor = os.open(name, _CREATE, 0o600, dir_fd=opened)
        try:
            write_all(descriptor, data)
            os.fchmod(descriptor, 0o700 if executable else 0o600)
            if sync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
    finally:
        close(opened)


def write_marker(directory: int, name: str, data: bytes) -> None:
    """Write and sync the completion marker; its mode follows the umask."""
    descriptor = os.open(name, _CREATE, 0o666, dir_fd=directory)
    try:
        write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data`, however many calls it takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def make_directory(parent: int, name: str | bytes, *, sync: bool = False) -> int:
    """Descriptor of a directory that is made when absent (mode by the umask), never through a link."""
    try:
        os.mkdir(name, dir_fd=parent)
    except FileExistsError:
        pass
    else:
        if sync:
            os.fsync(parent)
    return open_child(parent, name)


def make_root(root: Path) -> int:
    """Descriptor of a directory that is made when absent, together with those above it."""
    try:
        return open_directory(root)
    except FileNotFoundError:
        if root == root.parent:
            raise
    parent = make_root(root.parent)
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(root)
        # Not part of the store's promise, and a parent may refuse it.
        with contextlib.suppress(OSError):
            os.fsync(parent)
    finally:
        close(parent)
    return open_directory(root)


def sync_tree(directory: int) -> None:
    """Sync a directory and all directories below it."""
    for name in sorted(os.listdir(directory)):
        try:
            child = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        except NotADirectoryError:
            continue
        try:
            sync_tree(child)
        finally:
            close(child)
    os.fsync(directory)


def rename_noreplace(directory: int, old: str, new: str) -> None:
    """Rename inside one directory, atomically, and only if `new` does not exist (not even as an empty directory).

    Raises:
        OSError: it exists, or the system cannot do this; no other way to rename is tried.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        renameat2 = libc.renameat2
    except AttributeError:
        raise OSError(errno.ENOSYS, "this C library has no renameat2") from None
    renameat2.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    if renameat2(directory, os.fsencode(old), directory, os.fsencode(new), _RENAME_NOREPLACE) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"renameat2 without replacing failed: {os.strerror(code)}", new)
