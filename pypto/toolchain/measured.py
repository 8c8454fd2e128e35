"""What lies in the folders of a toolchain now, for identities that must see every byte.

An installation must not change while a process lives, so each folder is read once; a reading that failed is repeated.
Nothing is kept for other processes.
"""

from __future__ import annotations

import dataclasses
import threading

from pypto.toolchain.cann import read_cann
from pypto.toolchain.descriptor import OPTIONAL_ROOTS, Toolchain, ToolchainDescriptor
from pypto.toolchain.errors import ToolchainError
from pypto.toolchain.tree import content_digest

MEASURED_FACT = "measured"

_lock = threading.Lock()
_digests: dict[tuple[str, str, bool], str] = {}


def measured(toolchain: Toolchain, *, device: bool = True, strict: bool = False) -> ToolchainDescriptor:
    """The descriptor with one more fact for each set: `measured`, the digest of all paths and bytes of its folder.

    CANN is known by the build that it reports: of its bytes only the programs that builds start are read, unless
    `strict`. Without `device`, the sets that only device builds use are left alone.

    Raises:
        ToolchainError: a folder cannot be read completely.
    """
    sets = dict(toolchain.descriptor.sets)
    with _lock:
        for name, recorded in sets.items():
            if name in OPTIONAL_ROOTS and not device:
                continue
            shortcut = name == "cann" and not strict
            memo = (str(toolchain.root(name)), recorded.digest, shortcut)
            if memo not in _digests:
                root = toolchain.root(name)
                try:
                    _digests[memo] = read_cann(root).tree if shortcut else content_digest(root)
                except OSError as error:
                    raise ToolchainError(f"the tool set {name!r} cannot be read: {error}") from None
            sets[name] = dataclasses.replace(recorded, facts={**recorded.facts, MEASURED_FACT: _digests[memo]})
    return ToolchainDescriptor(sets)
