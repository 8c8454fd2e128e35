"""``python -m pypto``: the version and where each command is."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pypto import __version__

_OVERVIEW = f"""\
PyPTO {__version__}: write kernels for Ascend NPUs in Python.

A kernel is a function: decorate it with @pl.jit and call it. What calling does not do, commands do:

  python -m pypto.toolchain install    fetch the pinned tools that compile kernels (once; no root needed)
  python -m pypto.toolchain show       the tools in force, and where they are

  python -m pypto.jit warm             build a list of kernels into the persistent cache ahead of time
  python -m pypto.jit explain          would a kernel be found in the cache? if not, which input differs
  python -m pypto.jit stat             what the cache holds
  python -m pypto.jit verify           read and hash every byte of it
  python -m pypto.jit prune            remove entries, with all users stopped

  python -m pypto.bundle show          what a sealed bundle holds, for what target, made by what
  python -m pypto.bundle verify        check every byte of a bundle, print its digest
  python -m pypto.bundle import        copy a bundle's kernels into a cache

  python -m pypto.diagnostics report   a kernel's passes, memory and compile times, as pages for a browser
  python -m pypto.diagnostics run      a run's timeline, task graph and scopes
  python -m pypto.diagnostics precision  what each pass does to the numbers

  python -m pypto.build                the steps of one build, from directory to directory, as Bazel's actions run them

Every command explains itself with --help.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the overview; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m pypto", usage="python -m pypto [--version]", add_help=False)
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("--version", action="version", version=f"pypto {__version__}")
    _, others = parser.parse_known_args(arguments)
    if others:
        known = ("build", "bundle", "diagnostics", "jit", "toolchain")
        hint = f"python -m pypto.{others[0]}" if others[0] in known else "python -m pypto"
        parser.error(f"{others[0]!r} is not a command here; see {hint} --help")
    print(_OVERVIEW, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
