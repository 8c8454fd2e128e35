"""The other half of the hermetic truth table: what must not act is changed, in a fresh process each time.

Every variable of the registry takes part: it is one of the settings that do act, or its change leaves the key as it is.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from test_truth_table_hermetic import KERNEL, descriptor

from pypto._identity.package import default_package_root, package_files
from pypto._identity.records import canonical_json
from pypto.toolchain import Bindings, ToolchainDescriptor
from pypto.toolchain.descriptor import ROOTS

REGISTRY: dict[str, dict[str, Any]] = json.loads((default_package_root() / "_environment.json").read_text())[
    "variables"
]

NOBODY = 65534

PROGRAM = """
import os, sys
sys.path[:0] = sys.argv[1:3]
import scaling
from pypto.jit.artifact_cache.key import ArtifactKey
from pypto.jit.config import CacheConfig
from pypto.jit.request import capture, environment_identity
from pypto.runtime import RunConfig
from pypto.toolchain import current
if os.environ.get("TEST_UMASK"):
    os.umask(int(os.environ["TEST_UMASK"], 8))
device = int(os.environ.get("TEST_DEVICE", "0"))
config = RunConfig(cache_config=CacheConfig(enabled=True), device_id=device)
request = capture(scaling.scaled, (), {}, config)
environment = environment_identity(current(), request.specialization.options, request.policy.identity)
key = ArtifactKey(environment, request.application_source_digest, request.specialization_digest)
print(key.digest, *sorted(key.environment.components.values()), key.source_digest, key.specialization_digest)
"""


@dataclass(frozen=True)
class Place:
    """A copy of everything that a process needs: the package, a kernel, a descriptor with its bindings."""

    folder: Path

    @property
    def descriptor(self) -> Path:
        return self.folder / "tools/descriptor.json"


@dataclass(frozen=True)
class Process:
    """How a process is started; the defaults are the base of all comparisons."""

    place: Place
    python: tuple[str, ...] = (sys.executable,)
    flags: tuple[str, ...] = ()
    cwd: str = "/"
    environment: dict[str, str] = field(default_factory=dict)
    prefix: tuple[str, ...] = ()
    umask: int = -1
    user: int | None = None

    def key(self) -> str:
        environment = {"PYPTO_TOOLCHAIN_DESCRIPTOR": str(self.place.descriptor), "HOME": str(self.place.folder)}
        done = subprocess.run(
            [*self.prefix, *self.python, *self.flags, "-c", PROGRAM, str(self.place.folder),
             str(self.place.folder / "kernels")],
            env={**environment, **self.environment}, cwd=self.cwd, umask=self.umask, user=self.user,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout


def make_place(folder: Path) -> Place:
    for _, relative in package_files(default_package_root()):
        (folder / "pypto" / relative).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(default_package_root() / relative, folder / "pypto" / relative)
    for name in ("kernels", "tools", *(f"tools/{root}" for root in ROOTS)):
        (folder / name).mkdir()
        (folder / name / "file").write_text(name)
    (folder / "kernels/scaling.py").write_text(KERNEL)
    place = Place(folder)
    sets = {name: tools for name, tools in descriptor().sets.items() if name in ROOTS}
    place.descriptor.write_bytes(ToolchainDescriptor(sets).to_bytes())
    bindings = Bindings({name: folder / "tools" / name for name in ROOTS})
    (folder / "tools/bindings.json").write_bytes(bindings.to_bytes(folder / "tools"))
    for base, _, names in os.walk(folder):
        os.chmod(base, 0o755)
        for name in names:
            os.chmod(os.path.join(base, name), 0o644)
    return place


@pytest.fixture(scope="module")
def base() -> Iterator[Process]:
    # Not in pytest's own folder, which other users cannot enter.
    with tempfile.TemporaryDirectory(prefix="pypto-test-") as folder:
        os.chmod(folder, 0o755)
        yield Process(make_place(Path(folder, "one")))


@pytest.fixture(scope="module")
def expected(base: Process) -> str:
    return base.key()


def pythons() -> list[str]:
    """Every supported Python of this machine, those of the system included."""
    names = [f"python3.{minor}" for minor in (11, 12, 13)]
    found = [shutil.which(name, path=path) for name in names for path in (None, "/usr/bin")]
    # Where pyenv and uv keep theirs.
    found += sorted(map(str, Path(sys.base_prefix).parent.glob("*3.1[123]*/bin/python3")))
    return [path for path in dict.fromkeys(found) if path is not None and _runs(path)]


def _runs(path: str, program: str = "", user: int | None = None) -> bool:
    argv = [path, "-c", program]
    try:
        return subprocess.run(argv, cwd="/", user=user, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def factors(base: Process, other: Place) -> dict[str, Process]:
    """Every irrelevant factor by name."""

    def environment(**variables: str) -> Process:
        return replace(base, environment=variables)

    unrelated = {"ZEBRA": "1", "ASCEND_DEVICE_ID": "5", "HOSTNAME": "elsewhere", "USER": "x", "DEBUG": "1"}
    made = {
        "cwd": replace(base, cwd=str(other.folder)),
        "HOME": environment(HOME="/nonexistent"),
        "checkout path, descriptor path": replace(base, place=other),
        "umask": replace(base, umask=0o077),
        "umask while it runs": environment(TEST_UMASK="000"),
        "locale": environment(LC_ALL="tr_TR.UTF-8", LANG="de_DE"),
        "TZ": environment(TZ="Asia/Kolkata"),
        "unrelated variables": environment(**unrelated),
        "order of variables": environment(**dict(reversed(unrelated.items()))),
        "device index": environment(TEST_DEVICE="3"),
        "hash seed 0": environment(PYTHONHASHSEED="0"),
        "hash seed 7": environment(PYTHONHASHSEED="7"),
        "-O": replace(base, flags=("-O",)),
        "-I": replace(base, flags=("-I",)),
        "LD_LIBRARY_PATH": environment(LD_LIBRARY_PATH="relative::/x"),
        "PYTHONPATH": environment(PYTHONPATH=str(other.folder)),
    }
    made |= {f"interpreter {path}": replace(base, python=(path,)) for path in pythons()}
    if os.geteuid() == 0:
        reads = f"open({str(base.place.descriptor)!r})"
        theirs = [path for path in pythons() if _runs(path, reads, user=NOBODY)]
        if theirs:
            made["uid"] = replace(base, python=(theirs[0],), user=NOBODY)
        if shutil.which("unshare") and _runs_in_namespace():
            rename = ("unshare", "--uts", "sh", "-c", 'hostname other && exec "$@"', "-")
            made["host name"] = replace(base, prefix=rename)
    return made


def _runs_in_namespace() -> bool:
    argv = ["unshare", "--uts", "sh", "-c", "hostname other"]
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


def run_all(processes: dict[str, Process]) -> dict[str, str]:
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        return dict(zip(processes, pool.map(Process.key, processes.values()), strict=True))


def test_irrelevant_factors(base: Process, expected: str, tmp_path: Path) -> None:
    """Same descriptor, same digests: from any directory, user, checkout, host and supported Python."""
    other = make_place(tmp_path / "two/three")
    made = run_all(factors(base, other))
    assert {name for name, key in made.items() if key != expected} == set()
    assert len(made) >= 16


def test_times_do_not_count(base: Process, expected: str) -> None:
    for folder, _, names in os.walk(base.place.folder):
        for name in (*names, "."):
            os.utime(os.path.join(folder, name), (1_000_000, 2_000_000))
    assert base.key() == expected


# Values that leave the process able to start, where an arbitrary text would not.
VALUES: dict[str, Callable[[Process], str]] = {
    "PYTHONHOME": lambda base: sys.base_prefix,
    "PYTHONHASHSEED": lambda base: "3",
    "PYTHONIOENCODING": lambda base: "latin-1",
    "PYTHONPYCACHEPREFIX": lambda base: str(base.place.folder / "compiled"),
    "PYTHONUTF8": lambda base: "1",
    "PYTHONWARNINGS": lambda base: "ignore",
    "PYPTO_CACHE": lambda base: "1",
    "PYPTO_CACHE_READONLY": lambda base: "1",
    "PYPTO_BUNDLE_PATH": lambda base: "",
    # Its one value leads out of the hermetic world, any other is an error.
    "PYPTO_TOOLCHAIN": lambda base: "",
    "PYPTO_TOOLCHAIN_DESCRIPTOR": lambda base: str(base.place.folder / "tools/../tools/descriptor.json"),
}
GROUP = 8
"""So many variables are changed in one process: a digest that one of them enters changes whatever the others are."""
SETTINGS = {"PYPTO_CACHE_IDENTITY": "content", "PYPTO_CACHE_STRICT": "1", "PYPTO_CACHE_EPOCH": "e"}


def test_every_registered_variable(base: Process, expected: str) -> None:
    """ENV-09, ENV-10: the settings act, each in its own way; in the hermetic world no other variable does."""
    assert {name for name, entry in REGISTRY.items() if "flag" in entry} == set(SETTINGS)
    values = {name: SETTINGS.get(name) or VALUES.get(name, lambda base: "/rubbish")(base) for name in sorted(REGISTRY)}
    others = [name for name in values if name not in SETTINGS]
    groups = [[name] for name in SETTINGS] + [others[at :: len(others) // GROUP] for at in range(len(others) // GROUP)]
    assert sorted(name for group in groups for name in group) == sorted(values)

    def keys(groups: list[list[str]]) -> dict[str, str]:
        changed = {" ".join(group): {name: values[name] for name in group} for group in groups}
        return run_all({names: replace(base, environment=variables) for names, variables in changed.items()})

    made = keys(groups)
    suspects = [name for names, key in made.items() if key != expected for name in names.split()]
    made |= keys([[name] for name in suspects if name not in SETTINGS])
    assert {name for name in suspects if made[name] != expected} == set(SETTINGS)
    assert len(made) == len(groups), "variables that act together, but not alone"
    assert len({made[name] for name in SETTINGS}) == len(SETTINGS)


def test_the_descriptor_is_found_by_its_content(base: Process, expected: str, tmp_path: Path) -> None:
    """ENV-06, ENV-07: the variable that selects tools acts through what it selects, behind an unchanged path too."""
    place = make_place(tmp_path / "other")
    changed = json.loads(place.descriptor.read_bytes())
    changed["sets"]["gcc"]["version"] = "1.0.1"
    elsewhere = replace(base, environment={"PYPTO_TOOLCHAIN_DESCRIPTOR": str(place.descriptor)})
    assert elsewhere.key() == expected
    place.descriptor.write_bytes(canonical_json(changed))
    assert elsewhere.key() != expected
