"""A CANN toolkit that the user installed: which build it is and where its programs lie. Nothing of it is copied."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from pypto.toolchain import elf
from pypto.toolchain.descriptor import ToolFile, ToolSet
from pypto.toolchain.errors import DescriptorError
from pypto.toolchain.tree import listing_digest

HOME_VARIABLE = "ASCEND_HOME_PATH"

_INFO = "ascend_toolkit_install.info"
_TOOLS = {
    "ccec": "bin/ccec",
    "ld.lld": "bin/ld.lld",
    "aarch64-gcc": "tools/hcc/bin/aarch64-target-linux-gnu-gcc",
    "aarch64-g++": "tools/hcc/bin/aarch64-target-linux-gnu-g++",
}
_REQUIRED = ("ccec", "ld.lld")


def cann_folder(given: Path | None) -> Path:
    """The toolkit's folder: the argument, else `ASCEND_HOME_PATH`.

    Raises:
        DescriptorError: neither names a folder.
    """
    named = given or os.environ.get(HOME_VARIABLE)
    if not named:
        raise DescriptorError(
            f"no CANN toolkit named: give its folder, or set {HOME_VARIABLE} as CANN's set_env.sh does"
        )
    if not Path(named).is_dir():
        raise DescriptorError(f"{named} is no folder; name the root of a CANN toolkit, which holds bin/ccec")
    return Path(named)


def read_cann(folder: str | os.PathLike[str]) -> ToolSet:
    """The record of the toolkit in `folder`.

    Raises:
        DescriptorError: it does not say which build it is, or lacks a compiler.
    """
    root = Path(folder)
    info, name, build = _build(root)
    listing = []
    tools = {}
    size = 0
    for tool, path in [*_TOOLS.items(), ("", info)]:
        try:
            data = (root / path).read_bytes()
        except FileNotFoundError:
            if tool in _REQUIRED:
                raise DescriptorError(f"{root} is no complete CANN toolkit: it has no {path}") from None
            continue
        except OSError as error:
            raise DescriptorError(f"{root / path} cannot be read: {error.strerror}") from None
        digest = hashlib.sha256(data).hexdigest()
        listing.append((path, bool(tool), digest))
        size += len(data)
        if tool:
            tools[tool] = ToolFile(path, digest, _build_id(root / path, data))
    return ToolSet("cann", build, None, listing_digest(listing), len(listing), size, tools, facts={name: build})


def require_unchanged(recorded: ToolSet, folder: Path) -> None:
    """Check that the toolkit in `folder` still is the build that was recorded.

    Raises:
        DescriptorError: it is another one.
    """
    _, _, build = _build(folder)
    if build != recorded.version:
        raise DescriptorError(
            f"the CANN toolkit in {folder} is now {build}, recorded is {recorded.version}; "
            f"run `python -m pypto.toolchain install --cann {folder}` again"
        )


def _build(root: Path) -> tuple[str, str, str]:
    """(path of the info file, name of the line, build number)."""
    # One file may be reached by several names: arm64-linux is a link to aarch64-linux.
    found = {os.path.realpath(path): path for path in sorted(root.glob(f"*-linux/{_INFO}"), reverse=True)}
    if not found:
        raise DescriptorError(f"{root} does not say which build of CANN it is: no <architecture>-linux/{_INFO}")
    if len(found) > 1:
        names = " and ".join(str(path.relative_to(root)) for path in sorted(found.values()))
        raise DescriptorError(f"{root} holds more than one CANN: {names}")
    (path,) = found.values()
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise DescriptorError(f"{path} cannot be read: {error.strerror}") from None
    values = dict(line.split("=", 1) for line in lines if "=" in line)
    for name in ("innerversion", "version"):
        if value := values.get(name, "").strip():
            return path.relative_to(root).as_posix(), name, value
    raise DescriptorError(f"{path} has no line innerversion= or version=")


def _build_id(path: Path, data: bytes) -> str | None:
    if not elf.is_elf(data):
        return None  # a wrapper script
    try:
        return elf.build_id(data)
    except elf.NotElf as error:
        raise DescriptorError(f"{path} is damaged: {error}") from None
