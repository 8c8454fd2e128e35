"""What the identity of the host world cannot see, as `docs/guide/host-tools.md` lists it; each case is shown.

These tests do not ask for blindness: one that fails because a change is seen now wants its line in the guide removed.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from host_world import BUILD, CONTENT, STRICT, World, commit, elf, git, program, repository, write

from pypto._identity import IdentitySettings
from pypto._identity.host import device
from pypto._identity.host import ptoas as ptoas_module
from pypto._identity.host.probes import Answer
from pypto._identity.host.selection import PtoIsa

BOTH = IdentitySettings("content", strict=True)
GUIDE = (Path(__file__).parents[3] / "docs/guide/host-tools.md").read_text(encoding="utf-8")


def in_the_guide(phrase: str) -> None:
    assert phrase in " ".join(GUIDE.split()), "the guide does not name this case"


def test_start_up_hooks_for_other_programs(world: World) -> None:
    """A hook that loads a helper only for other programs than `python -c`: the hook counts, the helper does not."""
    in_the_guide("a start-up hook that loads a module only for other programs than `python -c`")
    wheels = world.launcher()
    write(wheels.site / "a.pth", "import conditional_hook\n")
    write(wheels.site / "conditional_hook.py", "import sys\nif sys.argv[0] != '-c':\n    import unobserved_helper\n")
    write(wheels.site / "unobserved_helper.py", "x = 1\n")
    modules = world.evidence("ptoas")["launcher"]["startup"]["modules"]
    assert "conditional_hook" in modules
    assert "unobserved_helper" not in modules
    before = world.component("ptoas")
    write(wheels.site / "unobserved_helper.py", "x = 2\n")
    assert world.component("ptoas") == before, "LIM-03: hashing the hook is not knowing all that it may load"
    write(wheels.site / "conditional_hook.py", "import sys\nif sys.argv[0] != '-x':\n    import unobserved_helper\n")
    assert world.component("ptoas") != before


@pytest.mark.parametrize("path", ["gcc/driver", "gcc/cc1plus", "gcc/as", "gcc/collect2", "gcc/ld", "bin/ptoas"])
def test_patched_programs_that_keep_their_build_id(world: World, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """IDB-10, IDB-15, LIM-06: `build` trusts the mark; strict does not."""
    in_the_guide("a program that is patched in place and keeps its Build-ID")
    monkeypatch.setattr(device, "gcc_files", lambda gcc, selection, probes: [gcc.driver, *dict(gcc.helpers).values()])
    monkeypatch.setattr(ptoas_module, "closure", lambda programs, probes: list(programs))
    component = "ptoas" if path.endswith("ptoas") else "device_toolchain"
    before, strict = world.component(component), world.component(component, STRICT)
    program(world.folder / path, Path(path).name, extra=b"patched")
    assert world.component(component) == before
    assert world.component(component, STRICT) != strict


def test_pure_python_files_of_the_ptoas_wheel(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """IDB-15: `build` trusts the wheel's RECORD, whoever changed a file afterwards."""
    in_the_guide("a file of the ptoas or NumPy wheel that is changed after it was installed")
    monkeypatch.setattr(ptoas_module, "closure", lambda programs, probes: list(programs))
    wheels = world.launcher()
    before, strict = world.component("ptoas"), world.component("ptoas", STRICT)
    write(wheels.site / "ptoas/__init__.py", "# patched\n")
    write(wheels.site / "numpy/__init__.py", "# patched\n")
    assert world.component("ptoas") == before
    assert world.component("ptoas", STRICT) != strict


def test_installation_that_keeps_its_version(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """REP-03, REP-08, LIM-01: under `content`, ptoas is what it says it is."""
    in_the_guide("a rebuilt or patched ptoas that prints the same `--version`")
    world.answers.versions[str(world.bin / "ptoas")] = Answer(0, b"1.2.3\n")
    monkeypatch.setattr(ptoas_module, "closure", lambda programs, probes: list(programs))
    before, strict = world.component("ptoas", CONTENT), world.component("ptoas", BOTH)
    program(world.bin / "ptoas", "rebuilt")
    assert world.component("ptoas", CONTENT) == before
    assert world.component("ptoas", BOTH) != strict


def test_toolkit_that_keeps_its_build(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """REP-19: files of CANN beside its compiler and linker."""
    in_the_guide("files of CANN that change while its info file stays")
    monkeypatch.setattr(device, "gcc_files", lambda gcc, selection, probes: [gcc.driver])
    monkeypatch.setattr(device, "closure", lambda programs, probes: list(programs))
    root = world.device()
    write(root / "lib/libcce.a", "one")
    before = {settings: world.component("device_toolchain", settings) for settings in (BUILD, CONTENT, STRICT, BOTH)}
    write(root / "lib/libcce.a", "two")
    assert world.component("device_toolchain") == before[BUILD]
    assert world.component("device_toolchain", CONTENT) == before[CONTENT]
    for settings in (STRICT, BOTH):
        assert world.component("device_toolchain", settings) != before[settings]


def test_libraries_headers_and_the_standard_library(world: World) -> None:
    """IDB-11 to IDB-13: no file is listed for them under `build`; content and strict list them."""
    in_the_guide("system headers, libraries that programs load, and the Python standard library")
    for name, inputs in world.components(BUILD).items():
        assert inputs.roots == (), name
    assert any(root.path == os.__file__ for root in world.components(STRICT)["pypto"].roots)


def test_checkout_behind_a_pin(world: World, tmp_path: Path) -> None:
    """IDB-61: `build` looks at the pin; what is compiled is verified when it is compiled."""
    in_the_guide("a PTO-ISA checkout that is not the pin")
    pin = repository(tmp_path / "isa", {"a.h": "1"})
    world.choose(pto_isa=PtoIsa(str(tmp_path / "isa"), pin)).set(PATH=f"{world.bin}:{os.environ['PATH']}")
    before = world.component("pto_isa")
    commit(tmp_path / "isa", {"a.h": "2"})
    assert world.component("pto_isa") == before
    assert git(tmp_path / "isa", "rev-parse", "HEAD") != pin


def test_files_that_the_record_does_not_list(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """IDB-69: the RECORD says what was installed, and the native files are taken from it."""
    in_the_guide("files in the packages of the ptoas wheel that its RECORD does not list")
    monkeypatch.setattr(ptoas_module, "closure", lambda programs, probes: list(programs))
    wheels = world.launcher()
    write(wheels.site / "ptoas/extra.so", elf(None, b"one"))
    before, strict = world.component("ptoas"), world.component("ptoas", STRICT)
    write(wheels.site / "ptoas/extra.so", elf(None, b"two"))
    assert world.component("ptoas") == before
    assert world.component("ptoas", STRICT) != strict
