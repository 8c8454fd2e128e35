"""Sealed bundles as a source of READY artifacts for JIT calls."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from pypto.runtime.forks import ForkSafeLock

if TYPE_CHECKING:
    from pypto.bundle.reading import Bundle, BundleEntry

_VARIABLE = "PYPTO_BUNDLE_PATH"

_lock = ForkSafeLock()
_chosen: tuple[Path, ...] | None = None
_open: dict[Path, Bundle] = {}


def use_bundles(paths: Iterable[str | os.PathLike[str]] | None) -> None:
    """Let JIT calls of this process use these bundles instead of those of ``PYPTO_BUNDLE_PATH``; ``None`` undoes it.

    Every bundle is opened now and stays open: its directory must not change while the process runs.

    Raises:
        BundleDamaged, BundleIncompatible: a path is not a bundle that this process can use.
    """
    global _chosen
    chosen = None
    if paths is not None:
        if isinstance(paths, (str, os.PathLike)):
            raise TypeError(f"use_bundles takes a list of paths, got one path {os.fspath(paths)!r}")
        chosen = tuple(Path(os.path.abspath(path)) for path in paths)
        for path in chosen:
            _opened(path)
    with _lock:
        _chosen = chosen


def chosen_bundles() -> tuple[Path, ...] | None:
    """What `use_bundles` chose last; ``None`` if the environment decides."""
    return _chosen


def bundle_paths() -> tuple[Path, ...]:
    """The bundles in force, in order."""
    with _lock:
        if _chosen is not None:
            return _chosen
    text = os.environ.get(_VARIABLE)
    if not text:
        return ()
    return tuple(Path(os.path.abspath(part)) for part in text.split(os.pathsep) if part)


def find_sealed(
    paths: Iterable[Path], source_digest: str, specialization_digest: str
) -> tuple[Bundle, BundleEntry] | None:
    """The first bundle that holds the artifact of a request, and its entry.

    Raises:
        BundleDamaged, BundleIncompatible: a path is not a bundle that this process can use.
    """
    for path in paths:
        bundle = _opened(path)
        entry = bundle.find_request(source_digest, specialization_digest)
        if entry is not None:
            return bundle, entry
    return None


def _opened(path: Path) -> Bundle:
    with _lock:
        bundle = _open.get(path)
    if bundle is None:
        from pypto.bundle.reading import import_bundle

        bundle = import_bundle(path)
        with _lock:
            bundle = _open.setdefault(path, bundle)
    return bundle
