"""The components `runtime` and `pypto` in the host world."""

from __future__ import annotations

import importlib.machinery
import os
import shutil
import sys
import types
from pathlib import Path

import pytest
from host_world import CONTENT, STRICT, World, build_id, commit, elf, git, program, repository, write

SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]
FILES = {"simpler/__init__.py": "x = 1\n", "src/a.cpp": "int a;\n", ".gitignore": "*.so\n/build/\n"}


@pytest.fixture
def checkout(world: World) -> Path:
    """An external runtime that is a clean checkout."""
    root = world.folder / "runtime"
    repository(root, FILES)
    world.set(PATH=f"{world.bin}:{os.environ['PATH']}")
    world.choose(runtime_root=str(root))
    return root


@pytest.fixture
def installed(world: World) -> Path:
    """An external runtime that is installed."""
    root = world.folder / "runtime"
    for path, text in FILES.items():
        write(root / path, text)
    write(root / "build_version", "2.0+g1234\n")
    write(root / f"simpler/native{SUFFIX}", elf(build_id("native")))
    world.choose(runtime_root=str(root))
    return root


class TestCheckout:
    def test_revision(self, world: World, checkout: Path) -> None:
        """IDB-52."""
        assert world.evidence("runtime")["revision"] == git(checkout, "rev-parse", "HEAD")
        assert "build" not in world.evidence("runtime")
        before = world.component("runtime")
        commit(checkout, {"src/a.cpp": "int b;\n"})
        assert world.component("runtime") != before

    @pytest.mark.parametrize("how", ["modified", "staged", "removed", "untracked", "assumed unchanged"])
    def test_uncommitted_changes(self, world: World, checkout: Path, how: str) -> None:
        """IDB-57 to IDB-59: the cache is passed by, and the reason names the checkout and the path."""
        if how == "untracked":
            write(checkout / "src/b.cpp", "")
        elif how == "removed":
            (checkout / "src/a.cpp").unlink()
        else:
            if how == "assumed unchanged":
                git(checkout, "update-index", "--assume-unchanged", "src/a.cpp")
            write(checkout / "src/a.cpp", "int c;\n")
            if how == "staged":
                git(checkout, "add", "src/a.cpp")
        reason = world.reason("runtime") or ""
        assert reason.startswith(f"the runtime checkout {checkout} has uncommitted changes: ")
        assert reason.endswith("src/b.cpp" if how == "untracked" else "src/a.cpp")
        assert world.identity().digest is None

    def test_ignored_files_do_not_matter(self, world: World, checkout: Path) -> None:
        """IDB-117: build outputs."""
        before = world.component("runtime")
        write(checkout / "build/x.o", "object")
        assert world.component("runtime") == before

    @pytest.mark.parametrize("how", ["no git", "broken"])
    def test_unreadable_state(self, world: World, checkout: Path, how: str) -> None:
        """IDB-118."""
        if how == "no git":
            world.set(PATH=str(world.bin))
        else:
            (checkout / ".git/HEAD").unlink()
        assert world.reason("runtime") == f"the state of the runtime checkout {checkout} cannot be read"

    def test_native_extension(self, world: World, checkout: Path) -> None:
        """IDB-53: ignored by git, and of the identity all the same."""
        write(checkout / f"simpler/native{SUFFIX}", elf(build_id("one")))
        before = world.component("runtime")
        assert world.evidence("runtime")["extensions"] == {
            f"simpler/native{SUFFIX}": {"build_id": build_id("one").hex(), "sha256": None}
        }
        write(checkout / f"simpler/native{SUFFIX}", elf(build_id("two")))
        assert world.component("runtime") != before


class TestInstalled:
    def test_build_version(self, world: World, installed: Path) -> None:
        """IDB-52."""
        assert world.evidence("runtime")["build"] == "2.0+g1234"
        before = world.component("runtime")
        write(installed / "build_version", "2.0+g1235\n")
        assert world.component("runtime") != before

    @pytest.mark.parametrize("text", [None, "", " \n"])
    def test_no_build_version(self, world: World, installed: Path, text: str | None) -> None:
        """IDB-05: nothing says which runtime it is."""
        (installed / "build_version").unlink()
        if text is not None:
            write(installed / "build_version", text)
        assert world.reason("runtime") == f"the runtime {installed} is no checkout and has no build_version"

    @pytest.mark.parametrize(
        "path", ["simpler/__init__.py", "pto_isa.pin", "build_metadata.json", "pto_isa_metadata.json"]
    )
    def test_sources_and_metadata(self, world: World, installed: Path, path: str) -> None:
        """IDB-54 to IDB-56."""
        before = world.component("runtime")
        write(installed / path, "b" * 40)
        assert world.component("runtime") != before

    def test_the_imported_extension_counts(
        self, world: World, installed: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """IDB-53, INS-13: the one that is really used, and that one only."""
        write(installed / f"simpler/other{SUFFIX}", elf(build_id("other")))
        assert len(world.evidence("runtime")["extensions"]) == 2
        module = types.ModuleType("simpler.native")
        module.__file__ = str(installed / f"simpler/native{SUFFIX}")
        monkeypatch.setitem(sys.modules, "simpler.native", module)
        assert list(world.evidence("runtime")["extensions"]) == [f"simpler/native{SUFFIX}"]

    def test_native_bytes_under_content(self, world: World, installed: Path) -> None:
        """IDC-06, IDC-07: every byte of sources and natives; under `build` the mark alone."""
        changes = {}
        for settings in (world.selection and CONTENT, STRICT):
            write(installed / f"simpler/native{SUFFIX}", elf(build_id("native")))
            before = world.component("runtime", settings), world.component("runtime")
            write(installed / f"simpler/native{SUFFIX}", elf(build_id("native"), b"patched"))
            changes[settings.policy] = world.component("runtime", settings) != before[0]
            assert world.component("runtime") == before[1]
            write(installed / "src/a.cpp", f"int {settings.policy};\n")
            assert world.component("runtime", settings) != before[0]
        assert changes == {"content": True, "build": True}


class TestOwnRuntime:
    def test_content(self, world: World) -> None:
        """A changed file of the package's runtime is another key, no reason to pass the cache by."""
        before = world.identity()
        world.package("pypto", runtime="x = 1\n")
        after = world.identity()
        assert after.usable
        changed = {name for name in before.components if before.components[name] != after.components[name]}
        assert changed == {"runtime"}

    def test_unreadable(self, world: World) -> None:
        shutil.rmtree(world.folder / "pypto/runtime")
        assert world.identity().reasons.keys() == {"pypto", "runtime"}
        assert "has no files of runtime" in (world.reason("runtime") or "")


class TestPypto:
    def test_sources(self, world: World) -> None:
        """IDB-38, IDB-39."""
        before = world.component("pypto")
        world.package("pypto", source="x = 1\n")
        assert world.component("pypto") != before

    def test_the_package_that_is_imported(self, world: World) -> None:
        """IDB-45 to IDB-49, IDB-51, INS-12: the default is where the import came from, whatever is installed."""
        import pypto
        from pypto._identity.package import package_fingerprints

        world.choose(package_root=None)
        content = package_fingerprints(os.path.dirname(pypto.__file__))["pypto"].digest
        assert world.evidence("pypto")["content"] == content

    def test_place_of_the_sources_does_not_count(self, world: World) -> None:
        """IDB-47 to IDB-50: equal sources are equal, installed or not."""
        before = world.component("pypto")
        world.package("elsewhere/pypto")
        assert world.choose(package_root=str(world.folder / "elsewhere/pypto")).component("pypto") == before

    def test_imported_extensions(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        """IDB-40, IDB-46, IDB-50: by the import, apart from the sources; the complete Build-ID."""
        file = write(world.folder / f"built/core{SUFFIX}", elf(build_id("core")))
        before = world.component("pypto")
        module = types.ModuleType("pypto.core")
        module.__file__ = str(file)
        monkeypatch.setitem(sys.modules, "pypto.core", module)
        assert world.evidence("pypto")["extensions"] == {
            "pypto.core": {"build_id": build_id("core").hex(), "sha256": None}
        }
        after = world.component("pypto")
        write(file, elf(build_id("core")[:-1] + b"\0"))
        assert len({before, after, world.component("pypto")}) == 3
        file.unlink()
        assert world.reason("pypto") == f"{file}: cannot be read: No such file or directory"

    def test_interpreter(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        """IDB-41 to IDB-44: version, ABI, resolved path, Build-ID or content."""
        link = world.folder / "python-link"
        link.symlink_to(program(world.folder / "python", "a"))
        monkeypatch.setattr(sys, "executable", str(link))
        digests = [world.component("pypto")]
        record = world.evidence("pypto")
        assert record["python"]["version"] == f"cpython {sys.version}"
        assert record["python"]["abi"] == [sys.implementation.cache_tag, SUFFIX]
        assert record["python_path"] == str(world.folder / "python")
        program(world.folder / "python", "b")
        digests.append(world.component("pypto"))
        for extra in (b"one", b"two"):
            write(world.folder / "python", elf(None, extra))
            digests.append(world.component("pypto"))
        monkeypatch.setattr(sys, "executable", str(program(world.folder / "moved", "a")))
        digests.append(world.component("pypto"))
        with monkeypatch.context() as patch:
            patch.setattr(sys, "version", "3.11.99")
            digests.append(world.component("pypto"))
        with monkeypatch.context() as patch:
            patch.setattr(sys.implementation, "cache_tag", "cpython-399")
            digests.append(world.component("pypto"))
        assert len(set(digests)) == len(digests)

    def test_interpreter_by_another_link(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        """IDB-43."""
        before = world.component("pypto")
        (world.folder / "python-link").symlink_to(sys.executable)
        monkeypatch.setattr(sys, "executable", str(world.folder / "python-link"))
        assert world.component("pypto") == before

    def test_unknown_interpreter(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "executable", "")
        assert world.reason("pypto") == "the running Python does not know its own file"

    def test_content_reads_library_and_package(self, world: World) -> None:
        """IDC-02, IDC-06, INS-12, INS-15: the interpreter with its libraries, its standard library, the package."""
        roots = [root.path for root in world.components(CONTENT)["pypto"].roots]
        assert os.path.realpath(sys.executable) in roots
        assert str(world.folder / "pypto") in roots
        assert os.__file__ in roots
        assert any("/libc.so" in path for path in roots)
        assert not [path for path in roots if path.endswith("site-packages")]
