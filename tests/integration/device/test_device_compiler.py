"""KernelCompiler for devices: CANN's programs are stand-ins that check every flag; the AArch64 compiler is real.

What the stand-ins write is never a binary for a device.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from pypto.runtime import KernelCompiler
from pypto.runtime.elf import read_program, read_shared_object
from pypto.runtime.kernel_compiler import CompilerOutputError
from pypto.toolchain import Toolchain, ToolError, ToolSetMissing, ToolTimeout, describe, device
from pypto.toolchain.tools import Command, gcc_shared_object, private_root

SOURCE = "kernels/aiv/k.cpp"
KERNEL = b'#include "pypto/kernel.h"\nextern "C" void kernel_entry(__gm__ int64_t* slots) {}\n'
ORCHESTRATION = b'#include "pypto/orchestration.h"\nstatic void f(pypto::Orchestrator&) {}\nPYPTO_ORCHESTRATION(f, 3)\n'


def compiler(toolchain: Toolchain, backend: str = "Ascend910B", **options: object) -> KernelCompiler:
    return KernelCompiler(toolchain, execution_mode="device", backend_type=backend, **options)  # type: ignore[arg-type]


def compile_kernel(made: KernelCompiler, text: bytes = KERNEL, core: str = "aiv") -> bytes:
    return made.compile_incore(SOURCE, {SOURCE: text}, core=core, name="k").binary  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("backend", "core", "architecture"),
    [
        ("Ascend910B", "aiv", "dav-c220-vec"),
        ("Ascend910B", "aic", "dav-c220-cube"),
        ("Ascend950", "aiv", "dav-c310-vec"),
        ("Ascend950", "aic", "dav-c310-cube"),
    ],
)
def test_kernels_are_compiled_and_linked(
    device_toolchain: Toolchain, tmp_path: Path, backend: str, core: str, architecture: str
) -> None:
    """KC-03, KC-20, KC-21, KC-26, KC-27, KC-30, KC-39: ccec, then ld.lld; a linked kernel_entry."""
    made = compiler(device_toolchain, backend, build_dir=tmp_path)
    command, linking = made_commands(made, core)
    assert linking[0].endswith("/ld.lld")
    assert f"--cce-aicore-arch={architecture}" in command
    assert ("-cce-vf-aa-between-iters=true" in command) == (backend == "Ascend950")
    binary = compile_kernel(made, core=core)
    facts = read_program(binary)
    assert "kernel_entry" in facts.symbols and facts.text_size > 0
    assert compile_kernel(made, core=core) == binary
    assert compile_kernel(made, KERNEL + b"// other\n", core=core) != binary
    assert os.listdir(tmp_path) == []


def made_commands(made: KernelCompiler, core: str) -> list[tuple[str, ...]]:
    """The command lines of one kernel."""
    seen: list[tuple[str, ...]] = []
    with pytest.MonkeyPatch.context() as patch:
        from pypto.toolchain.tools import PrivateRoot

        run = PrivateRoot.run

        def record(self: PrivateRoot, command: Command, stage: str, **options: float) -> str:
            seen.append(command.argv)
            return run(self, command, stage, **options)

        patch.setattr(PrivateRoot, "run", record)
        compile_kernel(made, core=core)
    return seen


def test_command_lines(device_toolchain: Toolchain) -> None:
    """KC-37, KC-38, KC-19: relative paths in the private root, the flags that were seen to work, in their order."""
    compiled, linked = made_commands(compiler(device_toolchain), "aiv")
    assert compiled[:10] == (
        *("t/cann/bin/ccec", "-c", "-O3", "-g", "-x", "cce", "-Wall", "-std=c++17"),
        *("--cce-aicore-only", "--cce-aicore-arch=dav-c220-vec"),
    )
    assert linked == (
        *("t/cann/bin/ld.lld", "-m", "aicorelinux", "-Ttext=0", "-e", "kernel_entry"),
        *("w/out.o", "-o", "w/out.so"),
    )
    assert not any(part.startswith("/") or "=/" in part for part in (*compiled, *linked))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (KERNEL + b"// STAND_IN:exit", "compile k: ccec exited with status 1"),
        (KERNEL + b"// STAND_IN:nothing", "link k: ld.lld exited with status 1"),
        (KERNEL + b"// STAND_IN:junk", "link k: ld.lld exited with status 1"),
        (b"// nothing", "undefined entry kernel_entry"),
        (b'#include "none.h"', "no file 'none.h'"),
    ],
)
def test_failures_leave_nothing(device_toolchain: Toolchain, tmp_path: Path, text: bytes, words: str) -> None:
    """KC-05, KC-28, KC-49: the stage is named, and no file stays."""
    with pytest.raises(ToolError) as caught:
        compile_kernel(compiler(device_toolchain, build_dir=tmp_path), text)
    assert words in str(caught.value)
    assert os.listdir(tmp_path) == []


def test_a_linker_that_only_says_it_succeeded(
    device_toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KC-05: an object file in place of a linked program."""
    monkeypatch.setattr(
        device, "lld_link", lambda _, source, output: Command(("/bin/cp", source, output), {"PATH": "/nonexistent"})
    )
    with pytest.raises(
        CompilerOutputError, match="link k is no linked kernel: it is an ELF file, but it is not linked"
    ):
        compile_kernel(compiler(device_toolchain, build_dir=tmp_path))
    assert os.listdir(tmp_path) == []


def test_a_time_out_of_the_devices_compiler(
    device_toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KC-44, KC-48, KC-50, KC-54."""
    monkeypatch.setenv("PYPTO_COMPILER_TIMEOUT", "0.5")
    started = time.monotonic()
    with pytest.raises(RuntimeError, match=r"compile k: ccec did not finish in 0\.5 s") as caught:
        compile_kernel(compiler(device_toolchain, build_dir=tmp_path), KERNEL + b"// STAND_IN:sleep\n")
    assert isinstance(caught.value, ToolTimeout) and time.monotonic() - started < 60
    assert os.listdir(tmp_path) == []


def test_hbg_uses_the_host_compiler_and_trb_the_aarch64_one(device_toolchain: Toolchain, gcc_aarch64: Path) -> None:
    """KC-23, KC-24, KC-25, KC-32, KC-34: on a device; the AArch64 compiler is the real one."""
    whole = describe({**device_toolchain.bindings.roots, "gcc_aarch64": gcc_aarch64})
    made = compiler(whole)
    machines = {}
    for runtime in ("host_build_graph", "tensormap_and_ringbuffer"):
        result = made.compile_orchestration("o.cpp", {"o.cpp": ORCHESTRATION}, name="f", runtime=runtime)
        facts = read_shared_object(result.binary)
        assert facts.build_id is not None and len(facts.build_id) == 40
        assert facts.functions >= {"pypto_abi_version", "pypto_parameter_count", "pypto_run"}
        assert result.uncovered == ()
        machines[runtime] = facts.machine
    assert machines == {"host_build_graph": "x86_64", "tensormap_and_ringbuffer": "aarch64"}
    simulated = KernelCompiler(whole).compile_orchestration(
        "o.cpp", {"o.cpp": ORCHESTRATION}, name="f", runtime="tensormap_and_ringbuffer"
    )
    assert read_shared_object(simulated.binary).machine == "x86_64", "KC-33"


def test_without_the_set_canns_own_aarch64_compiler_is_called(device_toolchain: Toolchain) -> None:
    result = compiler(device_toolchain).compile_orchestration(
        "o.cpp", {"o.cpp": ORCHESTRATION}, name="f", runtime="tensormap_and_ringbuffer"
    )
    assert read_shared_object(result.binary).machine == "aarch64"


def test_without_any_aarch64_compiler(device_toolchain: Toolchain) -> None:
    sets = device_toolchain.descriptor.sets
    tools = {name: tool for name, tool in sets["cann"].tools.items() if not name.startswith("aarch64")}
    descriptor = dataclasses.replace(
        device_toolchain.descriptor, sets={**sets, "cann": dataclasses.replace(sets["cann"], tools=tools)}
    )
    made = compiler(Toolchain(descriptor, device_toolchain.bindings))
    with pytest.raises(ToolSetMissing, match="install --set gcc_aarch64"):
        made.compile_orchestration("o.cpp", {"o.cpp": b""}, name="f", runtime="tensormap_and_ringbuffer")


def test_an_aarch64_orchestration_is_loaded_by_an_aarch64_process(
    device_toolchain: Toolchain, gcc_aarch64: Path, emulator: Path, tmp_path: Path
) -> None:
    """Under qemu-user: the loader resolves it, and its functions answer."""
    whole = describe({**device_toolchain.bindings.roots, "gcc_aarch64": gcc_aarch64})
    result = compiler(whole).compile_orchestration(
        "o.cpp", {"o.cpp": ORCHESTRATION}, name="f", runtime="tensormap_and_ringbuffer"
    )
    host = gcc_shared_object(whole.descriptor.sets["gcc_aarch64"], [], "w/host.cpp", "w/host")
    with private_root(whole) as root:
        (root.work / "host.cpp").write_text(
            "#include <dlfcn.h>\n#include <cstdio>\n#include <initializer_list>\n"
            "int main(int, char** argv) {\n"
            "  void* library = dlopen(argv[1], RTLD_NOW);\n"
            "  if (library == nullptr) { std::puts(dlerror()); return 1; }\n"
            '  for (const char* name : {"pypto_abi_version", "pypto_parameter_count"})\n'
            '    std::printf("%u ", reinterpret_cast<unsigned (*)()>(dlsym(library, name))());\n'
            "}\n"
        )
        argv = [part for part in host.argv if part not in ("-shared", "-fPIC")]
        root.run(Command(tuple(argv), host.env), "compile the AArch64 program")
        shutil.copy(root.work / "host", tmp_path / "host")
    (tmp_path / "o.so").write_bytes(result.binary)
    sysroot = gcc_aarch64 / "usr/aarch64-linux-gnu"
    done = subprocess.run(
        [emulator, "-L", sysroot, tmp_path / "host", tmp_path / "o.so"], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("1 3 ", 0), done.stdout + done.stderr


def test_the_files_of_the_toolkit_are_covered(device_toolchain: Toolchain) -> None:
    made = compiler(device_toolchain)
    assert made.compile_incore(SOURCE, {SOURCE: KERNEL}, core="aiv", name="k").uncovered == ()
