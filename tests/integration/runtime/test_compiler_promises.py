"""What `KernelCompiler` asks, calls and leaves alone; and that building and restoring run nothing of the user's."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from pypto.runtime import BackendType, CompiledProgram, KernelCompiler, kernel_compiler, targets
from pypto.runtime.prebuilt import load
from pypto.toolchain import Toolchain, tools
from pypto.toolchain.lock import load_lock


class Called(Exception):
    """A compiler would be called now."""

    def __init__(self, argv: tuple[str, ...]) -> None:
        super().__init__(" ".join(argv))
        self.argv = argv


def refuse(root: Any, command: tools.Command, stage: str, **_: Any) -> NoReturn:
    raise Called(command.argv)


def command_of(toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """The command line for a small kernel."""
    with monkeypatch.context() as patch:
        patch.setattr(tools, "run_tool", refuse)
        with pytest.raises(Called) as caught:
            KernelCompiler(toolchain).compile_incore("a.cpp", {"a.cpp": b""}, core="aiv", name="f")
    return caught.value.argv


def test_what_a_target_declares_is_asked_for_each_kernel(toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch) -> None:
    """KC-06: what the runtime declares stands in the command, and another declaration in the next command."""
    assert "-DPYPTO_SIM_ARCH=A2A3" in command_of(toolchain, monkeypatch)
    monkeypatch.setitem(targets._SIMULATED, BackendType.Ascend910B, "A7")  # type: ignore[arg-type]
    command = command_of(toolchain, monkeypatch)
    assert [part for part in command if part.startswith("-DPYPTO_SIM_ARCH")] == ["-DPYPTO_SIM_ARCH=A7"]


def test_versions_are_those_of_the_lock(toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch) -> None:
    """KC-09: compiling goes by the pinned instruction headers and tools and by no other, and pins nothing itself."""
    pinned = load_lock().sets
    assert {name: pinned[name].version for name in ("gcc", "isa", "ptoas")} == {
        name: each.version for name, each in toolchain.descriptor.sets.items() if name in ("gcc", "isa", "ptoas")
    }
    folders = [part[2:] for part in command_of(toolchain, monkeypatch) if part.startswith("-I")]
    assert {folder.split("/")[1] for folder in folders if folder.startswith("t/")} == {"isa", "pypto"}
    assert all(not folder.startswith("/") for folder in folders)


def test_assembly_publication_and_loading_are_elsewhere() -> None:
    """KC-31: by what the module can reach and by what the class offers."""
    tree = ast.parse(Path(kernel_compiler.__file__).read_text())
    reached = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    reached |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    for name in ("artifact_cache", "shared_objects", "prebuilt", "binary_context", "_artifact_runtime", "jit", "abi"):
        assert not [module for module in reached if module is not None and name in module.split(".")]
    assert "ctypes" not in reached
    public = {name for name in vars(KernelCompiler) if not name.startswith("_")}
    assert public == {"compile_incore", "compile_orchestration"}


MARKING = """
#include "pypto/kernel.h"
#include <cstdio>
void kernel_entry(int64_t* args) {
  if (FILE* mark = std::fopen("MARK", "w")) std::fclose(mark);
  reinterpret_cast<float*>(args[0])[0] = 5;
}
"""
SUBMITTING = b"""
#include "pypto/orchestration.h"
static void orchestrate(pypto::Orchestrator& o) { o.submit(0).out(o.tensor(0)); }
PYPTO_ORCHESTRATION(orchestrate, 1)
"""


def test_building_and_restoring_run_nothing_of_the_users(
    toolchain: Toolchain, tmp_path: Path, ready_files: Callable[..., dict[str, bytes]]
) -> None:
    """KC-42, KC-11: the bodies run when the program is called and not before; a call means what it always did."""
    mark = tmp_path / "mark"
    compiler = KernelCompiler(toolchain, build_dir=tmp_path)
    files = {"a.cpp": MARKING.replace("MARK", str(mark)).encode()}
    binaries = {
        "marking": compiler.compile_incore("a.cpp", files, core="aiv", name="marking").binary,
        "entry": compiler.compile_orchestration("b.cpp", {"b.cpp": SUBMITTING}, name="entry").binary,
    }
    params: list[dict[str, Any]] = [
        {"name": "out", "kind": "tensor", "direction": "out", "dtype": "FP32", "shape": [4]}
    ]
    ready = ready_files("entry", params, ["marking"], returns=[0], binaries=binaries)
    program = load(ready)
    assert isinstance(program, CompiledProgram)
    assert list(tmp_path.iterdir()) == []
    out = np.zeros(4, np.float32)
    assert program(out) is out
    assert mark.exists()
    assert out.tolist() == [5, 0, 0, 0]
