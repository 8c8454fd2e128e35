"""Publishing a private build: stage beside the final place, check again, sync, rename without replacing."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from pathlib import Path

from pypto.jit.artifact_cache.handle import slot_parts
from pypto.jit.artifact_cache.manifest import MARKER_LIMIT, MARKER_NAME, FileRecord, Manifest
from pypto.jit.artifact_cache.tree import (
    Tree,
    TreeError,
    directory_below,
    file_below,
    open_directory,
    read_exactly,
    scan_tree,
)
from pypto.jit.artifact_cache.write import make_directory, rename_noreplace, sync_tree, write_file, write_marker


class PublicationFailed(Exception):
    """Nothing usable was published, or its last sync failed; the message says what happened."""


def publish(root: Path, manifest: Manifest, source: Path, *, keep: bool = False) -> Tree:
    """Copy the files of `manifest` from `source` into the store and make them visible in one step.

    Returns what was read back from the copies, with their bytes when `keep` is set.

    Raises:
        PublicationFailed: any failure; the staging directory is removed as far as possible, an existing target stays.
    """
    key, spec = manifest.key, manifest.spec
    marker = manifest.encode()
    if len(marker) > MARKER_LIMIT:
        raise PublicationFailed(f"the manifest has {len(marker)} bytes, more than {MARKER_LIMIT}")
    try:
        slot = _open_slot(root, slot_parts(key, spec.digest))
    except (OSError, TreeError) as error:
        raise PublicationFailed(f"the slot in {root} cannot be made: {error}") from None
    staging = f".tmp.{secrets.token_hex(8)}"
    try:
        try:
            tree = _stage(slot, staging, manifest, marker, source, keep)
            rename_noreplace(slot, staging, spec.state.value)
        except BaseException as error:
            # Best effort: a staging directory that stays is never taken for an entry.
            with contextlib.suppress(OSError):
                shutil.rmtree(staging, dir_fd=slot)
            if isinstance(error, (OSError, TreeError)):
                raise PublicationFailed(str(error)) from None
            raise
        try:
            os.fsync(slot)
        except OSError as error:
            raise PublicationFailed(f"published, but its folder could not be synced: {error}") from None
    finally:
        os.close(slot)
    return tree


def _open_slot(root: Path, parts: tuple[str, ...]) -> int:
    os.makedirs(root, exist_ok=True)
    descriptor = open_directory(root)
    try:
        for part in parts:
            child = make_directory(descriptor, part, sync=True)
            os.close(descriptor)
            descriptor = child
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _stage(slot: int, staging: str, manifest: Manifest, marker: bytes, source: Path, keep: bool) -> Tree:
    os.mkdir(staging, 0o700, dir_fd=slot)
    target = make_directory(slot, staging)
    try:
        os.fchmod(target, 0o700)
        with directory_below(source, ()) as origin:
            for record in manifest.files:
                with file_below(origin, record.path) as (descriptor, _):
                    data = read_exactly(descriptor, record.size + 1)
                write_file(target, record.path, data, executable=record.executable, sync=True)
        tree = scan_tree(target, keep=keep)
        if tree.files != manifest.files:
            changed = next(
                (path for path, record in _by_path(manifest.files).items() if _by_path(tree.files).get(path) != record),
                "an extra file",
            )
            raise TreeError(f"{changed}: the copy in the store differs from the file that was built")
        sync_tree(target)
        write_marker(target, MARKER_NAME, marker)
        os.fsync(target)
    finally:
        os.close(target)
    return tree


def _by_path(files: tuple[FileRecord, ...]) -> dict[str, FileRecord]:
    return {file.path: file for file in files}
