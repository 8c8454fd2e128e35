"""The store under races, kills, full disks and other users (PUB, PRM, LIM)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from artifact_samples import FILES, READY, Builder, sample_key, snapshot, write_files

from pypto.jit.artifact_cache import ArtifactStore, BuildFailure, BuildStatus, LookupStatus

ROOT = Path(__file__).parents[2]
WORKER = Path(__file__).with_name("store_worker.py")
KEY = sample_key()
PROCESSES = 8


class World:
    """A root, a private root, a log, and the processes that were started on them."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.private = folder / "private"
        self.log = folder / "log"
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, *options: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, str(WORKER), str(self.root), str(self.private), str(self.log), *options],
            env={"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests/unit/artifact_cache")])},
            stdout=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def start_and_stop(self, *options: str) -> subprocess.Popen[str]:
        """A worker that has reached the point where it stands still."""
        process = self.start(*options)
        assert process.stdout is not None
        assert process.stdout.readline() == "stopped\n"
        return process

    def outcomes(self, processes: list[subprocess.Popen[str]]) -> list[dict[str, Any]]:
        outputs = [process.communicate(timeout=60)[0] for process in processes]
        assert all(process.returncode == 0 for process in processes)
        return [json.loads(output) for output in outputs]

    def events(self) -> list[list[str]]:
        return [line.split() for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def store(self, **options: Any) -> ArtifactStore:
        return ArtifactStore(self.root, private_root=self.private, **options)

    def status(self) -> LookupStatus:
        return self.store().lookup(KEY, READY).status


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=60)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    for process in made.processes:
        if process.poll() is None:
            kill(process)
        if process.stdout is not None:
            process.stdout.close()


def test_racing_processes_build_once(world: World) -> None:
    """PUB-3, PUB-30, under different umasks."""
    masks = ("000", "022", "077")
    outcomes = world.outcomes([world.start("--umask", masks[i % 3]) for i in range(PROCESSES)])
    assert sorted(outcome["status"] for outcome in outcomes) == ["hit"] * (PROCESSES - 1) + ["published"]
    assert [event for event, _ in world.events()] == ["start", "end"]
    handle = world.store().lookup(KEY, READY, load=True).handle
    assert handle is not None and handle.payload == FILES


def test_private_builds_of_one_key_never_overlap(world: World) -> None:
    """PUB-30 to PUB-32: an invalid entry makes each process build, one after the other, each for itself."""
    entry = world.root / "artifacts" / KEY.environment_digest / KEY.digest / READY.digest / "ready"
    entry.mkdir(parents=True)
    outcomes = world.outcomes([world.start() for _ in range(4)])
    assert [(o["status"], o["failure"]) for o in outcomes] == [("private", "invalid")] * 4
    assert len({o["directory"] for o in outcomes}) == 4
    events = world.events()
    assert [event for event, _ in events] == ["start", "end"] * 4
    assert all(events[i][1] == events[i + 1][1] for i in range(0, 8, 2))


def test_unusable_locks_let_everyone_build(world: World) -> None:
    """PUB-33: while one process stands in its builder, another builds."""
    world.root.mkdir()
    (world.root / "locks").write_text("in the way")
    world.start_and_stop("--hang")
    (outcome,) = world.outcomes([world.start()])
    assert (outcome["status"], outcome["failure"]) == ("private", "lock")


def test_a_killed_builder_frees_its_waiters(world: World) -> None:
    """PUB-23, PUB-24: kill -9 of the leader; one waiter takes over, the others hit."""
    leader = world.start_and_stop("--hang")
    waiters = [world.start() for _ in range(3)]
    kill(leader)
    outcomes = world.outcomes(waiters)
    assert sorted(outcome["status"] for outcome in outcomes) == ["hit", "hit", "published"]
    assert world.status() is LookupStatus.HIT


@pytest.mark.parametrize(
    ("point", "visible"),
    [
        ("publish.make_directory", False),
        ("publish.write_file", False),
        ("after:publish.write_file", False),
        ("publish.sync_tree", False),
        ("publish.write_marker", False),
        ("after:publish.write_marker", False),
        ("publish.rename_noreplace", False),
        ("after:publish.rename_noreplace", True),
    ],
)
def test_kill_at_every_step_of_a_publication(world: World, point: str, visible: bool) -> None:
    """PUB-22: what a killed process leaves is never half an entry, and the next process goes on."""
    kill(world.start_and_stop("--stop-at", point))
    assert world.status() is (LookupStatus.HIT if visible else LookupStatus.MISS)
    leftovers = [path for path in snapshot(world.root) if Path(path).name.startswith(".tmp.")]
    result = world.store().get_or_build(KEY, READY, Builder())
    assert result.status is (BuildStatus.HIT if visible else BuildStatus.PUBLISHED)
    assert [path for path in snapshot(world.root) if Path(path).name.startswith(".tmp.")] == leftovers


def test_readers_never_see_half_an_entry(world: World) -> None:
    """A reader that looks all the time sees nothing, then everything."""
    process = world.start()
    seen = [world.status()]
    while process.poll() is None:
        seen.append(world.status())
    seen.append(world.status())
    assert seen[0] is LookupStatus.MISS
    assert seen[-1] is LookupStatus.HIT
    assert set(seen) == {LookupStatus.MISS, LookupStatus.HIT}
    assert seen == sorted(seen, key=lambda status: status is LookupStatus.HIT)


def test_a_forked_child_does_not_wait_for_its_parents_operation(world: World) -> None:
    """The child of a process that was building has no leader to wait for."""

    def build(directory: Path) -> None:
        write_files(directory)
        child = os.fork()
        if child == 0:
            # Another root: the parent holds the key's lock in this one.
            other = ArtifactStore(world.root.with_name("other"), private_root=world.private)
            ok = other.get_or_build(KEY, READY, Builder()).status is BuildStatus.PUBLISHED
            readonly = world.store(readonly=True).get_or_build(KEY, READY, Builder())
            os._exit(0 if ok and readonly.status is BuildStatus.PRIVATE else 1)
        assert os.waitpid(child, 0)[1] == 0

    assert world.store().get_or_build(KEY, READY, build).status is BuildStatus.PUBLISHED


# Full disk


@pytest.fixture
def small_disk(root_user: None, tmp_path: Path) -> Iterator[Path]:
    """A file system of 128 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", place], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"this machine does not let a small file system be mounted: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", place], check=True)


def test_full_disk(small_disk: Path, tmp_path: Path) -> None:
    """PUB-18: a build that does not fit stays private; with room again, the next one is published."""

    def build(directory: Path) -> str:
        write_files(directory)
        (directory / "large").write_bytes(b"x" * 65536)
        return "made"

    store = ArtifactStore(small_disk / "root", private_root=tmp_path / "private")
    (small_disk / "ballast").write_bytes(b"x" * 65536)
    result = store.get_or_build(KEY, READY, build)
    assert (result.status, result.failure, result.value) == (BuildStatus.PRIVATE, BuildFailure.PUBLICATION, "made")
    assert "No space left" in str(result.reason)
    assert not [path for path in snapshot(store.root) if ".tmp." in path]
    assert store.lookup(KEY, READY).status is LookupStatus.MISS
    (small_disk / "ballast").unlink()
    assert store.get_or_build(KEY, READY, build).status is BuildStatus.PUBLISHED
