"""What lies in the folders of a toolchain now, for identities that must see every byte.

An installation must not change while a process lives, so each folder is read once; a reading that failed is repeated.
Nothing is kept for other processes.
"""

from __future__ import annotations

import dataclasses
import threading

from pypto.toolchain.descriptor import ROOTS, Toolchain, ToolchainDescriptor
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
        for name in ROOTS:
            recorded = toolchain.descriptor.sets[name]
            memo = (str(toolchain.root(name)), recorded.digest)
            if memo not in _digests:
                try:
                    _digests[memo] = content_digest(toolchain.root(name))
                except OSError as error:
                    raise ToolchainError(f"the tool set {name!r} cannot be read: {error}") from None
            sets[name] = dataclasses.replace(recorded, facts={**recorded.facts, MEASURED_FACT: _digests[memo]})
        return ToolchainDescriptor(sets)
