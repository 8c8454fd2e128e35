"""Which Bazel `tools/bazel` starts, and how."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from bazel_setup.launch import fits, parse_version
from bazel_setup.modules import split_startup
from launcher_world import LAUNCHER, World

UNREACHABLE = "ERROR: Error accessing registry: Unknown host: registry.invalid"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_named_bazel_comes_first(world: World) -> None:
    mine = world.bazel(world.home / "mine")
    world.bazel("bazelisk")
    world.bazel("bazel")
    done = world.run("build", env={"PYPTO_BAZEL": str(mine), "BAZEL_REAL": str(world.bin / "bazel")})
    assert f"ran {mine}" in done.stdout
    assert done.stderr.splitlines() == ["tools/bazel: asking the module registry (once per Bazel and MODULE.bazel)"]


def test_bazel_real_comes_before_path(world: World) -> None:
    """Bazelisk and packaged Bazels start a workspace's tools/bazel with this."""
    real = world.bazel(world.home / "real")
    world.bazel("bazelisk")
    assert f"ran {real}" in world.run("build", env={"BAZEL_REAL": str(real)}).stdout


def test_bazelisk_comes_before_bazel(world: World) -> None:
    world.bazel("bazelisk")
    world.bazel("bazel")
    assert f"ran {world.bin / 'bazelisk'}" in world.run("info").stdout


def test_bazel_on_path_comes_before_our_own(world: World) -> None:
    world.own_bazel()
    world.bazel("bazel", "8.4.2")
    assert f"ran {world.bin / 'bazel'}" in world.run("info").stdout


def test_our_own_comes_last_and_asks_nobody(world: World) -> None:
    own = world.own_bazel()
    assert f"ran {own}" in world.run("build", "//...").stdout
    assert world.asked() == []


def test_bazelisk_never_starts_the_launcher_again(world: World) -> None:
    world.bazel("bazelisk")
    done = world.run("info", env={"BAZEL_REAL": ""})
    assert "skip=1 real= asked=\n" in done.stdout
    assert world.asked() == [f"{world.bin / 'bazelisk'} skip=1"]


def test_arguments_exit_code_and_process_are_bazels(world: World) -> None:
    world.bazel("bazel", code=37)
    arguments = ["info", "a b", "", "*", "--x=$HOME", "--", "--pypto-help"]
    with subprocess.Popen(
        [LAUNCHER, *arguments], env=world.env, cwd=world.workspace, stdout=subprocess.PIPE, text=True
    ) as process:
        said, _ = process.communicate(timeout=60)
    assert [line[10:-1] for line in said.splitlines() if line.startswith("argument <")] == arguments
    assert f"pid {process.pid}\n" in said
    assert process.returncode == 37


def test_signals_reach_bazel(world: World) -> None:
    world.script(
        world.bin / "bazel",
        "#!/bin/sh\n"
        '[ "$1" = --version ] && { echo bazel 7.7.1; exit; }\n'
        "trap 'exit 8' INT\n"
        "echo ready\n"
        "while :; do /bin/sleep 0.05; done\n",
    )
    with subprocess.Popen([LAUNCHER, "info"], env=world.env, cwd=world.workspace, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"ready\n"
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=30) == 8
        finally:
            process.kill()


@pytest.mark.parametrize("version", ["7.6.9", "6.5.0", "9.0.0", "10.1.0"])
def test_a_bazel_that_does_not_fit_is_passed_over_on_path(world: World, version: str) -> None:
    own = world.own_bazel()
    world.bazel("bazel", version)
    assert f"ran {own}" in world.run("info").stdout


@pytest.mark.parametrize("variable", ["PYPTO_BAZEL", "BAZEL_REAL"])
@pytest.mark.parametrize("version", ["7.6.9", "9.0.0"])
def test_a_named_bazel_that_does_not_fit_is_an_error(world: World, variable: str, version: str) -> None:
    world.own_bazel()
    mine = world.bazel(world.home / "mine", version)
    done = world.run("build", env={variable: str(mine)})
    assert done.returncode == 1
    assert done.stdout == ""
    assert f"{variable}={mine} is Bazel {version}; this project needs 7.7 <= version < 9" in done.stderr
    assert "unset it" in done.stderr


def test_a_named_bazel_must_be_there_run_and_be_another_program(world: World) -> None:
    plain = world.home / "plain"
    plain.touch()
    silent = world.script(world.home / "silent", "#!/bin/sh\nexit 3\n")
    broken = world.script(world.home / "broken", "#!/no/such/interpreter\n")
    for given, said in (
        (world.home / "absent", "no such file"),
        (world.home, "no such file"),
        (plain, "not executable"),
        (LAUNCHER, "that is this launcher itself"),
        (silent, "gives no version: exit code 3"),
        (broken, "cannot be run"),
    ):
        done = world.run("build", env={"PYPTO_BAZEL": str(given)})
        assert (done.returncode, done.stdout) == (1, "")
        assert said in done.stderr
        assert "name a Bazel, or unset it" in done.stderr
        assert "Traceback" not in done.stderr


def test_the_launcher_on_path_is_not_taken_for_bazel(world: World) -> None:
    """As a link, and through a script, which no look at the file could tell."""
    own = world.own_bazel()
    (world.bin / "bazel").symlink_to(LAUNCHER)
    world.script(world.bin / "bazelisk", f"#!/bin/sh\n'{LAUNCHER}' \"$@\"\n")
    done = world.run("build")
    assert f"ran {own}" in done.stdout
    assert done.returncode == 0


def test_relative_and_empty_path_entries_are_not_searched(world: World) -> None:
    own = world.own_bazel()
    world.bazel(world.workspace / "bazel")
    done = world.run("info", env={"PATH": f".::{world.bin}"})
    assert f"ran {own}" in done.stdout


def test_a_version_is_asked_once(world: World) -> None:
    world.bazel("bazel")
    for _ in range(3):
        assert world.run("info").returncode == 0
    assert len(world.asked()) == 1
    world.bazel("bazel", "7.8.10")  # another file: another question
    world.run("info")
    assert len(world.asked()) == 2


def test_bazelisk_is_asked_again_when_another_version_is_wanted(world: World) -> None:
    world.bazel("bazelisk")
    world.run("info")
    (world.workspace / ".bazelversion").write_text("7.7.0\n")
    world.run("info", cwd=world.workspace / "sub")
    world.run("info", env={"USE_BAZEL_VERSION": "8.0.0"})
    assert len(world.asked()) == 3


def test_bazelisk_without_a_network_is_passed_over_with_its_reason(world: World) -> None:
    own = world.own_bazel()
    world.bazel("bazelisk", None)
    first, second = world.run("info"), world.run("info")
    assert f"ran {own}" in first.stdout and f"ran {own}" in second.stdout
    assert "could not download Bazel" in first.stderr
    assert second.stderr == ""
    assert len(world.asked()) == 1  # it may take long to give up: not before every command


def test_notes_that_are_damaged_or_cannot_be_kept_do_no_harm(world: World) -> None:
    world.bazel("bazel")
    world.cache.mkdir(parents=True)
    (world.cache / "notes.json").write_text("{")
    assert world.run("info").returncode == 0
    assert world.run("info", env={"HOME": "/proc/none"}).returncode == 0
    assert world.run("info", env={"HOME": ""}).returncode == 0


def test_without_home_a_bazel_of_our_own_is_refused(world: World) -> None:
    done = world.run("build", env={"HOME": ""})
    assert done.returncode == 1
    assert "HOME is not set" in done.stderr
    assert "PYPTO_BAZEL" in done.stderr


def test_the_cache_follows_xdg(world: World) -> None:
    own = world.own_bazel()
    elsewhere = {"HOME": "/proc/none", "XDG_CACHE_HOME": str(world.home / ".cache")}
    assert f"ran {own}" in world.run("build", env=elsewhere).stdout


def test_help_needs_no_bazel(world: World) -> None:
    done = world.run("--pypto-help", env={"HOME": ""})
    assert done.returncode == 0
    assert "PYPTO_BAZEL" in done.stdout
    assert len(done.stdout.splitlines()) < 40


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("bazel 7.7.1\n", (7, 7, 1)),
        ("bazel 7.7.1- (@non-git)\n", (7, 7, 1)),
        ("bazel 8.0.0rc2", (8, 0, 0)),
        ("WARNING: x\nbazel 8.1.0-pre.20250101.1\n", (8, 1, 0)),
        ("bazel no_version", None),
        ("Build label: 7.7.1", None),
        ("", None),
    ],
)
def test_versions_are_read(text: str, version: tuple[int, ...] | None) -> None:
    assert parse_version(text) == version


def test_bounds() -> None:
    assert [fits(v) for v in ((7, 6, 9), (7, 7), (7, 7, 0), (8, 5, 0), (9,), (9, 0, 0))] == [
        False,
        True,
        True,
        True,
        False,
        False,
    ]


# Where modules come from


def test_a_registry_that_answers_leaves_no_fragment(world: World) -> None:
    world.bazel("bazel")
    for _ in range(2):
        assert world.run("build", "//...", cwd=world.workspace / "sub").returncode == 0
    assert not (world.workspace / ".bazelrc.modules").exists()
    assert len([a for a in world.asked() if a.startswith("graph:")]) == 1


def test_without_a_registry_packaged_modules_stand_in(world: World) -> None:
    world.own_bazel()
    world.bazel("bazel", graph=UNREACHABLE, graph_code=1)
    (world.workspace / ".bazelrc.user").write_text("# mine\n")
    for _ in range(2):
        assert f"ran {world.bin / 'bazel'}" in world.run("--output_base", "/o", "build").stdout
    fragment = (world.workspace / ".bazelrc.modules").read_text()
    assert f"try-import {world.prefix}/overrides.bazelrc" in fragment
    assert (world.workspace / ".bazelrc.user").read_text() == "# mine\n"
    # The question went to the server the command will use, and once.
    assert [a for a in world.asked() if a.startswith("graph:")] == [
        "graph: --output_base /o mod graph --noshow_progress"
    ]


def test_a_fragment_without_its_modules_is_made_again(world: World) -> None:
    world.own_bazel()
    world.bazel("bazel", graph=UNREACHABLE, graph_code=1)
    fragment = world.workspace / ".bazelrc.modules"
    fragment.write_text("# for Bazel 7.7.1\ntry-import /gone/overrides.bazelrc\n")
    world.run("build")
    assert "/gone/" not in fragment.read_text()


def test_a_fragment_made_for_another_bazel_does_not_stay(world: World) -> None:
    world.own_bazel()
    world.bazel("bazel", graph=UNREACHABLE, graph_code=1)
    world.run("build")
    world.bazel("bazel", "8.1.0")
    world.run("build")
    assert not (world.workspace / ".bazelrc.modules").exists()


def test_trouble_other_than_the_networks_is_bazels_to_report(world: World) -> None:
    world.bazel("bazel", graph="ERROR: MODULE.bazel:1:1: syntax error", graph_code=2)
    for _ in range(2):
        assert f"ran {world.bin / 'bazel'}" in world.run("build").stdout
    assert not (world.workspace / ".bazelrc.modules").exists()
    assert len([a for a in world.asked() if a.startswith("graph:")]) == 2  # nothing was learned


def test_a_newer_bazel_without_a_registry_is_an_error(world: World) -> None:
    world.own_bazel()
    world.bazel("bazel", "8.1.0", graph=UNREACHABLE, graph_code=1)
    done = world.run("build")
    assert done.returncode == 1
    assert "packaged modules are for Bazel 7, not 8.1.0" in done.stderr
    assert not (world.workspace / ".bazelrc.modules").exists()


def test_modules_can_be_decided_by_hand(world: World) -> None:
    world.own_bazel()
    world.bazel("bazel")
    fragment = world.workspace / ".bazelrc.modules"
    world.run("build", env={"PYPTO_BAZEL_MODULES": "packaged"})
    assert fragment.exists()
    world.run("build", env={"PYPTO_BAZEL_MODULES": "registry"})
    assert not fragment.exists()
    assert "must be auto, registry or packaged" in world.run("build", env={"PYPTO_BAZEL_MODULES": "x"}).stderr
    assert not any(a.startswith("graph:") for a in world.asked())


def test_commands_without_modules_and_other_workspaces_ask_nothing(world: World) -> None:
    world.bazel("bazel", graph=UNREACHABLE, graph_code=1)
    for command in ("version", "shutdown", "help", "info"):
        assert world.run(command).returncode == 0
    assert world.run().returncode == 0
    (world.workspace / ".bazelrc").write_text("# imports nothing\n")
    assert world.run("build").returncode == 0
    assert not any(a.startswith("graph:") for a in world.asked())


def test_startup_options_are_told_from_the_command() -> None:
    assert split_startup(["--output_base", "/o", "--batch", "build", "--x"]) == (
        ["--output_base", "/o", "--batch"],
        "build",
    )
    assert split_startup(["--output_base=/o", "test"]) == (["--output_base=/o"], "test")
    assert split_startup(["--version"]) == (["--version"], "")
    assert split_startup([]) == ([], "")


# The real one


def test_the_bazel_that_is_set_up_fits() -> None:
    """On a machine with apt and without any Bazel; the prefix is shared with every other test and user."""
    if not shutil.which("apt-get"):
        if os.environ.get("CI"):
            pytest.fail("no apt on this machine: the private Bazel cannot be tried")
        pytest.skip("no apt on this machine")
    env = {k: v for k, v in os.environ.items() if k not in ("PYPTO_BAZEL", "BAZEL_REAL")}
    env["PATH"] = os.pathsep.join(
        p for p in env["PATH"].split(os.pathsep) if not any(Path(p, n).exists() for n in ("bazel", "bazelisk"))
    )
    done = subprocess.run([LAUNCHER, "--version"], env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    found = re.fullmatch(r"bazel (7)\.(\d+)\.\d+\s*", done.stdout)
    assert found, done.stdout
    assert int(found[2]) >= 7
