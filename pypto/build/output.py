"""Program output directories: generated code and binaries side by side, compiled again and again by their owner."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from pypto.build.errors import BuildError
from pypto.build.layout import CONFIG, copy_file, files_of, generated_files


def make_output(directory: Path) -> Path:
    """Make an output directory, or take one that is there.

    Raises:
        BuildError: it cannot be made.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BuildError(f"output directory {directory} cannot be made: {error.strerror}") from None
    return directory


def replace_generated(generated: Path, directory: Path) -> None:
    """Put a generated directory's files in place of those of an earlier compilation; everything else stays.

    Raises:
        BuildError: the directory cannot be written.
    """
    names = files_of(generated, generated_files)
    try:
        for name in set(_earlier(directory)) - set(names):
            (directory / name).unlink(missing_ok=True)
        for name in names:
            copy_file(generated / name, directory, name)
    except OSError as error:
        raise BuildError(f"output directory {directory} cannot be written: {error}") from None


def _earlier(directory: Path) -> Collection[str]:
    if not (directory / CONFIG).is_file():
        return ()
    try:
        return files_of(directory, generated_files)
    except (BuildError, KeyError, TypeError):
        return ()
