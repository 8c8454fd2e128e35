"""Installing a whole toolchain into a prefix, for people who build without Bazel."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from pypto.toolchain.cann import read_cann
from pypto.toolchain.descriptor import (
    BINDINGS_FILE,
    DESCRIPTOR_FILE,
    ROOTS,
    SET_FILE,
    Bindings,
    Toolchain,
    describe,
    read_set,
)
from pypto.toolchain.errors import DescriptorError, UnpackError
from pypto.toolchain.fetch import fetch_set
from pypto.toolchain.lock import Lock, LockedSet
from pypto.toolchain.progress import Progress, megabytes, say
from pypto.toolchain.tree import measure
from pypto.toolchain.unpack import unpack_set

_SCRATCH = ".fetching"


def fetch_and_unpack(locked: LockedSet, into: Path, files: Path | None = None) -> None:
    """Fetch one set and unpack it into the existing folder `into`; safe to repeat after any interruption.

    Raises:
        FetchError, UnpackError: see `fetch_set` and `unpack_set`.
    """
    scratch = into / _SCRATCH
    try:
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
    except OSError as error:
        raise UnpackError(f"cannot write into {into}: {error.strerror}") from None
    try:
        fetched = fetch_set(locked, scratch, files)
        say(f"unpacking {locked.name}")
        made = unpack_set(locked, fetched, into)
        say(f"{locked.name} {locked.version}: {made.files} files, {megabytes(made.size)}")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def install(
    lock: Lock,
    prefix: Path,
    files: Path | None = None,
    *,
    optional: Collection[str] = (),
    cann: Path | None = None,
    force: bool = False,
) -> Toolchain:
    """Make `prefix` hold the sets of the lock, the descriptor and the bindings. Does nothing if it already does.

    Two processes may install into one prefix: the second waits. A killed installation is completed by the next one.

    Args:
        files: a folder of files that need no download.
        optional: sets that only builds for a device use; those installed earlier stay.
        cann: the CANN toolkit to build for devices with, in place of the one named earlier.
        force: fetch and unpack every set again.

    Raises:
        FetchError, UnpackError: see `fetch_and_unpack`.
        DescriptorError: `cann` is no CANN toolkit.
    """
    prefix = Path(os.path.abspath(prefix))
    with _locked(prefix):
        before = _before(prefix)
        wanted = {*ROOTS, *optional, *(name for name in before if name in lock.sets)}
        ready = None if force or cann is not None else installed(lock, prefix)
        if ready is not None and wanted <= set(ready.descriptor.sets):
            return ready
        for locked in lock:
            if locked.name not in wanted:
                continue
            folder = prefix / locked.name
            if not force and _complete(locked, folder):
                continue
            part = prefix / f".{locked.name}.part"
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            try:
                fetch_and_unpack(locked, part, files)
                # A set that others may be using is moved away before it is deleted.
                old = prefix / f".{locked.name}.old"
                shutil.rmtree(old, ignore_errors=True)
                if folder.exists():
                    os.rename(folder, old)
                os.rename(part, folder)
                shutil.rmtree(old, ignore_errors=True)
            finally:
                shutil.rmtree(part, ignore_errors=True)
        folders = {name: prefix / name for name in wanted}
        if cann is not None:
            folders["cann"] = cann
        elif "cann" in before:
            folders["cann"] = before["cann"]
        toolchain = describe(folders)
        _replace(prefix / BINDINGS_FILE, toolchain.bindings.to_bytes(prefix))
        _replace(prefix / DESCRIPTOR_FILE, toolchain.descriptor.to_bytes())
        return toolchain


def installed(lock: Lock, prefix: Path) -> Toolchain | None:
    """The toolchain in `prefix` if it is complete and of exactly this lock, else None."""
    try:
        toolchain = Toolchain.load(prefix / DESCRIPTOR_FILE)
    except DescriptorError:
        return None
    sets = toolchain.descriptor.sets
    complete = all(sets[locked.name].lock == locked.digest for locked in lock if locked.name in sets)
    return toolchain if complete else None


def check(toolchain: Toolchain) -> list[str]:
    """Read every file of every set and compare it with the descriptor; the names of the sets that differ."""
    changed = []
    for name, recorded in sorted(toolchain.descriptor.sets.items()):
        if name == "cann":
            if read_cann(toolchain.root(name)) != recorded:
                changed.append(name)
            continue
        with Progress(f"checking {name}", recorded.size):
            if measure(toolchain.root(name)) != (recorded.tree, recorded.files, recorded.size):
                changed.append(name)
    return changed


def _before(prefix: Path) -> Mapping[str, Path]:
    """The folders that an earlier installation bound, without those that are gone."""
    try:
        roots = Bindings.load(prefix / BINDINGS_FILE).roots
    except DescriptorError:
        return {}
    return {name: folder for name, folder in roots.items() if folder.is_dir()}


def _complete(locked: LockedSet, folder: Path) -> bool:
    if not (folder / SET_FILE).is_file():
        return False
    try:
        return read_set(folder).lock == locked.digest
    except DescriptorError:
        return False


def _replace(path: Path, data: bytes) -> None:
    part = path.with_name(f".{path.name}.part")
    with open(part, "wb") as file:
        file.write(data)
        os.fchmod(file.fileno(), 0o644)
        os.fsync(file.fileno())
    os.rename(part, path)


@contextlib.contextmanager
def _locked(prefix: Path) -> Iterator[None]:
    try:
        prefix.mkdir(parents=True, exist_ok=True)
        lock = open(prefix / ".lock", "w")  # noqa: SIM115
    except OSError as error:
        raise UnpackError(f"cannot write to {prefix}: {error.strerror}; choose a folder with --prefix") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process is installing into {prefix}; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
