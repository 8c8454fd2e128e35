"""One small kernel, built by three doors, and processes that use it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pypto.toolchain import Toolchain
from pypto.toolchain.selection import default_prefix

PROJECT = Path(__file__).resolve().parents[3]

KERNELS = '''\
"""Kernels of the tests."""

import pypto.language as pl

ROWS = 16
COLUMNS = 64


@pl.jit
def scaled(
    x: pl.Tensor[[ROWS, COLUMNS], pl.FP32], factor: float, out: pl.Out[pl.Tensor[[ROWS, COLUMNS], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [ROWS, COLUMNS]) * factor, [0, 0], out)
    return out


@pl.jit
def wrong(x: pl.Tensor[[ROWS, COLUMNS], pl.FP32], out: pl.Out[pl.Tensor[[ROWS, COLUMNS], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [ROWS, 3 * COLUMNS]), [0, 0], out)
    return out
'''

SETUP = """\
import dataclasses, json
import pypto
from sample_kernels import scaled, wrong
"""

RUN = """\
import numpy as np
x = np.arange(16 * 64, dtype=np.float32).reshape(16, 64)
out = np.zeros_like(x)
assert scaled(x, FACTOR, out) is out
assert np.array_equal(out, x * np.float32(FACTOR)), out
"""

REPORT = """
print(json.dumps(dataclasses.asdict(pypto.cache_stats())))
"""


@dataclass
class World:
    """A folder with the kernels' module, in which processes are run."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def process(
        self,
        code: str,
        *,
        python: Sequence[str | Path] = (sys.executable,),
        path: Path = PROJECT,
        umask: int = 0o022,
        **environment: str | Path,
    ) -> subprocess.CompletedProcess[str]:
        """Run Python code in a fresh process with an environment of its own."""
        return subprocess.run(
            [*python, "-c", SETUP + code + REPORT],
            cwd=self.folder,
            env={
                "PATH": "/nonexistent",
                "HOME": str(self.folder),
                "PYTHONPATH": f"{path}{os.pathsep}{self.folder}",
                **self.environment,
                **{name: str(value) for name, value in environment.items()},
            },
            umask=umask,
            capture_output=True,
            text=True,
            timeout=300,
        )

    def counts(self, code: str, **options: Any) -> dict[str, Any]:
        """The counters that the code ended with; those that stayed 0 and the times are left out."""
        done = self.process(code, **options)
        assert done.returncode == 0, done.stderr
        counts = json.loads(done.stdout.splitlines()[-1])
        return {name: value for name, value in counts.items() if value and not name.endswith("_ns")}


def tree(root: Path) -> dict[str, tuple[bool, bytes]]:
    """Every file below a folder: whether its owner may execute it, and its bytes."""
    return {
        str(path.relative_to(root)): (bool(path.stat().st_mode & 0o100), path.read_bytes())
        for path in root.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="session")
def descriptor(toolchain: Toolchain) -> Path:
    """The descriptor file of the installed tools."""
    return default_prefix() / "descriptor.json"


@pytest.fixture(scope="session")
def world(descriptor: Path, tmp_path_factory: pytest.TempPathFactory) -> World:
    """The folder; every process has the tools."""
    folder = tmp_path_factory.mktemp("world")
    (folder / "sample_kernels.py").write_text(KERNELS)
    return World(folder, {"PYPTO_TOOLCHAIN_DESCRIPTOR": str(descriptor)})


@pytest.fixture(scope="session")
def first_process(world: World) -> dict[str, Any]:
    """The counters of the process that fills the cache."""
    return world.counts("FACTOR = 2.0\n" + RUN, PYPTO_CACHE="1", PYPTO_CACHE_DIR="cache")


@pytest.fixture(scope="session")
def cache(world: World, first_process: dict[str, Any]) -> Path:
    """The root of a persistent cache that holds the kernel."""
    return world.folder / "cache"


@pytest.fixture(scope="session")
def bundle(world: World, descriptor: Path) -> Path:
    """The kernel as a bundle, made by the steps that Bazel's actions run."""
    at = world.folder / "steps"
    at.mkdir()
    tools = ("--descriptor", descriptor, "--bindings", descriptor.with_name("bindings.json"))
    entry = ("--module", "sample_kernels", "--entry", "scaled", "--import-root", world.folder)
    target = ("--backend-type", "Ascend910B", "--execution-mode", "sim")
    stages = ("--request", "request.json", "--generated", "gen", "--ready", "ready")
    steps: list[tuple[str | Path, ...]] = [
        ("generate", *entry, *target, "--out", "gen", "--request", "request.json"),
        ("assemble", "--generated", "gen", *tools, "--out", "asm"),
        ("compile", "--generated", "gen", "--assembled", "asm", *tools, "--out", "ready"),
        ("seal", *stages, "--descriptor", descriptor, "--out", "scaled.bundle"),
    ]
    for step in steps:
        done = subprocess.run(
            [sys.executable, "-m", "pypto.build", *step],
            cwd=at,
            env={"PATH": "/nonexistent", "PYTHONPATH": str(PROJECT)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    return at / "scaled.bundle"


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with this project as it is installed from its wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    shutil.copytree(PROJECT / "pypto", source / "pypto", ignore=shutil.ignore_patterns("__pycache__", "BUILD.bazel"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        if (PROJECT / name).exists():
            shutil.copy(PROJECT / name, source)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder / "site", source]
    subprocess.run(command, check=True)
    return folder / "site"


@pytest.fixture
def no_tools(tmp_path: Path, descriptor: Path) -> Path:
    """A descriptor whose evidence is that of the installed tools and whose folders are empty."""
    from pypto.toolchain.descriptor import ROOTS, Bindings

    (tmp_path / "descriptor.json").write_bytes(descriptor.read_bytes())
    for name in ROOTS:
        (tmp_path / name).mkdir()
    bindings = Bindings({name: tmp_path / name for name in ROOTS})
    (tmp_path / "bindings.json").write_bytes(bindings.to_bytes(tmp_path))
    return tmp_path / "descriptor.json"


@pytest.fixture(scope="session")
def same_files() -> Any:
    """Fails with the names of the files that differ between two folders, bytes or executable bit."""

    def check(left: Path, right: Path) -> None:
        one, other = tree(left), tree(right)
        assert sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name)) == []
        assert one

    return check
