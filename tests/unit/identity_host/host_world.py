"""A host made by the tests: tiny ELF files in place of compilers, answers in place of running them.

No compiler is needed: the ELF files hold a Build-ID note and nothing else, and `Answers` says what the compilers would
print. Python interpreters are real and really asked.
"""

from __future__ import annotations

import hashlib
import os
import struct
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pypto._identity import ComponentInputs, IdentitySettings, ToolchainIdentity
from pypto._identity.host.identity import HostIdentities, component_inputs, host_inputs
from pypto._identity.host.probes import Answer, ProcessProbes
from pypto._identity.host.selection import HostSelection, PtoIsa
from pypto._identity.records import digest_record

REVISION = "5" * 40
BUILD = IdentitySettings()
CONTENT = IdentitySettings("content")
STRICT = IdentitySettings(strict=True)


def elf(build_id: bytes | None, extra: bytes = b"") -> bytes:
    """A 64-bit ELF file: one note segment with the Build-ID (or another note), then `extra`."""
    kind, value = (3, build_id) if build_id is not None else (1, b"abi.")
    note = struct.pack("<III", 4, len(value), kind) + b"GNU\0" + value + b"\0" * (-len(value) % 4)
    table = struct.pack("<IIQQQQQQ", 4, 4, 120, 0, 0, len(note), len(note), 4)
    header = struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    return b"\x7fELF\x02\x01\x01" + b"\0" * 9 + header + table + note + extra


def build_id(name: str) -> bytes:
    """The Build-ID that the tests give to the program `name`."""
    return hashlib.sha1(name.encode()).digest()


def write(path: Path, data: bytes | str, *, executable: bool = False) -> Path:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    path.chmod(0o755 if executable else 0o644)
    return path


def program(path: Path, name: str, *, extra: bytes = b"", without_id: bool = False) -> Path:
    """A stand-in ELF program with a Build-ID of its own."""
    return write(path, elf(None if without_id else build_id(name), extra), executable=True)


@dataclass
class Gcc:
    """What a stand-in compiler says about itself."""

    driver: str
    helpers: dict[str, str]
    version: str = "gcc version 12.2.0 (Stand-in 1)"
    target: str = "x86_64-linux-gnu"
    status: int | None = 0


@dataclass
class Answers:
    """Probes that know the stand-in programs and run everything else; `asked` are the commands, in order."""

    folder: Path
    variables: dict[str, str]
    gcc: dict[str, Gcc] = field(default_factory=dict)
    versions: dict[str, Answer] = field(default_factory=dict)
    startup: Callable[[dict[str, Any]], None] | None = None
    asked: list[list[str]] = field(default_factory=list)

    def __call__(self, commands: Sequence[Sequence[str]]) -> list[Answer]:
        return [self._answer(list(command)) for command in commands]

    def _answer(self, command: list[str]) -> Answer:
        self.asked.append(command)
        name, *arguments = command
        if name in self.gcc:
            gcc = self.gcc[name]
            if arguments == ["-v"]:
                text = f"COLLECT_GCC={gcc.driver}\nTarget: {gcc.target}\nThread model: posix\n{gcc.version} \n"
                return Answer(gcc.status, b"", text.encode())
            helper = arguments[-1].removeprefix("-print-prog-name=")
            return Answer(gcc.status, gcc.helpers[helper].encode() + b"\n") if helper in gcc.helpers else Answer(1)
        if arguments == ["--version"]:
            return self.versions.get(name, Answer(1))
        (answer,) = ProcessProbes(self.variables, str(self.folder))([command])
        if self.startup is not None and arguments[:1] == ["-c"]:
            import json

            said = json.loads(answer.stdout)
            self.startup(said)
            return replace(answer, stdout=json.dumps(said).encode())
        return answer


class World:
    """A host with a g++ and a standalone ptoas on PATH; more by its methods."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.bin = self.folder / "bin"
        self.cwd = self.folder / "cwd"
        self.cwd.mkdir(parents=True)
        self.package("pypto")
        self.selection = HostSelection(
            variables={"PATH": str(self.bin)},
            cwd=str(self.cwd),
            project_root=str(self.cwd),
            package_root=str(self.folder / "pypto"),
            pto_isa=PtoIsa(revision=REVISION),
        )
        self.answers = Answers(self.cwd, {"PATH": str(self.bin), "LC_ALL": "C"})
        self.add_gcc()
        program(self.bin / "ptoas", "ptoas")

    @classmethod
    def attach(cls, folder: Path) -> World:
        """The world that another process made in `folder`; its g++ is the one on the `PATH` of that process."""
        world = cls.__new__(cls)
        world.folder, world.bin, world.cwd = folder, folder / "bin", folder / "cwd"
        world.answers = Answers(world.cwd, dict(os.environ))
        helpers = {helper: str(folder / "gcc" / helper) for helper in ("as", "cc1plus", "collect2", "ld")}
        world.answer_gcc(world.bin / "g++", Gcc(str(folder / "gcc/driver"), helpers))
        return world

    def package(self, name: str, runtime: str = "", source: str = "") -> Path:
        """A package of two files, as `pypto` would be."""
        write(self.folder / name / "__init__.py", source)
        write(self.folder / name / "runtime/__init__.py", runtime)
        return self.folder / name

    def add_gcc(self, name: str = "g++", folder: Path | None = None) -> Gcc:
        """A GCC: entry `name` is a link to its driver, helpers in a folder of their own."""
        folder = self.folder / "gcc" if folder is None else folder
        driver = program(folder / "driver", "driver")
        helpers = {helper: str(program(folder / helper, helper)) for helper in ("as", "cc1plus", "collect2", "ld")}
        entry = self.bin / name
        entry.parent.mkdir(parents=True, exist_ok=True)
        entry.unlink(missing_ok=True)
        entry.symlink_to(driver)
        return self.answer_gcc(entry, Gcc(str(driver), helpers))

    def answer_gcc(self, entry: Path, gcc: Gcc) -> Gcc:
        """Let the compiler invoked as `entry` describe itself as `gcc`."""
        self.answers.gcc[str(entry)] = gcc
        return gcc

    @property
    def gcc(self) -> Gcc:
        """What the g++ on PATH says about itself."""
        return self.answers.gcc[str(self.bin / "g++")]

    def set(self, **variables: str) -> World:
        """Set environment variables; returns the world."""
        self.selection = replace(self.selection, variables={**self.selection.variables, **variables})
        self.answers.variables.update(variables)
        return self

    def choose(self, **choices: Any) -> World:
        """Change the selection; returns the world."""
        self.selection = replace(self.selection, **choices)
        return self

    def components(self, settings: IdentitySettings = BUILD) -> dict[str, ComponentInputs]:
        """The evidence of every component, discovered anew."""
        return dict(host_inputs(self.selection, settings, probes=self.answers).items())

    def captured(self, component: str, settings: IdentitySettings = BUILD) -> tuple[str | None, str | None]:
        """(digest, None) of one component, or (None, why it has no identity), as a new process would see it."""
        from pypto._identity import package

        package._read_package.cache_clear()
        inputs = component_inputs(component, self.selection, settings, self.answers)
        record, reason = inputs.record(component, {"world": "host", **settings.record()})
        return (None if record is None else digest_record(record)), reason

    def reason(self, component: str, settings: IdentitySettings = BUILD) -> str | None:
        """Why a component has no identity; None if it has one."""
        return self.captured(component, settings)[1]

    def component(self, component: str, settings: IdentitySettings = BUILD) -> str:
        """The digest of one component, which must have one."""
        digest, reason = self.captured(component, settings)
        assert digest is not None, reason
        return digest

    def identity(
        self, settings: IdentitySettings = BUILD, identities: HostIdentities | None = None
    ) -> ToolchainIdentity:
        """The identity as a new process would see it (or as the process that `identities` stands for)."""
        from pypto._identity import package

        if identities is None:
            package._read_package.cache_clear()
            identities = HostIdentities()
        return identities.identity(self.selection, settings, probes=self.answers)

    def digest(self, settings: IdentitySettings = BUILD) -> str:
        """The digest of the whole identity, which must be usable."""
        identity = self.identity(settings)
        assert identity.usable, identity.explain()
        assert identity.digest is not None
        return identity.digest

    def evidence(self, component: str, settings: IdentitySettings = BUILD) -> Any:
        """The evidence of one available component."""
        inputs = component_inputs(component, self.selection, settings, self.answers)
        assert inputs.unavailable_reason is None, inputs.unavailable_reason
        return inputs.evidence

    # CANN

    def device(self, runtime: str = "host_build_graph") -> Path:
        """Choose device builds, with a stand-in toolkit; returns its root."""
        root = self.folder / "cann"
        for name in ("ccec", "ld.lld"):
            program(root / "bin" / name, name)
        write(root / "aarch64-linux/ascend_toolkit_install.info", "version=8.0\ninnerversion=V100R001C20B123\n")
        (root / "arm64-linux").symlink_to("aarch64-linux")
        self.answers.versions[str(root / "bin/ccec")] = Answer(0, b"stand-in ccec 1.0\n")
        self.choose(execution_mode="device", runtime=runtime).set(ASCEND_HOME_PATH=str(root))
        return root

    # The wheel launcher

    def launcher(self) -> Wheels:
        """Replace ptoas by the launcher of a wheel in a virtual environment."""
        wheels = Wheels(self.folder / "venv")
        (self.bin / "ptoas").unlink()
        (self.bin / "ptoas").symlink_to(wheels.script)
        # A launcher is started by its own path: the link on PATH would do as well.
        return wheels


SCRIPT = """#!{python}
import sys
from {module} import {function}
if __name__ == '__main__':
    sys.argv[0] = sys.argv[0].removesuffix('.exe')
    sys.exit({function}())
"""

METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}"


class Wheels:
    """A virtual environment with the wheels ptoas and numpy, made of a few small files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "bin/python"
        self.python.parent.mkdir(parents=True)
        self.python.symlink_to(os.path.realpath(sys.executable))
        home = sysconfig.get_config_var("BINDIR")
        write(folder / "pyvenv.cfg", f"home = {home}\ninclude-system-site-packages = false\n")
        self.site = folder / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
        boom = "raise RuntimeError('imported')\n"
        files: dict[str, bytes | str] = {
            f"{package}/__init__.py": boom for package in ("ptoas", "ptodsl", "TileOps", "SoftOps")
        }
        files["ptoas/_core.so"] = elf(build_id("core"))
        files["ptoas/bin/compiler"] = elf(None, b"native")
        self.install("ptoas", files, requires="Requires-Dist: numpy>=1.24\n", scripts="ptoas = ptoas.cli:main")
        self.install("numpy", {"numpy/__init__.py": boom})
        self.script = self.write_script()

    def write_script(self, text: str = SCRIPT) -> Path:
        """Write the launcher."""
        filled = text.format(python=self.python, module="ptoas.cli", function="main")
        return write(self.folder / "bin/ptoas", filled, executable=True)

    def write_sitecustomize(self, text: str) -> Path:
        """Write the environment's own, and let it be found before one beside the standard library, as Debian has it."""
        write(self.site / "ahead.pth", f"import sys; sys.path.insert(0, {str(self.site)!r})\n")
        return write(self.site / "sitecustomize.py", text)

    def info(self, name: str) -> Path:
        """The folder that describes a wheel."""
        return self.site / f"{name}-1.0.dist-info"

    def install(
        self,
        name: str,
        files: Mapping[str, bytes | str],
        *,
        requires: str = "",
        scripts: str = "",
        version: str = "1.0",
    ) -> None:
        """Install a wheel of these files."""
        for path, data in files.items():
            write(self.site / path, data)
        info = self.info(name)
        write(info / "METADATA", METADATA.format(name=name, version=version, requires=requires))
        write(info / "WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        if scripts:
            write(info / "entry_points.txt", f"[console_scripts]\n{scripts}\n")
        write(info / "RECORD", "".join(f"{path},,\n" for path in [*files, f"{info.name}/RECORD"]))


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder, with a user of the tests' own."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_SYSTEM": "/dev/null",
        "GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z",
        "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z",
    }
    user = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *user, *arguments], cwd=folder, env=environment, check=True, capture_output=True)
    return done.stdout.decode().strip()


def repository(folder: Path, files: Mapping[str, str]) -> str:
    """A repository with one commit of these files; returns the commit."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q")
    return commit(folder, files)


def commit(folder: Path, files: Mapping[str, str]) -> str:
    """Commit these files; returns the commit."""
    for path, text in files.items():
        write(folder / path, text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "files")
    return git(folder, "rev-parse", "HEAD")
