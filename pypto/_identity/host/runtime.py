"""The component `runtime`: the package's own, or an external root that is a clean checkout or an installation."""

from __future__ import annotations

import importlib.machinery
import os
from collections.abc import Mapping

from pypto._identity.content import ContentRoot, fingerprint_extra_sources
from pypto._identity.host.files import Unidentified, file_digest, lies_in, native_record, read_small
from pypto._identity.host.git import tree_state
from pypto._identity.host.pto_isa import PIN_FILE
from pypto._identity.host.python import imported_extensions
from pypto._identity.host.records import NativeRecord, RuntimeRecord
from pypto._identity.host.selection import HostSelection
from pypto._identity.package import default_package_root, package_fingerprints
from pypto._identity.policy import IdentitySettings
from pypto._identity.toolchain_inputs import ComponentInputs

_PACKAGE = "simpler"
"""The package of an external runtime."""

# What a runtime's build leaves about itself, beside the pin of PTO-ISA.
BUILD_FILE = "build_version"
_METADATA = (BUILD_FILE, PIN_FILE, "build_metadata.json", "pto_isa_metadata.json")


def runtime_inputs(selection: HostSelection, settings: IdentitySettings) -> ComponentInputs:
    """The component `runtime`.

    An external root with uncommitted changes, or with neither a checkout nor a build version, has no identity. The
    package's own runtime is its content: a changed file is another key.
    """
    root = selection.runtime_root
    try:
        record = _own(selection, settings) if root is None else _external(root, selection.variables, settings)
    except Unidentified as error:
        return ComponentInputs(unavailable_reason=str(error))
    roots = (ContentRoot(root),) if root is not None and settings.reads_content else ()
    return ComponentInputs(roots=roots, evidence=dict(record), unavailable_reason=None)


def _own(selection: HostSelection, settings: IdentitySettings) -> RuntimeRecord:
    root = selection.package_root or os.fspath(default_package_root())
    content = package_fingerprints(root)["runtime"]
    if content.digest is None:
        raise Unidentified(content.reason or "the package's runtime cannot be read")
    extensions = imported_extensions(os.path.join(root, "runtime"), "pypto.runtime")
    return {
        "content": content.digest,
        "extensions": {name: native_record(path, whole=settings.reads_content) for name, path in extensions.items()},
        "metadata": {},
    }


def _external(root: str, variables: Mapping[str, str], settings: IdentitySettings) -> RuntimeRecord:
    revision, build = None, None
    if os.path.lexists(os.path.join(root, ".git")):
        state = tree_state(root, variables, ignored=False)
        if state is None:
            raise Unidentified(f"the state of the runtime checkout {root} cannot be read")
        if state.unaccounted is not None:
            raise Unidentified(f"the runtime checkout {root} has uncommitted changes: {state.unaccounted}")
        revision = state.revision
    else:
        build = _build_version(root)
    content = fingerprint_extra_sources([ContentRoot(root)])
    if content.digest is None:
        raise Unidentified(content.reason or f"{root} cannot be read")
    record: RuntimeRecord = {
        "content": content.digest,
        "extensions": _extensions(root, settings),
        "metadata": {
            name: file_digest(path) for name in _METADATA if os.path.lexists(path := os.path.join(root, name))
        },
    }
    if revision is not None:
        record["revision"] = revision
    if build is not None:
        record["build"] = build
    return record


def _build_version(root: str) -> str:
    path = os.path.join(root, BUILD_FILE)
    version = read_small(path).decode("utf-8", "replace").strip() if os.path.isfile(path) else ""
    if not version:
        raise Unidentified(f"the runtime {root} is no checkout and has no {BUILD_FILE}")
    return version


def _extensions(root: str, settings: IdentitySettings) -> dict[str, NativeRecord]:
    """The extensions imported from `root`; before any is imported, all that could be."""
    suffixes = tuple(importlib.machinery.EXTENSION_SUFFIXES)
    paths = set(imported_extensions(root, _PACKAGE).values())
    if not any(lies_in(os.path.realpath(path), [os.path.realpath(root)]) for path in paths):
        for folder, _, names in os.walk(root):
            paths |= {os.path.join(folder, name) for name in names if name.endswith(suffixes)}
    return {os.path.relpath(path, root): native_record(path, whole=settings.reads_content) for path in sorted(paths)}
