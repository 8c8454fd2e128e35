"""Turns component inputs into an identity, reading each installation once per process."""

from __future__ import annotations

import threading
from typing import Any

from pypto._identity.identity import ToolchainIdentity
from pypto._identity.records import digest_record
from pypto._identity.toolchain_inputs import ToolchainInputs


class InstallationIdentityCache:
    """Remembers the digests of components that were read. Failures are tried again; success is kept.

    An installation must not change while the process lives: replacing a tool at the same path needs a restart.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read: dict[tuple[str, str, str], tuple[str, dict[str, Any]]] = {}

    def capture(self, inputs: ToolchainInputs) -> ToolchainIdentity:
        """The identity of `inputs`; an unusable one names every component that is unavailable and why."""
        digests: dict[str, str] = {}
        reasons: dict[str, str] = {}
        records: dict[str, Any] = {}
        frame = inputs.frame()
        frame_digest = digest_record(frame)
        with self._lock:
            for name, component in inputs.items():
                if component.unavailable_reason is not None:
                    reasons[name] = component.unavailable_reason
                    continue
                memo = (name, frame_digest, component.manifest_digest())
                known = self._read.get(memo)
                if known is None:
                    record, reason = component.record(name, frame)
                    if record is None:
                        reasons[name] = reason or "unknown"
                        continue
                    known = self._read[memo] = (digest_record(record), record)
                digests[name], records[name] = known
        return ToolchainIdentity.of(digests, reasons, records)
