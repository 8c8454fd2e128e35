"""Bazel in this checkout and JIT from an installed wheel write the same bytes under the same key.

Neither reads what the other wrote. The JIT process differs in all that must not matter: user, umask, interpreter,
place, home, and environment variables that would mislead a compiler which listened to them.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from workspaces import ROOT, Workspace, copy_checkout, tree

NOBODY = 65534

PROGRAM = """\
import sys
import pypto
from kernels.decode import decode
from pypto import CacheConfig, RunConfig

assert pypto.__file__.startswith(sys.prefix), pypto.__file__
cache = CacheConfig(enabled=True, root=sys.argv[1])
decode.warmup(config=RunConfig(backend_type="Ascend910B", execution_mode="sim", cache_config=cache))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of pypto, built from a copy so that building leaves nothing in the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    source = copy_checkout(folder / "source")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, source], check=True
    )
    (built,) = folder.glob("pypto-*.whl")
    return built


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder that every user may enter (pytest's own are for one user)."""
    folder = Path(tempfile.mkdtemp(prefix="pypto-elsewhere-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def _version(python: str | Path) -> tuple[int, int] | None:
    done = subprocess.run(
        [python, "-I", "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True, check=False
    )
    return tuple(map(int, done.stdout.split())) if done.returncode == 0 else None  # type: ignore[return-value]


def _others() -> dict[tuple[int, int], Path]:
    """Supported Pythons of this machine by version, other than the one that runs the tests."""
    candidates = [Path(found) for name in ("python3", "python3.11", "python3.12", "python3.13")
                  if (found := shutil.which(name, path="/usr/local/bin:/usr/bin:/bin"))]  # fmt: skip
    candidates += sorted(Path(sys.base_prefix).parent.glob("3.*/bin/python3"))  # where pyenv and uv keep theirs
    versions = {version: path for path in candidates if (version := _version(path)) is not None}
    return {v: path for v, path in versions.items() if (3, 11) <= v <= (3, 13) and v != sys.version_info[:2]}


def _everybody_can_run(python: Path) -> bool:
    real = python.resolve()
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in (real, *real.parents))


def _build(folder: Path, python: Path, wheel: Path, user: int | None) -> dict[str, str]:
    """The `artifacts` tree of a store that a JIT process of `user` fills."""
    subprocess.run([python, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    own = folder / "venv/bin/python"
    subprocess.run([sys.executable, "-m", "pip", "--python", own, "install", "--quiet", wheel], check=True)
    shutil.copytree(ROOT / "kernels", folder / "lib/kernels", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "build.py").write_text(PROGRAM)
    home = folder / "home"
    home.mkdir()
    if user is not None:
        os.chown(home, user, user)
    identity = {} if user is None else {"user": user, "group": user, "extra_groups": []}
    environment = {
        "HOME": str(home),
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": f"{folder}/lib:/nonexistent/rubbish",
        "LD_LIBRARY_PATH": "/nonexistent/rubbish",
        "CPLUS_INCLUDE_PATH": "/nonexistent/rubbish",
        "TZ": "Asia/Shanghai",
    }
    for command in (["-m", "pypto.toolchain", "install"], [str(folder / "build.py"), str(home / "store")]):
        done = subprocess.run(
            [own, *command], env=environment, cwd=home, umask=0o077, capture_output=True, text=True, **identity
        )
        assert done.returncode == 0, done.stderr
    return tree(home / "store/artifacts")


@pytest.mark.long
def test_a_distributed_program(checkout: Workspace, tmp_path: Path) -> None:
    checkout.build("//kernels:tensor_parallel_a2a3")
    program = PROGRAM.replace(
        "from kernels.decode import decode", "from kernels.tensor_parallel import tensor_parallel"
    )
    program = program.replace("decode.warmup", "tensor_parallel.warmup").replace("assert", "# assert")
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "store"],
        env={"PATH": "/nonexistent", "HOME": os.environ["HOME"], "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    bundle = checkout.output("kernels/tensor_parallel_a2a3.bundle")
    assert tree(tmp_path / "store/artifacts") == tree(bundle / "artifacts")


def test_another_user(decode_bundle: Path, wheel: Path, elsewhere: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    python = next((p for p in map(Path, (sys.executable, "/usr/bin/python3")) if _everybody_can_run(p)), None)
    if python is None or (_version(python) or (0, 0)) < (3, 11):
        pytest.skip("no supported Python that another user may run")
    assert _build(elsewhere, python, wheel, NOBODY) == tree(decode_bundle / "artifacts")


def test_another_python(decode_bundle: Path, wheel: Path, elsewhere: Path) -> None:
    others = _others()
    if not others:
        pytest.skip("no other supported Python on this machine")
    assert _build(elsewhere, others[max(others)], wheel, None) == tree(decode_bundle / "artifacts")
