"""The tools that turn generated sources into binaries: ptoas, the PTO-ISA headers and GCC, each pinned by a lock.

`current()` is the toolchain in force; `python -m pypto.toolchain install` fetches one. Nothing here downloads on import
or when a kernel is called.
"""

from __future__ import annotations

from pypto.toolchain.descriptor import Bindings, Toolchain, ToolchainDescriptor, ToolFile, ToolSet, describe
from pypto.toolchain.errors import (
    DescriptorError,
    ToolchainError,
    ToolchainNotInstalled,
    ToolError,
    ToolSetMissing,
    ToolTimeout,
)
from pypto.toolchain.selection import current, in_force, use

__all__ = [
    "Bindings",
    "DescriptorError",
    "ToolError",
    "ToolFile",
    "ToolSet",
    "ToolSetMissing",
    "ToolTimeout",
    "Toolchain",
    "ToolchainDescriptor",
    "ToolchainError",
    "ToolchainNotInstalled",
    "current",
    "describe",
    "in_force",
    "use",
]
