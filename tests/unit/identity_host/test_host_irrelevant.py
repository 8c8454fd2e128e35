"""The other half of the truth table of the host world: what must not change the key."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from host_world import World

PROGRAM = """
import os, sys
sys.path[:0] = sys.argv[2:]
from pathlib import Path
from host_world import Gcc, World, REVISION
from pypto._identity.host.identity import HostIdentities
from pypto._identity.host.selection import PtoIsa, capture_selection
if os.environ.get("TEST_UMASK"):
    os.umask(int(os.environ["TEST_UMASK"], 8))
folder = Path(sys.argv[1])
world = World.attach(folder)
world.selection = capture_selection(package_root=folder / "pypto", pto_isa=PtoIsa(revision=REVISION))
identity = HostIdentities().identity(world.selection, probes=world.answers)
print(identity.digest, identity.explain())
"""

NOBODY = 65534


class TestIrrelevant:
    """In processes of their own, with the launcher of a wheel, so that an interpreter is asked, too."""

    @pytest.fixture
    def place(self, world: World) -> World:
        world.launcher()
        return world

    def run(
        self, world: World, cwd: str = "/", prefix: tuple[str, ...] = (), python: str = sys.executable, **options: Any
    ) -> str:
        own = options.pop("environment", {})
        environment = {"PATH": str(world.bin), "HOME": str(world.folder), "PYTHONDONTWRITEBYTECODE": "1", **own}
        folders = [world.folder, Path(__file__).parents[3], Path(__file__).parent]
        done = subprocess.run(
            [*prefix, os.path.realpath(python), "-c", PROGRAM, *map(str, folders)],
            env=environment, cwd=cwd, capture_output=True, text=True, check=False, **options,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert not done.stdout.startswith("None"), done.stdout
        return done.stdout

    def test_factors(self, place: World, tmp_path: Path) -> None:
        """cwd, HOME, umask, TZ, hash seed, unrelated variables and their order, host name, device index, mtimes."""
        expected = self.run(place)
        unrelated = {"ZEBRA": "1", "ASCEND_DEVICE_ID": "5", "HOSTNAME": "x", "USER": "x", "DEBUG": "1", "TERM": "dumb"}
        made = {
            "cwd": {"cwd": str(tmp_path)},
            "HOME": {"environment": {"HOME": "/nonexistent"}},
            "umask": {"umask": 0o077},
            "umask while it runs": {"environment": {"TEST_UMASK": "000"}},
            "TZ": {"environment": {"TZ": "Asia/Kolkata"}},
            "hash seed 0": {"environment": {"PYTHONHASHSEED": "0"}},
            "hash seed 7": {"environment": {"PYTHONHASHSEED": "7"}},
            "unrelated variables": {"environment": unrelated},
            "order of variables": {"environment": dict(reversed(unrelated.items()))},
            "unused folder on PATH": {"environment": {"PATH": f"{tmp_path}:{place.bin}"}},
            "visible devices": {"environment": {"ASCEND_RT_VISIBLE_DEVICES": "3"}},
        }
        differing = {name for name, options in made.items() if self.run(place, **options) != expected}
        assert differing == set()
        for folder, _, names in os.walk(place.folder):
            for name in (*names, "."):
                os.utime(os.path.join(folder, name), (1_000_000, 2_000_000), follow_symlinks=False)
        assert self.run(place) == expected, "mtimes"

    def test_host_name(self, place: World) -> None:
        prefix = ("unshare", "--uts", "sh", "-c", 'hostname other && exec "$@"', "-")
        if os.geteuid() != 0 or subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode != 0:
            pytest.skip("the host name cannot be changed here")
        path = {"PATH": f"{place.bin}:{os.environ['PATH']}"}
        assert self.run(place, prefix=prefix, environment=path) == self.run(place, environment=path)

    def test_user(self, world: World) -> None:
        """uid; with a standalone ptoas, since the interpreter of these tests may be readable by its owner only."""
        for parent in (world.folder.parent, *world.folder.parent.parents[:2]):
            parent.chmod(0o755)
        pythons = (sys.executable, "/usr/bin/python3")
        theirs = [python for python in pythons if os.geteuid() == 0 and self.works_for_nobody(python)]
        if not theirs:
            pytest.skip("no other user can run a Python with this checkout here")
        assert self.run(world, python=theirs[0], user=NOBODY) == self.run(world, python=theirs[0])

    @staticmethod
    def works_for_nobody(python: str) -> bool:
        check = "import sys; open(sys.argv[1]); sys.exit(sys.version_info < (3, 11))"
        try:
            command = [python, "-c", check, __file__]
            return subprocess.run(command, cwd="/", user=NOBODY, capture_output=True, check=False).returncode == 0
        except OSError:
            return False

    def test_locale_and_interpreter_count(self, place: World) -> None:
        """They are irrelevant in the hermetic world only."""
        expected = self.run(place)
        assert self.run(place, environment={"LC_ALL": "tr_TR.UTF-8"}) != expected
        assert self.run(place, environment={"PYTHONOPTIMIZE": "1"}) != expected

    def test_checkout_path(self, world: World) -> None:
        before = world.digest()
        world.package("another/pypto")
        assert world.choose(package_root=str(world.folder / "another/pypto")).digest() == before


def test_a_variable_is_in_one_class_only() -> None:
    """ENV-03, ENV-09: what acts on a host build's key is registered as such, and nothing else acts on it."""
    import pypto
    from pypto._identity.host.overrides import compiler_overrides, interpreter_overrides

    registry = json.loads(Path(pypto.__file__).with_name("_environment.json").read_text())["variables"]
    everything_set = dict.fromkeys(registry, "x")
    acting = interpreter_overrides(everything_set) | compiler_overrides(everything_set)
    for name in acting:
        assert registry[name]["class"] in ("semantic", "tool_resolution"), name
    for name, entry in registry.items():
        if entry["class"] == "semantic" and not name.startswith("PYPTO_"):
            assert name in acting, f"{name} is registered as semantic, but does not act on a host build's key"
