"""Publishing a private build: stage beside the final place, check again, sync, rename without replacing."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from pathlib import Path

from pypto.jit.artifact_cache.handle import slot_parts
from pypto.jit.artifact_cache.manifest import MARKER_LIMIT, MARKER_NAME, Manifest
from pypto.jit.artifact_cache.tree import (
    Tree,
    TreeError,
    close,
    directory_below,
    file_below,
    open_child,
    read_bounded,
    read_exactly,
    scan_tree,
)
from pypto.jit.artifact_cache.write import (
    make_directory,
    make_root,
    rename_noreplace,
    sync_tree,
    write_file,
    write_marker,
)


class PublicationFailed(Exception):
    """Nothing usable was published, or its last sync failed; the message says what happened."""


def publish(root: Path, manifest: Manifest, source: Path, *, keep: bool = False) -> Tree:
    """Copy the files of `manifest` from `source` into the store and make them visible in one step.

    Returns what was read back from the copies, with their bytes when `keep` is set.

    Raises:
        PublicationFailed: any failure; the staging directory is removed as far as possible, an existing target stays.
    """
    marker = manifest.encode()
    if len(marker) > MARKER_LIMIT:
        raise PublicationFailed(f"the manifest has {len(marker)} bytes, more than {MARKER_LIMIT}")
    try:
        slot = _open_slot(root, slot_parts(manifest.key, manifest.spec.digest))
    except (OSError, TreeError) as error:
        raise PublicationFailed(f"the slot in {root} cannot be made: {error}") from None
    try:
        tree = _stage_and_rename(slot, manifest, marker, source, keep)
        _sync_slot(slot)
    finally:
        close(slot)
    return tree


def _open_slot(root: Path, parts: tuple[str, ...]) -> int:
    """Descriptor of the slot, whose folders are made and synced when absent."""
    descriptor = make_root(root)
    try:
        for part in parts:
            child = make_directory(descriptor, part, sync=True)
            close(descriptor)
            descriptor = child
    except BaseException:
        close(descriptor)
        raise
    return descriptor


def _stage_and_rename(slot: int, manifest: Manifest, marker: bytes, source: Path, keep: bool) -> Tree:
    staging = None
    try:
        staging = f".tmp.{secrets.token_hex(8)}"
        tree = _stage(slot, staging, manifest, marker, source, keep)
        rename_noreplace(slot, staging, manifest.spec.state.value)
    except BaseException as error:
        # Best effort: a staging directory that stays is never taken for an entry.
        with contextlib.suppress(OSError):
            if staging is not None:
                shutil.rmtree(staging, dir_fd=slot)
        if isinstance(error, (OSError, TreeError, MemoryError)):
            raise PublicationFailed(str(error) or type(error).__name__) from None
        raise
    return tree


def _stage(slot: int, staging: str, manifest: Manifest, marker: bytes, source: Path, keep: bool) -> Tree:
    """Make the complete entry under its staging name; on return all of it is synced."""
    os.mkdir(staging, 0o700, dir_fd=slot)
    target = open_child(slot, staging)
    try:
        os.fchmod(target, 0o700)
        _copy(source, target, manifest)
        tree = scan_tree(target, keep=keep)
        _compare(tree, manifest)
        sync_tree(target)
        write_marker(target, MARKER_NAME, marker)
        if read_bounded(target, MARKER_NAME, MARKER_LIMIT) != marker:
            raise TreeError(f"{MARKER_NAME}: what the store holds differs from what was written")
        os.fsync(target)
    finally:
        close(target)
    return tree


def _copy(source: Path, target: int, manifest: Manifest) -> None:
    with directory_below(source, ()) as origin:
        for record in manifest.files:
            with file_below(origin, record.path) as (descriptor, _):
                data = read_exactly(descriptor, record.size + 1)
            write_file(target, record.path, data, executable=record.executable, sync=True)


def _compare(tree: Tree, manifest: Manifest) -> None:
    if tree.files != manifest.files:
        differing = sorted({record.path for record in set(tree.files) ^ set(manifest.files)})
        raise TreeError(f"{differing[0]}: the copy in the store differs from the file that was built")


def _sync_slot(slot: int) -> None:
    try:
        os.fsync(slot)
    except OSError as error:
        raise PublicationFailed(f"published, but its folder could not be synced: {error}") from None
