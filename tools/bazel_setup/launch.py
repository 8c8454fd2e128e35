"""Choose a Bazel and become it.

The launcher ends in `execv`, so signals, terminal and exit code are Bazel's own. Everything it learns
from other programs (their versions) is kept in `notes`, keyed by what could change the answer.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence

from .common import NEWEST, OLDEST, Failure, cache_folder, run, say
from .notes import Notes

ASKED = "PYPTO_BAZEL_ASKED"
"""Set when a launcher asks a program for its version. A launcher that sees it answers `ANSWER` instead of
looking for Bazel, so that a `bazel` on PATH which leads back here, even through scripts, cannot loop."""
ANSWER = "pypto launcher"
RETRY = 600.0
"""Seconds before a program that could not tell its version is asked again: bazelisk without a network may
take long to give up, and would do so before every command."""

HELP = """\
usage: tools/bazel [BAZEL ARGUMENTS]

Runs Bazel with the arguments as they are. The first of these that there is:

  1. $PYPTO_BAZEL      a Bazel you name; an error if it is missing or too old
  2. $BAZEL_REAL       set by Bazelisk and packaged Bazels, which start a workspace's tools/bazel themselves
  3. bazelisk on PATH  fetches the version in .bazelversion
  4. bazel on PATH     if {oldest} <= version < {newest}
  5. its own           set up once from Debian packages in {prefix}
                       (about 140 MB down, 320 MB on disk; no root, nothing installed on the system)

Bazel modules (rules_python, rules_cc, ...) come from the public registry. Where that cannot be reached, the
packaged modules of 5 stand in; for a Bazel of 1 to 4 that is written to .bazelrc.modules, which git ignores.

environment:
  PYPTO_BAZEL=PATH              see 1
  PYPTO_BAZEL_MODULES=registry  never use packaged modules;  =packaged: always;  =auto: as said above (default)
  PYPTO_DEBIAN_MIRROR=URI       the archive 5 is taken from, in place of the one apt is configured for
  XDG_CACHE_HOME, HOME          where 5 is kept

`python3 tools/bazel_setup --help` sets up 5 by hand, with options. `tools/bazel help` is Bazel's own help.
"""


def dotted(version: Sequence[int]) -> str:
    return ".".join(str(n) for n in version)


def parse_version(text: str) -> tuple[int, ...] | None:
    """The version in the output of `bazel --version` ("bazel 7.7.1", "bazel 8.0.0rc2"), or None."""
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] == "bazel":
            numbers = []
            for part in words[1].split("."):
                digits = part[: len(part) - len(part.lstrip("0123456789"))]
                if not digits:
                    break
                numbers.append(int(digits))
                if digits != part:
                    break
            return tuple(numbers) or None
    return None


def fits(version: Sequence[int]) -> bool:
    return OLDEST <= tuple(version) < NEWEST


def workspace(start: str) -> str | None:
    """The folder Bazel takes as workspace when it is started in `start`."""
    here = os.path.abspath(start)
    while True:
        for name in ("MODULE.bazel", "REPO.bazel", "WORKSPACE.bazel", "WORKSPACE"):
            if os.path.exists(os.path.join(here, name)):
                return here
        above = os.path.dirname(here)
        if above == here:
            return None
        here = above


class Launcher:
    """One start of `tools/bazel`: the environment, the file that was called, and where notes are kept."""

    def __init__(self, env: Mapping[str, str], script: str, cwd: str) -> None:
        self.env = env
        self.script = os.path.realpath(script)
        self.workspace = workspace(cwd)
        try:
            self.cache: str | None = cache_folder(env)
        except Failure:  # only a Bazel of our own needs it
            self.cache = None
        self.notes = Notes(self.cache)
        self.passed_over: list[str] = []

    def choose(self) -> tuple[str, tuple[int, ...]] | None:
        """The program to run and its version, or None where a Bazel must be set up."""
        for name, why in (
            ("PYPTO_BAZEL", "name a Bazel, or unset it to let tools/bazel find one"),
            ("BAZEL_REAL", "it is set by Bazelisk and packaged Bazels; unset it to let tools/bazel find one"),
        ):
            given = self.env.get(name)
            if given:
                return self.named(name, given, why)
        for program in self.on_path("bazelisk", "bazel"):
            version, trouble = self.version(program)
            if version and fits(version):
                return program, version
            self.passed_over.append(f"{program}: {trouble or 'is ' + dotted(version or ())}")
        return None

    def named(self, variable: str, given: str, why: str) -> tuple[str, tuple[int, ...]]:
        """A Bazel the user or another launcher names: what is wrong with it is an error, not passed over."""
        program = os.path.expanduser(given)
        if not os.path.isfile(program):
            raise Failure(f"{variable}={given}: no such file\n  {why}")
        if not os.access(program, os.X_OK):
            raise Failure(f"{variable}={given}: not executable\n  {why}")
        if os.path.realpath(program) == self.script:
            raise Failure(f"{variable}={given}: that is this launcher itself\n  {why}")
        program = os.path.abspath(program)
        version, trouble = self.version(program, patient=True)
        if not version:
            raise Failure(f"{variable}={given}: {trouble}\n  {why}")
        if not fits(version):
            raise Failure(
                f"{variable}={given} is Bazel {dotted(version)}; this project needs "
                f"{dotted(OLDEST)} <= version < {dotted(NEWEST)}\n  {why}"
            )
        return program, version

    def on_path(self, *names: str) -> Iterator[str]:
        """Programs on PATH, all of the first name before any of the second; never this launcher."""
        for name in names:
            for folder in self.env.get("PATH", "").split(os.pathsep):
                # A relative entry would make the choice depend on the current folder.
                program = os.path.join(folder, name)
                if not os.path.isabs(folder) or not os.access(program, os.X_OK) or not os.path.isfile(program):
                    continue
                if os.path.realpath(program) != self.script:
                    yield program

    def version(self, program: str, patient: bool = False) -> tuple[tuple[int, ...] | None, str]:
        """The program's version, or None and the reason. `--version` starts no server.

        `patient`: ask again even if it failed a moment ago, for a program the user insists on.
        """
        key = self.version_key(program)
        kept = (self.notes.get(key) or "").partition(" ")
        if kept[0] == "is":
            return tuple(int(n) for n in kept[2].split(".")), ""
        if kept[0] == "failed" and not patient:
            when, _, trouble = kept[2].partition(" ")
            if 0 <= time.time() - float(when) < RETRY:
                return None, trouble
        env = {**self.env, "BAZELISK_SKIP_WRAPPER": "1", ASKED: "1"}
        env.pop("BAZEL_REAL", None)
        try:
            done = run([program, "--version"], env=env, check=False)
        except Failure as failure:
            return None, str(failure)
        if ANSWER in done.stdout:
            return None, "leads back to tools/bazel"
        version = parse_version(done.stdout) if done.returncode == 0 else None
        if version:
            self.notes.put(key, f"is {dotted(version)}")
            return version, ""
        said = (done.stderr + done.stdout).strip().splitlines()
        trouble = f"`--version` gives no version: {said[-1].strip() if said else f'exit code {done.returncode}'}"
        self.notes.put(key, f"failed {int(time.time())} {trouble}")
        if not patient:
            say(f"{program}: {trouble}; looking further, and not asking it again for {RETRY / 60:.0f} minutes")
        return None, trouble

    def version_key(self, program: str) -> str:
        """What the answer depends on: the file, and for bazelisk the version it is told to fetch."""
        real = os.path.realpath(program)
        about = os.stat(real)
        wanted = self.env.get("USE_BAZEL_VERSION", "")
        if not wanted and self.workspace:
            try:
                with open(os.path.join(self.workspace, ".bazelversion"), encoding="utf-8") as file:
                    wanted = file.read().strip()
            except (OSError, UnicodeDecodeError):
                pass
        # Both paths: a dispatcher such as bazelisk or busybox may act on the name it is called by.
        return f"version {program} {real} {about.st_size} {about.st_mtime_ns} {wanted}"

    def own(self) -> str:
        """The Bazel of the private prefix, set up if it is not there yet."""
        from . import stamp

        cache = self.cache or cache_folder(self.env)  # raises with the reason
        folder = stamp.default_prefix(cache)
        if not stamp.is_complete(folder):
            from . import prefix

            for line in self.passed_over:
                say(f"passed over {line}")
            if not self.passed_over:
                say("no bazelisk or bazel on PATH")
            say(f"setting up Bazel in {folder}; this happens once")
            prefix.ensure(prefix.Options(folder))
        return os.path.join(folder, "bin", "bazel")

    def command(self, arguments: Sequence[str]) -> list[str]:
        """The complete command line to become."""
        chosen = self.choose()
        if chosen is None:
            return [self.own(), *arguments]
        from . import modules

        program, version = chosen
        modules.settle(self, program, version, arguments)
        return [program, *arguments]


def main(arguments: Sequence[str]) -> None:
    """Never returns: ends as Bazel, or with exit code 1 and one message."""
    env = dict(os.environ)
    if env.pop(ASKED, None):
        print(ANSWER)
        sys.exit(0)
    if arguments and arguments[0] == "--pypto-help":
        from .stamp import default_prefix

        try:
            where = default_prefix(cache_folder(env))
        except Failure:
            where = "your cache folder"
        print(HELP.format(oldest=dotted(OLDEST), newest=dotted(NEWEST), prefix=where), end="")
        sys.exit(0)
    try:
        try:
            here = os.getcwd()
        except FileNotFoundError:
            raise Failure("the current folder no longer exists; change to another one") from None
        argv = Launcher(env, sys.argv[0], here).command(arguments)
        env["BAZELISK_SKIP_WRAPPER"] = "1"  # bazelisk would start this launcher again
        env.pop("BAZEL_REAL", None)
        try:
            os.execve(argv[0], argv, env)
        except OSError as trouble:
            raise Failure(f"{argv[0]} cannot be run: {trouble.strerror}") from None
    except Failure as failure:
        say(f"error: {failure}")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
