"""A JIT build that is killed, or that the disk or the system fails, leaves nothing that harms the next process."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jit_build import JitBuild
from jit_stand_ins import in_child

CAMPAIGN = Path(__file__).with_name("campaign.py")


@pytest.fixture(scope="module")
def build() -> JitBuild:
    return JitBuild()


@pytest.fixture
def folder(tmp_path: Path, build: JitBuild) -> Path:
    build.prepare(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("strace")
@pytest.mark.parametrize(("operation", "sample"), [("jit", 120), ("jit-promotion", 60)])
def test_system_calls_of_a_warm_up(operation: str, sample: int) -> None:
    """REQ-19, REQ-34, BIN-12, STA-35: entries are whole, locks free, a private kernel has its reason in the counters.

    The next process finds what was published and builds the rest.
    """
    command = [sys.executable, CAMPAIGN, "syscalls", "--operation", operation, "--sample", str(sample), "--seed", "11"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stderr == ""
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["problems"] == []
    assert report["points"] == sample
    first_words = {outcome.split(",")[0] for outcome in report["outcomes"]}
    assert first_words == {"killed", "raised", "shared", "private"}


def later(build: JitBuild, folder: Path) -> dict[str, Any]:
    """What a healthy process finds afterwards."""
    found: dict[str, Any] = in_child(lambda: build._warm(folder))
    assert (found["state"], found["origin"], found["whole"]) == ("READY", "shared", True), found
    assert JitBuild._entries(folder) == {"generated", "ready"}
    return found


def test_files_that_may_not_grow(build: JitBuild, folder: Path) -> None:
    """REQ-33, REQ-34: at each limit the caller gets the system's error or a whole kernel; afterwards all is well."""
    outcomes = set()
    for limit in (0, 1, 8, 40, 300, 700, 2000):

        def limited(limit: int = limit) -> dict[str, Any]:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            return build._warm(folder)

        found = in_child(limited)
        if "raised" in found:
            assert "File too large" in found["raised"]
            outcomes.add("raised")
        else:
            assert (found["state"], found["whole"]) == ("READY", True)
            outcomes.add(found["origin"])
        JitBuild._entries(folder)
    assert "raised" in outcomes
    later(build, folder)


@pytest.fixture
def small_disk(folder: Path, root_user: None) -> Iterator[Path]:
    """The cache root on a file system of its own that holds hardly anything."""
    root = folder / "root"
    root.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", root], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"this machine does not let a file system be mounted: {done.stderr.strip()}")
    yield root
    subprocess.run(["umount", root], check=True)


def test_a_full_disk_under_the_cache(build: JitBuild, small_disk: Path, folder: Path) -> None:
    """REQ-31, STA-12, STA-35: the build is kept privately, and says so; with room, the next process publishes."""
    seen = set()
    for free in range(0, 24, 2):
        filler = small_disk / "filler"
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        os.truncate(filler, filler.stat().st_size - 4096 * free)
        found = in_child(lambda: build._warm(folder))
        assert (found.get("state"), found.get("whole")) == ("READY", True), found
        assert (found["origin"] == "private") == (found["storage_errors"] > 0), found
        seen.add(found["origin"])
        JitBuild._entries(folder)
        subprocess.run(["rm", "-rf", filler, small_disk / "artifacts", small_disk / "records"], check=True)
    assert seen == {"private", "shared"}
    later(build, folder)


def test_a_full_disk_under_the_private_builds(build: JitBuild, folder: Path, root_user: None) -> None:
    """REQ-33: the error names the place; nothing is published, and the same request works once there is room."""
    place = folder / "work/build_output"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", place], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"this machine does not let a file system be mounted: {done.stderr.strip()}")
    try:
        found = in_child(lambda: build._warm(folder))
        assert "No space left on device" in found["raised"]
        assert JitBuild._entries(folder) == set()
        assert list(place.iterdir()) == []
    finally:
        subprocess.run(["umount", place], check=True)
    assert later(build, folder)["generation_builds"] == 1
