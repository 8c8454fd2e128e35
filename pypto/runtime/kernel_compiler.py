"""Calling the C++ compilers: incore kernels and orchestrations, from sources to validated binaries."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal

from pypto.runtime.binary_manifest import KERNEL_FUNCTIONS, ORCHESTRATION_FUNCTIONS, check_shared_object
from pypto.runtime.config import BackendType, ExecutionMode
from pypto.runtime.device_object import check_device_kernel
from pypto.runtime.errors import LoadError
from pypto.runtime.targets import HOST_BUILD_GRAPH, target
from pypto.runtime.witness import parse_dependencies, uncovered

if TYPE_CHECKING:
    from pypto.toolchain.host import Tools
    from pypto.toolchain.tools import Command


class CompilerOutputError(RuntimeError):
    """A compiler said it succeeded, but what it left is not a usable binary."""


@dataclass(frozen=True)
class Compiled:
    """What one compilation gave.

    Attributes:
        binary: the shared object, or for a kernel of a device the linked program.
        uncovered: files that the compiler read and that neither a tool set, this package nor the given sources cover,
            as the compiler names them, sorted. The binary depends on them and no identity does: it must not be shared.
    """

    binary: bytes
    uncovered: tuple[str, ...]


class KernelCompiler:
    """Compiles and links with the tools of one toolchain; executes nothing of what it makes.

    Every call works in a private temporary folder that is gone when the call ends, however it ends.
    ``PYPTO_COMPILER_TIMEOUT`` (seconds for each call of a compiler or linker; default 900) is read once, here.

    Args:
        toolchain: the tools; default those in force.
        execution_mode: ``sim`` or ``device``; the latter needs the tool set ``cann``.
        backend_type: hardware generation.
        build_dir: parent of the temporary folders; default the system's. Nothing stays in it.

    Attributes:
        project_root: with tools of this machine, the folder that relative names of compilers, their helper programs and
            wrappers are relative to, and in which they are probed; ``None`` with installed ones.
        timeout: seconds for each call.

    Raises:
        ValueError: ``PYPTO_COMPILER_TIMEOUT`` is not a positive finite number, or an unknown target.
        ToolSetMissing: ``device`` without its compilers.
        ToolchainNotInstalled: none are given, and none are in force.
        ToolchainError: this machine has no usable g++, and its tools are chosen.
    """

    def __init__(
        self,
        toolchain: Tools | None = None,
        *,
        execution_mode: ExecutionMode | str = ExecutionMode.SIM,
        backend_type: BackendType | str = BackendType.Ascend910B,
        build_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        from pypto.toolchain.descriptor import Toolchain
        from pypto.toolchain.errors import ToolchainError, ToolSetMissing
        from pypto.toolchain.tools import HOST_LINKS, compiler_timeout

        self.target = target(backend_type, execution_mode)
        if toolchain is None:
            from pypto.toolchain import in_force

            toolchain = in_force()
        installed = toolchain if isinstance(toolchain, Toolchain) else None
        if self.target.is_device and installed is None:
            raise ToolSetMissing(
                "the tools of this machine build for execution_mode='sim' only; for a device install a toolchain: "
                "`python -m pypto.toolchain install --cann DIR`"
            )
        if self.target.is_device and installed is not None and "cann" not in installed.descriptor.sets:
            raise ToolSetMissing(
                "kernels for execution_mode='device' need CANN's compilers (ccec, ld.lld), which the toolchain in "
                "force does not have; install the CANN toolkit and run `python -m pypto.toolchain install --cann DIR`, "
                "or build with execution_mode='sim'"
            )
        try:
            self.timeout = compiler_timeout()
        except ToolchainError as error:
            raise ValueError(str(error)) from None
        self._toolchain = toolchain
        self._installed = installed
        self._sets: Collection[str] = HOST_LINKS
        self._system: tuple[str, ...] = ()
        self.project_root: str | None = None
        if isinstance(toolchain, Toolchain):
            self._sets = toolchain.descriptor.sets
        else:
            self._system = toolchain.system_includes()
            self.project_root = toolchain.selection.project_root
        self._build_dir = build_dir

    def compile_incore(
        self,
        source: str,
        files: Mapping[str, bytes],
        *,
        core: Literal["aic", "aiv"],
        name: str,
        bfloat16: bool = False,
        include_dirs: Sequence[str] = (),
    ) -> Compiled:
        """The binary of one incore kernel: a shared object for the simulator, a linked program for a device.

        Args:
            source: path of the wrapper in ``files``.
            files: sources by relative path; ``#include "..."`` finds them by that path.
            core: core type; decides what the instructions may do.
            name: the kernel, for messages.
            bfloat16: the kernel uses bfloat16.
            include_dirs: further folders for includes, in order: of ``files``, or absolute.

        Raises:
            FileNotFoundError: a file of this package that the kernel is compiled with is missing.
            ToolError: a compiler or the linker failed.
            ToolTimeout: it ran out of time; a ``RuntimeError`` too.
            CompilerOutputError: it left no binary of the kernel ABI.
        """
        from pypto.toolchain.device import ccec_compile, lld_link
        from pypto.toolchain.tools import gcc_compile_incore

        stage = f"compile {name}"
        _require(self.target.kernel_sources(), stage)
        includes = ("w", *(folder if folder.startswith("/") else f"w/{folder}" for folder in include_dirs))
        if not self.target.is_device:
            command = gcc_compile_incore(
                self._toolchain,
                f"w/{source}",
                _OUTPUT,
                core=core,
                architecture=self.target.simulated,
                includes=includes,
                bfloat16=bfloat16,
                dependencies=_DEPENDENCIES,
            )
            return self._run([(stage, command)], files, lambda data: _check_kernel(f"{stage}: its source", data))
        assert self._installed is not None
        compiled = ccec_compile(
            self._installed,
            f"w/{source}",
            _OBJECT,
            architecture=self.target.aicore[core],
            a5=self.target.simulated == "A5",
            includes=includes,
            dependencies=_DEPENDENCIES,
        )
        linked = lld_link(self._installed, _OBJECT, _OUTPUT)
        steps = [(stage, compiled), (f"link {name}", linked)]
        return self._run(steps, files, lambda data: check_device_kernel(f"link {name}", data))

    def compile_orchestration(
        self, source: str, files: Mapping[str, bytes], *, name: str, runtime: str = HOST_BUILD_GRAPH
    ) -> Compiled:
        """The shared object of an orchestration, with the runtime in it.

        Args:
            runtime: which one; on a device, ``tensormap_and_ringbuffer`` runs on the NPU's own AArch64 processors.

        Raises:
            ValueError: an unknown runtime.
            ToolSetMissing: the toolchain has no compiler for AArch64.

        Further arguments and errors as `compile_incore`.
        """
        from pypto.toolchain.device import aarch64_orchestration
        from pypto.toolchain.tools import gcc_orchestration

        stage = f"compile orchestration {name}"
        on_device = self.target.orchestration_compiler(runtime) == "aarch64"
        _require(self.target.orchestration_sources(), stage)
        if on_device:
            assert self._installed is not None
            command = aarch64_orchestration(
                self._installed, f"w/{source}", _OUTPUT, includes=("w",), dependencies=_DEPENDENCIES
            )
        else:
            command = gcc_orchestration(
                self._toolchain, f"w/{source}", _OUTPUT, includes=("w",), dependencies=_DEPENDENCIES
            )
        machine = "aarch64" if on_device else None
        return self._run(
            [(stage, command)],
            files,
            lambda data: check_shared_object(stage, data, ORCHESTRATION_FUNCTIONS, machine=machine),
        )

    def _run(
        self, steps: Sequence[tuple[str, Command]], files: Mapping[str, bytes], check: Callable[[bytes], object]
    ) -> Compiled:
        """Run commands one after another in one private root; the last writes the binary."""
        from pypto.toolchain.tools import private_root

        with private_root(self._toolchain, parent=self._build_dir) as root:
            for path, data in files.items():
                _write(root.work, path, data)
            for stage, command in steps:
                root.run(command, stage, timeout=self.timeout)
            binary = _output(root.path / _OUTPUT, *steps[-1])
            dependencies = _output(root.path / _DEPENDENCIES, *steps[0]).decode("utf-8", "surrogateescape")
        try:
            check(binary)
        except LoadError as error:
            raise CompilerOutputError(f"{error} (written by {steps[-1][1].argv[0]})") from None
        return Compiled(binary, uncovered(parse_dependencies(dependencies), self._sets, files, self._system))


# Beside the sources, where no source can have its name.
_OUTPUT = "w/out.so"
_OBJECT = "w/out.o"
_DEPENDENCIES = "w/out.d"
_RESERVED = tuple(PurePosixPath(path).name for path in (_OUTPUT, _OBJECT, _DEPENDENCIES))


def _check_kernel(what: str, data: bytes) -> None:
    try:
        check_shared_object(what, data, KERNEL_FUNCTIONS)
    except LoadError as error:
        if not str(error).endswith(" does not export kernel_entry"):
            raise
        raise LoadError(f'{error}; a kernel is `extern "C" void kernel_entry(__gm__ int64_t* args)`') from None


def _require(paths: Iterable[Path], stage: str) -> None:
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(f"{stage}: {path} is missing from this installation of PyPTO; install it again")


def _output(path: Path, stage: str, command: Command) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise CompilerOutputError(f"{stage}: {command.argv[0]} succeeded but wrote no {path.name}") from None


def _write(work: Path, path: str, data: bytes) -> None:
    parts: Sequence[str] = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or (len(parts) == 1 and parts[0] in _RESERVED):
        raise ValueError(f"a source cannot have the path {path!r}")
    target = work.joinpath(*parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
