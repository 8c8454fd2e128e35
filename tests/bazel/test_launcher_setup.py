"""Setting up the private Bazel: what is refused and how, and what happens when runs meet or die.

Nothing is downloaded here: apt's programs pretend.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from bazel_setup import prefix, stamp
from bazel_setup.common import Failure
from launcher_world import ROOT, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_without_apt(world: World) -> None:
    done = world.run("build")
    assert done.returncode == 1
    assert "dpkg-deb not found" in done.stderr
    assert "install Bazelisk" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_was_passed_over_is_said_before_setting_up(world: World) -> None:
    world.bazel("bazel", "6.4.0")
    assert f"passed over {world.bin / 'bazel'}: is 6.4.0" in world.run("build").stderr


@pytest.mark.parametrize(
    ("trouble", "remedy"),
    [
        ("E: Could not resolve 'mirror.invalid'", "no network, or a proxy"),
        ("E: Release file is expired", "--allow-expired"),
        ("E: The repository does not have a Release file.", "--suite or --mirror"),
        ("W: NO_PUBKEY 0123", "debian-archive-keyring"),
    ],
)
def test_an_archive_that_cannot_be_read(world: World, trouble: str, remedy: str) -> None:
    world.apt(update=trouble + "\n")
    done = world.run("build")
    assert done.returncode == 1
    assert trouble in done.stderr
    assert remedy in done.stderr
    assert list(world.cache.glob(".*tmp*")) == []


@pytest.mark.parametrize("candidate", ["8.1.0+ds-1", "7.6.1+ds-1", "4.2.3+ds-9", None])
def test_a_suite_with_another_bazel(world: World, candidate: str | None) -> None:
    world.apt(candidate=candidate)
    done = world.run("build")
    assert done.returncode == 1
    assert (f"carries Bazel {candidate}" if candidate else "carries no package bazel-bootstrap") in done.stderr
    assert "PYPTO_BAZEL" in done.stderr


@pytest.mark.parametrize("candidate", ["7.7.0+ds-1", "7.7.1+ds-8", "7.12.3~rc1-1"])
def test_any_7_from_7_7_on_is_accepted(candidate: str) -> None:
    prefix.check_version(candidate, "suite")


def test_a_cache_that_cannot_be_written(world: World) -> None:
    (world.home / ".cache").write_text("a file where a folder should be")
    done = world.run("build")
    assert done.returncode == 1
    assert "cannot write to" in done.stderr
    assert "XDG_CACHE_HOME" in done.stderr


def test_a_folder_with_blanks(world: World) -> None:
    done = world.run("build", env={"XDG_CACHE_HOME": str(world.home / "my cache")})
    assert done.returncode == 1
    assert "blanks" in done.stderr


def test_a_foreign_folder_is_left_alone(world: World, tmp_path: Path) -> None:
    foreign = tmp_path / "thesis"
    foreign.mkdir()
    (foreign / "chapter1").write_text("...")
    for extra in ([], ["--force"]):
        done = world.setup("--prefix", str(foreign), *extra)
        assert done.returncode == 1
        assert "was not made by tools/bazel" in done.stderr
    assert [p.name for p in foreign.iterdir()] == ["chapter1"]


def test_a_full_disk_is_noticed_before_downloading(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.apt()
    monkeypatch.setenv("PATH", str(world.bin))
    monkeypatch.setattr("shutil.disk_usage", lambda _path: SimpleNamespace(free=1000))
    with pytest.raises(Failure, match=r"0\.0 MB free; setting up Bazel needs 700\.0 MB"):
        prefix.ensure(prefix.Options(str(world.prefix)))


def test_what_a_killed_run_left_is_cleared_away(world: World) -> None:
    world.apt(update="E: no\n")
    for kind in ("tmp", "old"):
        (world.cache / f".{world.prefix.name}.{kind}-1/deep").mkdir(parents=True)
    world.run("build")
    assert sorted(p.name for p in world.cache.iterdir()) == [f".{world.prefix.name}.lock"]


def test_a_moved_or_unfinished_prefix_does_not_count(world: World, tmp_path: Path) -> None:
    world.own_bazel()
    assert stamp.is_complete(str(world.prefix))
    assert not stamp.is_complete(str(world.prefix), suite="another")
    moved = world.prefix.rename(tmp_path / "moved")
    assert not stamp.is_complete(str(moved))
    (moved / "complete.json").write_text("[1")
    assert not stamp.is_complete(str(moved))


PRETEND = f"""
import sys, time
sys.path.insert(0, {str(ROOT / "tools")!r})
from bazel_setup import prefix, stamp

def build(folder, options):
    with open(sys.argv[2], "a") as log:
        log.write("began\\n")
    time.sleep(float(sys.argv[3]))
    folder.mkdir(exist_ok=True)
    (folder / "complete.json").write_text(
        '{{"recipe": %d, "prefix": "%s", "suite": "s"}}' % (stamp.RECIPE, folder)
    )

prefix.build = build
prefix.ensure(prefix.Options(sys.argv[1]))
assert stamp.is_complete(sys.argv[1])
"""


class Pretended:
    """Runs that set up a prefix under the real lock with a pretended procedure."""

    def __init__(self, folder: Path) -> None:
        self.script = folder / "pretend.py"
        self.script.write_text(PRETEND)
        self.prefix = folder / "cache/prefix"
        self.log = folder / "log"
        self.log.touch()

    def start(self, seconds: float) -> subprocess.Popen[str]:
        argv = [sys.executable, str(self.script), str(self.prefix), str(self.log), str(seconds)]
        return subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)

    def begun(self) -> int:
        return self.log.read_text().count("began")

    def wait_begun(self, count: int) -> None:
        until = time.monotonic() + 30
        while self.begun() < count:
            assert time.monotonic() < until, "the run did not begin"
            time.sleep(0.01)


def test_of_many_runs_at_once_one_sets_up_and_the_others_wait(tmp_path: Path) -> None:
    pretended = Pretended(tmp_path)
    first = pretended.start(1)
    pretended.wait_begun(1)
    others = [pretended.start(0) for _ in range(4)]
    said = [run.communicate(timeout=60)[1] for run in [first, *others]]
    assert [run.returncode for run in [first, *others]] == [0] * 5
    assert pretended.begun() == 1
    assert all("waiting" in text for text in said[1:])


def test_a_killed_run_holds_nobody_up(tmp_path: Path) -> None:
    pretended = Pretended(tmp_path)
    first = pretended.start(60)
    pretended.wait_begun(1)
    second = pretended.start(0)
    os.kill(first.pid, signal.SIGKILL)
    first.communicate(timeout=60)
    second.communicate(timeout=60)
    assert second.returncode == 0
    assert pretended.begun() == 2
