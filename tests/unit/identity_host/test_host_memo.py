"""What one process remembers, and what it discovers anew."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from host_world import CONTENT, World, program, write

from pypto._identity.host import identity as identity_module
from pypto._identity.host.identity import HostIdentities, host_identity
from pypto._identity.identity import ToolchainIdentity


@pytest.fixture
def process() -> HostIdentities:
    """What one process remembers."""
    return HostIdentities()


def asked(world: World) -> int:
    return len(world.answers.asked)


def test_tools_are_asked_once(world: World, process: HostIdentities) -> None:
    """MEM-01, IDB-16."""
    first = world.identity(identities=process)
    count = asked(world)
    assert world.identity(identities=process) is first
    assert asked(world) == count > 0


def test_installed_files_are_remembered(world: World, process: HostIdentities) -> None:
    """MEM-06, CNT-32, LIM-07, IDB-16: a replaced tool is seen by the next process, not by this one."""
    before = world.identity(identities=process).digest
    program(world.folder / "gcc/cc1plus", "another")
    assert world.identity(identities=process).digest == before
    assert world.identity(identities=HostIdentities()).digest != before


@pytest.mark.parametrize("change", ["path", "directory", "project root", "variable", "compiler", "mode", "policy"])
def test_another_selection_is_discovered_anew(world: World, process: HostIdentities, change: str) -> None:
    """MEM-04, MEM-08, IDB-19, IDB-20: the disk identity is the same where the same tools are found (IDB-18, IDB-22)."""
    before = world.identity(identities=process)
    count = asked(world)
    elsewhere = world.folder / "elsewhere"
    elsewhere.mkdir()
    settings = CONTENT if change == "policy" else identity_module._DEFAULT_SETTINGS
    if change == "path":
        world.set(PATH=f"{elsewhere}:{world.bin}")
    elif change == "directory":
        world.choose(cwd=str(elsewhere))
    elif change == "project root":
        world.choose(project_root=str(elsewhere))
    elif change == "variable":
        world.set(CPATH="/x")
    elif change == "compiler":
        world.add_gcc("g++-99", world.folder / "gcc99")
        world.choose(compiler="g++-99")
    elif change == "mode":
        world.device()
    after = world.identity(settings, process)
    assert asked(world) > count
    assert (after.digest == before.digest) == (change in ("path", "directory", "project root"))


def test_unrelated_variables_ask_nothing(world: World, process: HostIdentities) -> None:
    world.identity(identities=process)
    count = asked(world)
    world.set(TERM="xterm")
    world.identity(identities=process)
    assert asked(world) == count


def test_failures_are_tried_again(world: World, process: HostIdentities) -> None:
    """MEM-05."""
    path = world.folder / "gcc/as"
    path.unlink()
    assert not world.identity(identities=process).usable
    program(path, "as")
    assert world.identity(identities=process).usable


def test_threads(world: World, process: HostIdentities) -> None:
    """MEM-03: one discovery, one result."""
    start = threading.Barrier(8)

    def capture(_: int) -> ToolchainIdentity:
        start.wait()
        return process.identity(world.selection, probes=world.answers)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(capture, range(8)))
    assert len({id(identity) for identity in found}) == 1
    assert len([command for command in world.answers.asked if command[1:] == ["-v"]]) == 1


def test_instances_are_independent(world: World, process: HostIdentities) -> None:
    """MEM-09."""
    world.identity(identities=process)
    count = asked(world)
    world.identity(identities=HostIdentities())
    assert asked(world) == 2 * count


def test_all_unavailable_components_are_named(world: World) -> None:
    """INS-22 to INS-26, IDB-06: no digest, no shared key, each with its own reason."""
    write(world.bin / "ptoas", "#!/bin/sh\n", executable=True)
    (world.bin / "g++").unlink()
    identity = world.identity()
    assert identity.reasons.keys() == {"ptoas", "device_toolchain"}
    assert identity.digest is None
    with pytest.raises(ValueError, match="device_toolchain: no program 'g\\+\\+' on PATH; ptoas: the ptoas launcher"):
        identity.to_record()


def test_the_process_has_one_memory(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """INS-01: the function that a host build calls."""
    process = HostIdentities()
    monkeypatch.setattr(identity_module, "_identities", process)
    known = process.identity(world.selection, probes=world.answers)
    assert known.usable
    assert host_identity(world.selection) is known
