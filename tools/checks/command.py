"""The command line of `tools/test`, and the order of its steps."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from . import buildifier, environment
from .environment import Failure

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "requirements/test.txt"

TEXT = """\
Run the checks and tests of this project. With nothing else said:

  1. the test environment   from requirements/test.txt, kept in your cache folder
  2. the toolchain          python -m pypto.toolchain install: compilers, kept in your cache folder
  3. ruff, mypy, environment inputs (every variable that is read is listed), buildifier
  4. pytest over tests/

Naming tests (paths, -k, -m) leaves out step 3. Every step runs even if one before it failed; the exit code
is pytest's, or 1 if only another step failed.

  tools/test --fast                      without the tests that run Bazel
  tools/test tests/unit -k 'verifier'    some tests
  tools/test --only lint                 one step
  tools/test tests/unit -- -x --pdb      what follows -- goes to pytest
"""

Step = Callable[[], int | str]
"""Returns an exit code, or why it was skipped."""


class Checks:
    """The steps, each returning an exit code or the reason it did not run."""

    def __init__(self, python: Path, args: argparse.Namespace, rest: Sequence[str]) -> None:
        self.python = python
        self.args = args
        self.rest = rest
        # The environment is complete by itself; the caller's path would put other versions before it.
        self.env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
        self.env["PATH"] = os.pathsep.join([str(python.parent), self.env.get("PATH", os.defpath)])

    def call(self, *argv: str) -> int:
        return subprocess.run(argv, cwd=ROOT, env=self.env, check=False).returncode

    def module(self, *argv: str) -> int:
        return self.call(str(self.python), "-m", *argv)

    def toolchain(self) -> int:
        return self.module("pypto.toolchain", "install")

    def ruff(self) -> int:
        return self.module("ruff", "check", "--output-format=concise", ".", "tools/bazel", "tools/test")

    def types(self) -> int:
        package = self.module("mypy")  # what pyproject.toml names
        programs = [str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("rules/private/*.py"))]
        programs += ["tools/bazel_setup", "tools/checks", "tools/op_tables.py", "tools/op_page.py"]
        programs += ["toolchains/gcc/fetch.py", "toolchains/private/doctor.py", "toolchains/probe/probe.py"]
        return self.module("mypy", *programs) or package

    def environment_inputs(self) -> int:
        return self.call(str(self.python), "tests/lint/check_environment_inputs.py")

    def starlark(self) -> int | str:
        program = buildifier.ensure()
        if program is None:
            if self.args.ci:
                raise Failure("buildifier needs npm\n  install it (Debian: apt-get install npm)")
            return "skipped: no npm to fetch buildifier with"
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate",
             "*.bzl", "*.bazel", "*.BUILD", "*/BUILD", "BUILD"],
            cwd=ROOT, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        files = [f for f in listed.split("\0") if f and (ROOT / f).is_file()]
        # Our tests load private files on purpose; whom else they are hidden from is said by `visibility()`.
        return self.call(str(program), "-mode=check", "-lint=warn", "-warnings=-bzl-visibility", *files)

    def pytest(self) -> int:
        selection = list(self.args.paths or ["tests"])
        if self.args.keyword:
            selection += ["-k", self.args.keyword]
        if self.args.marker:
            selection += ["-m", self.args.marker]
        if self.args.fast:
            selection += ["--ignore=tests/bazel"]
        if self.args.ci:
            selection += ["--timeout=900"]  # a test that hangs shall say where, before the machine is taken away
        return self.module("pytest", *selection, *self.rest)


def parse(argv: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    ask = argparse.ArgumentParser(
        prog="tools/test", description=TEXT, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ask.add_argument("paths", nargs="*", help="tests to run (default: tests)")
    ask.add_argument("-k", dest="keyword", metavar="EXPR", help="only tests whose names match, as in pytest")
    ask.add_argument("-m", dest="marker", metavar="EXPR", help="only tests whose marks match, as in pytest")
    ask.add_argument("--fast", action="store_true", help="leave out the tests that run Bazel")
    ask.add_argument("--only", choices=["lint", "pytest"], help="only the checkers, or only pytest")
    ask.add_argument("--ci", action="store_true", help="a tool that is missing is an error, nothing is skipped")
    ask.add_argument("--lock", action="store_true", help="make requirements/test.txt anew from test.in, and end")
    at = list(argv).index("--") if "--" in argv else len(argv)
    return ask.parse_args(argv[:at]), list(argv[at + 1 :])


def run(name: str, step: Step) -> tuple[str, int | str, float]:
    start = time.monotonic()
    print(f"\ntools/test: {name}", flush=True)
    try:
        result = step()
    except Failure as failure:
        print(f"tools/test: error: {failure}", file=sys.stderr, flush=True)
        result = 1
    took = time.monotonic() - start
    state = result if isinstance(result, str) else "ok" if result == 0 else f"FAILED ({result})"
    print(f"tools/test: {name}: {state}, {took:.1f} s", flush=True)
    return name, result, took


def main(argv: Sequence[str]) -> int:
    args, rest = parse(argv)
    os.environ.setdefault("PYTHONUNBUFFERED", "1")  # the order of lines in a CI log
    try:
        if args.lock:
            environment.relock(ROOT / "requirements/test.in", LOCK)
            return 0
        start = time.monotonic()
        checks = Checks(environment.ensure(ROOT, LOCK), args, rest)
    except Failure as failure:
        print(f"tools/test: error: {failure}", file=sys.stderr)
        return 1
    if args.ci:
        checks.env.setdefault("CI", "1")
    narrowed = bool(args.paths or args.keyword or args.marker)
    steps: list[tuple[str, Step]] = []
    if args.only != "lint":
        steps += [("toolchain", checks.toolchain)]
    if args.only == "lint" or (args.only is None and not narrowed):
        steps += [("ruff", checks.ruff), ("mypy", checks.types)]
        steps += [("environment inputs", checks.environment_inputs), ("buildifier", checks.starlark)]
    if args.only != "lint":
        steps += [("pytest", checks.pytest)]
    done = [("environment", 0, time.monotonic() - start), *(run(name, step) for name, step in steps)]
    failed = {name: result for name, result, _ in done if isinstance(result, int) and result != 0}
    print("\ntools/test: " + ", ".join(f"{name} {took:.0f} s" for name, _, took in done), flush=True)
    if failed:
        print(f"tools/test: failed: {', '.join(failed)}", flush=True)
    return failed.get("pytest") or (1 if failed else 0)
