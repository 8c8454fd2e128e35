"""The running interpreter and the imported package: the component `pypto`."""

from __future__ import annotations

import functools
import importlib.machinery
import os
import sys
import sysconfig

from pypto._identity.content import ContentRoot
from pypto._identity.host.closure import closure
from pypto._identity.host.files import Unidentified, native_record
from pypto._identity.host.overrides import execution_directory, interpreter_overrides
from pypto._identity.host.probes import Probes
from pypto._identity.host.records import InterpreterRecord, NativeRecord, PyptoRecord
from pypto._identity.host.selection import HostSelection
from pypto._identity.package import default_package_root, package_fingerprints
from pypto._identity.policy import IdentitySettings
from pypto._identity.toolchain_inputs import ComponentInputs

_NOT_LIBRARY = ("__pycache__", "dist-packages", "site-packages")


def running_interpreter(*, whole: bool = False) -> tuple[InterpreterRecord, str]:
    """Evidence of the interpreter that runs this, and its real path.

    Raises:
        Unidentified: the interpreter's file is unknown or cannot be read.
    """
    if not sys.executable:
        raise Unidentified("the running Python does not know its own file")
    path = os.path.realpath(sys.executable)
    record: InterpreterRecord = {
        "version": f"{sys.implementation.name} {sys.version}",
        "abi": [str(sys.implementation.cache_tag), importlib.machinery.EXTENSION_SUFFIXES[0]],
        "native": native_record(path, whole=whole),
    }
    return record, path


def imported_extensions(folder: str, package: str) -> dict[str, str]:
    """Files of the native extensions imported so far that belong to a package by name or by place; by module name."""
    suffixes = tuple(importlib.machinery.EXTENSION_SUFFIXES)
    found = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or not file.endswith(suffixes):
            continue
        # By name: source Python and an extension of an editable install stand in different folders.
        if name.startswith(f"{package}.") or os.path.realpath(file).startswith(os.path.realpath(folder) + os.sep):
            found[name] = os.path.abspath(file)
    return dict(sorted(found.items()))


def pypto_inputs(selection: HostSelection, settings: IdentitySettings, probes: Probes) -> ComponentInputs:
    """The component `pypto`: the package that was really imported, and the interpreter that runs it."""
    root = selection.package_root or os.fspath(default_package_root())
    content = package_fingerprints(root)["pypto"]
    if content.digest is None:
        return ComponentInputs(unavailable_reason=content.reason)
    whole = settings.reads_content
    try:
        interpreter, path = running_interpreter(whole=whole)
        extensions = imported_extensions(root, "pypto")
        natives: dict[str, NativeRecord] = {name: native_record(file, whole=whole) for name, file in extensions.items()}
        record: PyptoRecord = {
            "content": content.digest,
            "extensions": natives,
            "python": interpreter,
            "python_path": path,
            "overrides": interpreter_overrides(selection.variables),
            "execution_directory": execution_directory(selection.variables, (selection.cwd,)),
        }
        roots: list[str] = []
        if whole:
            roots = [root, *closure([path, *extensions.values()], probes), *standard_library()]
    except Unidentified as error:
        return ComponentInputs(unavailable_reason=str(error))
    return ComponentInputs(roots=tuple(map(ContentRoot, roots)), evidence=dict(record), unavailable_reason=None)


@functools.lru_cache(maxsize=1)
def standard_library() -> tuple[str, ...]:
    """Files and folders of the running interpreter's standard library; installed packages and `config` left out."""
    folders = sorted({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})
    return tuple(
        os.path.join(folder, name)
        for folder in folders
        if os.path.isdir(folder)
        for name in sorted(os.listdir(folder))
        if name not in _NOT_LIBRARY and not name.startswith("config-")
    )
