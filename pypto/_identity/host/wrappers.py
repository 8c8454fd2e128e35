"""Wrappers of a compiler: the few kinds whose effect can be told from their files."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from pypto._identity.host.files import Unidentified, file_digest, is_elf, read_small
from pypto._identity.host.records import WrapperRecord
from pypto._identity.host.selection import HostSelection

_EXEC_SCRIPT = re.compile(
    rb"#![ \t]*/bin/(?:ba|da)?sh[ \t]*\n(?:[ \t]*(?:#[^\n]*)?\n)*exec[ \t]+([\w./+-]+)[ \t]+\"\$@\"\s*"
)
_MAX_SCRIPT = 4096

# Settings of ccache with which it runs another compiler, or may answer with the output of another input.
_CCACHE_VARIABLES = ("CCACHE_COMPILER", "CCACHE_PATH", "CCACHE_PREFIX", "CCACHE_PREFIX_CPP", "CCACHE_SLOPPINESS")
_CCACHE_SETTINGS = ("compiler", "path", "prefix_command", "prefix_command_cpp", "sloppiness")


@dataclass(frozen=True)
class Entry:
    """An invoked compiler. `driver` is the file it must start, if its own file says so."""

    record: WrapperRecord | None
    driver: str | None


def examine_entry(path: str, selection: HostSelection) -> Entry:
    """What the invoked file is: the driver itself (no record), or a wrapper that is understood.

    Raises:
        Unidentified: a wrapper of any other kind.
    """
    real = os.path.realpath(path)
    if is_elf(real):
        if os.path.basename(real) == "ccache":
            return Entry(_ccache(path, selection), None)
        return Entry(None, real)
    unknown = Unidentified(f"the compiler wrapper {path} is not recognised")
    try:
        text = read_small(real, _MAX_SCRIPT)
    except Unidentified:
        raise unknown from None
    match = _EXEC_SCRIPT.fullmatch(text)
    if match is None:
        raise unknown
    driver = os.path.realpath(selection.find(match[1].decode("ascii")))
    return Entry({"kind": "exec", "files": {real: file_digest(real)}, "variables": {}}, driver)


def _ccache(path: str, selection: HostSelection) -> WrapperRecord:
    variables = {name: value for name, value in sorted(selection.variables.items()) if name.startswith("CCACHE_")}
    for name in _CCACHE_VARIABLES:
        if variables.get(name):
            raise Unidentified(f"the compiler wrapper {path} is not recognised: {name} is set")
    files = {}
    for file in _ccache_files(selection):
        if not os.path.lexists(file):
            continue
        for setting in _settings(read_small(file)):
            if setting in _CCACHE_SETTINGS:
                raise Unidentified(f"the compiler wrapper {path} is not recognised: {file} sets {setting}")
        files[file] = file_digest(file)
    return {"kind": "ccache", "files": files, "variables": variables}


def _ccache_files(selection: HostSelection) -> list[str]:
    variables = selection.variables
    if named := variables.get("CCACHE_CONFIGPATH"):
        return [selection.resolve(named)]
    home = variables.get("HOME", "")
    folders = [
        variables.get("CCACHE_DIR") or os.path.join(home, ".ccache"),
        os.path.join(variables.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "ccache"),
    ]
    folders += ["/etc", "/usr/local/etc"]
    return [os.path.join(selection.resolve(folder), "ccache.conf") for folder in folders]


def _settings(text: bytes) -> list[str]:
    lines = [line.strip() for line in text.decode("utf-8", "replace").splitlines()]
    pairs = [line.partition("=") for line in lines if line and not line.startswith("#")]
    return [name.strip() for name, _, value in pairs if value.strip()]
