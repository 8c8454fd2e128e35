"""Command lines for the device: CANN's compiler and linker for kernels, an AArch64 compiler for what runs on the NPU's
own processors."""

from __future__ import annotations

from collections.abc import Sequence

from pypto.toolchain.descriptor import Toolchain
from pypto.toolchain.errors import ToolSetMissing
from pypto.toolchain.tools import (
    NATIVE_INCLUDE,
    Command,
    closed_environment,
    dependency_flags,
    gcc_shared_object,
    tool_path,
)

_AICORE_FLAGS = (
    "-cce-aicore-stack-size=0x8000",
    "-cce-aicore-function-stack-size=0x8000",
    "-cce-aicore-record-overflow=false",
    "-cce-aicore-addr-transform",
    "-cce-aicore-dcci-insert-for-scalar=false",
)
_A5_FLAG = "-cce-vf-aa-between-iters=true"


def ccec_compile(
    toolchain: Toolchain,
    source: str,
    output: str,
    *,
    architecture: str,
    a5: bool,
    includes: Sequence[str] = (),
    dependencies: str | None = None,
) -> Command:
    """ccec from one incore kernel's wrapper to its object file.

    Args:
        source, output, includes, dependencies: paths relative to the private root, as in `gcc_compile_incore`.
        architecture: of the AICore, such as ``dav-c220-vec``.
        a5: whether the target is A5 hardware.
    """
    cann, isa = toolchain.descriptor.sets["cann"], toolchain.descriptor.sets["isa"]
    argv = [tool_path(cann, "ccec"), "-c", "-O3", "-g", "-x", "cce", "-Wall", "-std=c++17"]
    argv += ["--cce-aicore-only", f"--cce-aicore-arch={architecture}"]
    for flag in (*_AICORE_FLAGS, *((_A5_FLAG,) if a5 else ())):
        argv += ["-mllvm", flag]
    argv += ["-DMEMORY_BASE"]
    argv += [f"-I{path}" for path in includes]
    argv += [f"-I{'t/isa' if path == '.' else f't/isa/{path}'}" for path in isa.includes]
    argv += [f"-I{NATIVE_INCLUDE}", "-include", "pto/pto-inst.hpp"]
    argv += [*dependency_flags(dependencies), source, "-o", output]
    return Command(tuple(argv), closed_environment(cann))


def lld_link(toolchain: Toolchain, source: str, output: str) -> Command:
    """CANN's ld.lld from a kernel's object file to the program whose code is loaded."""
    cann = toolchain.descriptor.sets["cann"]
    argv = (tool_path(cann, "ld.lld"), "-m", "aicorelinux", "-Ttext=0", "-e", "kernel_entry", source, "-o", output)
    return Command(argv, closed_environment(cann))


def aarch64_orchestration(
    toolchain: Toolchain,
    source: str,
    output: str,
    *,
    includes: Sequence[str] = (),
    dependencies: str | None = None,
) -> Command:
    """An AArch64 g++ from an orchestration's source to its shared object: the set ``gcc_aarch64``, else CANN's own.

    Args:
        source, output, includes, dependencies: as in `gcc_orchestration`.

    Raises:
        ToolSetMissing: the toolchain has neither.
    """
    own = [*(f"-I{path}" for path in includes), f"-I{NATIVE_INCLUDE}", *dependency_flags(dependencies)]
    sets = toolchain.descriptor.sets
    if "gcc_aarch64" in sets:
        return gcc_shared_object(sets["gcc_aarch64"], own, source, output)
    if "cann" in sets and "aarch64-g++" in sets["cann"].tools:
        return gcc_shared_object(sets["cann"], own, source, output, driver="aarch64-g++", sysroot=False)
    raise ToolSetMissing(
        "the toolchain in force has no compiler for AArch64; install one with "
        "`python -m pypto.toolchain install --set gcc_aarch64`"
    )
