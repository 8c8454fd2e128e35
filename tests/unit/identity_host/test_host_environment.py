"""Environment variables and working directories in the host world."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from host_world import BUILD, CONTENT, World

from pypto._identity.host import overrides
from pypto._identity.host.selection import HostSelection, capture_selection

LOADER = ["LD_PRELOAD", "LD_AUDIT", "LD_BIND_NOW", "LD_LIBRARY_PATH", "LD_ANYTHING", "GLIBC_TUNABLES"]
INTERPRETER = ["PYTHONHOME", "PYTHONPATH", "PYTHONWARNINGS", "PYTHONANYTHING"]
COMPILER = [
    "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "OBJC_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH",
    "GCC_EXEC_PREFIX", "GCC_COMPARE_DEBUG", "SOURCE_DATE_EPOCH", "DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES",
    "ASAN_OPTIONS", "UBSAN_OPTIONS",
]  # fmt: skip
LOCALE = ["LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE"]


@pytest.mark.parametrize("name", [*LOADER, *INTERPRETER, *COMPILER, *LOCALE])
def test_overrides_are_part_of_the_build_key(world: World, name: str) -> None:
    """IDB-26 to IDB-28, IDB-114, IDB-115, ENV-39: verbatim, and no reason to pass the cache by."""
    absent = world.digest()
    one = world.set(**{name: "/a"}).digest()
    two = world.set(**{name: "/b"}).digest()
    assert len({absent, one, two}) == 3
    parts = [part for part in ("pypto", "ptoas", "device_toolchain") if name in world.evidence(part)["overrides"]]
    if name in INTERPRETER:
        assert parts == ["pypto"]
    elif name in COMPILER:
        assert parts == ["device_toolchain"]
    else:
        assert parts == ["pypto", "ptoas", "device_toolchain"]


def test_interpreter_overrides_act_on_a_wheels_ptoas(world: World) -> None:
    """IDB-27: its launcher starts a Python."""
    world.launcher()
    world.set(PYTHONWARNINGS="ignore")
    assert world.evidence("ptoas")["overrides"] == {"PYTHONWARNINGS": "ignore"}


@pytest.mark.parametrize(
    "name",
    [
        "HOME",
        "USER",
        "TERM",
        "TZ",
        "PYTHONHASHSEED",
        "PYTHON_VERSION",
        "HOSTNAME",
        "UNRELATED",
        "LDFLAGS",
        "XDG_CACHE_HOME",
    ],
)
def test_other_variables_do_not_count(world: World, name: str) -> None:
    """ENV-10: nothing is hashed wholesale."""
    before = world.digest()
    assert world.set(**{name: "/somewhere/else"}).digest() == before


def test_order_of_variables_does_not_count(world: World) -> None:
    world.set(LD_BIND_NOW="1", CPATH="/x", LANG="C")
    before = world.digest()
    variables = dict(reversed(list(world.selection.variables.items())))
    assert world.choose(variables=variables).digest() == before


@pytest.mark.parametrize(
    "value", ["lib", "./lib", "/a:lib", "lib:/a", "/a::/b", ":/a", "/a:", "/a;;/b", "/a;", ";/a", "/a;lib", "$ORIGIN/x"]
)
def test_relative_library_paths_bring_in_the_directory(world: World, value: str) -> None:
    """IDB-29 to IDB-31: relative and empty entries, between either separator."""
    world.set(LD_LIBRARY_PATH=value)
    before = world.digest()
    elsewhere = world.folder / "elsewhere"
    elsewhere.mkdir()
    assert world.choose(cwd=str(elsewhere)).digest() != before
    middle = world.digest()
    assert world.choose(project_root=str(elsewhere)).digest() not in (before, middle)
    assert world.evidence("device_toolchain")["execution_directory"] == [str(elsewhere)] * 2


@pytest.mark.parametrize("value", ["/a", "/a:/b", "/a;/b", ""])
def test_absolute_library_paths_do_not(world: World, value: str) -> None:
    """IDB-32."""
    world.set(LD_LIBRARY_PATH=value)
    before = world.digest()
    (world.folder / "elsewhere").mkdir()
    elsewhere = str(world.folder / "elsewhere")
    assert world.choose(cwd=elsewhere, project_root=elsewhere).digest() == before


@pytest.mark.parametrize(
    "name",
    [
        "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "OBJC_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH",
        "GCC_EXEC_PREFIX", "LD_PRELOAD", "LD_AUDIT", "LD_ANYTHING", "GLIBC_TUNABLES", "PYTHONHOME", "PYTHONANYTHING",
        "ASAN_OPTIONS", "DEPENDENCIES_OUTPUT",
    ],
)  # fmt: skip
def test_content_refuses_what_it_cannot_list(world: World, name: str) -> None:
    """IDC-13 to IDC-15, IDC-19: each component that runs programs says why; empty is as good as absent."""
    world.set(**{name: ""})
    assert "is set" not in (world.reason("ptoas", CONTENT) or "")
    world.set(**{name: "/x"})
    inputs = world.components(CONTENT)
    reason = f"{name} is set, whose effect the content policy cannot list"
    assert [part for part, found in inputs.items() if found.unavailable_reason == reason] == [
        "pypto", "ptoas", "device_toolchain"
    ]  # fmt: skip
    assert world.components(BUILD)["pypto"].unavailable_reason is None


@pytest.mark.parametrize("flag", ["-fsanitize=address", "-fsanitize=undefined,thread", "-fsanitize-recover=all"])
def test_content_refuses_sanitizer_builds(world: World, flag: str) -> None:
    """IDC-12."""
    world.choose(flags=("-O1", flag))
    assert world.components(CONTENT)["device_toolchain"].unavailable_reason == (
        f"a sanitizer build ({flag}) has no complete inventory under the content policy"
    )
    assert world.components(BUILD)["device_toolchain"].unavailable_reason is None


@pytest.mark.parametrize("value", ["lib", "/a::/b"])
def test_content_refuses_relative_library_paths(world: World, value: str) -> None:
    """IDC-15."""
    world.set(LD_LIBRARY_PATH=value)
    assert world.components(CONTENT)["ptoas"].unavailable_reason == (
        "LD_LIBRARY_PATH has a relative or an empty entry, which the content policy cannot list"
    )


@pytest.mark.parametrize("name", ["LANG", "LC_ALL", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "SOURCE_DATE_EPOCH"])
def test_content_takes_values_that_bring_in_no_file(world: World, name: str) -> None:
    """By value: the record has it."""
    world.set(**{name: "1"})
    assert world.components(CONTENT)["pypto"].unavailable_reason is None
    if not name.startswith("SOURCE"):
        assert world.evidence("pypto", CONTENT)["overrides"] == {name: "1"}


def test_platform(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """IDC-18, LIM-12."""
    monkeypatch.setattr(sys, "platform", "darwin")
    for settings in (BUILD, CONTENT):
        reasons = {found.unavailable_reason for found in world.components(settings).values()}
        assert reasons == {"host tools are identified on Linux only, not on darwin"}


def test_every_named_override_is_registered() -> None:
    """ENV-36, ENV-37, ENV-49: no variable acts on a key that the registry does not explain."""
    import pypto

    registry = json.loads(Path(pypto.__file__).with_name("_environment.json").read_text())["variables"]
    named = {
        *overrides._LOADER, *overrides._COMPILER, *overrides._SANITIZERS, *overrides._LOCALE, *overrides._HARMLESS,
        *overrides._INTERPRETER_WITHOUT_EFFECT, "PATH", "ASCEND_HOME_PATH", "PTOAS_ROOT", "PYTHONHOME", "LD_PRELOAD",
        "LD_AUDIT", "LD_LIBRARY_PATH", "CCACHE_COMPILER", "CCACHE_CONFIGPATH", "CCACHE_DIR", "CCACHE_PATH",
        "CCACHE_PREFIX", "CCACHE_PREFIX_CPP", "CCACHE_SLOPPINESS", "XDG_CONFIG_HOME",
    }  # fmt: skip
    assert sorted(named - registry.keys()) == []


def test_selection_of_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Captured: later changes of the process do not change it; relative places are absolute."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CPATH", "/x")
    selection = capture_selection(project_root="project", runtime_root="rt")
    monkeypatch.setenv("CPATH", "/y")
    monkeypatch.chdir("/")
    assert selection.variables["CPATH"] == "/x"
    assert (selection.cwd, selection.project_root) == (str(tmp_path), str(tmp_path / "project"))
    assert selection.runtime_root == str(tmp_path / "rt")
    assert selection.tool_variables() == {**selection.variables, "TZ": "UTC"}
    with pytest.raises(TypeError):
        selection.variables["X"] = "1"  # type: ignore[index]


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"execution_mode": "chip"}, "the execution mode is sim or device, got 'chip'"),
        ({"runtime": "other"}, "the runtime is one of host_build_graph, tensormap_and_ringbuffer, got 'other'"),
        ({"cwd": "here"}, "cwd is an absolute path, got 'here'"),
        ({"project_root": "."}, "project_root is an absolute path, got '.'"),
    ],
)
def test_selection_errors(choices: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        HostSelection(**{"variables": dict(os.environ), "cwd": "/", "project_root": "/", **choices})
