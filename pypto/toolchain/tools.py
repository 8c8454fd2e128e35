"""Running the tools: private roots with fixed names, closed environments, command lines without places.

Every command runs with a private root as its working directory, and names everything relative to it:

    t/gcc t/isa t/ptoas   the tool sets          t/pypto   the folder that holds the package `pypto`
    w                     the work directory         tmp       the tools' temporary files

so that argument lists, recorded names and outputs are the same strings on every machine and through every door.
The tools of this machine (`pypto.toolchain.host`) are the exception: they are named by absolute paths, inherit the
environment, and of the sets have `t/isa` alone, beside it `t/mended` with the header that GCC 12 cannot read.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal

from pypto.toolchain.cleanup import private_folder, running, start_tool
from pypto.toolchain.descriptor import Toolchain, ToolSet
from pypto.toolchain.errors import ToolchainError, ToolError, ToolTimeout

if TYPE_CHECKING:
    from pypto.toolchain.host import Tools

TIMEOUT_VARIABLE = "PYPTO_COMPILER_TIMEOUT"
DEFAULT_TIMEOUT = 900.0

INSERT_SYNC = "--enable-insert-sync"
"""Lets ptoas place the synchronisation of the pipelines; a kernel without it does not run."""
NATIVE_INCLUDE = "t/pypto/pypto/runtime/native/include"
_COMPAT = "t/pypto/pypto/toolchain/compat"
# Headers in front of the PTO-ISA ones, by core type, and the one behind them.
_BEFORE_ISA: Mapping[str, tuple[str, ...]] = {"aiv": (), "aic": (f"{_COMPAT}/pto_isa_cube.hpp",)}
_AFTER_ISA = f"{_COMPAT}/pto_isa_compat.hpp"

# The links in `t` that builds with the tools of this machine have beside `t/pypto`.
HOST_LINKS = ("isa", "mended")

CoreType = Literal["aiv", "aic"]
SimulatorArchitecture = Literal["A2A3", "A5"]
_CORE_MACROS: Mapping[str, str] = {"aiv": "__DAV_VEC__", "aic": "__DAV_CUBE__"}

_ERROR_LINE = re.compile(r"\b(fatal )?error\b|undefined reference|Assertion|LLVM ERROR|cannot find|No such file", re.I)
_MAX_LINES = 20
_MAX_OUTPUT = 1 << 20


@dataclass(frozen=True)
class Command:
    """One tool invocation: arguments and the complete environment, both relative to a private root."""

    argv: tuple[str, ...]
    env: Mapping[str, str]


class PrivateRoot:
    """A temporary folder in which tools run; see the module's description for its names."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.work = path / "w"

    def run(self, command: Command, stage: str, *, timeout: float | None = None) -> str:
        """Run `command` here; see `run_tool`."""
        return run_tool(self, command, stage, timeout=timeout)


@contextlib.contextmanager
def private_root(toolchain: Tools, *, parent: str | os.PathLike[str] | None = None) -> Iterator[PrivateRoot]:
    """A private root for `toolchain`, removed at the end of the block whatever happens in it.

    Args:
        parent: the folder to make it in; default the system's folder for temporary files.

    Raises:
        ToolchainError: it cannot be made.
    """
    with contextlib.ExitStack() as stack:
        try:
            path = stack.enter_context(private_folder(parent))
        except OSError as error:
            raise ToolchainError(
                f"cannot make a folder for temporary files: {error}; TMPDIR names another place"
            ) from None
        (path / "w").mkdir()
        (path / "t").mkdir()
        (path / "tmp").mkdir()
        if isinstance(toolchain, Toolchain):
            for name, folder in toolchain.bindings.roots.items():
                (path / "t" / name).symlink_to(folder)
        elif toolchain.selection.pto_isa.root is not None:
            _link_host_isa(path / "t", toolchain.isa())
        # abspath, not resolve: in a sandbox the package's files are links to the outside.
        (path / "t" / "pypto").symlink_to(Path(os.path.abspath(__file__)).parents[2])
        yield PrivateRoot(path)


def run_tool(root: PrivateRoot, command: Command, stage: str, *, timeout: float | None = None) -> str:
    """Run a command in a private root and return what it printed (both streams, at most the last MiB).

    Args:
        stage: what is being done, for messages: "assemble qk".
        timeout: seconds; default `PYPTO_COMPILER_TIMEOUT`, else 900.

    Raises:
        ToolError: it exited with another status than 0 or was ended by a signal.
        ToolTimeout: it ran out of time.
        ToolchainError: it could not be started, or the timeout variable is malformed.
    """
    limit = compiler_timeout() if timeout is None else timeout
    with tempfile.TemporaryFile(dir=root.path) as log:

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                command.argv,
                cwd=root.path,
                env=dict(command.env),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

        try:
            child = start_tool(start, root.path)
        except OSError as error:
            raise ToolchainError(f"{stage}: cannot start {command.argv[0]}: {error.strerror}") from None
        with running(child.pid):
            try:
                status: int | None = child.wait(limit)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                if child.returncode is None:
                    # The compiler driver's own children are in its session's group.
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(child.pid, signal.SIGKILL)
                    child.wait()
        output = _tail(log)
    if status == 0:
        return output
    kind = ToolTimeout if status is None else ToolError
    raise kind(stage, command.argv, status, _how(status, limit), _error_lines(output), output)


def compiler_timeout() -> float:
    """Seconds that one tool may take: `PYPTO_COMPILER_TIMEOUT`, else 900.

    Raises:
        ToolchainError: the variable holds no positive finite number.
    """
    text = os.environ.get(TIMEOUT_VARIABLE)
    if not text:
        return DEFAULT_TIMEOUT
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (value > 0 and math.isfinite(value)):
        raise ToolchainError(f"{TIMEOUT_VARIABLE}={text!r}: give a positive number of seconds")
    return value


def ptoas_command(toolchain: Tools, source: str, output: str) -> Command:
    """ptoas from a `.pto` file to C++; both paths relative to the private root.

    The C++ is raw: `pypto.toolchain.repair` mends and normalises it.
    """
    arguments = (INSERT_SYNC, source, "-o", output)
    if not isinstance(toolchain, Toolchain):
        return Command((toolchain.ptoas(), *arguments), toolchain.environment())
    tools = toolchain.descriptor.sets["ptoas"]
    return Command((tool_path(tools, "ptoas"), *arguments), closed_environment(tools))


def gcc_compile_incore(
    toolchain: Tools,
    source: str,
    output: str,
    *,
    core: CoreType,
    architecture: SimulatorArchitecture = "A2A3",
    includes: Sequence[str] = (),
    bfloat16: bool = False,
    dependencies: str | None = None,
) -> Command:
    """g++ from one incore kernel's wrapper to its shared object, against the PTO-ISA simulator.

    Args:
        source, output, includes: paths relative to the private root; `includes` come before all others.
        core: decides between `__DAV_VEC__` and `__DAV_CUBE__`.
        architecture: whose on-chip memories are simulated.
        bfloat16: the kernel uses bfloat16, which GCC 12 has no type for: take the package's stand-in.
        dependencies: file for the list of all files that the compiler read, in the syntax of make.
    """
    own = [f"-I{path}" for path in includes]
    own += [f"-I{path}" for path in _isa_includes(toolchain)]
    own += [f"-I{NATIVE_INCLUDE}"]
    if bfloat16:
        own += [
            f"-I{_COMPAT}/stdfloat",
            "-D__STDCPP_BFLOAT16_T__=1",
            "-U__cplusplus",
            "-D__cplusplus=202302L",
        ]
    own += ["-D__CPU_SIM", "-DPTO_CPU_MAX_THREADS=1", f"-D{_CORE_MACROS[core]}", f"-DPYPTO_SIM_ARCH={architecture}"]
    assertions = f"{NATIVE_INCLUDE}/pypto/assertions.h"
    for header in ("cstdint", "cstddef", assertions, *_BEFORE_ISA[core], "pto/pto-inst.hpp", _AFTER_ISA):
        own += ["-include", header]
    return _shared_object(toolchain, [*own, *dependency_flags(dependencies)], source, output)


def gcc_orchestration(
    toolchain: Tools,
    source: str,
    output: str,
    *,
    includes: Sequence[str] = (),
    dependencies: str | None = None,
) -> Command:
    """g++ from the orchestration source to its shared object, which holds the runtime.

    Args:
        source, output, includes, dependencies: as in `gcc_compile_incore`.
    """
    own = [*(f"-I{path}" for path in includes), f"-I{NATIVE_INCLUDE}", *dependency_flags(dependencies)]
    return _shared_object(toolchain, own, source, output)


def closed_environment(tools: ToolSet) -> dict[str, str]:
    """The whole environment of a tool of this set: constant, nothing inherited from the caller."""
    return {
        "LC_ALL": "C",
        "LD_LIBRARY_PATH": ":".join(_join(f"t/{tools.name}", path) for path in tools.libraries),
        "PATH": "/nonexistent",
        # Given this, gcc records no real path of the working directory.
        "PWD": "/proc/self/cwd",
        "TMPDIR": "tmp",
        "TZ": "UTC",
    }


def gcc_shared_object(
    tools: ToolSet, own: Sequence[str], source: str, output: str, *, driver: str = "g++", sysroot: bool = True
) -> Command:
    """A GCC's C++ driver from one source to a shared object.

    Args:
        tools: the set that holds the compiler.
        own: further flags.
        driver: the driver's name in the set.
        sysroot: take all headers and libraries from the set, as its record lists them.
    """
    compiler = tool_path(tools, driver)
    argv = [compiler]
    if sysroot:
        root = f"t/{tools.name}"
        # The assembler and the linker have the names that the driver looks for, in one folder.
        programs = tool_path(tools, "as").rsplit("/", 1)[0]
        argv += [
            f"--sysroot={root}",
            f"-B{programs}/",
            "-no-canonical-prefixes",
            "-fno-canonical-system-headers",
            "-nostdinc",
            "-nostdinc++",
        ]
        for path in tools.includes:
            argv += ["-isystem", _join(root, path)]
    return Command((*argv, *_shared_object_flags(own, source, output)), closed_environment(tools))


def _shared_object(toolchain: Tools, own: Sequence[str], source: str, output: str) -> Command:
    if isinstance(toolchain, Toolchain):
        return gcc_shared_object(toolchain.descriptor.sets["gcc"], own, source, output)
    return Command((toolchain.compiler(), *_shared_object_flags(own, source, output)), toolchain.environment())


def _shared_object_flags(own: Sequence[str], source: str, output: str) -> list[str]:
    flags = ["-std=c++23", "-O2", "-fPIC", "-shared", "-pthread", "-fno-gnu-unique", "-w", *own]
    return [*flags, "-ffile-prefix-map=t/=", "-ffile-prefix-map=w/=", source, "-o", output, "-Wl,--build-id=sha1"]


def _isa_includes(toolchain: Tools) -> tuple[str, ...]:
    if isinstance(toolchain, Toolchain):
        return tuple(_join("t/isa", path) for path in toolchain.descriptor.sets["isa"].includes)
    # Asked here, so that a missing PTO-ISA is an error of its own and none of the compiler.
    toolchain.isa()
    return ("t/mended", "t/isa/include", "t/isa/include/pto")


def _link_host_isa(tools: Path, isa: Path) -> None:
    from pypto.toolchain.recipes import MENDED, mend

    (tools / "isa").symlink_to(isa)
    header = tools / "mended" / MENDED
    header.parent.mkdir(parents=True)
    with contextlib.suppress(FileNotFoundError):
        mended = mend((isa / "include" / MENDED).read_bytes())
        if mended is not None:
            header.write_bytes(mended)


def dependency_flags(path: str | None) -> list[str]:
    """Flags that make a compiler write the list of all files that it read, in the syntax of make."""
    return [] if path is None else ["-MD", "-MF", path]


def tool_path(tools: ToolSet, name: str) -> str:
    """A program of a set, relative to the private root."""
    return f"t/{tools.name}/{tools.tools[name].path}"


def _join(root: str, path: str) -> str:
    return root if path == "." else f"{root}/{path}"


def _how(status: int | None, limit: float) -> str:
    if status is None:
        return f"did not finish in {limit:g} s ({TIMEOUT_VARIABLE} sets the limit)"
    if status < 0:
        try:
            return f"was ended by {signal.Signals(-status).name}"
        except ValueError:
            return f"was ended by signal {-status}"
    return f"exited with status {status}"


def _tail(log: IO[bytes]) -> str:
    size = log.seek(0, os.SEEK_END)
    log.seek(max(0, size - _MAX_OUTPUT))
    return log.read().decode("utf-8", "replace")


def _error_lines(output: str) -> list[str]:
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR_LINE.search(line)]
    return [line[:400] for line in (errors[:_MAX_LINES] or lines[-_MAX_LINES:])]
