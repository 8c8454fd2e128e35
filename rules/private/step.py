"""Runs one step of pypto in an action: ``python -I -S -B step.py PROGRAM ARGUMENT...``; a module or a ``.py`` file.

Isolated mode keeps the caller's environment and the interpreter's site-packages out, so only the standard library and
the pypto that is an input of the action can be imported.
"""

import os
import runpy
import sys
from pathlib import Path
from typing import Any, TextIO


class _Messages:
    """Standard error, with places relative to the workspace: an absolute one would lie in a sandbox that is gone."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._folder = os.getcwd() + os.sep

    def write(self, text: str) -> int:
        self._stream.write(text.replace(self._folder, ""))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def main() -> None:
    if sys.version_info < (3, 11):  # noqa: UP036 - some syntax error would be the first thing to fail otherwise
        sys.exit(
            f"pypto's actions need Python 3.11 to 3.13; Bazel's Python toolchain runs {sys.executable}, which is "
            f"{sys.version.split()[0]}. Register a newer Python toolchain of rules_python in MODULE.bazel."
        )
    sys.stderr = _Messages(sys.stderr)
    # Not resolved: in a sandbox the files are links, and pypto is beside this one, not where it leads.
    sys.path.insert(0, str(Path(__file__).absolute().parents[2]))
    del sys.argv[0]
    if sys.argv[0].endswith(".py"):
        runpy.run_path(sys.argv[0], run_name="__main__")
    else:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
