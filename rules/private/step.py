"""Runs one step of pypto in an action: ``python -I -S -B step.py PROGRAM ARGUMENT...``; a module or a ``.py`` file.

Isolated mode keeps the caller's environment and the interpreter's site-packages out, so only the standard library and
the pypto that is an input of the action can be imported. ``@FILE`` stands for arguments in a file, one a line. With
``--persistent_worker``, which Bazel adds, one process serves many steps; see `worker.py`.
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


def run(arguments: list[str]) -> None:
    """Run a step; like the program itself, it ends with `SystemExit` when its status is not 0."""
    sys.stderr = _Messages(sys.stderr)
    sys.argv = expanded(arguments)
    if sys.argv[0].endswith(".py"):
        runpy.run_path(sys.argv[0], run_name="__main__")
    else:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


def expanded(arguments: list[str]) -> list[str]:
    """The arguments, with those of ``@FILE`` in its place."""
    words: list[str] = []
    for argument in arguments:
        if argument.startswith("@"):
            words += Path(argument[1:]).read_text(encoding="utf-8").splitlines()
        else:
            words.append(argument)
    return words


def main() -> None:
    if sys.version_info < (3, 11):  # noqa: UP036 - some syntax error would be the first thing to fail otherwise
        sys.exit(
            f"pypto's actions need Python 3.11 to 3.13; Bazel's Python toolchain runs {sys.executable}, which is "
            f"{sys.version.split()[0]}. Register a newer Python toolchain of rules_python in MODULE.bazel."
        )
    # Not resolved: in a sandbox the files are links, and pypto is beside this one, not where it leads.
    here = Path(__file__).absolute()
    sys.path.insert(0, str(here.parents[2]))
    if sys.argv[1:] == ["--persistent_worker"]:
        sys.path.insert(1, str(here.parent))
        from worker import serve

        serve(run)
    else:
        run(sys.argv[1:])


if __name__ == "__main__":
    main()
