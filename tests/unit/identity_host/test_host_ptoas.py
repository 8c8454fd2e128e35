"""ptoas in the host world: standalone programs, wheel launchers, installations by PTOAS_ROOT."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from host_world import CONTENT, SCRIPT, STRICT, Wheels, World, build_id, elf, program, write

from pypto._identity.host import ptoas as ptoas_module
from pypto._identity.host.probes import Answer


@pytest.fixture
def wheels(world: World) -> Wheels:
    return world.launcher()


@pytest.fixture
def no_closure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries of stand-in programs are not looked for: nothing can load those."""
    monkeypatch.setattr(ptoas_module, "closure", lambda programs, probes: list(programs))


def differs(world: World, component: str = "ptoas") -> Any:
    """A check: called after a change, says whether the component's digest is another one."""
    before = world.component(component)
    return lambda: world.component(component) != before


class TestStandalone:
    def test_build_id(self, world: World) -> None:
        """IDB-86: the Build-ID counts, other bytes do not."""
        assert world.evidence("ptoas") == {
            "path": str(world.bin / "ptoas"),
            "program": {"build_id": build_id("ptoas").hex(), "sha256": None},
            "overrides": {},
            "execution_directory": None,
        }
        changed = differs(world)
        program(world.bin / "ptoas", "ptoas", extra=b"patched")
        assert not changed()
        program(world.bin / "ptoas", "another")
        assert changed()

    def test_content_without_build_id(self, world: World) -> None:
        """IDB-07."""
        write(world.bin / "ptoas", elf(None, b"one"), executable=True)
        changed = differs(world)
        write(world.bin / "ptoas", elf(None, b"two"), executable=True)
        assert changed()

    def test_strict_reads_the_bytes(self, world: World, no_closure: None) -> None:
        before = world.component("ptoas", STRICT)
        program(world.bin / "ptoas", "ptoas", extra=b"patched")
        assert world.component("ptoas", STRICT) != before

    def test_missing(self, world: World) -> None:
        (world.bin / "ptoas").unlink()
        assert world.reason("ptoas") == "no program 'ptoas' on PATH"

    def test_path_counts(self, world: World) -> None:
        """IDB-24: under `build` the place that was selected is part of it."""
        changed = differs(world)
        (world.folder / "moved").mkdir()
        (world.bin / "ptoas").rename(world.folder / "moved/ptoas")
        world.set(PATH=f"{world.bin}:{world.folder}/moved")
        assert changed()


class TestLauncher:
    def test_evidence(self, world: World, wheels: Wheels) -> None:
        """IDB-64 to IDB-74: everything that the launcher selects, and nothing of this process."""
        record = world.evidence("ptoas")["launcher"]
        assert record["entry"] == "ptoas.cli:main"
        assert record["interpreter"]["version"] == f"cpython {sys.version}"
        assert record["interpreter"]["abi"][0] == sys.implementation.cache_tag
        assert {file for file, digest in record["ptoas"].items() if len(digest) == 64} == {
            "METADATA",
            "WHEEL",
            "RECORD",
        }
        assert record["numpy"].keys() == record["ptoas"].keys()
        assert record["natives"] == {
            "ptoas/_core.so": {"build_id": build_id("core").hex(), "sha256": None},
            "ptoas/bin/compiler": {"build_id": None, "sha256": record["natives"]["ptoas/bin/compiler"]["sha256"]},
        }
        assert record["startup"]["path"][0] == str(wheels.folder / "bin")
        assert str(wheels.site) in record["startup"]["path"]
        assert str(wheels.folder / "pyvenv.cfg") in record["startup"]["hooks"]

    def test_no_package_is_imported(self, world: World, wheels: Wheels) -> None:
        """IDB-87, IDB-94: every package of the fixture raises when it is imported, hooks or not."""
        write(wheels.site / "a.pth", "import sys\n")
        assert "raise" in (wheels.site / "ptoas/__init__.py").read_text()
        assert world.reason("ptoas") is None

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("version", "3.11.99 (main)"), ("implementation", "pypy"), ("cache_tag", "cpython-399"),
            ("extensions", ".abi9.so"),
        ],
    )  # fmt: skip
    def test_interpreter(self, world: World, wheels: Wheels, name: str, value: str) -> None:
        """IDB-64, IDB-65."""
        changed = differs(world)
        world.answers.startup = lambda said: said.update({name: value})
        assert changed()

    def test_native_interpreter(self, world: World, wheels: Wheels) -> None:
        """IDB-66: its Build-ID, or its bytes where it has none."""

        def run(path: Path) -> str:
            world.answers.startup = lambda said: said.update(executable=str(path))
            return world.component("ptoas")

        digests = {run(program(world.folder / "python", name)) for name in ("a", "b")}
        digests |= {run(write(world.folder / "python", elf(None, extra))) for extra in (b"one", b"two")}
        assert len(digests) == 4

    def test_the_interpreters_own_path_does_not_count(self, world: World, wheels: Wheels) -> None:
        """IDB-120: the same interpreter by another link gives the same evidence."""
        before = world.component("ptoas")
        (wheels.folder / "bin/python3").symlink_to(wheels.python)
        wheels.write_script(SCRIPT.replace("{python}", "{python}3"))
        assert world.component("ptoas") == before

    @pytest.mark.parametrize("file", ["METADATA", "WHEEL", "RECORD"])
    @pytest.mark.parametrize("name", ["ptoas", "numpy"])
    def test_wheel_files(self, world: World, wheels: Wheels, name: str, file: str) -> None:
        """IDB-67 to IDB-70, IDB-84: changed, another identity; gone, none."""
        changed = differs(world)
        path = wheels.info(name) / file
        write(path, path.read_text() + ("extra,,\n" if file == "RECORD" else "X-Extra: 1\n"))
        assert changed()
        path.unlink()
        assert world.reason("ptoas") == f"wheel evidence is missing: {path}"

    def test_natives(self, world: World, wheels: Wheels) -> None:
        """IDB-71: Build-ID, or content where there is none; a lost one is no evidence."""
        changed = differs(world)
        write(wheels.site / "ptoas/_core.so", elf(build_id("core"), b"patched"))
        assert not changed()
        write(wheels.site / "ptoas/_core.so", elf(build_id("core 2")))
        assert changed()
        changed = differs(world)
        write(wheels.site / "ptoas/bin/compiler", elf(None, b"Native"))
        assert changed()
        (wheels.site / "ptoas/_core.so").unlink()
        assert world.reason("ptoas") == f"wheel evidence is missing: ptoas has lost {wheels.site}/ptoas/_core.so"

    def test_no_native_compiler(self, world: World, wheels: Wheels) -> None:
        """IDB-84."""
        files = {f"{package}/__init__.py": "" for package in ("ptoas", "ptodsl", "TileOps", "SoftOps")}
        wheels.install("ptoas", files, scripts="ptoas = ptoas.cli:main")
        info = wheels.info("ptoas")
        assert world.reason("ptoas") == f"wheel evidence is missing: {info} lists no native compiler"

    def test_hooks(self, world: World, wheels: Wheels) -> None:
        """IDB-72, IDB-89, IDB-92: .pth files by content; being there is no reason to pass the cache by."""
        changed = differs(world)
        write(wheels.site / "hook.pth", "import sys\n")
        assert changed()
        changed = differs(world)
        write(wheels.site / "hook.pth", "import sys; sys.flags\n")
        assert changed()
        assert world.identity().usable

    def test_search_path(self, world: World, wheels: Wheels) -> None:
        """IDB-88."""
        changed = differs(world)
        (world.folder / "more").mkdir()
        write(wheels.site / "more.pth", f"{world.folder}/more\n")
        assert str(world.folder / "more") in world.evidence("ptoas")["launcher"]["startup"]["path"]
        assert changed()

    @pytest.mark.parametrize("name", ["sitecustomize", "usercustomize"])
    def test_customize_modules(self, world: World, wheels: Wheels, name: str) -> None:
        """IDB-73, IDB-90, IDB-91: observed start-up modules by content, and what they import."""
        if name == "usercustomize":
            # A virtual environment has no user site; a hook loads it as a user site would.
            write(wheels.site / "user.pth", "import usercustomize\n")
            write(wheels.site / f"{name}.py", "import helper_of_hook\n")
        else:
            wheels.write_sitecustomize("import helper_of_hook\n")
        write(wheels.site / "helper_of_hook.py", "x = 1\n")
        assert {name, "helper_of_hook"} <= world.evidence("ptoas")["launcher"]["startup"]["modules"].keys()
        for file in (f"{name}.py", "helper_of_hook.py"):
            changed = differs(world)
            write(wheels.site / file, "import helper_of_hook  # changed\n" if file.startswith(name) else "x = 2\n")
            assert changed()

    def test_standard_library_is_not_scanned(self, world: World, wheels: Wheels) -> None:
        """IDB-12: no module of the standard library is an observed one."""
        modules = world.evidence("ptoas")["launcher"]["startup"]["modules"]
        assert not {"os", "site", "encodings", "codecs", "_collections_abc"} & modules.keys()

    def test_hook_that_makes_a_module_from_nothing(self, world: World, wheels: Wheels) -> None:
        """IDB-83: a module whose content nobody can look at."""
        write(wheels.site / "made.pth", "import sys, types; sys.modules['made'] = types.ModuleType('made')\n")
        assert world.reason("ptoas") == (
            "no start-up evidence: the module made was made by a start-up hook from no file"
        )

    def test_hook_that_prints(self, world: World, wheels: Wheels) -> None:
        """The answer is the last line, whatever a hook prints before it."""
        write(wheels.site / "loud.pth", "import sys; print('hello {}')\n")
        assert world.reason("ptoas") is None

    @pytest.mark.parametrize("how", ["exits", "says nothing", "says something else"])
    def test_no_start_up_evidence(self, world: World, wheels: Wheels, how: str) -> None:
        """IDB-83."""
        hook = {
            "exits": "import os; os._exit(3)",
            "says nothing": "import os; os._exit(0)",
            "says something else": "import os; print('[1]', flush=True); os._exit(0)",
        }[how]
        write(wheels.site / "broken.pth", f"{hook}\n")
        assert world.reason("ptoas") == (
            f"no start-up evidence from {wheels.python}, the interpreter of {world.bin}/ptoas"
        )

    @pytest.mark.parametrize("package", ["ptoas", "ptodsl", "TileOps", "SoftOps"])
    @pytest.mark.parametrize("how", ["pth", "path", "link", "linked folder", "finder"])
    def test_redirection(self, world: World, wheels: Wheels, package: str, how: str) -> None:
        """IDB-75 to IDB-79: a package that comes from elsewhere, however it is done."""
        outside = world.folder / "outside"
        write(outside / package / "__init__.py", "")
        if how == "pth":
            write(wheels.site / "a.pth", f"import sys; sys.path.insert(0, {str(outside)!r})\n")
        elif how == "path":
            write(wheels.site / "extended.py", (
                "import sys\nimport importlib.machinery as m\n"
                "class F:\n"
                "    @staticmethod\n"
                "    def find_spec(name, path=None, target=None):\n"
                f"        if name != {package!r}:\n            return None\n"
                "        s = m.PathFinder.find_spec(name, sys.path)\n"
                f"        s.submodule_search_locations.append({str(outside / package)!r})\n"
                "        return s\n"
                "sys.meta_path.insert(0, F)\n"
            ))  # fmt: skip
            write(wheels.site / "a.pth", "import extended\n")
        elif how == "link":
            (wheels.site / package / "__init__.py").unlink()
            (wheels.site / package / "__init__.py").symlink_to(outside / package / "__init__.py")
        elif how == "linked folder":
            (wheels.site / package).rename(world.folder / "away")
            (wheels.site / package).symlink_to(world.folder / "away")
        else:
            write(wheels.site / "redirect.py", (
                "import sys\nimport importlib.util as u\n"
                "class F:\n"
                "    @staticmethod\n"
                "    def find_spec(name, path=None, target=None):\n"
                f"        if name == {package!r}:\n"
                f"            return u.spec_from_file_location(name, {str(outside / package / '__init__.py')!r})\n"
                "sys.meta_path.insert(0, F)\n"
            ))  # fmt: skip
            write(wheels.site / "a.pth", "import redirect\n")
        reason = world.reason("ptoas") or ""
        if package == "ptoas" and how in ("pth", "finder"):
            assert reason == f"wheel evidence is missing: 0 descriptions of ptoas in {outside}"
        else:
            assert reason.startswith(f"{package} does not come from the wheel ptoas alone: ")
        assert world.identity().digest is None

    def test_package_that_is_not_the_wheels(self, world: World, wheels: Wheels) -> None:
        """IDB-76: beside the wheel, but not of it."""
        record = wheels.info("ptoas") / "RECORD"
        write(record, record.read_text().replace("ptodsl/__init__.py,,\n", ""))
        assert (world.reason("ptoas") or "").startswith("ptodsl does not come from the wheel ptoas alone")

    def test_package_that_got_lost(self, world: World, wheels: Wheels) -> None:
        (wheels.site / "TileOps/__init__.py").unlink()
        (wheels.site / "TileOps").rmdir()
        assert world.reason("ptoas") == ("wheel evidence is missing: TileOps is in the wheel ptoas but is not found")

    def test_the_selected_wheel_counts(self, world: World, wheels: Wheels) -> None:
        """IDB-74: another wheel of the same name elsewhere on the machine plays no part."""
        changed = differs(world)
        other = Wheels(world.folder / "other")
        write(other.info("ptoas") / "METADATA", "Name: ptoas\nVersion: 9\n")
        assert not changed()

    def test_two_descriptions(self, world: World, wheels: Wheels) -> None:
        """IDB-84: which of them it is cannot be told."""
        write(wheels.site / "ptoas-0.9.dist-info/RECORD", "")
        assert world.reason("ptoas") == f"wheel evidence is missing: 2 descriptions of ptoas in {wheels.site}"

    @pytest.mark.parametrize(
        "requires", ["torch", "Torch>=2; extra == 'gpu'", "numpy-financial", "zope.interface (>=1)"]
    )
    def test_other_dependencies(self, world: World, wheels: Wheels, requires: str) -> None:
        """IDB-80, IDB-82: whatever the condition."""
        path = wheels.info("ptoas") / "METADATA"
        write(path, path.read_text() + f"Requires-Dist: {requires}\n")
        name = requires.split(">")[0].split(" ")[0].split(";")[0].lower().replace(".", "-")
        assert world.reason("ptoas") == f"the ptoas wheel depends on {name}, which is not supported: only numpy is"

    def test_dependencies_of_numpy(self, world: World, wheels: Wheels) -> None:
        """IDB-81."""
        path = wheels.info("numpy") / "METADATA"
        write(path, path.read_text() + "Requires-Dist: six\n")
        assert world.reason("ptoas") == "the numpy wheel depends on six, which is not supported"

    def test_numpy_is_missing(self, world: World, wheels: Wheels) -> None:
        (wheels.site / "numpy/__init__.py").unlink()
        (wheels.site / "numpy").rmdir()
        assert world.reason("ptoas") == ("wheel evidence is missing: the launcher's interpreter finds no package numpy")

    def test_without_dependencies(self, world: World, wheels: Wheels) -> None:
        path = wheels.info("ptoas") / "METADATA"
        write(path, path.read_text().replace("Requires-Dist: numpy>=1.24\n", ""))
        assert "numpy" not in world.evidence("ptoas")["launcher"]

    @pytest.mark.parametrize("package", ["ptoas", "ptodsl", "TileOps", "SoftOps"])
    def test_online_build_folder(self, world: World, wheels: Wheels, package: str) -> None:
        """IDB-96, LIM-14."""
        online = wheels.site / package / "_online"
        online.mkdir()
        assert world.reason("ptoas") == (
            f"{online}: local rebuilds of ptoas extensions may not change its reported version"
        )

    @pytest.mark.parametrize(
        "text",
        [
            "#!/bin/sh\nexec python -m ptoas \"$@\"\n",
            "#!/usr/bin/env python3\nimport sys\nfrom ptoas.cli import main\nif __name__ == '__main__':\n"
            "    sys.exit(main())\n",
            SCRIPT.replace("import sys\n", "import sys\nsys.path.insert(0, '/x')\n"),
            SCRIPT.replace("{python}", "{python} -S"),
            SCRIPT.replace("import {function}", "import {function}, other"),
            SCRIPT.replace("sys.exit({function}())", "sys.exit({function}(1))"),
            "",
            "\x7fnot elf",
        ],
    )  # fmt: skip
    def test_unsupported_launchers(self, world: World, wheels: Wheels, text: str) -> None:
        """IDB-85, IDC-11, INS-02."""
        wheels.write_script(text)
        reason = f"the ptoas launcher {world.bin}/ptoas is not supported: no ELF file and no wheel's console script"
        assert world.reason("ptoas") == reason
        assert world.reason("ptoas", CONTENT) == reason

    def test_launcher_of_an_interpreter_that_is_a_script(self, world: World, wheels: Wheels) -> None:
        """IDB-85: a version manager's shim."""
        wheels.python.unlink()
        write(wheels.python, "#!/bin/sh\n", executable=True)
        assert world.reason("ptoas") == (
            f"the ptoas launcher {world.bin}/ptoas names an interpreter that is no ELF program: {wheels.python}"
        )

    def test_launcher_of_another_entry_point(self, world: World, wheels: Wheels) -> None:
        """INS-20: a script that the wheel does not declare."""
        wheels.write_script(SCRIPT.replace("{module}", "ptoas.other"))
        assert world.reason("ptoas") == (
            f"the ptoas launcher {world.bin}/ptoas is not supported: the wheel declares no such script for "
            "ptoas.other:main"
        )

    @pytest.mark.parametrize("form", ["pip", "uv", "setuptools", "long first line"])
    def test_forms_of_installers(self, world: World, wheels: Wheels, form: str) -> None:
        """INS-20: what installers write today, comments and all."""
        body = "    sys.exit({function}())\n"
        if form == "pip":
            body = "    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])\n" + body
        elif form == "uv":
            body = (
                '    if sys.argv[0].endswith("-script.pyw"):\n        sys.argv[0] = sys.argv[0][:-11]\n'
                '    elif sys.argv[0].endswith(".exe"):\n        sys.argv[0] = sys.argv[0][:-4]\n'
            ) + body
        first = "#!{python}\n"
        if form == "long first line":
            first = "#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n"
        text = first + "# -*- coding: utf-8 -*-\n" + ("import re\n" if form == "pip" else "") + "import sys\n"
        wheels.write_script(text + "from {module} import {function}\nif __name__ == '__main__':\n" + body)
        assert world.reason("ptoas") is None

    def test_strict_reads_the_wheel(self, world: World, wheels: Wheels, no_closure: None) -> None:
        before = world.component("ptoas", STRICT)
        write(wheels.site / "ptoas/_core.so", elf(build_id("core"), b"patched"))
        changed = world.component("ptoas", STRICT)
        write(wheels.site / "numpy/__init__.py", "# patched\n")
        assert len({before, changed, world.component("ptoas", STRICT)}) == 3


class TestRoot:
    """PTOAS_ROOT, and what an installation says about itself under `content`."""

    @pytest.fixture
    def root(self, world: World) -> Path:
        root = world.folder / "ptoas-release"
        program(root / "bin/ptoas", "release")
        write(root / "lib/data.td", "one")
        world.set(PTOAS_ROOT=str(root))
        world.answers.versions[str(root / "bin/ptoas")] = Answer(0, b"ptoas 1.2.3\nLLVM 19.1.7\n")
        return root

    def test_version_is_the_complete_output(self, world: World, root: Path) -> None:
        """REP-04 to REP-06, REP-09, REP-10, REP-12, IDC-08: not a number parsed out of it; never a proof."""
        inputs = world.components(CONTENT)["ptoas"]
        assert inputs.reported_version == "ptoas 1.2.3\nLLVM 19.1.7\n"
        assert (inputs.verified_revision, inputs.roots, inputs.evidence) == (None, (), None)
        digests = [world.component("ptoas", CONTENT)]
        for output in (b"ptoas 1.2.3\nLLVM 19.1.8\n", b"ptoas 1.2.3.dev4\nLLVM 19.1.7\n", b"ptoas 1.2.3", b"\xff"):
            world.answers.versions[str(root / "bin/ptoas")] = Answer(0, output, b"noise")
            digests.append(world.component("ptoas", CONTENT))
        assert len(set(digests)) == len(digests)

    def test_standard_error_does_not_count(self, world: World, root: Path) -> None:
        """REP-34."""
        before = world.component("ptoas", CONTENT)
        world.answers.versions[str(root / "bin/ptoas")] = Answer(0, b"ptoas 1.2.3\nLLVM 19.1.7\n", b"warning")
        assert world.component("ptoas", CONTENT) == before

    def test_place_does_not_count(self, world: World, root: Path) -> None:
        """REP-36."""
        before = world.component("ptoas", CONTENT)
        other = root.rename(world.folder / "moved")
        world.set(PTOAS_ROOT=str(other))
        world.answers.versions[str(other / "bin/ptoas")] = Answer(0, b"ptoas 1.2.3\nLLVM 19.1.7\n")
        assert world.component("ptoas", CONTENT) == before

    @pytest.mark.parametrize("answer", [Answer(1, b"x"), Answer(0, b"", b"x"), Answer(None), Answer(-6, b"x")])
    def test_failed_probe_reads_the_installation(
        self, world: World, root: Path, answer: Answer, no_closure: None
    ) -> None:
        """REP-15."""
        world.answers.versions[str(root / "bin/ptoas")] = answer
        inputs = world.components(CONTENT)["ptoas"]
        assert inputs.reported_version is None
        before = world.component("ptoas", CONTENT)
        write(root / "lib/data.td", "two")
        assert world.component("ptoas", CONTENT) != before

    def test_script_of_a_release(self, world: World, root: Path, no_closure: None) -> None:
        """REP-08: a release's own start-up script is trusted for its version, under `content` alone."""
        path = write(root / "bin/ptoas", f"#!{os.path.realpath(sys.executable)}\n", executable=True)
        assert world.components(CONTENT)["ptoas"].reported_version is not None
        assert "is not supported" in (world.reason("ptoas") or "")
        world.answers.versions[str(path)] = Answer(1)
        before = world.component("ptoas", CONTENT)
        write(root / "lib/data.td", "two")
        assert world.component("ptoas", CONTENT) != before
        write(path, "#!/bin/sh-of-nobody\n", executable=True)
        assert world.reason("ptoas", CONTENT) == (
            f"the ptoas launcher {path} is not supported: it names no ELF interpreter"
        )

    def test_build_takes_the_build_id(self, world: World, root: Path) -> None:
        """IDB-86: what it prints plays no part then."""
        record = world.evidence("ptoas")
        assert record["program"]["build_id"] == build_id("release").hex()
        assert [str(root / "bin/ptoas"), "--version"] not in world.answers.asked

    def test_strict_reads_the_whole_installation(self, world: World, root: Path, no_closure: None) -> None:
        """REP-03, LIM-06: `content` takes the version for the bytes, which is the promised limit."""
        before, claimed = world.component("ptoas", STRICT), world.component("ptoas", CONTENT)
        write(root / "lib/data.td", "two")
        assert world.component("ptoas", STRICT) != before
        assert world.component("ptoas", CONTENT) == claimed

    def test_relative_root_and_flat_layout(self, world: World, root: Path) -> None:
        (root / "bin/ptoas").rename(root / "ptoas")
        world.set(PTOAS_ROOT=os.path.relpath(root, world.cwd))
        assert world.evidence("ptoas")["path"] == str(root / "ptoas")

    def test_root_without_ptoas(self, world: World, root: Path) -> None:
        """Chosen and wrong is an error of the choice; the one on PATH is no substitute."""
        world.set(PTOAS_ROOT=str(world.cwd))
        assert world.reason("ptoas") == f"PTOAS_ROOT has neither bin/ptoas nor ptoas: {world.cwd}"


def test_launcher_under_content(world: World, wheels: Wheels, no_closure: None) -> None:
    """IDC-08, REP-15: by what it reports, else by its wheel's files."""
    world.answers.versions[str(world.bin / "ptoas")] = Answer(0, b"ptoas 1\n")
    assert world.components(CONTENT)["ptoas"].reported_version == "ptoas 1\n"
    world.answers.versions.clear()
    before = world.component("ptoas", CONTENT)
    write(wheels.site / "ptodsl/__init__.py", "# patched\n")
    assert world.component("ptoas", CONTENT) != before
