"""KernelCompiler with the real tools, and what the simulator does with what it made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pypto.runtime import CompiledProgram, KernelCompiler, RunConfig, SimulatorCheckError, targets
from pypto.runtime.elf import read_shared_object
from pypto.runtime.kernel_compiler import CompilerOutputError
from pypto.runtime.prebuilt import load
from pypto.toolchain import Bindings, Toolchain, ToolError, ToolSetMissing, ToolTimeout, tools

NATIVE = Path(__file__).parent / "native"


@pytest.fixture(scope="module")
def probe_binary(toolchain: Toolchain) -> bytes:
    source = "kernels/aiv/pto_probe.cpp"
    files = {source: (NATIVE / "pto_probe.cpp").read_bytes()}
    return KernelCompiler(toolchain).compile_incore(source, files, core="aiv", name="pto_probe").binary


@pytest.fixture(scope="module")
def probe(probe_binary: bytes, ready_files: Callable[..., dict[str, bytes]]) -> CompiledProgram:
    params: list[dict[str, Any]] = [
        {"name": "x", "kind": "tensor", "direction": "in", "dtype": "FP32", "shape": ["N", 16]},
        {"name": "out", "kind": "tensor", "direction": "out", "dtype": "FP32", "shape": ["N", 16]},
    ]
    names = ("rows", "from", "to", "valid")
    params += [{"name": name, "kind": "scalar", "direction": "in", "dtype": "INT32"} for name in names]
    ops = [
        {"op": "tile.load", "function": "pto_probe", "line": 2, "column": 4},
        {"op": "tile.store", "function": "pto_probe", "line": 3, "column": 4},
    ]
    return load(ready_files("probe", params, ["pto_probe"], binaries={"pto_probe": probe_binary}, ops=ops))


def tensors(rows: int = 12) -> tuple[np.ndarray, np.ndarray]:
    x = np.arange(rows * 16, dtype=np.float32).reshape(rows, 16)
    return x, np.full_like(x, -1)


def test_the_binary_of_a_kernel(probe_binary: bytes) -> None:
    """KC-01, KC-22, KC-26."""
    facts = read_shared_object(probe_binary)
    assert facts.functions >= {"kernel_entry", "pypto_kernel_begin", "pypto_kernel_op", "pypto_kernel_error"}
    assert facts.build_id is not None and len(facts.build_id) == 40


def test_nothing_is_inherited() -> None:
    """KC-07, KC-08: neither a base class nor its build methods."""
    assert KernelCompiler.__mro__ == (KernelCompiler, object)


def test_headers_come_from_the_set_that_is_bound(toolchain: Toolchain, tmp_path: Path) -> None:
    """KC-16, KC-17, KC-18: the pinned root, or the one that the bindings name; the forced header is found in it."""
    (tmp_path / "isa/include/pto").mkdir(parents=True)
    for folder in ("overlay", "include/pto/common"):
        (tmp_path / "isa" / folder).mkdir()
    (tmp_path / "isa/include/pto/pto-inst.hpp").write_text("#error the root that was named\n")
    (tmp_path / "isa/include/pto/common/type.hpp").write_text("")
    bindings = Bindings({**toolchain.bindings.roots, "isa": tmp_path / "isa"})
    files = {"a.cpp": b'#include "pypto/kernel.h"\nextern "C" void kernel_entry(int64_t*) {}\n'}
    compiled = KernelCompiler(toolchain).compile_incore("a.cpp", files, core="aiv", name="f")
    assert compiled.uncovered == ()
    with pytest.raises(ToolError, match=r"t/isa/include/pto/pto-inst\.hpp:1:2: error: #error the root that was named"):
        named = Toolchain(toolchain.descriptor, bindings)
        KernelCompiler(named).compile_incore("a.cpp", files, core="aiv", name="f")


def test_equal_sources_give_equal_bytes(probe_binary: bytes, toolchain: Toolchain, tmp_path: Path) -> None:
    """KC-27, KC-29, KC-30: in a folder of its own below `build_dir`, which is empty afterwards."""
    files = {"kernels/aiv/pto_probe.cpp": (NATIVE / "pto_probe.cpp").read_bytes()}
    compiler = KernelCompiler(toolchain, build_dir=tmp_path)
    again = compiler.compile_incore("kernels/aiv/pto_probe.cpp", files, core="aiv", name="pto_probe")
    assert again.binary == probe_binary
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("config", [RunConfig(), RunConfig(sim_checks=True)])
def test_blocks_inside_are_copied(probe: CompiledProgram, config: RunConfig) -> None:
    x, out = tensors()
    probe(x, out, 5, 16, 112, 5, config=config)
    np.testing.assert_array_equal(out[7:], x[1:6])
    assert (out[:7] == -1).all()


@pytest.mark.parametrize(
    ("numbers", "op", "words"),
    [
        ((5, 128, 0, 5), "tile.load", "reads bytes 512 to 831 of argument 0 of the task, which has 768 bytes"),
        ((5, 0, 113, 5), "tile.store", "writes bytes 452 to 771 of argument 1 of the task, which has 768 bytes"),
        ((5, -1, 0, 5), "tile.load", "reads"),
        ((5, 0, -(2**31), 5), "tile.store", "writes"),
        ((9, 0, 0, 9), "tile.load", "the valid part 9 x 16 exceeds the tile of 8 x 16"),
        ((5, 0, 0, 4), "tile.load", "assertion failed"),
    ],
)
def test_no_number_leads_outside(probe: CompiledProgram, numbers: tuple[int, ...], op: str, words: str) -> None:
    """In a normal run, in this process: the simulator's assertions and our own checks are exceptions."""
    x, out = tensors()
    with pytest.raises(SimulatorCheckError) as caught:
        probe(x, out, *numbers)
    assert words in str(caught.value)
    assert (caught.value.task, caught.value.op, caught.value.function) == ("pto_probe", op, "pto_probe")
    assert (out == -1).all() and (x == tensors()[0]).all()


def test_a_compile_error_names_the_stage_and_leaves_nothing(toolchain: Toolchain, tmp_path: Path) -> None:
    """KC-28."""
    compiler = KernelCompiler(toolchain, build_dir=tmp_path)
    with pytest.raises(ToolError) as caught:
        compiler.compile_orchestration("a.cpp", {"a.cpp": b"int main( {"}, name="decode")
    assert caught.value.stage == "compile orchestration decode"
    assert "a.cpp:1" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_binary_without_the_functions_is_refused(toolchain: Toolchain, tmp_path: Path) -> None:
    compiler = KernelCompiler(toolchain, build_dir=tmp_path)
    with pytest.raises(CompilerOutputError, match=r"compile orchestration f does not export pypto_abi_version, "):
        compiler.compile_orchestration("a.cpp", {"a.cpp": b"int x;"}, name="f")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("exit 0", "wrote no out.so"),
        ("echo junk > $OUT; echo > w/out.d", "no ELF file"),
        ("echo junk > $OUT", "wrote no out.d"),
    ],
)
def test_a_compiler_that_only_says_it_succeeded(
    toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, words: str
) -> None:
    """KC-02, KC-05."""

    def stand_in(_: Toolchain, source: str, output: str, **__: object) -> tools.Command:
        return tools.Command(("/bin/sh", "-c", script), {"OUT": output})

    monkeypatch.setattr(tools, "gcc_orchestration", stand_in)
    with pytest.raises(CompilerOutputError, match=words):
        KernelCompiler(toolchain, build_dir=tmp_path).compile_orchestration("a.cpp", {"a.cpp": b""}, name="f")
    assert list(tmp_path.iterdir()) == []


def test_the_time_limit_is_taken_at_construction(
    toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KC-29, KC-46, KC-48, KC-49, KC-50, KC-53, KC-54: later changes do not count; the folder was below `build_dir`."""
    place = tmp_path / "place"
    (tmp_path / "build").mkdir()

    def stand_in(*_: object, **__: object) -> tools.Command:
        return tools.Command(("/bin/sh", "-c", "/bin/pwd -P > $SEEN; /bin/sleep 60 & wait"), {"SEEN": str(place)})

    monkeypatch.setattr(tools, "gcc_orchestration", stand_in)
    monkeypatch.setenv("PYPTO_COMPILER_TIMEOUT", "0.2")
    compiler = KernelCompiler(toolchain, build_dir=tmp_path / "build")
    monkeypatch.setenv("PYPTO_COMPILER_TIMEOUT", "900")
    with pytest.raises(RuntimeError, match=r"compile orchestration f: sh did not finish in 0\.2 s") as caught:
        compiler.compile_orchestration("a.cpp", {"a.cpp": b""}, name="f")
    assert isinstance(caught.value, ToolTimeout)
    assert Path(place.read_text().strip()).parent == tmp_path / "build"
    assert list((tmp_path / "build").iterdir()) == []


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "abc"])
def test_a_malformed_time_limit(toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """KC-45, KC-52."""
    monkeypatch.setenv("PYPTO_COMPILER_TIMEOUT", value)
    with pytest.raises(ValueError, match="PYPTO_COMPILER_TIMEOUT"):
        KernelCompiler(toolchain)


def test_a_device_needs_cann(toolchain: Toolchain) -> None:
    with pytest.raises(ToolSetMissing, match="CANN"):
        KernelCompiler(toolchain, execution_mode="device")


ORCHESTRATION = b'#include "pypto/orchestration.h"\nPYPTO_ORCHESTRATION([](pypto::Orchestrator&) {}, 0)\n'


def test_files_that_nothing_identifies_are_named(toolchain: Toolchain, tmp_path: Path) -> None:
    """The compiler's own list of what it read; the list changes no byte of the binary."""
    outside = tmp_path / "outside dir"
    outside.mkdir()
    (outside / "own.h").write_text("// nothing\n")
    compiler = KernelCompiler(toolchain)
    plain = compiler.compile_orchestration("a.cpp", {"a.cpp": ORCHESTRATION}, name="f")
    assert plain.uncovered == ()
    text = f'#include "{outside}/own.h"\n#include "b.h"\n'.encode() + ORCHESTRATION
    result = compiler.compile_orchestration("a.cpp", {"a.cpp": text, "b.h": b""}, name="f")
    assert result.uncovered == (f"{outside}/own.h",)
    with tools.private_root(toolchain) as root:
        (root.work / "a.cpp").write_bytes(ORCHESTRATION)
        root.run(tools.gcc_orchestration(toolchain, "w/a.cpp", "w/a.so", includes=("w",)), "compile without a list")
        assert (root.work / "a.so").read_bytes() == plain.binary


@pytest.mark.parametrize("kind", ["kernel", "orchestration"])
def test_a_missing_auxiliary_source_stops_before_the_compiler(
    toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """KC-35, KC-36, KC-56."""
    missing = tmp_path / "gone.h"
    present = getattr(targets.Target, f"{kind}_sources")
    monkeypatch.setattr(targets.Target, f"{kind}_sources", lambda self: (*present(self), missing))
    monkeypatch.setattr(tools, "run_tool", lambda *_, **__: pytest.fail("a compiler was called"))
    compiler = KernelCompiler(toolchain, build_dir=tmp_path)
    with pytest.raises(FileNotFoundError, match=f"{missing} is missing"):
        if kind == "kernel":
            compiler.compile_incore("a.cpp", {"a.cpp": b""}, core="aiv", name="f")
        else:
            compiler.compile_orchestration("a.cpp", {"a.cpp": b""}, name="f")
    assert list(tmp_path.iterdir()) == []


def test_the_limit_is_for_each_call(toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """KC-43, KC-47: every call of a tool is given the whole limit."""
    seen: list[float | None] = []
    real = tools.run_tool

    def record(root: tools.PrivateRoot, command: tools.Command, stage: str, *, timeout: float | None = None) -> str:
        seen.append(timeout)
        return real(root, command, stage, timeout=timeout)

    monkeypatch.setattr(tools, "run_tool", record)
    compiler = KernelCompiler(toolchain, build_dir=tmp_path)
    for _ in range(2):
        compiler.compile_orchestration("a.cpp", {"a.cpp": ORCHESTRATION}, name="f")
    assert seen == [900.0, 900.0]


@pytest.mark.parametrize("path", ["../a.cpp", "/a.cpp", "", "out.so", "out.o", "out.d"])
def test_sources_stay_in_their_folder(toolchain: Toolchain, path: str) -> None:
    with pytest.raises(ValueError, match="a source cannot have the path"):
        KernelCompiler(toolchain).compile_orchestration(path, {path: b""}, name="f")
