"""What a host build would use: captured once, so that later changes of environment or directory do not change it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pypto._identity.host.files import Unidentified, find_program, is_executable

EXECUTION_MODES = ("sim", "device")
RUNTIMES = ("host_build_graph", "tensormap_and_ringbuffer")

_SHELL = ("BASHOPTS", "BASH_ENV", "ENV", "SHELLOPTS")
_SHELL_FUNCTION = "BASH_FUNC_"
_CANN_AARCH64 = "tools/hcc/bin/aarch64-target-linux-gnu-g++"


@dataclass(frozen=True)
class PtoIsa:
    """PTO-ISA as the caller names it.

    Attributes:
        root: a checkout or a folder with the headers.
        revision: the complete commit that it is pinned to; None: no pin.
        remote: where the revision can be cloned from.
    """

    root: str | None = None
    revision: str | None = None
    remote: str | None = None


@dataclass(frozen=True)
class HostSelection:
    """The tools of a host build as names, and everything that decides which files those are.

    Attributes:
        variables: the environment of the process.
        cwd: its working directory.
        project_root: the folder in which the compilers run; relative names of tools are relative to it.
        execution_mode: `sim` or `device`.
        runtime: `host_build_graph` or `tensormap_and_ringbuffer`; decides who compiles a device build's orchestration.
        compiler, aarch64_compiler: names or paths of g++.
        flags: further flags of every compile.
        package_root: the folder `pypto`; None: the imported package.
        runtime_root: an external runtime; None: the package's own.
        pto_isa: where PTO-ISA comes from.
    """

    variables: Mapping[str, str]
    cwd: str
    project_root: str
    execution_mode: str = "sim"
    runtime: str = "host_build_graph"
    compiler: str = "g++"
    aarch64_compiler: str = "aarch64-linux-gnu-g++"
    flags: tuple[str, ...] = ()
    package_root: str | None = None
    runtime_root: str | None = None
    pto_isa: PtoIsa = field(default_factory=PtoIsa)

    def __post_init__(self) -> None:
        if self.execution_mode not in EXECUTION_MODES:
            raise ValueError(f"the execution mode is sim or device, got {self.execution_mode!r}")
        if self.runtime not in RUNTIMES:
            raise ValueError(f"the runtime is one of {', '.join(RUNTIMES)}, got {self.runtime!r}")
        for name in ("cwd", "project_root"):
            if not os.path.isabs(getattr(self, name)):
                raise ValueError(f"{name} is an absolute path, got {getattr(self, name)!r}")
        object.__setattr__(self, "variables", MappingProxyType(dict(self.variables)))
        object.__setattr__(self, "flags", tuple(self.flags))

    def find(self, name: str) -> str:
        """Absolute path of the program that `name` starts in the project root.

        Raises:
            Unidentified: there is none.
        """
        return find_program(name, self.variables.get("PATH", os.defpath), self.project_root)

    def resolve(self, path: str) -> str:
        """`path` as the tools would understand it: relative to the project root."""
        return os.path.join(self.project_root, path)

    def cann_root(self) -> str:
        """The installation of CANN.

        Raises:
            Unidentified: `ASCEND_HOME_PATH` names no folder.
        """
        root = self.variables.get("ASCEND_HOME_PATH")
        if not root:
            raise Unidentified("ASCEND_HOME_PATH is not set, which names CANN")
        root = self.resolve(root)
        if not os.path.isdir(root):
            raise Unidentified(f"ASCEND_HOME_PATH names no folder: {root}")
        return root

    def ptoas(self) -> tuple[str, str | None]:
        """Absolute path of ptoas and, if `PTOAS_ROOT` chose it, that installation's folder.

        Raises:
            Unidentified: there is none.
        """
        root = self.variables.get("PTOAS_ROOT")
        if not root:
            return self.find("ptoas"), None
        root = self.resolve(root)
        for name in ("bin/ptoas", "ptoas"):
            if is_executable(os.path.join(root, name)):
                return os.path.join(root, name), root
        raise Unidentified(f"PTOAS_ROOT has neither bin/ptoas nor ptoas: {root}")

    def compilers(self) -> dict[str, str]:
        """Absolute paths of the g++ programs that this build runs, by role: `host` or `aarch64`.

        Raises:
            Unidentified: one is missing.
        """
        if self.execution_mode == "device" and self.runtime == "tensormap_and_ringbuffer":
            bundled = os.path.join(self.cann_root(), _CANN_AARCH64)
            return {"aarch64": bundled if is_executable(bundled) else self.find(self.aarch64_compiler)}
        return {"host": self.find(self.compiler)}

    def tool_variables(self) -> dict[str, str]:
        """The environment in which a host build runs its tools: the process's, with the time zone fixed.

        Wrappers are scripts, so what makes a shell run other code first is left out.
        """
        kept = {n: v for n, v in self.variables.items() if n not in _SHELL and not n.startswith(_SHELL_FUNCTION)}
        return {**kept, "TZ": "UTC"}


def capture_selection(
    *,
    project_root: str | os.PathLike[str] | None = None,
    execution_mode: str = "sim",
    runtime: str = "host_build_graph",
    compiler: str = "g++",
    aarch64_compiler: str = "aarch64-linux-gnu-g++",
    flags: tuple[str, ...] = (),
    package_root: str | os.PathLike[str] | None = None,
    runtime_root: str | os.PathLike[str] | None = None,
    pto_isa: PtoIsa | None = None,
) -> HostSelection:
    """The selection of this process as it stands now; see `HostSelection` for the arguments.

    Raises:
        ValueError: an unknown execution mode or runtime.
    """
    cwd = os.getcwd()
    return HostSelection(
        variables=dict(os.environ),
        cwd=cwd,
        project_root=cwd if project_root is None else os.path.join(cwd, project_root),
        execution_mode=execution_mode,
        runtime=runtime,
        compiler=compiler,
        aarch64_compiler=aarch64_compiler,
        flags=flags,
        package_root=None if package_root is None else os.path.join(cwd, package_root),
        runtime_root=None if runtime_root is None else os.path.join(cwd, runtime_root),
        pto_isa=PtoIsa() if pto_isa is None else pto_isa,
    )
