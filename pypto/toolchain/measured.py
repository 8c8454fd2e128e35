"""What lies in the folders of a toolchain now, for identities that must see every byte.

An installation must not change while a process lives, so each folder is read once; a reading that failed is repeated.
Nothing is kept for other processes.
"""

from __future__ import annotations

import dataclasses
import threading

from pypto.toolchain.cann import read_cann
from pypto.toolchain.descriptor import Toolchain, ToolchainDescriptor
from pypto.toolchain.errors import ToolchainError
from pypto.toolchain.tree import content_digest

MEASURED_FACT = "measured"

_lock = threading.Lock()
_digests: dict[tuple[str, str], str] = {}


def measured(toolchain: Toolchain) -> ToolchainDescriptor:
    """The descriptor with one more fact for each set: `measured`, the digest of all paths and bytes of its folder.

    Raises:
        ToolchainError: a folder cannot be read completely.
    """
    with _lock:
        sets = {}
        for name, recorded in toolchain.descriptor.sets.items():
            memo = (str(toolchain.root(name)), recorded.digest)
            if memo not in _digests:
                try:
                    # CANN is known by its build; of its bytes, only the programs that builds start are read.
                    root = toolchain.root(name)
                    _digests[memo] = read_cann(root).tree if name == "cann" else content_digest(root)
                except OSError as error:
                    raise ToolchainError(f"the tool set {name!r} cannot be read: {error}") from None
            sets[name] = dataclasses.replace(recorded, facts={**recorded.facts, MEASURED_FACT: _digests[memo]})
        return ToolchainDescriptor(sets)
