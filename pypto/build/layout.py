"""Files of the generated and the READY directory, and how they are written: fixed modes, whatever the umask."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from pypto._identity.records import parse_canonical_json
from pypto._identity.roles import is_executable
from pypto.build.errors import BuildError

CONFIG = "kernel_config.json"
BINARY_MANIFEST = "binary_manifest.json"


def read_config(directory: Path) -> dict[str, Any]:
    """``kernel_config.json`` of a generated or READY directory.

    Raises:
        BuildError: it is missing or not in its canonical spelling.
    """
    path = directory / CONFIG
    try:
        config = parse_canonical_json(path.read_bytes(), str(path))
    except FileNotFoundError:
        raise BuildError(f"{directory} is not a generated directory: it has no {CONFIG}") from None
    except ValueError as error:
        raise BuildError(str(error)) from None
    if not isinstance(config, dict) or config.get("schema") != 1:
        raise BuildError(f"{path} has a schema that this PyPTO does not read")
    return config


def generated_files(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Every file of the generated directory that this configuration belongs to, sorted."""
    files = {CONFIG, config["orchestration"]["source"]}
    for kernel in config["kernels"]:
        extern = kernel.get("extern")
        files |= {kernel["pto"], kernel["source"]} if extern is None else set(extern["files"])
    return tuple(sorted(files))


def ready_files(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Every file of the READY directory that this configuration belongs to, sorted."""
    files = {*generated_files(config), BINARY_MANIFEST, config["orchestration"]["binary"]}
    for kernel in config["kernels"]:
        files |= {kernel["binary"], *([kernel["cpp"]] if "cpp" in kernel else [])}
    return tuple(sorted(files))


def chip_directory(number: int) -> str:
    """Directory of a distributed program's chip with this number, below the parent's."""
    return f"chips/{number}"


def chips_of(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Directories of the chips of a distributed program, below it; empty for the program of a single chip.

    Raises:
        ValueError: the configuration is damaged.
    """
    if config.get("build_kind") != "distributed":
        return ()
    chips = config.get("chips")
    if not isinstance(chips, list) or not chips or not all(isinstance(chip, str) and chip for chip in chips):
        raise ValueError("a distributed program names its chips")
    if len(set(chips)) != len(chips):
        raise ValueError("a distributed program names a chip twice")
    return tuple(chips)


def read_chips(directory: Path, config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The configurations of a distributed program's chips by directory; none for the program of a single chip.

    Args:
        config: that of the directory itself.

    Raises:
        BuildError: as `read_config`, or the configuration is damaged.
    """
    try:
        chips = chips_of(config)
    except ValueError as error:
        raise BuildError(f"{directory / CONFIG} is damaged: {error}") from None
    return {chip: read_config(directory / chip) for chip in chips}


def tree_files(
    config: Mapping[str, Any],
    chips: Mapping[str, Mapping[str, Any]],
    files: Callable[[Mapping[str, Any]], tuple[str, ...]],
) -> tuple[str, ...]:
    """Every file of a program, sorted: of its own, or of its chips and the parent's.

    Args:
        config, chips: its configuration, and those of its chips by directory.
        files: `generated_files` or `ready_files`.
    """
    if not chips:
        return files(config)
    own = {CONFIG, BINARY_MANIFEST} if files is ready_files else {CONFIG}
    return tuple(sorted(own | {f"{chip}/{name}" for chip, each in chips.items() for name in files(each)}))


def files_of(directory: Path, files: Callable[[Mapping[str, Any]], tuple[str, ...]]) -> tuple[str, ...]:
    """Every file that the configurations in a directory name; ``files`` as of `tree_files`."""
    config = read_config(directory)
    return tree_files(config, read_chips(directory, config), files)


def is_generated(config: Mapping[str, Any], chips: Mapping[str, Mapping[str, Any]], present: Collection[str]) -> bool:
    """Whether files are those of a generated directory: all that the configuration names, and no binary manifest."""
    names = tree_files(config, chips, generated_files)
    manifests = {BINARY_MANIFEST, *(f"{chip}/{BINARY_MANIFEST}" for chip in chips)}
    return set(names) <= set(present) and manifests.isdisjoint(present)


def new_directory(path: Path) -> Path:
    """Make the output directory of a step.

    Raises:
        BuildError: it exists and holds something, or is no directory.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        occupied = any(path.iterdir())
    except (FileExistsError, NotADirectoryError):
        raise BuildError(f"output {path} exists and is not a directory") from None
    if occupied:
        raise BuildError(f"output directory {path} is not empty; name a new one")
    path.chmod(0o755)
    return path


def write_file(root: Path, name: str, data: bytes) -> None:
    """Write one file below ``root``; its mode comes from its role."""
    path = _prepare(root, name)
    path.write_bytes(data)
    path.chmod(0o755 if is_executable(name) else 0o644)


def copy_file(source: Path, root: Path, name: str) -> None:
    """Copy the bytes of ``source`` to ``name`` below ``root``; its mode comes from its role, links are followed."""
    path = _prepare(root, name)
    shutil.copyfile(source, path)
    path.chmod(0o755 if is_executable(name) else 0o644)


def _prepare(root: Path, name: str) -> Path:
    parts = PurePosixPath(name).parts
    folder = root
    for part in parts[:-1]:
        folder = folder / part
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        os.chmod(folder, 0o755)
    return folder / parts[-1]
