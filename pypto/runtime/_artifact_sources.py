"""Hand-written kernel sources inside a generated directory: which files they need, and packing them.

A kernel with hand-written code names its source and include folders by absolute paths when it is generated. Packing
copies the source and every file that its includes can reach into ``extern/<kernel>/`` of the directory, in the same
relative places, and makes the configuration's paths relative; from then on nothing outside of the directory is needed.

The scanner of includes is no preprocessor: it takes what it cannot decide for possible, and refuses what it cannot
follow with `UnsupportedArtifactInput`. Such a kernel can still be compiled where it stands, but not be shared.
"""

from __future__ import annotations

import contextvars
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from pypto._identity.records import canonical_json, parse_canonical_json
from pypto.runtime._include_scan import Include, scan_includes
from pypto.runtime.errors import UnsupportedArtifactInput
from pypto.runtime.kernel_config import CONFIG_FILE

__all__ = [
    "ExternPackage",
    "UnsupportedArtifactInput",
    "following_links",
    "package_extern",
    "package_generated_sources",
]

FOLDER = "extern"
"""Where packed sources lie in a generated directory."""

_BUILD_KINDS = ("single_chip", "distributed")
_follow_links = contextvars.ContextVar("follow_links", default=False)


@contextmanager
def following_links() -> Iterator[None]:
    """Take links for what they lead to, for builds whose every input is a link that the build system made."""
    token = _follow_links.set(True)
    try:
        yield
    finally:
        _follow_links.reset(token)


@dataclass(frozen=True)
class ExternPackage:
    """The files of one hand-written kernel.

    Attributes:
        source: its own file, relative to the package.
        include_dirs: folders for its includes, in order, relative to the package; "." is the package itself.
        files: every file that may be read, by relative path.
    """

    source: str
    include_dirs: tuple[str, ...]
    files: Mapping[str, bytes]


def package_generated_sources(private_directory: str | os.PathLike[str], build_kind: str) -> None:
    """Pack the hand-written sources of a generated directory into it and make its configuration's paths relative.

    Everything is read before anything is written, so a refused directory is as it was. Packing twice is the same as
    packing once.

    Args:
        private_directory: generated directory of one chip, or of a distributed program with chips below it.
        build_kind: ``single_chip`` or ``distributed``, or a member of ``BuildKind``.

    Raises:
        UnsupportedArtifactInput: a source needs something that cannot be packed; names it.
        ValueError: a configuration is damaged, or of another build kind.
        OSError: a file cannot be read or written.
    """
    kind = getattr(build_kind, "value", build_kind)
    if kind not in _BUILD_KINDS:
        raise ValueError(f"build_kind is {' or '.join(_BUILD_KINDS)}, got {build_kind!r}")
    root = Path(private_directory)
    config = _read_config(root)
    if config.get("build_kind") != kind:
        raise ValueError(f"{root / CONFIG_FILE} is of build kind {config.get('build_kind')!r}, expected {kind!r}")
    chips = [root] if kind == "single_chip" else [root / chip for chip in config.get("chips", [])]
    packed = [(chip, *_packed(chip)) for chip in chips]
    for chip, changed, files in packed:
        for name, data in files.items():
            _write(chip, name, data)
        if changed is not None:
            _write(chip, CONFIG_FILE, canonical_json(changed))


def package_extern(source: str | os.PathLike[str], include_dirs: Sequence[str | os.PathLike[str]]) -> ExternPackage:
    """The files that a hand-written source may read, in the places that they have relative to each other.

    Raises:
        UnsupportedArtifactInput: it needs something that cannot be packed.
        OSError: a file cannot be read.
    """
    return _Packer(source, include_dirs).pack()


def _packed(chip: Path) -> tuple[dict[str, Any] | None, dict[str, bytes]]:
    """The new configuration of one chip, if it has to change, and the files to write."""
    config = _read_config(chip)
    kernels, files, changed = [], {}, False
    for kernel in config.get("kernels", []):
        extern = kernel.get("extern")
        if extern is None or extern.get("files"):
            kernels.append(kernel)
            continue
        package = package_extern(kernel["source"], extern.get("include_dirs") or [])
        folder = PurePosixPath(FOLDER, kernel["name"])
        names = {str(folder / name): data for name, data in package.files.items()}
        files.update(names)
        folders = [str(folder / each) for each in package.include_dirs]
        packed = {**extern, "include_dirs": folders, "files": sorted(names)}
        kernels.append({**kernel, "source": str(folder / package.source), "extern": packed})
        changed = True
    return ({**config, "kernels": kernels} if changed else None), files


def _read_config(directory: Path) -> dict[str, Any]:
    path = directory / CONFIG_FILE
    config = parse_canonical_json(path.read_bytes(), str(path))
    if not isinstance(config, dict):
        raise ValueError(f"{path} is not an object")
    return config


def _write(root: Path, name: str, data: bytes) -> None:
    path = root
    for part in PurePosixPath(name).parts[:-1]:
        path = path / part
        if not path.is_dir():
            path.mkdir()
            path.chmod(0o755)
    path = root / name
    path.write_bytes(data)
    path.chmod(0o644)


class _Packer:
    """Follows the includes of one source. Paths are those of the common root, resolved once, and parts below it."""

    def __init__(self, source: str | os.PathLike[str], include_dirs: Sequence[str | os.PathLike[str]]) -> None:
        given = os.path.abspath(source)
        folders = [os.path.abspath(folder) for folder in include_dirs]
        common = os.path.commonpath([os.path.dirname(given), *folders])
        if common == "/":
            raise UnsupportedArtifactInput(f"{given} and its include folders have no folder in common but /")
        self._follow = _follow_links.get()
        self._root = Path(os.path.realpath(common))
        self._source = self._below(given, common)
        self._folders = [self._below(folder, common) for folder in folders]
        self._files: dict[Path, bytes] = {}

    def pack(self) -> ExternPackage:
        waiting = [self._source]
        while waiting:
            path = waiting.pop()
            if path in self._files:
                continue
            self._files[path] = data = path.read_bytes()
            waiting += [found for include in scan_includes(data, str(path)) if (found := self._find(path, include))]
        # What was reached by `..` may lie above the common root of what was declared.
        root = Path(os.path.commonpath([*(path.parent for path in self._files), *self._folders]))
        if root == Path("/"):
            raise UnsupportedArtifactInput(f"{self._source} reaches files that have no folder in common but /")
        names = {str(path.relative_to(root)): data for path, data in sorted(self._files.items())}
        folders = tuple(str(folder.relative_to(root)) for folder in self._folders)
        return ExternPackage(str(self._source.relative_to(root)), folders, names)

    def _below(self, path: str, common: str) -> Path:
        found = self._walk(self._root, os.path.relpath(path, common), f"{path}")
        return self._root / os.path.relpath(path, common) if found is None else found

    def _find(self, includer: Path, include: Include) -> Path | None:
        """The file that an include means; ``None`` for one of the SDK."""
        if include.name.startswith("/"):
            raise UnsupportedArtifactInput(f"{include.place}: {include} is an absolute path")
        folders = [*([] if include.angled else [includer.parent]), *self._folders]
        for folder in folders:
            found = self._walk(folder, include.name, f"{include.place}: {include}")
            if found is not None and found.is_file():
                return found
        if include.angled:
            return None
        raise UnsupportedArtifactInput(f"{include.place}: {include} is not in any of {', '.join(map(str, folders))}")

    def _walk(self, start: Path, relative: str, what: str) -> Path | None:
        """Where a relative path leads, part by part as the system does; ``None`` where it leads nowhere."""
        here = start
        for part in PurePosixPath(relative).parts:
            if part == "..":
                here = here.parent
                continue
            here = here / part
            try:
                mode = here.lstat().st_mode
            except (FileNotFoundError, NotADirectoryError):
                return None
            if stat.S_ISLNK(mode) and not self._follow:
                raise UnsupportedArtifactInput(f"{what} goes through the link {here}")
        return here
