"""Unpacking one tool set into a folder: all or nothing, whatever interrupts it."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path

from pypto._identity.records import canonical_json
from pypto.toolchain.descriptor import SET_FILE, ToolSet
from pypto.toolchain.errors import UnpackError
from pypto.toolchain.lock import LockedSet
from pypto.toolchain.recipes import RECIPES
from pypto.toolchain.tree import Tree

_PART = ".unpacking-"


def unpack_set(locked: LockedSet, files: Mapping[str, Path], into: Path) -> ToolSet:
    """Unpack verified files into the existing folder `into`; its record is written last and says it is complete.

    What an earlier, interrupted call left in `into` is replaced. Files that are not the set's stay.

    Raises:
        UnpackError: the files are not what the recipe expects, or the folder cannot be written.
    """
    part = into / f"{_PART}{uuid.uuid4().hex}"
    try:
        remove_parts(into)
        (into / SET_FILE).unlink(missing_ok=True)
        part.mkdir()
        tree = Tree(part)
        contents = RECIPES[locked.name](locked, files, tree)
        made = ToolSet(
            locked.name,
            locked.version,
            locked.digest,
            tree.digest,
            tree.files,
            tree.size,
            contents.tools,
            contents.includes,
            contents.libraries,
            contents.facts,
        )
        for entry in sorted(os.listdir(part)):
            if (into / entry).is_dir():
                shutil.rmtree(into / entry)
            os.rename(part / entry, into / entry)
        record = part / SET_FILE
        record.write_bytes(canonical_json(made.record()))
        os.chmod(record, 0o644)
        os.rename(record, into / SET_FILE)
    except OSError as error:
        raise UnpackError(f"cannot unpack the tool set {locked.name} into {into}: {error}") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return made


def remove_parts(into: Path) -> None:
    """Remove what killed calls left behind in `into`."""
    for left in into.glob(f"{_PART}*"):
        shutil.rmtree(left, ignore_errors=True)
