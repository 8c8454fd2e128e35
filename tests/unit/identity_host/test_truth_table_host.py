"""The truth table of the host world: whatever must change the key does so and is named.

Rows for values of records come from the frame that both worlds share; here each field is changed on the machine itself
as well. Both lists come from the shapes of the records, so a field without a mutator fails.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from host_world import (
    BUILD,
    CONTENT,
    SCRIPT,
    Wheels,
    World,
    build_id,
    commit,
    elf,
    program,
    repository,
    write,
)
from truth_table import UNKNOWN_FIELD, check, key_of

from pypto._identity import IdentitySettings, digest_record
from pypto._identity.explain import IdentityParts, explain
from pypto._identity.host import device, records
from pypto._identity.host.probes import Answer
from pypto._identity.host.schema import HOST_FIELDS
from pypto._identity.host.selection import PtoIsa
from pypto._identity.schema import PARTS

SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]
SHAPES = (
    ("ptoas", records.PtoasRecord),
    ("pto_isa", records.PtoIsaRecord),
    ("device_toolchain", records.DeviceToolchainRecord),
    ("device_toolchain", records.DeviceContentRecord),
    ("runtime", records.RuntimeRecord),
    ("pypto", records.PyptoRecord),
)


def leaves(shape: Any, path: tuple[str, ...]) -> Iterator[str]:
    """Every field of a record's shape, with `*` for the names of a mapping."""
    if typing.is_typeddict(shape):
        for name, hint in typing.get_type_hints(shape).items():
            yield from leaves(hint, (*path, name))
    elif typing.get_origin(shape) is dict:
        yield from leaves(typing.get_args(shape)[1], (*path, "*"))
    else:
        yield ".".join(path)


FIELDS = sorted({leaf for part, shape in SHAPES for leaf in leaves(shape, (part,))})


def parts_of(world: World, settings: IdentitySettings = BUILD) -> IdentityParts:
    """What a key would be made from; a component that this world does not have stands for nothing."""
    from pypto._identity import package
    from pypto._identity.host.identity import host_inputs

    package._read_package.cache_clear()
    inputs = host_inputs(world.selection, settings, probes=world.answers)
    found = {name: component.record(name, inputs.frame())[0] for name, component in inputs.items()}
    known = {name: record for name, record in found.items() if record is not None}
    digests = {part: digest_record(known[part]) if part in known else "0" * 64 for part in PARTS}
    return IdentityParts(digests, known)


def test_the_schema_has_every_field_of_the_records() -> None:
    """A field that is new must be explained."""
    assert {f"{field.part}.{field.path}" for field in HOST_FIELDS} == set(FIELDS)


class TestRecords:
    """Every value of every record, by the shared frame."""

    def check(self, parts: IdentityParts, *absent: str) -> int:
        fields = [field for field in HOST_FIELDS if not f"{field.part}.{field.path}".startswith(absent)]
        return check(parts, fields)

    def test_rows(
        self, world: World, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
    ) -> None:
        """Three identities hold all fields: a device build with a checkout, a wheel's ptoas with an installation."""
        everything(world, monkeypatch)
        count = self.check(parts_of(world), "ptoas.launcher", "runtime.build", "device_toolchain.entries")
        (world.folder / "runtime/.git").rename(world.folder / "gone")
        write(world.folder / "runtime/build_version", "2.0")
        write(world.launcher().site / "sitecustomize.py", "")
        count += self.check(parts_of(world), "ptoas.program", "runtime.revision", "device_toolchain.entries")
        world.set(LD_LIBRARY_PATH="/a", LD_PRELOAD="", CPATH="")
        monkeypatch.setattr(device, "gcc_files", lambda gcc, selection, probes: [gcc.driver])
        monkeypatch.setattr(device, "closure", lambda programs, probes: list(programs))
        content = parts_of(world, CONTENT)
        only = replace(content, records={"device_toolchain": content.records["device_toolchain"]})
        fields = [field for field in HOST_FIELDS if field.part == "device_toolchain"]
        fields = [field for field in fields if not field.path.startswith(("compilers", "cann", "execution"))]
        count += check(only, fields)
        record_property("rows", count)
        assert count > 300


def everything(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A world in which every field of the records stands: ccache, CANN, extensions, a runtime, overrides."""
    wrapped(world)
    write(world.folder / "home/.ccache/ccache.conf", "max_size = 5G\n")
    world.set(HOME=str(world.folder / "home"), CCACHE_MAXSIZE="5G", LD_PRELOAD="x.so", LD_LIBRARY_PATH="lib:/a")
    world.set(PYTHONWARNINGS="ignore", CPATH="/x", PATH=f"{world.bin}:{os.environ['PATH']}")
    world.device()
    world.choose(flags=("-g", "-O1"))
    runtime_checkout(world)
    write(world.folder / f"runtime/simpler/native{SUFFIX}", elf(build_id("native")))
    extension(world, monkeypatch)


def wrapped(world: World) -> None:
    """g++ is ccache."""
    (world.bin / "g++").unlink()
    (world.bin / "g++").symlink_to(program(world.folder / "ccache/ccache", "ccache"))
    world.answer_gcc(world.bin / "g++", replace(world.gcc, driver=str(world.folder / "gcc/driver")))


def runtime_checkout(world: World) -> None:
    repository(
        world.folder / "runtime",
        {"simpler/__init__.py": "", "pto_isa.pin": "a" * 40, "src/a.cpp": "", ".gitignore": f"*{SUFFIX}\n"},
    )
    world.choose(runtime_root=str(world.folder / "runtime"))
    world.set(PATH=f"{world.bin}:{os.environ['PATH']}")


def runtime_installed(world: World) -> None:
    write(world.folder / "runtime/simpler/__init__.py", "")
    write(world.folder / "runtime/build_version", "1")
    write(world.folder / "runtime/build_metadata.json", "{}")
    write(world.folder / f"runtime/simpler/native{SUFFIX}", elf(build_id("native")))
    world.choose(runtime_root=str(world.folder / "runtime"))


def extension(world: World, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A native extension of pypto that is imported."""
    file = write(world.folder / f"built/core{SUFFIX}", elf(build_id("core")))
    module = types.ModuleType("pypto.core")
    module.__file__ = str(file)
    monkeypatch.setitem(sys.modules, "pypto.core", module)
    return file


@dataclass
class Place:
    """A world, and what a mutator needs beside it."""

    world: World
    monkeypatch: pytest.MonkeyPatch
    wheels: Wheels | None = None


Step = Callable[[Place], object]


@dataclass(frozen=True)
class Mutator:
    """How one field is changed on the machine.

    setup: makes the world in which the field stands; change: changes it; also: other fields that cannot but change
    with it, by the beginnings of their names.
    """

    change: Step
    setup: Step = lambda place: None
    also: tuple[str, ...] = ()
    settings: IdentitySettings = BUILD


def no_id(path: str, data: bytes) -> Step:
    return lambda place: write(place.world.folder / path, elf(None, data), executable=True)


def named(path: str, name: str) -> Step:
    return lambda place: program(place.world.folder / path, name)


def natives(field: str, path: str, setup: Step = lambda place: None, **options: Any) -> dict[str, Mutator]:
    """The two mutators of a native file: another Build-ID; other bytes where there is none."""

    def without(place: Place) -> None:
        setup(place)
        no_id(path, b"one")(place)

    return {
        f"{field}.build_id": Mutator(named(path, "another build"), setup, **options),
        f"{field}.sha256": Mutator(no_id(path, b"two"), without, **options),
    }


def launcher(place: Place) -> None:
    place.wheels = place.world.launcher()


def changed_wheel_file(wheel: str, file: str) -> Mutator:
    def change(place: Place) -> None:
        assert place.wheels is not None
        path = place.wheels.info(wheel) / file
        write(path, path.read_text() + ("more,,\n" if file == "RECORD" else "X-More: 1\n"))

    return Mutator(change, launcher)


def at_site(path: str, text: str | bytes) -> Step:
    def step(place: Place) -> None:
        assert place.wheels is not None
        write(place.wheels.site / path, text)

    return step


def sitecustomize(text: str) -> Step:
    def step(place: Place) -> None:
        assert place.wheels is not None
        place.wheels.write_sitecustomize(text)

    return step


def both(*steps: Step) -> Step:
    return lambda place: [step(place) for step in steps]


def said(**facts: Any) -> Step:
    """Let the launcher's interpreter say something else."""

    def step(place: Place) -> None:
        place.world.answers.startup = lambda answer: answer.update(facts)

    return step


def other_interpreter(data: bytes) -> Step:
    def step(place: Place) -> None:
        said(executable=str(write(place.world.folder / "interpreter", data)))(place)

    return step


def other_entry(place: Place) -> None:
    assert place.wheels is not None
    place.wheels.write_script(SCRIPT.replace("{module}", "ptoas.cli2"))
    points = place.wheels.info("ptoas") / "entry_points.txt"
    points.write_text(points.read_text().replace("ptoas.cli:", "ptoas.cli2:"))


def moved_program(path: str, name: str) -> Callable[[World], str]:
    return lambda world: str(program(world.folder / path, name))


def moved_entry(place: Place) -> None:
    world = place.world
    gcc = world.gcc
    (world.folder / "front").mkdir()
    (world.folder / "front/g++").symlink_to(gcc.driver)
    world.answer_gcc(world.folder / "front/g++", gcc)
    world.set(PATH=f"{world.folder}/front:{world.bin}")


def exec_wrapper(place: Place) -> None:
    world = place.world
    gcc = world.gcc
    write(world.bin / "g++", f'#!/bin/sh\nexec {gcc.driver} "$@"\n', executable=True)


def ccache(place: Place) -> None:
    wrapped(place.world)
    write(place.world.folder / "home/.ccache/ccache.conf", "max_size = 5G\n")
    place.world.set(HOME=str(place.world.folder / "home"))


def device_build(place: Place) -> None:
    place.world.device()


def moved_cann() -> Step:
    """Another place of CANN's programs: the toolkit itself moves, its evidence does not."""

    def step(place: Place) -> None:
        world = place.world
        (world.folder / "cann").rename(world.folder / "cann2")
        world.answers.versions[str(world.folder / "cann2/bin/ccec")] = Answer(0, b"stand-in ccec 1.0\n")
        world.set(ASCEND_HOME_PATH=str(world.folder / "cann2"))

    return step


def info(text: str) -> Step:
    return lambda place: write(place.world.folder / "cann/aarch64-linux/ascend_toolkit_install.info", text)


def patched(target: Any, name: str, value: Any) -> Step:
    return lambda place: place.monkeypatch.setattr(target, name, value)


def own_interpreter(data: bytes, path: str = "own/python") -> Step:
    """Let the running interpreter be this file."""

    def step(place: Place) -> None:
        place.monkeypatch.setattr(sys, "executable", str(write(place.world.folder / path, data)))

    return step


def content_world(place: Place) -> None:
    place.monkeypatch.setattr(device, "gcc_files", lambda gcc, selection, probes: [gcc.driver])


def elsewhere(place: Place) -> str:
    folder = place.world.folder / "elsewhere"
    folder.mkdir(exist_ok=True)
    return str(folder)


CC = "device_toolchain.compilers.*"
ENTRY_IS_DRIVER = (f"{CC}.driver.native", f"{CC}.entry.native")
LOADER_PARTS = ("ptoas.overrides.", "device_toolchain.overrides.", "pypto.overrides.")

MUTATORS: dict[str, Mutator] = {
    "ptoas.path": Mutator(lambda p: (
        program(p.world.folder / "front/ptoas", "ptoas"), p.world.set(PATH=f"{p.world.folder}/front:{p.world.bin}")
    )),
    **natives("ptoas.program", "bin/ptoas"),
    "ptoas.launcher.entry": Mutator(other_entry, launcher),
    **{f"ptoas.launcher.{w}.{f}": changed_wheel_file(w, f)
       for w in ("ptoas", "numpy") for f in ("METADATA", "WHEEL", "RECORD")},
    "ptoas.launcher.natives.*.build_id": Mutator(at_site("ptoas/_core.so", elf(build_id("core 2"))), launcher),
    "ptoas.launcher.natives.*.sha256": Mutator(at_site("ptoas/bin/compiler", elf(None, b"Native")), launcher),
    "ptoas.launcher.interpreter.version": Mutator(said(version="3.11.99"), launcher),
    "ptoas.launcher.interpreter.abi": Mutator(said(cache_tag="cpython-399"), launcher),
    "ptoas.launcher.interpreter.native.build_id": Mutator(
        other_interpreter(elf(build_id("b"))), both(launcher, other_interpreter(elf(build_id("a"))))
    ),
    "ptoas.launcher.interpreter.native.sha256": Mutator(
        other_interpreter(elf(None, b"b")), both(launcher, other_interpreter(elf(None, b"a")))
    ),
    "ptoas.launcher.startup.path": Mutator(
        lambda p: (p.world.folder / "more").mkdir(),
        both(launcher, lambda p: at_site("more.pth", f"{p.world.folder}/more\n")(p)),
    ),
    "ptoas.launcher.startup.hooks.*": Mutator(
        at_site("hook.pth", "import sys; sys.path\n"), both(launcher, at_site("hook.pth", "import sys\n"))
    ),
    "ptoas.launcher.startup.modules.*": Mutator(
        at_site("sitecustomize.py", "x = 2\n"), both(launcher, sitecustomize("x = 1\n"))
    ),
    "ptoas.overrides.*": Mutator(lambda p: p.world.set(LD_BIND_NOW="1"), also=LOADER_PARTS),
    "ptoas.execution_directory": Mutator(
        lambda p: p.world.choose(project_root=elsewhere(p)), lambda p: p.world.set(LD_LIBRARY_PATH="lib"),
        also=("device_toolchain.execution_directory",),
    ),
    "pto_isa.pin": Mutator(lambda p: p.world.choose(pto_isa=PtoIsa(revision="6" * 40))),
    f"{CC}.entry.path": Mutator(moved_entry),
    **natives(f"{CC}.entry.native", "ccache/ccache", lambda p: wrapped(p.world)),
    f"{CC}.driver.path": Mutator(
        lambda p: setattr(p.world.gcc, "driver", moved_program("moved/driver", "driver")(p.world)),
        lambda p: wrapped(p.world),
    ),
    **natives(f"{CC}.driver.native", "gcc/driver", also=ENTRY_IS_DRIVER),
    f"{CC}.version": Mutator(lambda p: setattr(p.world.gcc, "version", "gcc version 12.2.0 (Stand-in 2)")),
    f"{CC}.target": Mutator(lambda p: setattr(p.world.gcc, "target", "x86_64-other-gnu")),
    f"{CC}.helpers.*.path": Mutator(
        lambda p: p.world.gcc.helpers.update({"as": moved_program("moved/as", "as")(p.world)})
    ),
    **natives(f"{CC}.helpers.*.native", "gcc/cc1plus"),
    f"{CC}.wrapper.kind": Mutator(ccache, exec_wrapper, also=(f"{CC}.wrapper.files", f"{CC}.entry.native")),
    f"{CC}.wrapper.files.*": Mutator(
        lambda p: write(p.world.folder / "home/.ccache/ccache.conf", "max_size = 6G\n"), ccache
    ),
    f"{CC}.wrapper.variables.*": Mutator(lambda p: p.world.set(CCACHE_MAXSIZE="6G"), ccache),
    "device_toolchain.cann.compiler.path": Mutator(
        moved_cann(), device_build, also=("device_toolchain.cann.linker.path",)
    ),
    **natives("device_toolchain.cann.compiler.native", "cann/bin/ccec", device_build),
    "device_toolchain.cann.compiler_version": Mutator(
        lambda p: p.world.answers.versions.update({str(p.world.folder / "cann/bin/ccec"): Answer(0, b"2.0\n")}),
        device_build,
    ),
    "device_toolchain.cann.linker.path": Mutator(
        moved_cann(), device_build, also=("device_toolchain.cann.compiler.path",)
    ),
    **natives("device_toolchain.cann.linker.native", "cann/bin/ld.lld", device_build),
    "device_toolchain.cann.build": Mutator(info("innerversion=V2\n"), device_build),
    "device_toolchain.cann.field": Mutator(info("version=V1\n"), both(device_build, info("innerversion=V1\n"))),
    "device_toolchain.entries.*": Mutator(moved_entry, content_world, settings=CONTENT),
    "device_toolchain.flags": Mutator(lambda p: p.world.choose(flags=("-O3",))),
    "device_toolchain.overrides.*": Mutator(lambda p: p.world.set(CPATH="/x")),
    "device_toolchain.execution_directory": Mutator(
        lambda p: p.world.choose(project_root=elsewhere(p)), lambda p: p.world.set(LD_LIBRARY_PATH=":/a"),
        also=("ptoas.execution_directory",),
    ),
    "runtime.revision": Mutator(
        lambda p: commit(p.world.folder / "runtime", {"src/a.cpp": "int a;\n"}), lambda p: runtime_checkout(p.world)
    ),
    "runtime.build": Mutator(
        lambda p: write(p.world.folder / "runtime/build_version", "1\n\n2"), lambda p: runtime_installed(p.world),
        also=("runtime.metadata.build_version",),
    ),
    "runtime.content": Mutator(lambda p: p.world.package("pypto", runtime="x = 1\n")),
    **natives("runtime.extensions.*", f"runtime/simpler/native{SUFFIX}", lambda p: runtime_installed(p.world)),
    "runtime.metadata.*": Mutator(
        lambda p: write(p.world.folder / "runtime/build_metadata.json", "[]"), lambda p: runtime_installed(p.world)
    ),
    "pypto.content": Mutator(lambda p: p.world.package("pypto", source="x = 1\n")),
    **natives("pypto.extensions.*", f"built/core{SUFFIX}", lambda p: extension(p.world, p.monkeypatch)),
    "pypto.python_path": Mutator(
        own_interpreter(elf(build_id("own")), "moved/python"), own_interpreter(elf(build_id("own")))
    ),
    "pypto.python.version": Mutator(patched(sys, "version", "3.11.99")),
    "pypto.python.abi": Mutator(patched(sys.implementation, "cache_tag", "cpython-399")),
    "pypto.python.native.build_id": Mutator(
        own_interpreter(elf(build_id("b"))), own_interpreter(elf(build_id("a")))
    ),
    "pypto.python.native.sha256": Mutator(own_interpreter(elf(None, b"b")), own_interpreter(elf(None, b"a"))),
    "pypto.overrides.*": Mutator(lambda p: p.world.set(PYTHONWARNINGS="ignore")),
    "pypto.execution_directory": Mutator(
        lambda p: p.world.choose(cwd=elsewhere(p)), lambda p: p.world.set(LD_LIBRARY_PATH="lib"),
        also=("ptoas.execution_directory", "device_toolchain.execution_directory"),
    ),
}  # fmt: skip


def test_every_field_has_a_mutator() -> None:
    assert MUTATORS.keys() == set(FIELDS)


def fits(pattern: str, name: str) -> bool:
    """Whether a difference is of a field, or of one whose name begins with the pattern."""
    wanted, steps = pattern.rstrip(".").split("."), name.split(".")
    return len(steps) >= len(wanted) and all(w in ("*", s) for w, s in zip(wanted, steps, strict=False))


@pytest.mark.parametrize("field", FIELDS)
def test_fields(world: World, monkeypatch: pytest.MonkeyPatch, field: str) -> None:
    """Each field changed alone on the machine changes the key, and is named with both values."""
    place, mutator = Place(world, monkeypatch), MUTATORS[field]
    mutator.setup(place)
    before = parts_of(world, mutator.settings)
    assert field.split(".")[0] in before.records
    mutator.change(place)
    after = parts_of(world, mutator.settings)
    assert key_of(after) != key_of(before)
    found = explain(before, after)
    assert not [d.name for d in found if d.meaning == UNKNOWN_FIELD]
    known = next(f for f in HOST_FIELDS if f"{f.part}.{f.path}" == field)
    hit = [d for d in found if known.matches(d.part, d.path)]
    assert hit, [d.name for d in found]
    assert all(d.before != d.after for d in found)
    roots = "device_toolchain.roots" if mutator.settings is CONTENT else field
    others = [d.name for d in found if d not in hit and not any(fits(o, d.name) for o in (*mutator.also, roots))]
    assert others == []
