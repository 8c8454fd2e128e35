#!/usr/bin/env python3
"""Prints what `warm`, `stat` and `explain` say about a real cache while real inputs of a kernel are edited.

    python tests/benchmarks/cache_transcript.py [--folder DIR] > transcript.txt

In a folder of its own, with copies of this package and of the installed tools: a cold cache, a warm one, and then a
changed compile option, a changed compiler flag, a changed source line and a tool with one byte more, each looked at
before and after it is built; at last every edit is undone. The identity policy is `content`, the one under which every
byte of a tool counts.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from pypto.toolchain.selection import default_prefix

PROJECT = Path(__file__).resolve().parents[2]

KERNELS = '''\
"""Kernels of the transcript."""

import pypto.language as pl


@pl.jit
def scaled(x: pl.Tensor[[16, 64], pl.FP32], factor: float, out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        tile = pl.load(x, [0, 0], [16, 64])
        pl.store(tile * factor, [0, 0], out)
    return out


@pl.jit
def added(x: pl.Tensor[[16, 64], pl.FP32], y: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [16, 64]) + pl.load(y, [0, 0], [16, 64]), [0, 0], out)
    return out
'''

WARMUP = {
    "schema_version": 1,
    "cache": {"enabled": True, "root": "kernel-cache"},
    "requests": [
        {"kernel": "scaled", "run_config": {"runtime": "HOST_BUILD_GRAPH"}},
        {"kernel": "added", "run_config": {"runtime": "HOST_BUILD_GRAPH"}},
    ],
}


class Session:
    """A folder with kernels, a warmup file, tools and an empty cache, and a shell in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kernels = folder / "my_kernels.py"
        self.warmup = folder / "warmup.json"
        self.kernels.write_text(KERNELS)
        self.warmup.write_text(json.dumps(WARMUP, indent=2) + "\n")
        self.tools = folder / "tools"
        installed = default_prefix().resolve()
        shutil.copytree(installed, self.tools, copy_function=_link, symlinks=True)
        shutil.copytree(
            PROJECT / "pypto", folder / "pypto", ignore=shutil.ignore_patterns("__pycache__", "BUILD.bazel")
        )
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PYTHONPATH": str(folder),
            "PYPTO_CACHE_IDENTITY": "content",
            "PYPTO_CACHE_DIR": "kernel-cache",
            "PYPTO_TOOLCHAIN_DESCRIPTOR": "tools/descriptor.json",
        }

    def say(self, text: str) -> None:
        print(f"\n# {text}", flush=True)

    def run(self, command: str) -> None:
        """Show a command of `python -m pypto.jit`, what it prints, and its status."""
        arguments = f"--module my_kernels --config {self.warmup.name}" if command in ("warm", "explain") else ""
        shown = f"python -m pypto.jit {command} {arguments}".strip()
        done = subprocess.run(
            [sys.executable, *shown.split()[1:]],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        print(f"$ {shown}\n{done.stdout}[status {done.returncode}]", flush=True)
        if done.returncode not in (0, 1):
            raise SystemExit(f"{shown} failed")

    def look_build_look(self, what: str) -> None:
        """Before and after a build: cold, then warm."""
        self.say(f"{what}: cold")
        for command in ("explain", "warm", "stat"):
            self.run(command)
        self.say(f"{what}: warm")
        for command in ("warm", "stat", "explain"):
            self.run(command)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _replaced(path: Path, change: Callable[[bytes], bytes]) -> bytes:
    """Write a changed file in the place of another, which may be a link to the installed one; gives the old bytes."""
    data, mode = path.read_bytes(), path.stat().st_mode
    path.unlink()
    path.write_bytes(change(data))
    path.chmod(mode)
    return data


def transcript(folder: Path) -> None:
    """The whole session."""
    session = Session(folder)
    session.look_build_look("A new cache")

    other = b"TENSORMAP_AND_RINGBUFFER"
    session.say("One compile option: scaled runs its tasks by TENSORMAP_AND_RINGBUFFER instead of HOST_BUILD_GRAPH")
    option = _replaced(session.warmup, lambda data: data.replace(b"HOST_BUILD_GRAPH", other, 1))
    session.look_build_look("One compile option changed")
    session.warmup.write_bytes(option)

    commands = folder / "pypto/toolchain/tools.py"
    session.say("One compiler flag: -O2 becomes -O1 in pypto/toolchain/tools.py")
    flag = _replaced(commands, lambda data: data.replace(b'"-O2"', b'"-O1"', 1))
    session.look_build_look("One compiler flag changed")
    commands.write_bytes(flag)

    session.say("One source line: `tile * factor` becomes `tile * factor + 1.0`")
    line = _replaced(session.kernels, lambda data: data.replace(b"tile * factor", b"tile * factor + 1.0"))
    session.look_build_look("One source line changed")
    session.kernels.write_bytes(line)

    (compiler,) = session.tools.rglob("cc1plus")
    session.say(f"One tool byte: {compiler.relative_to(folder)} gets one byte more at its end")
    _replaced(compiler, lambda data: data + b"\0")
    session.look_build_look("One tool byte changed")
    _replaced(compiler, lambda data: data[:-1])

    session.say("Everything as it was: the first entries answer")
    session.run("explain")
    session.run("verify")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, metavar="DIR", help="empty folder to work in and to keep")
    options = parser.parse_args()
    if options.folder is not None:
        options.folder.mkdir(parents=True, exist_ok=True)
        transcript(options.folder.resolve())
    else:
        with tempfile.TemporaryDirectory() as folder:
            transcript(Path(folder).resolve())
    return 0


if __name__ == "__main__":
    sys.exit(main())
