"""Serving: a process with no compiler, no tools and an empty PATH runs a real kernel from a read-only bundle."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pypto.bundle import BundleDamaged, import_bundle
from pypto.toolchain import Toolchain

ROOT = Path(__file__).resolve().parents[3]
TARGET = ("--backend-type", "Ascend910B", "--execution-mode", "sim")

SERVE = """
import sys
import pypto
bundle = pypto.import_bundle(sys.argv[1], digest=sys.argv[2])
add = bundle.load("add")
import numpy as np
a = np.arange(3 * 512, dtype=np.float32).reshape(3, 512)
b = np.full((3, 512), 0.5, np.float32)
out = np.zeros_like(a)
add(a, b, out)
print(bool((out == a + b).all()))
"""


def step(*arguments: str | Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pypto.build", *map(str, arguments)],
        env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def bundle(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernel `add`, built step by step and sealed; made read-only."""
    folder = tmp_path_factory.mktemp("serving")
    descriptor = folder / "descriptor.json"
    descriptor.write_bytes(toolchain.descriptor.to_bytes())
    tools = ["--descriptor", descriptor]
    for name, root in toolchain.bindings.roots.items():
        tools += ["--root", f"{name}={root}"]
    request = folder / "request.json"
    generate = ("generate", "--module", "kernels.add", "--entry", "add", "--import-root", ROOT, *TARGET)
    step(*generate, "--out", folder / "gen", "--request", request)
    step("assemble", "--generated", folder / "gen", *tools, "--out", folder / "asm")
    step("compile", "--generated", folder / "gen", "--assembled", folder / "asm", *tools, "--out", folder / "ready")
    out = folder / "add.bundle"
    sealed = ("--request", request, "--generated", folder / "gen", "--ready", folder / "ready")
    digest = step("seal", *sealed, "--descriptor", descriptor, "--out", out)
    assert digest == import_bundle(out).digest
    for path in [out, *out.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    return out


def bare_environment(tmp_path: Path) -> dict[str, str]:
    return {"PATH": "", "PYTHONPATH": str(ROOT), "HOME": str(tmp_path / "home"), "PYTHONDONTWRITEBYTECODE": "1"}


def test_a_kernel_runs_from_a_bundle(bundle: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SERVE, str(bundle), import_bundle(bundle).digest],
        env=bare_environment(tmp_path),
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("True\n", "")
    assert not (tmp_path / "home").exists()


def test_serving_starts_no_process_and_writes_no_file(bundle: Path, tmp_path: Path) -> None:
    """Under strace: no fork, no exec but the interpreter's own, no socket, no file opened for writing."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed (Debian package strace)")
    log = tmp_path / "log"
    calls = "process,network,open,openat,creat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,chmod,fchmodat"
    serve = [sys.executable, "-c", SERVE, str(bundle), import_bundle(bundle).digest]
    done = subprocess.run(
        [strace, "-f", "-o", log, "-e", f"trace={calls}", *serve],
        env=bare_environment(tmp_path),
        capture_output=True,
        text=True,
    )
    assert done.stdout == "True\n", done.stderr
    lines = [re.sub(r"^\d+ +", "", line) for line in log.read_text().splitlines()]
    assert len([line for line in lines if line.startswith("execve(")]) == 1
    threads = [line for line in lines if line.startswith(("clone(", "clone3("))]
    assert all("CLONE_THREAD" in line for line in threads)
    forbidden = ("fork(", "vfork(", "socket(", "connect(", "creat(", "mkdir", "rename", "unlink", "chmod(", "fchmodat(")
    assert [line for line in lines if line.startswith(forbidden)] == []
    opened = [line for line in lines if line.startswith(("open(", "openat("))]
    assert any(str(bundle) in line for line in opened)
    assert [line for line in opened if re.search(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC", line)] == []


def test_damaged_code_is_never_loaded(bundle: Path, tmp_path: Path) -> None:
    """One flipped byte in a shared object: the error names it, before anything is mapped."""
    copy = tmp_path / "copy.bundle"
    shutil.copytree(bundle, copy)
    (kernel,) = copy.glob("artifacts/*/*/*/ready/prebuilt/kernels/*.so")
    kernel.chmod(0o600)
    data = bytearray(kernel.read_bytes())
    data[len(data) // 2] ^= 1
    kernel.write_bytes(data)
    with pytest.raises(BundleDamaged, match=re.escape(str(kernel))):
        import_bundle(copy).load("add")
