"""Loading shared objects from bytes, so that what runs is exactly what was checked, whatever happens to files."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import itertools
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator

from pypto.runtime.errors import LoadError

_MFD_CLOEXEC = 0x1
_MFD_ALLOW_SEALING = 0x2
_MFD_NOEXEC_SEAL = 0x8
# Linux's numbers; the fcntl module has names for them only in some builds.
_F_ADD_SEALS = 1033
_ALL_SEALS = 0x1 | 0x2 | 0x4 | 0x8  # F_SEAL_SEAL, SHRINK, GROW, WRITE

_loads = itertools.count(1)


def sealed_file(data: bytes, name: str) -> int | None:
    """A file descriptor of an anonymous file that holds ``data`` and that nobody can change, or ``None`` if the system
    has none. The caller closes it; it is not inherited by child processes."""
    for flags in (_MFD_CLOEXEC | _MFD_ALLOW_SEALING, _MFD_CLOEXEC | _MFD_NOEXEC_SEAL):
        try:
            descriptor = os.memfd_create(name, flags)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM, errno.ENOSYS, errno.EINVAL):
                continue
            raise
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            fcntl.fcntl(descriptor, _F_ADD_SEALS, _ALL_SEALS)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor
    return None


def load(data: bytes, name: str) -> ctypes.CDLL:
    """Load a shared object from its bytes; its symbols stay its own. It is unloaded when the result is collected.

    Raises:
        LoadError: the dynamic loader refuses it; the message names it and gives the loader's reason.
    """
    descriptor = sealed_file(data, name)
    if descriptor is None:
        with _private_file(data, name) as path:
            return open_library(path, name)
    try:
        return open_library(descriptor_path(descriptor), name)
    finally:
        os.close(descriptor)


def descriptor_path(descriptor: int) -> str:
    """A path of an open file that no other call has returned.

    The dynamic loader takes a path that it has seen for the object it loaded from there, even when the descriptor has
    been closed and used again since. Each path therefore spells a serial number with ``.`` and empty components.
    """
    serial = "".join("./" if bit == "1" else "/" for bit in f"{next(_loads):b}")
    return f"/proc/self/fd/{serial}{descriptor}"


def open_library(path: str, name: str) -> ctypes.CDLL:
    """Load the shared object at a path; errors and unloading as `load`."""
    try:
        library = ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError as error:
        raise LoadError(f"{name} cannot be loaded: {str(error).replace(path, name)}") from None
    weakref.finalize(library, _unload, library._handle).atexit = False
    return library


def _unload(handle: int) -> None:
    import _ctypes

    _ctypes.dlclose(handle)


@contextlib.contextmanager
def _private_file(data: bytes, name: str) -> Iterator[str]:
    # mkdtemp makes the folder for this user alone.
    folder = tempfile.mkdtemp(prefix="pypto-")
    try:
        path = os.path.join(folder, f"{next(_loads)}.so")
        with open(path, "xb") as file:
            file.write(data)
        yield path
    except OSError as error:
        raise LoadError(
            f"{name} cannot be loaded: this system has no anonymous files, and {folder} cannot be written: "
            f"{error.strerror}; set TMPDIR to a folder on a file system that allows execution"
        ) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
