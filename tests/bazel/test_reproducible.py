"""Every kernel of this project has the same bytes wherever, whenever and by whomever it is built. Issue 6."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from other_world import DAYS, OtherWorld, Unavailable
from workspaces import Workspace, copy_checkout, tree

from pypto.toolchain import elf

JIT = """\
import importlib, sys
from pypto import CacheConfig, RunConfig

cache = CacheConfig(enabled=True, root=sys.argv[1])
for module, entry in (name.split(":") for name in sys.argv[2:]):
    function = getattr(importlib.import_module(module), entry)
    function.warmup(config=RunConfig(backend_type="Ascend910B", execution_mode="sim", cache_config=cache))
"""


def test_binaries_hold_no_path_of_the_machine(decode_bundle: Path) -> None:
    """Every shared object has a Build-ID, and no folder of a checkout, of Bazel or of a user is in it."""
    _check_binaries(decode_bundle)


def _check_binaries(bundle: Path) -> None:
    binaries = sorted(bundle.rglob("*.so"))
    assert binaries
    for path in binaries:
        data = path.read_bytes()
        build_id = elf.build_id(data)
        assert build_id is not None and len(build_id) == 40, path
        for folder in ("/root", "/home", "/tmp", "/var", "execroot", "sandbox", "bazel-out", "external/", os.getcwd()):
            assert folder.encode() not in data, f"{path} holds {folder}"


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder that every user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="pypto-world-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.long
def test_every_kernel_in_another_world(tmp_path: Path, elsewhere: Path) -> None:
    """Bazel in two worlds and a JIT process write equal bytes for every kernel of `//kernels`.

    The second world has another checkout, output base, user, home, umask, time zone and clock, and no network.
    """
    source = copy_checkout(tmp_path / "copy")
    here = Workspace(source, launcher=source / "tools/bazel", output_base=tmp_path / "output")
    try:
        listed = here.run("query", 'kind("pypto_kernel rule", //kernels:all)', stdout_only=True).succeeded()
        kernels = sorted(line for line in listed.output.split() if line.startswith("//kernels:"))
        assert "//kernels:decode_a2a3" in kernels
        here.build(*kernels)
        bundles = {kernel: here.output(f"kernels/{kernel.partition(':')[2]}.bundle") for kernel in kernels}
        expected = {kernel: tree(bundle) for kernel, bundle in bundles.items()}
        digests = {kernel: Path(f"{bundle}.digest").read_text() for kernel, bundle in bundles.items()}
        for bundle in bundles.values():
            _check_binaries(bundle)
        requests = [
            json.loads(here.output(f"kernels/{k.partition(':')[2]}.pypto/request.json").read_bytes()) for k in kernels
        ]
    finally:
        here.remove()
    _compare_with_jit(source, tmp_path / "store", sorted({request["entry"] for request in requests}), expected)

    try:
        world = OtherWorld(elsewhere, source)
    except Unavailable as reason:
        pytest.skip(f"the other world cannot be had on this machine: {reason}")
    try:
        world.build("//clock", *kernels)
        folder = Path(world.run("info", "bazel-bin").strip().splitlines()[-1])
        assert abs(int((folder / "clock/now").read_text()) - time.time() - DAYS * 86400) < 86400
        for kernel in kernels:
            bundle = folder / "kernels" / f"{kernel.partition(':')[2]}.bundle"
            assert bundle.stat().st_uid == 65534
            assert tree(bundle) == expected[kernel], kernel
            assert Path(f"{bundle}.digest").read_text() == digests[kernel]
    finally:
        world.close()


def _compare_with_jit(source: Path, store: Path, entries: list[str], expected: dict[str, dict[str, str]]) -> None:
    """The store that a JIT process fills holds what the bundles hold together, and nothing else."""
    names = [f"kernels.{entry}:{entry}" for entry in entries]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    command = [sys.executable, "-c", JIT, str(store), *names]
    # Elsewhere: the folder in which Python starts comes before all others.
    done = subprocess.run(command, env=environment, cwd=store.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    together = {name: digest for files in expected.values() for name, digest in files.items()}
    wanted = {name: digest for name, digest in together.items() if name.startswith("artifacts/")}
    found = {f"artifacts/{name}": digest for name, digest in tree(store / "artifacts").items()}
    assert [name for name in sorted({**wanted, **found}) if wanted.get(name) != found.get(name)] == []
