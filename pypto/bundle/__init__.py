"""Sealed bundles: directories of READY artifacts that a process without any compiler opens, checks and runs.

A bundle is executable code: open only bundles whose maker you trust, and pin the digest of those you deploy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypto.bundle.errors import BundleDamaged, BundleIncompatible, NoMatchingSpecialization, UnknownKernel
    from pypto.bundle.importing import import_into_store
    from pypto.bundle.reading import Bundle, BundleArtifact, BundleEntry, import_bundle, open_bundle
    from pypto.bundle.writing import SealInput, write_bundle

_MODULES = {
    "BundleDamaged": "errors",
    "BundleIncompatible": "errors",
    "NoMatchingSpecialization": "errors",
    "UnknownKernel": "errors",
    "import_into_store": "importing",
    "Bundle": "reading",
    "BundleArtifact": "reading",
    "BundleEntry": "reading",
    "import_bundle": "reading",
    "open_bundle": "reading",
    "SealInput": "writing",
    "write_bundle": "writing",
}

__all__ = [
    "Bundle",
    "BundleArtifact",
    "BundleDamaged",
    "BundleEntry",
    "BundleIncompatible",
    "NoMatchingSpecialization",
    "SealInput",
    "UnknownKernel",
    "import_bundle",
    "import_into_store",
    "open_bundle",
    "write_bundle",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)
