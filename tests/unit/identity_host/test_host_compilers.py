"""The compilers of a host build: which file really runs, and what makes that unknowable."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from host_world import BUILD, CONTENT, Gcc, World, build_id, elf, program, write


def host(world: World) -> dict:
    return world.evidence("device_toolchain")["compilers"]["host"]


def test_entry_driver_and_helpers(world: World) -> None:
    """IDB-01, IDB-97 to IDB-101, IDB-119: paths, version and the complete Build-IDs, both roles for one file."""
    record = host(world)
    same = {"build_id": build_id("driver").hex(), "sha256": None}
    assert record["entry"] == {"path": str(world.bin / "g++"), "native": same}
    assert record["driver"] == {"path": str(world.folder / "gcc/driver"), "native": same}
    assert record["version"] == "gcc version 12.2.0 (Stand-in 1)"
    assert record["target"] == "x86_64-linux-gnu"
    assert {name: tool["native"]["build_id"] for name, tool in record["helpers"].items()} == {
        name: build_id(name).hex() for name in ("as", "cc1plus", "collect2", "ld")
    }
    assert "wrapper" not in record


def test_probes_run_in_the_project_root(tmp_path: Path, world: World) -> None:
    """IDB-33, IDB-36, IDB-37: a relative compiler is found below the project root, wherever the process is."""
    project = tmp_path / "project"
    driver = program(project / "tools/g++", "project")
    program(world.cwd / "tools/g++", "cwd")
    world.answer_gcc(driver, replace(world.gcc, driver="tools/g++"))
    world.choose(compiler="tools/g++", project_root=str(project))
    assert host(world)["driver"]["path"] == str(driver)
    assert world.answers.asked[0] == [str(driver), "-v"]


def test_helpers_are_found_from_the_project_root(tmp_path: Path, world: World) -> None:
    """IDB-34: a helper that GCC names by a relative path."""
    program(tmp_path / "project/lib/as", "project as")
    program(world.cwd / "lib/as", "cwd as")
    world.gcc.helpers["as"] = "lib/as"
    world.choose(project_root=str(tmp_path / "project"))
    assert host(world)["helpers"]["as"]["path"] == str(tmp_path / "project/lib/as")


def test_helpers_by_bare_name_come_from_path(world: World) -> None:
    """A GCC that finds its assembler on PATH says only its name."""
    world.gcc.helpers["as"] = "as"
    assert world.reason("device_toolchain") == f"the GCC helper program as of {world.bin}/g++ is missing"
    program(world.bin / "as", "as on PATH")
    assert host(world)["helpers"]["as"]["path"] == str(world.bin / "as")


def test_wrapper_scripts_are_found_from_the_project_root(tmp_path: Path, world: World) -> None:
    """IDB-35: the relative path inside a wrapper."""
    project = tmp_path / "project"
    driver = program(project / "real/g++", "real")
    script = write(world.bin / "g++", '#!/bin/sh\n# the project\'s compiler\nexec real/g++ "$@"\n', executable=True)
    world.answer_gcc(script, Gcc("real/g++", dict(world.gcc.helpers)))
    world.choose(project_root=str(project))
    record = host(world)
    assert record["driver"]["path"] == str(driver)
    assert record["wrapper"]["kind"] == "exec"
    assert list(record["wrapper"]["files"]) == [str(script)]
    assert record["entry"]["native"]["build_id"] is None


@pytest.mark.parametrize(
    "text",
    [
        "#!/bin/sh\nexport CPATH=/x\nexec {driver} \"$@\"\n",
        "#!/bin/sh\nexec {driver} -O0 \"$@\"\n",
        "#!/bin/sh\nexec {driver} $@\n",
        "#!/usr/bin/env python3\nimport os\n",
        "#!/bin/sh\nexec $(which gcc) \"$@\"\n",
        "no program at all",
        "",
    ],
)  # fmt: skip
def test_unrecognised_wrappers(world: World, text: str) -> None:
    """IDB-104, IDB-112: anything that may change the arguments, the environment or the compiler; it is not even run."""
    entry = write(world.bin / "g++", text.format(driver=world.gcc.driver), executable=True)
    assert world.reason("device_toolchain") == f"the compiler wrapper {entry} is not recognised"
    assert not [command for command in world.answers.asked if command[0] == str(entry)]
    assert world.identity().digest is None
    assert world.reason("device_toolchain", CONTENT) == f"the compiler wrapper {entry} is not recognised"


def test_a_driver_that_is_a_script(world: World) -> None:
    """IDB-105: behind a wrapper that is understood, and behind an ELF entry that runs another file."""
    script = write(world.folder / "real/g++", "#!/bin/sh\n", executable=True)
    reason = f"the GCC driver {script} that really runs is a start-up script, no ELF file"
    wrapper = write(world.bin / "g++", f'#!/bin/sh\nexec {script} "$@"\n', executable=True)
    world.answer_gcc(wrapper, replace(world.gcc, driver=str(script)))
    assert world.reason("device_toolchain") == reason
    program(world.bin / "g++", "entry")
    assert world.reason("device_toolchain") == reason


def test_an_elf_wrapper_of_an_unknown_kind(world: World) -> None:
    """IDB-104: a native program that runs another GCC than its own file."""
    driver = world.gcc.driver
    entry = program(world.bin / "g++", "wrapper")
    assert world.reason("device_toolchain") == f"the compiler wrapper {entry} is not recognised: it runs {driver}"


@pytest.mark.parametrize("text", ["", "clang version 15.0.0\nTarget: x86_64\n", "COLLECT_GCC=g++\n"])
def test_another_compiler_than_gcc(world: World, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """LIM-13: what does not describe itself as GCC does has no identity."""
    from pypto._identity.host.probes import Answer

    entry = str(world.bin / "g++")
    monkeypatch.setattr(type(world.answers), "_answer", lambda self, command: Answer(0, b"x\n", text.encode()))
    assert world.reason("device_toolchain") == f"{entry} does not describe itself as GCC does (-v)"


@pytest.mark.parametrize("status", [1, None])
def test_a_compiler_that_fails_or_hangs(world: World, status: int | None) -> None:
    """IDB-05: no evidence, no identity."""
    world.gcc.status = status
    assert world.reason("device_toolchain") == f"{world.bin}/g++ does not describe itself as GCC does (-v)"


def test_a_helper_that_is_a_script(world: World) -> None:
    """IDB-101: a helper whose effect no file shows."""
    path = write(world.folder / "gcc/as", "#!/bin/sh\n", executable=True)
    assert world.reason("device_toolchain") == f"the GCC helper program {path} is no ELF file"


def test_no_version_is_expected(world: World) -> None:
    """IDB-03: what is there is identified, not judged."""
    before = world.component("device_toolchain")
    world.gcc.version = "gcc version 3.4.6 (Ancient)"
    assert world.component("device_toolchain") != before


def test_no_compiler(world: World) -> None:
    (world.bin / "g++").unlink()
    assert world.reason("device_toolchain") == "no program 'g++' on PATH"


class TestCcache:
    @pytest.fixture
    def cached(self, world: World) -> World:
        """g++ is a link to ccache, which runs the real one."""
        real = world.folder / "gcc/driver"
        (world.bin / "g++").unlink()
        (world.bin / "g++").symlink_to(program(world.folder / "ccache/ccache", "ccache"))
        world.answer_gcc(world.bin / "g++", replace(world.gcc, driver=str(real)))
        return world.set(HOME=str(world.folder / "home"))

    def test_both_programs_take_part(self, cached: World) -> None:
        """IDB-99, IDB-100: entry and executed driver are two files."""
        record = host(cached)
        assert record["entry"]["native"]["build_id"] == build_id("ccache").hex()
        assert record["driver"]["native"]["build_id"] == build_id("driver").hex()
        assert record["wrapper"] == {"kind": "ccache", "files": {}, "variables": {}}

    def test_configuration_takes_part(self, cached: World) -> None:
        """IDB-35: by content, found from the project root."""
        before = cached.digest()
        config = write(cached.folder / "home/.config/ccache/ccache.conf", "max_size = 5G\n")
        after = cached.digest()
        assert list(host(cached)["wrapper"]["files"]) == [str(config)]
        write(cached.cwd / "own/ccache.conf", "max_size = 6G\n")
        cached.set(CCACHE_DIR="own")
        assert str(cached.cwd / "own/ccache.conf") in host(cached)["wrapper"]["files"]
        assert len({before, after, cached.digest()}) == 3

    @pytest.mark.parametrize("setting", ["compiler", "path", "prefix_command", "prefix_command_cpp", "sloppiness"])
    def test_settings_that_choose_another_compiler(self, cached: World, setting: str) -> None:
        """IDB-104: ccache would run something else, or answer with another input's output."""
        config = write(cached.folder / "home/.ccache/ccache.conf", f"# mine\n{setting} = /x\n")
        assert cached.reason("device_toolchain") == (
            f"the compiler wrapper {cached.bin}/g++ is not recognised: {config} sets {setting}"
        )

    @pytest.mark.parametrize("name", ["CCACHE_COMPILER", "CCACHE_PREFIX", "CCACHE_PATH", "CCACHE_SLOPPINESS"])
    def test_variables_that_choose_another_compiler(self, cached: World, name: str) -> None:
        cached.set(**{name: "x"})
        assert cached.reason("device_toolchain") == (
            f"the compiler wrapper {cached.bin}/g++ is not recognised: {name} is set"
        )

    def test_it_must_say_which_compiler_it_runs(self, cached: World) -> None:
        cached.answer_gcc(cached.bin / "g++", replace(cached.gcc, driver=str(cached.bin / "g++")))
        assert cached.reason("device_toolchain") == (
            f"the compiler wrapper {cached.bin}/g++ is not recognised: it does not say which compiler it runs"
        )


def test_path_decides(world: World) -> None:
    """IDB-20, IDB-24, IDB-25: another compiler first on PATH is another identity, at another path."""
    before = world.digest()
    other = world.folder / "other"
    (other / "bin").mkdir(parents=True)
    (other / "bin/g++").symlink_to(world.gcc.driver)
    world.answer_gcc(other / "bin/g++", world.gcc)
    world.set(PATH=f"{other}/bin:{world.bin}")
    assert host(world)["entry"]["path"] == str(other / "bin/g++")
    assert world.digest() != before


@pytest.mark.parametrize("path", ["{unused}:{bin}", "{bin}:{unused}", "{bin}:/nonexistent"])
def test_unused_folders_on_path_do_not_count(world: World, path: str) -> None:
    """IDB-23."""
    before = world.digest()
    unused = world.folder / "unused"
    program(unused / "tool", "tool")
    assert world.set(PATH=path.format(unused=unused, bin=world.bin)).digest() == before


@pytest.mark.parametrize("path", ["tools", "./tools", ":/nonexistent", "/nonexistent::/other"])
def test_relative_and_empty_entries_of_path(world: World, path: str) -> None:
    """IDB-19, IDB-21: they are relative to the folder in which the compilers run."""
    folder = world.cwd / "tools" if "tools" in path else world.cwd
    gcc = world.gcc
    entry = folder / "g++"
    entry.parent.mkdir(exist_ok=True)
    entry.symlink_to(gcc.driver)
    program(folder / "ptoas", "ptoas")
    for found in (str(entry), os.path.join(world.cwd, path.partition(":")[0], "g++")):
        world.answers.gcc[found] = gcc
    world.set(PATH=path)
    assert Path(host(world)["entry"]["path"]).samefile(entry)
    other = world.folder / "elsewhere"
    other.mkdir()
    world.choose(cwd=str(other), project_root=str(other))
    assert world.reason("device_toolchain") == "no program 'g++' on PATH"


def test_directory_does_not_count_with_absolute_tools(world: World) -> None:
    """IDB-22: chdir finds the same tools, so the identity is the same."""
    before = world.digest()
    other = world.folder / "elsewhere"
    other.mkdir()
    assert world.choose(cwd=str(other), project_root=str(other)).digest() == before


def test_a_build_id_counts_and_other_bytes_do_not(world: World) -> None:
    """IDB-08, IDB-10, IDB-13: the published mark is trusted."""
    before = world.digest()
    program(world.folder / "gcc/cc1plus", "cc1plus", extra=b"patched")
    assert world.digest() == before
    program(world.folder / "gcc/cc1plus", "another build")
    assert world.digest() != before


@pytest.mark.parametrize("broken", ["no note", "empty note", "truncated"])
def test_files_without_usable_build_id_are_read(world: World, broken: str) -> None:
    """IDB-07, IDB-116: content then."""
    path = world.folder / "gcc/ld"

    def put(extra: bytes) -> None:
        if broken == "truncated":
            write(path, program(path, "ld").read_bytes()[:130] + extra[:5], executable=True)
        else:
            write(path, elf(b"" if broken == "empty note" else None, extra), executable=True)

    put(b"one..")
    record = host(world)["helpers"]["ld"]["native"]
    assert record["build_id"] is None
    assert len(record["sha256"]) == 64
    before = world.digest()
    put(b"two..")
    assert world.digest() != before


def test_build_ids_cost_a_few_bytes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """IDB-09: a large program is not read."""
    program(world.folder / "gcc/cc1plus", "cc1plus", extra=b"\0" * (32 << 20))
    read = []
    pread = os.pread

    def counting(descriptor: int, size: int, offset: int) -> bytes:
        data = pread(descriptor, size, offset)
        read.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", counting)
    monkeypatch.setattr("pypto._identity.host.files.file_digest", lambda path: pytest.fail(f"{path} was read"))
    assert host(world)["helpers"]["cc1plus"]["native"]["build_id"] == build_id("cc1plus").hex()
    assert sum(read) < 10_000


def test_flags_take_part(world: World) -> None:
    """They are put to the compiler, too: a flag may choose another linker or another folder of programs."""
    before = world.component("device_toolchain")
    assert world.choose(flags=("-fuse-ld=gold",)).component("device_toolchain") != before
    assert [str(world.bin / "g++"), "-fuse-ld=gold", "-print-prog-name=ld"] in world.answers.asked


@pytest.mark.parametrize("flag", ["-wrapper", "-fplugin=x.so", "-specs=x", "--specs=x", "@options"])
def test_flags_that_bring_in_programs(world: World, flag: str) -> None:
    """IDB-104: no file of the compiler shows what they do."""
    for settings in (BUILD, CONTENT):
        assert world.choose(flags=(flag,)).reason("device_toolchain", settings) == (
            f"the compiler flag {flag} brings in programs or settings that are not identified"
        )


class TestDevice:
    def test_hbg_takes_the_host_compiler(self, world: World) -> None:
        """IDB-113: only what the build selects."""
        world.device()
        assert list(world.evidence("device_toolchain")["compilers"]) == ["host"]

    def test_trb_takes_the_aarch64_compiler(self, world: World) -> None:
        world.device("tensormap_and_ringbuffer")
        assert world.reason("device_toolchain") == "no program 'aarch64-linux-gnu-g++' on PATH"
        gcc = world.add_gcc("aarch64-linux-gnu-g++", world.folder / "aarch64")
        gcc.target = "aarch64-linux-gnu"
        assert {role: record["target"] for role, record in world.evidence("device_toolchain")["compilers"].items()} == {
            "aarch64": "aarch64-linux-gnu"
        }

    def test_cann_brings_its_own_aarch64_compiler(self, world: World) -> None:
        root = world.device("tensormap_and_ringbuffer")
        world.add_gcc("aarch64-linux-gnu-g++", world.folder / "aarch64")
        own = program(root / "tools/hcc/bin/aarch64-target-linux-gnu-g++", "hcc")
        world.answer_gcc(own, replace(world.gcc, driver=str(own)))
        assert world.evidence("device_toolchain")["compilers"]["aarch64"]["entry"]["path"] == str(own)

    def test_simulator_needs_no_cann(self, world: World) -> None:
        """IDB-113: a machine without CANN."""
        assert "cann" not in world.evidence("device_toolchain")
