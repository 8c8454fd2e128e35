"""Processes that race, die and fork (STO, PUB); `campaign.py races` prints the figures."""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import races
from artifact_samples import READY, sample_key, write_files

from pypto.jit.artifact_cache import ArtifactBuild, BuildStatus, LookupStatus


def test_64_processes_on_one_key(tmp_path: Path) -> None:
    """PUB-2, PUB-3, PUB-30."""
    races.one_key(tmp_path, 64)


def test_64_processes_on_100_keys(tmp_path: Path) -> None:
    """PUB-3, PUB-6, PUB-30."""
    races.many_keys(tmp_path, 64)


def test_a_waiter_takes_over(tmp_path: Path) -> None:
    """PUB-24, PUB-42, PUB-43: the waiter waits as long as the holder lives, and no longer."""
    assert races.takeover(tmp_path)["milliseconds"] > 0


def test_32_processes_import_one_bundle(tmp_path: Path) -> None:
    races.importers(tmp_path, 32)


@pytest.mark.parametrize("how", ["fork", "subprocess", "native"])
def test_a_child_of_the_builder_keeps_no_lock(tmp_path: Path, how: str) -> None:
    """PUB-24: neither after the publication nor (if Python knows of it) after its parent was killed."""
    races.fork_in_builder(tmp_path, how)


def test_a_child_of_the_builder_frees_no_lock(tmp_path: Path) -> None:
    """PUB-46: children end, in any way, while their parent goes on building alone."""
    overlaps = []

    def build(directory: Path) -> None:
        write_files(directory)
        for way in ("exit", "return", "raise"):
            child = os.fork()
            if child == 0:
                # Takes the number that the lock had here.
                opened.append(os.open("/dev/null", os.O_RDONLY))
                if way == "return":
                    return
                if way == "raise":
                    sys.exit(3)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0, way
        other = races.start(lambda: {"got": ask()}, tmp_path / "other")
        races.wait_until(lambda: races.waits_for_lock(other))
        time.sleep(0.02)
        overlaps.append((tmp_path / "other").exists())
        others.append(other)

    def ask() -> str:
        return races.store_in(tmp_path).get_or_build(sample_key(), READY, write_files).status.value

    def request() -> dict[str, object]:
        home = os.getpid()
        try:
            status = races.store_in(tmp_path).get_or_build(sample_key(), READY, build).status.value
        except (RuntimeError, SystemExit):
            # The forked children come here; what they opened themselves is still open.
            if os.getpid() == home:
                raise
            os.fstat(opened[0])
            os._exit(0)
        if os.getpid() != home:
            os._exit(1)
        return {"status": status, "overlaps": overlaps, "other": races.finish(others[0], tmp_path / "other")}

    opened: list[int] = []
    others: list[int] = []
    answer = races.finish(races.start(request, tmp_path / "leader"), tmp_path / "leader")
    assert answer == {"status": "published", "overlaps": [False], "other": {"got": "hit"}}


def test_forking_threads_and_locks(tmp_path: Path) -> None:
    """Forks while other threads take and release locks: no child keeps one."""

    def fork_often() -> None:
        for _ in range(60):
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)

    def build(number: int) -> ArtifactBuild[None]:
        return races.store_in(tmp_path).get_or_build(races.key_number(number), READY, write_files)

    with ThreadPoolExecutor(4) as pool:
        forks = pool.submit(fork_often)
        results = list(pool.map(build, range(30)))
        forks.result()
    assert {result.status for result in results} == {BuildStatus.PUBLISHED}
    for number in range(30):
        assert races.store_in(tmp_path).lookup(races.key_number(number), READY).status is LookupStatus.HIT
