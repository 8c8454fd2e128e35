"""The console script with which a wheel starts ptoas: which interpreter it selects and what that one loads."""

from __future__ import annotations

import ast
import functools
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto._identity.host.files import Unidentified, file_digest, is_elf, is_executable, native_record, read_small
from pypto._identity.host.probes import Probes
from pypto._identity.host.records import InterpreterRecord, StartupRecord

PACKAGES = ("ptoas", "ptodsl", "TileOps", "SoftOps")
_NUMPY = "numpy"
_MAX_SCRIPT = 16384
_LONG_SHEBANG = re.compile(r"#!/bin/sh\n'''exec' \"?([^\"\n]+?)\"? \"\$0\" \"\$@\"\n' '''\n")
_DIRECT_SHEBANG = re.compile(r"#!(/\S+)[ \t]*\n")

# What pip, distlib and uv write; `M` and `f` stand for the entry point.
_TEMPLATES = (
    """
import re
import sys
from M import f
if __name__ == '__main__':
    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])
    sys.exit(f())
""",
    """
import re
import sys
from M import f
if __name__ == '__main__':
    sys.argv[0] = re.sub(r'(-script\\.pyw?|\\.exe)?$', '', sys.argv[0])
    sys.exit(f())
""",
    """
import sys
from M import f
if __name__ == '__main__':
    if sys.argv[0].endswith('.exe'):
        sys.argv[0] = sys.argv[0][:-4]
    sys.exit(f())
""",
    """
import sys
from M import f
if __name__ == '__main__':
    sys.argv[0] = sys.argv[0].removesuffix('.exe')
    sys.exit(f())
""",
    """
import sys
from M import f
if __name__ == '__main__':
    if sys.argv[0].endswith('-script.pyw'):
        sys.argv[0] = sys.argv[0][:-11]
    elif sys.argv[0].endswith('.exe'):
        sys.argv[0] = sys.argv[0][:-4]
    sys.exit(f())
""",
    """
import sys
from M import f
if __name__ == '__main__':
    sys.exit(f())
""",
)


@dataclass(frozen=True)
class Launcher:
    """A console script: the interpreter that its first line names, and the entry point `module:function`."""

    path: str
    interpreter: str
    entry: str


@dataclass(frozen=True)
class Startup:
    """What the interpreter of a launcher said about itself; `packages` as the probe found them."""

    interpreter: InterpreterRecord
    record: StartupRecord
    executable: str
    packages: dict[str, Any]


def read_launcher(path: str) -> Launcher:
    """The launcher in `path` (an absolute path).

    Raises:
        Unidentified: it is none of the console scripts that installers of wheels write.
    """
    unsupported = Unidentified(f"the ptoas launcher {path} is not supported: no ELF file and no wheel's console script")
    try:
        text = read_small(path, _MAX_SCRIPT).decode("utf-8")
    except (Unidentified, UnicodeDecodeError):
        raise unsupported from None
    match = _LONG_SHEBANG.match(text) or _DIRECT_SHEBANG.match(text)
    entry = None if match is None else _entry_point(text[match.end() :])
    if match is None or entry is None:
        raise unsupported
    interpreter = match[1]
    if not is_executable(interpreter) or not is_elf(interpreter):
        raise Unidentified(f"the ptoas launcher {path} names an interpreter that is no ELF program: {interpreter}")
    return Launcher(path, interpreter, entry)


def probe_startup(launcher: Launcher, probes: Probes, *, whole: bool = False) -> Startup:
    """Ask the launcher's interpreter what it loads before any program. Imports no package of the wheel.

    Raises:
        Unidentified: the interpreter does not answer, or something it loaded cannot be read.
    """
    script_folder = os.path.dirname(os.path.realpath(launcher.path))
    (answer,) = probes([[launcher.interpreter, "-c", _probe_text(), script_folder, *PACKAGES, _NUMPY]])
    missing = f"no start-up evidence from {launcher.interpreter}, the interpreter of {launcher.path}"
    if answer.status != 0:
        raise Unidentified(missing)
    try:
        # Hooks may print before.
        said = json.loads(answer.stdout.rstrip(b"\n").rpartition(b"\n")[2])
        hooks = _hooks(said["path"] + said["sites"], said["environment"])
        modules = _modules(said["modules"])
        interpreter: InterpreterRecord = {
            "version": f"{said['implementation']} {said['version']}",
            "abi": [str(said["cache_tag"]), said["extensions"]],
            "native": native_record(said["executable"], whole=whole),
        }
        record: StartupRecord = {"path": said["path"], "hooks": hooks, "modules": modules}
        return Startup(interpreter, record, said["executable"], said["packages"])
    except (ValueError, KeyError, TypeError):
        raise Unidentified(missing) from None


def _hooks(folders: list[str], environment: str | None) -> dict[str, str]:
    files = set() if environment is None else {environment}
    for folder in folders:
        try:
            names = os.listdir(folder)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise Unidentified(f"{folder}: cannot be read: {error.strerror}") from None
        files |= {os.path.join(folder, name) for name in names if name.endswith(".pth")}
    return {path: file_digest(path) for path in sorted(files)}


def _modules(found: list[list[Any]]) -> dict[str, str]:
    modules = {}
    for name, file, namespace in found:
        if file is None:
            if not namespace:
                raise Unidentified(f"no start-up evidence: the module {name} was made by a start-up hook from no file")
            continue
        modules[name] = file_digest(file)
    return modules


@functools.lru_cache(maxsize=1)
def _probe_text() -> str:
    return Path(__file__).with_name("startup_probe.py").read_text(encoding="utf-8")


def _entry_point(text: str) -> str | None:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    if len(imports) != 1 or len(imports[0].names) != 1 or not imports[0].module or imports[0].names[0].asname:
        return None
    module, function = imports[0].module, imports[0].names[0].name
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            node.module, node.names[0].name = "M", "f"
        elif isinstance(node, ast.Name) and node.id == function:
            node.id = "f"
    shape = ast.dump(tree)
    return f"{module}:{function}" if shape in _shapes() else None


@functools.lru_cache(maxsize=1)
def _shapes() -> frozenset[str]:
    return frozenset(ast.dump(ast.parse(text)) for text in _TEMPLATES)
