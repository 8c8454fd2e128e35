"""Getting the locked files of one tool set: from a folder the user names, else kept ones, else with pip and apt."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from pypto.toolchain.apt import Apt
from pypto.toolchain.downloads import keep, kept
from pypto.toolchain.errors import FetchError
from pypto.toolchain.lock import LockedFile, LockedSet
from pypto.toolchain.pip import download_wheel
from pypto.toolchain.progress import Progress

FILES_VARIABLE = "PYPTO_TOOLCHAIN_FILES"


def files_folder(given: Path | None) -> Path | None:
    """The folder of files that the user fetched: the argument, else `PYPTO_TOOLCHAIN_FILES`.

    Raises:
        FetchError: it is named and no folder.
    """
    named = given if given is not None else os.environ.get(FILES_VARIABLE)
    if not named:
        return None
    folder = Path(named)
    if not folder.is_dir():
        raise FetchError(f"{'--files' if given is not None else FILES_VARIABLE} names no folder: {folder}")
    return folder


def fetch_set(locked: LockedSet, scratch: Path, files: Path | None = None) -> dict[str, Path]:
    """All files of a set by file name, each compared with the lock.

    Args:
        scratch: an existing folder for downloads; the caller removes it.
        files: a folder of files that need no download; see `files_folder`.

    Raises:
        FetchError: a file is missing, differs from the lock, or its client is missing or failed.
    """
    found = {}
    for file in locked.files:
        if files is not None and (path := files / file.file).is_file():
            _verify(file, path, f"in {files}")
            found[file.file] = path
        elif (earlier := kept(file)) is not None:
            found[file.file] = earlier
    wanted = [file for file in locked.files if file.file not in found]
    downloads = scratch / "downloads"
    downloads.mkdir(exist_ok=True)
    debs = [file for file in wanted if file.kind == "deb"]
    if debs:
        _fetch_debs(debs, locked.name, downloads, scratch)
    for file in wanted:
        path = downloads / file.file
        if file.kind == "wheel":
            with Progress(f"downloading {file.file}", file.size) as progress:
                path = download_wheel(file, downloads, scratch, progress)
        _verify(file, path, "as downloaded")
        keep(file, path)
        found[file.file] = path
    return found


def _fetch_debs(debs: Sequence[LockedFile], set_name: str, downloads: Path, scratch: Path) -> None:
    into = downloads / "debs"
    into.mkdir()
    suites = sorted({(file.where["architecture"], file.where["suite"]) for file in debs})
    for architecture, suite in suites:
        part = [file for file in debs if (file.where["architecture"], file.where["suite"]) == (architecture, suite)]
        apt = Apt(scratch / f"apt-{suite}-{architecture}", architecture, suite)
        apt.open()
        label = f"downloading {len(part)} Debian packages for {set_name}"
        with Progress(label, sum(file.size for file in part)) as progress:
            failed = apt.download({file.name: file.version for file in part}, into, progress)
            if failed is not None:
                gone = [file for file in part if not apt.has(file.name, file.version)]
                raise FetchError(
                    _left_the_mirror(gone, suite) if gone else f"apt could not fetch the packages:{failed.lines()}"
                )
    for file in debs:
        if not (into / file.file).is_file():
            raise FetchError(f"apt fetched {file.name} {file.version} under another name than {file.file}")
        (into / file.file).rename(downloads / file.file)


def _left_the_mirror(gone: Sequence[LockedFile], suite: str) -> str:
    listed = "".join(f"\n  {file.file}, sha256 {file.sha256}" for file in gone)
    return (
        f"Debian {suite} on this mirror no longer carries what the lock names:{listed}\n"
        "  remedies: name an archive that still has it (PYPTO_DEBIAN_MIRROR=URI); or put the files into a folder and "
        "pass --files DIR; or move the lock to what the mirror has: python -m pypto.toolchain lock"
    )


def _verify(file: LockedFile, path: Path, where: str) -> None:
    size = path.stat().st_size
    with open(path, "rb") as data:
        digest = hashlib.file_digest(data, "sha256").hexdigest()
    if digest != file.sha256 or size != file.size:
        raise FetchError(
            f"{file.file} {where} differs from the lock: {size} bytes, sha256 {digest}; "
            f"the lock says {file.size} bytes, sha256 {file.sha256}\n"
            "  the file is damaged or from elsewhere: delete it and fetch it again"
        )
