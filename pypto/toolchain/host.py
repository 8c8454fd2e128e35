"""The tools of this machine in the place of an installed toolchain: what is on `PATH` and what the environment names.

What is found is what `pypto._identity.host` identifies: both ask one `HostSelection`, captured once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from pypto._identity.host.files import Unidentified
from pypto._identity.host.selection import HostSelection, PtoIsa, capture_selection
from pypto._identity.identity import ToolchainIdentity
from pypto._identity.policy import IdentitySettings
from pypto.toolchain.descriptor import Toolchain
from pypto.toolchain.errors import ToolchainError

ISA_VARIABLE = "PTO_ISA_ROOT"

# Variables that list folders, that name one place, and that list libraries.
_LISTS = (
    "COMPILER_PATH",
    "CPATH",
    "CPLUS_INCLUDE_PATH",
    "C_INCLUDE_PATH",
    "LD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "PATH",
    "PYTHONPATH",
)
_PLACES = ("CCACHE_CONFIGPATH", "CCACHE_DIR", "GCC_EXEC_PREFIX", "HOME", "PYTHONHOME", "XDG_CONFIG_HOME")
_LIBRARIES = ("LD_AUDIT", "LD_PRELOAD")
_FURTHER_INCLUDES = ("CPATH", "CPLUS_INCLUDE_PATH", "C_INCLUDE_PATH")


@dataclass(frozen=True)
class HostTools:
    """The tools that a build finds on this machine; for the simulator only."""

    selection: HostSelection

    @classmethod
    def capture(cls) -> HostTools:
        """The tools as this process's environment and working directory select them now. Looks at no file."""
        selection = capture_selection()
        return cls(replace(selection, pto_isa=PtoIsa(root=selection.variables.get(ISA_VARIABLE) or None)))

    def identity(self, execution_mode: str, settings: IdentitySettings) -> ToolchainIdentity:
        """The identity of builds with these tools, or the reasons why there is none."""
        from pypto._identity.host.identity import host_identity

        return host_identity(replace(self.selection, execution_mode=execution_mode), settings)

    def selection_key(self) -> str:
        """A digest of what selects the tools and acts on them; equal ones find equal files while a process lives."""
        from pypto._identity.host.identity import selection_key

        return selection_key(self.selection, IdentitySettings())

    def ptoas(self) -> str:
        """Absolute path of ptoas.

        Raises:
            ToolchainError: there is none.
        """
        try:
            return self.selection.ptoas()[0]
        except Unidentified as error:
            raise ToolchainError(f"{error}; put ptoas on PATH or name its installation with PTOAS_ROOT") from None

    def compiler(self) -> str:
        """Absolute path of g++.

        Raises:
            ToolchainError: there is none.
        """
        try:
            return self.selection.compilers()["host"]
        except Unidentified as error:
            raise ToolchainError(f"{error}; install GCC 12 or later and put g++ on PATH") from None

    def isa(self) -> Path:
        """The folder of PTO-ISA; its headers are in `include`.

        Raises:
            ToolchainError: `PTO_ISA_ROOT` names none.
        """
        root = self.selection.pto_isa.root
        if root is None:
            raise ToolchainError(f"{ISA_VARIABLE} is not set: it names a PTO-ISA folder with include/pto/pto-inst.hpp")
        folder = Path(self.selection.resolve(root))
        if not (folder / "include/pto/pto-inst.hpp").is_file():
            raise ToolchainError(f"{ISA_VARIABLE} names no PTO-ISA: {folder} has no include/pto/pto-inst.hpp")
        return folder

    def environment(self) -> dict[str, str]:
        """The environment of a tool in a private root: the process's, of which every relative place means what it means
        in the project root, where the tools were identified."""
        variables = anchored(self.selection.tool_variables(), self.selection.project_root)
        # Temporary files go with the private root; given this PWD, gcc records no real path of it.
        return {**variables, "PWD": "/proc/self/cwd", "TMPDIR": "tmp"}

    def system_includes(self) -> tuple[str, ...]:
        """Real paths of the folders in which the compiler itself looks for headers; those that variables add left out.

        Raises:
            ToolchainError: it does not list them.
        """
        from pypto._identity.host.inventory import listed_includes
        from pypto._identity.host.probes import ProcessProbes

        compiler = self.compiler()
        variables = {n: v for n, v in self.selection.tool_variables().items() if n not in _FURTHER_INCLUDES}
        probes = ProcessProbes({**variables, "LC_ALL": "C"}, self.selection.project_root)
        (answer,) = probes([[compiler, "-std=c++23", "-v", "-E", "-x", "c++", os.devnull, "-o", os.devnull]])
        folders = listed_includes(answer)
        if not folders:
            raise ToolchainError(f"{compiler} does not list its include folders (-v -E): a GCC 12 or later is needed")
        return tuple(os.path.realpath(self.selection.resolve(folder)) for folder in folders)


Tools: TypeAlias = Toolchain | HostTools
"""What a build runs: the sets of a descriptor, or the tools of this machine."""


def anchored(variables: Mapping[str, str], folder: str) -> dict[str, str]:
    """`variables`, whose relative places are made absolute as they are understood in `folder`."""
    found = dict(variables)
    for name in _LISTS:
        # An empty entry is the working directory, an empty list is none.
        if text := found.get(name):
            entries = re.split("[:;]", text) if name == "LD_LIBRARY_PATH" else text.split(":")
            found[name] = ":".join(os.path.join(folder, entry) for entry in entries)
    for name in _PLACES:
        if text := found.get(name):
            found[name] = os.path.join(folder, text)
    for name in _LIBRARIES:
        if text := found.get(name):
            entries = re.split("[: ]", text)
            found[name] = ":".join(os.path.join(folder, entry) if "/" in entry else entry for entry in entries)
    return found
