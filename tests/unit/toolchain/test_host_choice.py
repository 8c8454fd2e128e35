"""The explicit choice of this machine's tools, and what their environment is in a private root."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import pypto.toolchain
from pypto._identity.host.selection import HostSelection, PtoIsa
from pypto.runtime.kernel_compiler import KernelCompiler
from pypto.runtime.witness import uncovered
from pypto.toolchain import (
    Bindings,
    Toolchain,
    ToolchainDescriptor,
    ToolchainError,
    ToolchainNotInstalled,
    ToolSetMissing,
    tools,
)
from pypto.toolchain.host import HostTools, anchored
from pypto.toolchain.recipes import MENDED


@pytest.fixture(autouse=True)
def nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("PYPTO_TOOLCHAIN", "PYPTO_TOOLCHAIN_DESCRIPTOR"):
        monkeypatch.delenv(name, raising=False)
    yield
    pypto.toolchain.use(None)


def selected(folder: Path, **variables: str) -> HostTools:
    isa = PtoIsa(root=variables.pop("PTO_ISA_ROOT", None))
    return HostTools(HostSelection(variables=variables, cwd=str(folder), project_root=str(folder), pto_isa=isa))


def test_nothing_is_taken_from_the_machine_without_a_choice() -> None:
    with pytest.raises(ToolchainNotInstalled) as caught:
        pypto.toolchain.in_force()
    assert "python -m pypto.toolchain install" in str(caught.value)
    assert "PYPTO_TOOLCHAIN=host" in str(caught.value)


def test_the_choice_is_made_by_the_process_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO_ISA_ROOT", "headers")
    pypto.toolchain.use("host")
    chosen = pypto.toolchain.in_force()
    assert isinstance(chosen, HostTools)
    assert chosen.selection.pto_isa.root == "headers"
    with pytest.raises(ToolchainError, match="have no descriptor"):
        pypto.toolchain.current()
    pypto.toolchain.use(None)
    with pytest.raises(ToolchainNotInstalled):
        pypto.toolchain.in_force()
    monkeypatch.setenv("PYPTO_TOOLCHAIN", "host")
    assert isinstance(pypto.toolchain.in_force(), HostTools)


@pytest.mark.parametrize(
    ("value", "descriptor", "said"),
    [("hots", None, "PYPTO_TOOLCHAIN='hots': the only value is 'host'"), ("host", "d.json", "are both set")],
)
def test_a_wrong_choice_is_an_error(
    monkeypatch: pytest.MonkeyPatch, value: str, descriptor: str | None, said: str
) -> None:
    monkeypatch.setenv("PYPTO_TOOLCHAIN", value)
    if descriptor is not None:
        monkeypatch.setenv("PYPTO_TOOLCHAIN_DESCRIPTOR", descriptor)
    with pytest.raises(ToolchainError, match=said):
        pypto.toolchain.in_force()


def test_relative_places_keep_their_meaning_in_a_private_root() -> None:
    given = {
        "PATH": "bin:/usr/bin:",
        "LD_LIBRARY_PATH": "lib;/opt/lib",
        "LD_PRELOAD": "libm.so.6:./mine.so",
        "GCC_EXEC_PREFIX": "gcc/",
        "CPATH": "",
        "LANG": "C",
    }
    assert anchored(given, "/project") == {
        "PATH": "/project/bin:/usr/bin:/project/",
        "LD_LIBRARY_PATH": "/project/lib:/opt/lib",
        "LD_PRELOAD": "libm.so.6:/project/./mine.so",
        "GCC_EXEC_PREFIX": "/project/gcc/",
        "CPATH": "",
        "LANG": "C",
    }


def test_tools_inherit_the_environment_but_what_a_shell_runs(tmp_path: Path) -> None:
    found = selected(tmp_path, PATH="/usr/bin", BASH_ENV="/x", TZ="Asia/Tokyo", **{"BASH_FUNC_exec%%": "() { :; }"})
    expected = {"PATH": "/usr/bin", "PWD": "/proc/self/cwd", "TMPDIR": "tmp", "TZ": "UTC"}
    assert found.environment() == expected


def test_the_header_that_gcc_12_cannot_read_is_mended(tmp_path: Path) -> None:
    include = tmp_path / "isa/include"
    header = include / MENDED
    header.parent.mkdir(parents=True)
    (include / "pto/pto-inst.hpp").write_text("")
    header.write_text('static_assert(false, "Unsupport element cmp.");')
    with tools.private_root(selected(tmp_path, PTO_ISA_ROOT="isa")) as root:
        mended = (root.path / "t/mended" / MENDED).read_text()
        assert (root.path / "t/isa/include/pto/pto-inst.hpp").exists()
    assert mended == 'static_assert(sizeof(DType) == 0, "Unsupport element cmp.");'


def test_a_device_needs_an_installed_toolchain(tmp_path: Path) -> None:
    with pytest.raises(ToolSetMissing, match="for execution_mode='sim' only"):
        KernelCompiler(selected(tmp_path), execution_mode="device")


def test_headers_of_the_compiler_are_covered_and_no_others(tmp_path: Path) -> None:
    system = tmp_path / "include"
    (system / "c++").mkdir(parents=True)
    (tmp_path / "link").symlink_to(system)
    read = ["t/isa/a.h", f"{tmp_path}/link/c++/a", f"{system}/../other.h", "t/gcc/a.h"]
    assert uncovered(read, ("isa",), (), (str(system),)) == (f"{system}/../other.h", "t/gcc/a.h")


def test_a_compiler_takes_the_tools_in_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """KC-19, IDB-33 to IDB-37: and says where relative names of them are looked for."""
    with pytest.raises(ToolchainNotInstalled):
        KernelCompiler()
    monkeypatch.setattr(HostTools, "system_includes", lambda _: ("/usr/include",))
    monkeypatch.chdir(tmp_path)
    pypto.toolchain.use("host")
    assert KernelCompiler().project_root == str(tmp_path)
    assert KernelCompiler(selected(tmp_path / "x")).project_root == str(tmp_path / "x")
    bindings = Bindings({name: tmp_path for name in ("gcc", "isa", "ptoas")})
    installed = Toolchain(ToolchainDescriptor({}), bindings)
    assert KernelCompiler(installed).project_root is None
