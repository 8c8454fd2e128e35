"""Running Bazel in workspaces: the checkout itself, copies of it elsewhere, and projects that depend on it."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TOOL_REPOSITORIES = ("gcc_download", "pto_isa_download", "ptoas_download")

# The machine's own compilers and headers, which no action may need.
_COMPILERS = ("bin/c++", "bin/cc", "bin/g++", "bin/gcc", "bin/clang", "bin/as", "bin/ld", "lib/gcc", "include")


def hidden_compilers() -> list[str]:
    """Flags by which the sandbox hides them."""
    found = [Path("/usr", name) for name in _COMPILERS if Path("/usr", name).exists()]
    return sorted({f"--sandbox_block_path={path.resolve()}" for path in found})


@dataclass
class Result:
    """What one Bazel command gave."""

    code: int
    output: str

    def succeeded(self) -> Result:
        assert self.code == 0, self.output
        return self


@dataclass
class Workspace:
    """A folder in which Bazel runs.

    Attributes:
        folder: the workspace.
        launcher: the `tools/bazel` to start.
        output_base: Bazel's output base; None for the one that users of that folder have anyway.
        flags: flags of every command, such as a disk cache.
    """

    folder: Path
    launcher: Path = ROOT / "tools/bazel"
    output_base: Path | None = None
    flags: tuple[str, ...] = ()
    _bin: Path | None = field(default=None, repr=False)

    def run(self, command: str, *arguments: str, stdout_only: bool = False) -> Result:
        """Run a command; the output is both streams, or standard output alone."""
        startup = [f"--output_base={self.output_base}"] if self.output_base else []
        flags = () if command in ("clean", "info", "query", "shutdown") else self.flags
        done = subprocess.run(
            [str(self.launcher), *startup, command, "--color=no", "--curses=no", *flags, *arguments],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if stdout_only else subprocess.STDOUT,
            text=True,
            check=False,
        )
        return Result(done.returncode, done.stdout)

    def build(self, *arguments: str) -> Result:
        return self.run("build", *arguments).succeeded()

    def output(self, relative: str) -> Path:
        """An output by its path below `bazel-bin`."""
        if self._bin is None:
            found = self.run("info", "bazel-bin", stdout_only=True).succeeded()
            self._bin = Path(found.output.strip().splitlines()[-1])
        return self._bin / relative

    def fetched(self) -> set[str]:
        """The repositories that this output base holds."""
        assert self.output_base is not None
        external = self.output_base / "external"
        return {path.name for path in external.iterdir() if path.is_dir()} if external.is_dir() else set()

    def spawns(self, *arguments: str) -> list[dict[str, Any]]:
        """Build and return Bazel's record of every action that ran or was found in a cache."""
        assert self.output_base is not None
        log = self.output_base / "spawns.json"
        self.build(f"--execution_log_json_file={log}", *arguments)
        return list(_json_values(log.read_text()))

    def actions(self, *arguments: str) -> Counter[str]:
        """Build and return how many actions of each kind ran. Unlike `spawns`, it lists no inputs: that of many kernels
        would be a hundred megabytes."""
        assert self.output_base is not None
        events = self.output_base / "events.json"
        self.build(f"--build_event_json_file={events}", "--build_event_publish_all_actions", *arguments)
        records = map(json.loads, events.read_text().splitlines())
        return Counter(record["action"]["type"] for record in records if "action" in record)

    def remove(self) -> None:
        """Stop the server and delete, in the background, the output base, which holds hundreds of megabytes."""
        assert self.output_base is not None
        self.run("clean", "--expunge_async")


def _json_values(text: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder()
    position = 0
    while position < len(text):
        value, position = decoder.raw_decode(text, position)
        yield value
        while position < len(text) and text[position].isspace():
            position += 1


def copy_checkout(target: Path) -> Path:
    """Copy what git would commit of this checkout, and return `target`."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        source = ROOT / name
        if source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name, follow_symlinks=False)
    modules = ROOT / ".bazelrc.modules"  # written by tools/bazel where the public registry is out of reach
    if modules.exists():
        shutil.copy2(modules, target / modules.name)
    return target


def load_program(path: str, name: str | None = None) -> ModuleType:
    """A Python file of this checkout that is in no package, as a module."""
    name = name or Path(path).stem
    spec = importlib.util.spec_from_file_location(name, ROOT / path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def tree(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below a folder by its relative path, links followed."""
    found = {}
    for place, _, names in os.walk(folder, followlinks=True):
        for name in names:
            path = Path(place, name)
            found[path.relative_to(folder).as_posix()] = hashlib.sha256(path.read_bytes()).hexdigest()
    assert found, f"nothing is in {folder}"
    return found
