"""Private roots, command lines, and running commands; with /bin/sh in place of real tools."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from toolchain_stand_ins import Packages

from pypto.toolchain.descriptor import Toolchain
from pypto.toolchain.errors import ToolchainError, ToolError
from pypto.toolchain.install import install
from pypto.toolchain.tools import (
    Command,
    compiler_timeout,
    gcc_compile_incore,
    gcc_orchestration,
    private_root,
    ptoas_command,
)


@pytest.fixture
def toolchain(packages: Packages, tmp_path: Path) -> Toolchain:
    return install(packages.lock, tmp_path / "prefix", packages.folder)


def sh(script: str) -> Command:
    return Command(("/bin/sh", "-c", script), {"PATH": "/usr/bin:/bin"})


def test_private_root_has_the_fixed_names_and_is_removed(toolchain: Toolchain, tmp_path: Path) -> None:
    """KC-04, KC-38."""
    with private_root(toolchain, parent=tmp_path) as root:
        assert sorted(os.listdir(root.path)) == ["t", "tmp", "w"]
        assert sorted(os.listdir(root.path / "t")) == ["gcc", "isa", "ptoas", "pypto"]
        assert (root.path / "t/pypto/pypto/toolchain/tools.py").is_file()
        assert (root.path / "t/gcc/set.json").is_file()
        assert root.work == root.path / "w"
        path = root.path
    assert not path.exists()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_private_root_is_removed_after_an_error(toolchain: Toolchain, error: type[BaseException]) -> None:
    seen = []
    with pytest.raises(error), private_root(toolchain) as root:
        seen.append(root.path)
        (root.work / "half").write_text("x")
        raise error
    assert not seen[0].exists()


def test_no_place_for_temporary_files(toolchain: Toolchain, tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="TMPDIR"), private_root(toolchain, parent=tmp_path / "none"):
        pass


def test_command_lines_and_environments_name_no_place(toolchain: Toolchain) -> None:
    commands = [
        ptoas_command(toolchain, "w/a.pto", "w/a.cpp"),
        gcc_compile_incore(toolchain, "w/a.cpp", "w/a.so", core="aiv", includes=["w"], bfloat16=True),
        gcc_orchestration(toolchain, "w/o.cpp", "w/o.so"),
    ]
    for command in commands:
        absolute = [text for text in command.argv if text.startswith(("/", "-I/")) or "=/" in text]
        assert absolute == []
        assert command.env["PATH"] == "/nonexistent"
        assert set(command.env) == {"LC_ALL", "LD_LIBRARY_PATH", "PATH", "PWD", "TMPDIR", "TZ"}
    assert commands[0].argv == ("t/ptoas/bin/ptoas", "--enable-insert-sync", "w/a.pto", "-o", "w/a.cpp")
    assert commands[0].env["LD_LIBRARY_PATH"] == "t/ptoas/lib"
    assert commands[1].env["LD_LIBRARY_PATH"] == "t/gcc/hostlib"


def test_a_kernel_is_compiled_for_exactly_one_core(toolchain: Toolchain) -> None:
    """KC-12, KC-14."""
    vector = gcc_compile_incore(toolchain, "w/a.cpp", "w/a.so", core="aiv").argv
    cube = gcc_compile_incore(toolchain, "w/a.cpp", "w/a.so", core="aic").argv
    assert "-D__DAV_VEC__" in vector and "-D__DAV_CUBE__" not in vector
    assert "-D__DAV_CUBE__" in cube and "-D__DAV_VEC__" not in cube
    included = [[argv[at + 1] for at, text in enumerate(argv) if text == "-include"] for argv in (vector, cube)]
    compat = "t/pypto/pypto/toolchain/compat"
    assertions = "t/pypto/pypto/runtime/native/include/pypto/assertions.h"
    assert included[0] == ["cstdint", "cstddef", assertions, "pto/pto-inst.hpp", f"{compat}/pto_isa_compat.hpp"]
    assert included[1] == [*included[0][:3], f"{compat}/pto_isa_cube.hpp", *included[0][3:]]
    assert vector.index("-It/isa/overlay") < vector.index("-It/isa/include")
    for needed in ("-std=c++23", "-D__CPU_SIM", "-DPTO_CPU_MAX_THREADS=1", "-shared", "-Wl,--build-id=sha1"):
        assert needed in vector


def test_the_simulated_architecture_is_an_argument(toolchain: Toolchain) -> None:
    """KC-13: the commands for A2/A3 and A5 differ in it alone."""
    a2a3, a5 = (
        gcc_compile_incore(toolchain, "w/a.cpp", "w/a.so", core="aiv", architecture=architecture).argv
        for architecture in ("A2A3", "A5")
    )
    assert [pair for pair in zip(a2a3, a5, strict=True) if pair[0] != pair[1]] == [
        ("-DPYPTO_SIM_ARCH=A2A3", "-DPYPTO_SIM_ARCH=A5")
    ]


def test_run_returns_the_output(toolchain: Toolchain) -> None:
    with private_root(toolchain) as root:
        assert root.run(sh("echo one; echo two >&2; pwd"), "try").splitlines()[:2] == ["one", "two"]


def test_the_callers_environment_does_not_reach_the_tool(toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPATH", "/tmp")
    with private_root(toolchain) as root:
        assert "CPATH" not in root.run(sh("env"), "try")


def test_a_failing_tool_shows_its_error_lines_only(toolchain: Toolchain) -> None:
    script = (
        'i=0; while [ $i -lt 3000 ]; do echo "debug $i"; i=$((i+1)); done; echo "w/a.pto:3:1: error: bad op"; exit 3'
    )
    with private_root(toolchain) as root, pytest.raises(ToolError) as caught:
        root.run(sh(script), "assemble qk")
    assert str(caught.value).startswith(
        "assemble qk: sh exited with status 3\n  w/a.pto:3:1: error: bad op\n  command: "
    )
    assert caught.value.returncode == 3
    assert caught.value.lines == ("w/a.pto:3:1: error: bad op",)
    assert "debug 2999" in caught.value.output


def test_a_tool_that_is_killed_names_the_signal(toolchain: Toolchain) -> None:
    with private_root(toolchain) as root, pytest.raises(ToolError, match="was ended by SIGABRT") as caught:
        root.run(sh("kill -ABRT $$"), "assemble qk")
    assert caught.value.returncode == -6


def test_a_slow_tool_is_ended_with_its_children(toolchain: Toolchain, tmp_path: Path) -> None:
    """KC-55."""
    mark = tmp_path / "mark"
    with private_root(toolchain) as root, pytest.raises(ToolError, match=r"did not finish in 0.2 s \(PYPTO_COMPILER"):
        root.run(sh(f"(sleep 1; touch {mark}) & wait"), "compile qk", timeout=0.2)
    time.sleep(1.2)
    assert not mark.exists()


def test_a_tool_that_is_missing_is_named(toolchain: Toolchain) -> None:
    with private_root(toolchain) as root, pytest.raises(ToolchainError, match="cannot start t/gcc/none: No such file"):
        root.run(Command(("t/gcc/none",), {}), "compile qk")


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "soon"])
def test_a_bad_timeout_is_named(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("PYPTO_COMPILER_TIMEOUT", text)
    with pytest.raises(ToolchainError, match=f"PYPTO_COMPILER_TIMEOUT='{text}'"):
        compiler_timeout()


def test_timeout_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPTO_COMPILER_TIMEOUT", "1.5")
    assert compiler_timeout() == 1.5
    monkeypatch.delenv("PYPTO_COMPILER_TIMEOUT")
    assert compiler_timeout() == 900


def test_progress_never_exceeds_the_whole(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from pypto.toolchain import progress

    monkeypatch.setattr(progress, "_PLAIN_INTERVAL", 0.0)
    with progress.Progress("downloading gcc", 2_000_000) as bar:
        bar.update(1_000_000)
        bar.update(4_000_000)
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if " of " in line][-2:] == [
        "pypto: downloading gcc: 1.0 MB of 2.0 MB",
        "pypto: downloading gcc: 2.0 MB of 2.0 MB",
    ]
