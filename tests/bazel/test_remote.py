"""A real service of the Remote Execution API: a second checkout gets every action from its cache, and a worker without
compilers executes them. Issue 6."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
import remote_world as world
from workspaces import Workspace, copy_checkout, tree

pytestmark = pytest.mark.long

KERNELS = ("//kernels:decode_a2a3", "//kernels:add_a2a3")


class Service(NamedTuple):
    """A running server, and why it executes nothing (empty when it does)."""

    address: str
    refusal: str


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server whose cache is empty, with a worker in a root of its own where this machine can have one."""
    folder = tmp_path_factory.mktemp("remote")
    programs = world.install_buildgrid(folder / "venv")
    with ExitStack() as running:
        try:
            root = world.worker_root(folder)
            database = running.enter_context(world.postgres())
        except world.Unavailable as reason:
            yield Service(running.enter_context(world.buildgrid(programs, folder / "cache")), str(reason))
            return
        address = running.enter_context(world.buildgrid(programs, folder / "server", database))
        running.enter_context(world.worker(root, address, folder / "worker.log"))
        yield Service(address, "")
        for pattern in ("usr/bin/*gcc*", "usr/bin/*g++*", "usr/bin/cc", "usr/bin/ld*", "usr/bin/as", "usr/include/*"):
            assert not list(root.glob(pattern))
        assert not [path for path in root.glob("usr/lib/python3*/*-packages/*") if path.name != "README.txt"]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What all checkouts are copies of."""
    return copy_checkout(tmp_path_factory.mktemp("source") / "copy")


def _checkout(source: Path, folder: Path, *flags: str) -> Workspace:
    copy = shutil.copytree(source, folder / "copy", symlinks=True)
    return Workspace(copy, launcher=copy / "tools/bazel", output_base=folder / "output", flags=flags)


def _runners(workspace: Workspace, *arguments: str) -> Counter[str]:
    """How each action of the rules was run."""
    return Counter(s["runner"] for s in workspace.spawns(*arguments) if s["mnemonic"].startswith("Pypto"))


@pytest.fixture(scope="module")
def expected(service: Service, source: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The bundle of decode as this machine builds it; the cache is filled with it."""
    flags = (f"--remote_cache={service.address}", "--config=remote-cache")
    workspace = _checkout(source, tmp_path_factory.mktemp("first"), *flags)
    try:
        assert _runners(workspace, *KERNELS) == {"linux-sandbox": 11}
        return tree(workspace.output("kernels/decode_a2a3.bundle"))
    finally:
        workspace.remove()


def test_a_second_checkout_has_only_remote_hits(
    service: Service, source: Path, expected: dict[str, str], tmp_path: Path
) -> None:
    flags = (f"--remote_cache={service.address}", "--config=remote-cache")
    workspace = _checkout(source, tmp_path, *flags)
    try:
        assert _runners(workspace, *KERNELS) == {"remote cache hit": 11}
        assert tree(workspace.output("kernels/decode_a2a3.bundle")) == expected
    finally:
        workspace.remove()


def test_a_worker_without_compilers_executes_every_action(
    service: Service, source: Path, expected: dict[str, str], tmp_path: Path
) -> None:
    """The bytes are those of this machine; a kernel is tested there too, where no NumPy is installed."""
    if service.refusal:
        pytest.skip(f"remote execution cannot be had on this machine: {service.refusal}")
    workspace = _checkout(
        source,
        tmp_path,
        "--config=remote-exec",
        f"--remote_executor={service.address}",
        "--remote_default_exec_properties=OSFamily=linux",
        "--remote_default_exec_properties=ISA=x86-64",
        "--spawn_strategy=remote",
        "--noremote_accept_cached",
        "--remote_retries=10",
        "--jobs=4",
    )
    try:
        assert _runners(workspace, *KERNELS) == {"remote": 11}
        assert tree(workspace.output("kernels/decode_a2a3.bundle")) == expected
        tested = workspace.run("test", "//kernels:add_test").succeeded()
        assert "1 test passes" in tested.output
    finally:
        workspace.remove()
