"""Calling the C++ compilers: incore kernels and orchestrations, from sources to validated shared objects."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal

from pypto.runtime.binary_manifest import KERNEL_FUNCTIONS, ORCHESTRATION_FUNCTIONS, check_shared_object
from pypto.runtime.config import ExecutionMode
from pypto.runtime.errors import DeviceUnavailable, LoadError

if TYPE_CHECKING:
    from pypto.toolchain.descriptor import Toolchain
    from pypto.toolchain.tools import Command


class CompilerOutputError(RuntimeError):
    """A compiler said it succeeded, but what it left is not a usable binary."""


class KernelCompiler:
    """Compiles and links with the tools of one toolchain; executes nothing of what it makes.

    Every call works in a private temporary folder that is gone when the call ends, however it ends.
    ``PYPTO_COMPILER_TIMEOUT`` (seconds for each compiler call; default 900) is read once, here.

    Args:
        toolchain: the tools.
        execution_mode: ``sim``; kernels for a ``device`` need CANN's compilers.
        build_dir: parent of the temporary folders; default the system's.

    Raises:
        ValueError: ``PYPTO_COMPILER_TIMEOUT`` is not a positive finite number.
        DeviceUnavailable: ``device`` without its compilers.
    """

    def __init__(
        self,
        toolchain: Toolchain,
        *,
        execution_mode: ExecutionMode | str = ExecutionMode.SIM,
        build_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        from pypto.toolchain.errors import ToolchainError
        from pypto.toolchain.tools import compiler_timeout

        if ExecutionMode(execution_mode) is not ExecutionMode.SIM:
            raise DeviceUnavailable(
                "kernels for execution_mode='device' need CANN's compilers (ccec, ld.lld), which the toolchain in "
                "force does not have; build with execution_mode='sim'"
            )
        try:
            self.timeout = compiler_timeout()
        except ToolchainError as error:
            raise ValueError(str(error)) from None
        self._toolchain = toolchain
        self._build_dir = build_dir

    def compile_incore(
        self,
        source: str,
        files: Mapping[str, bytes],
        *,
        core: Literal["aic", "aiv"],
        name: str,
        bfloat16: bool = False,
    ) -> bytes:
        """The shared object of one incore kernel.

        Args:
            source: path of the wrapper in ``files``.
            files: sources by relative path; ``#include "..."`` finds them by that path.
            core: core type; decides what the instructions may do.
            name: the kernel, for messages.
            bfloat16: the kernel uses bfloat16.

        Raises:
            ToolError: the compiler failed.
            ToolTimeout: it ran out of time; a ``RuntimeError`` too.
            CompilerOutputError: it left no shared object with a Build-ID and the functions of the kernel ABI.
        """
        from pypto.toolchain.tools import gcc_compile_incore

        command = gcc_compile_incore(
            self._toolchain, f"w/{source}", _OUTPUT, core=core, includes=("w",), bfloat16=bfloat16
        )
        return self._compile(command, files, f"compile {name}", KERNEL_FUNCTIONS)

    def compile_orchestration(self, source: str, files: Mapping[str, bytes], *, name: str) -> bytes:
        """The shared object of an orchestration, with the runtime in it; arguments and errors as `compile_incore`."""
        from pypto.toolchain.tools import gcc_orchestration

        command = gcc_orchestration(self._toolchain, f"w/{source}", _OUTPUT, includes=("w",))
        return self._compile(command, files, f"compile orchestration {name}", ORCHESTRATION_FUNCTIONS)

    def _compile(self, command: Command, files: Mapping[str, bytes], stage: str, functions: frozenset[str]) -> bytes:
        from pypto.toolchain.tools import private_root

        with private_root(self._toolchain, parent=self._build_dir) as root:
            for path, data in files.items():
                _write(root.work, path, data)
            root.run(command, stage, timeout=self.timeout)
            output = root.path / _OUTPUT
            try:
                data = output.read_bytes()
            except FileNotFoundError:
                raise CompilerOutputError(f"{stage}: {command.argv[0]} succeeded but wrote nothing") from None
        try:
            check_shared_object(stage, data, functions)
        except LoadError as error:
            raise CompilerOutputError(f"{error} (written by {command.argv[0]})") from None
        return data


# Beside the sources, where no source can have its name.
_OUTPUT = "w/out.so"


def _write(work: Path, path: str, data: bytes) -> None:
    parts: Sequence[str] = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or parts == (PurePosixPath(_OUTPUT).name,):
        raise ValueError(f"a source cannot have the path {path!r}")
    target = work.joinpath(*parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
