"""Turns component inputs into an identity, reading each installation once per process."""

from __future__ import annotations

import threading

from pypto._identity.identity import ToolchainIdentity
from pypto._identity.toolchain_inputs import ToolchainInputs


class InstallationIdentityCache:
    """Remembers the digests of components that were read. Failures are tried again; success is kept.

    An installation must not change while the process lives: replacing a tool at the same path needs a restart.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._digests: dict[tuple[str, str, str], str] = {}

    def capture(self, inputs: ToolchainInputs) -> ToolchainIdentity:
        """The identity of `inputs`; an unusable one names every component that is unavailable and why."""
        digests: dict[str, str] = {}
        reasons: dict[str, str] = {}
        with self._lock:
            for name, component in inputs.items():
                if component.unavailable_reason is not None:
                    reasons[name] = component.unavailable_reason
                    continue
                memo = (name, inputs.label, component.manifest_digest())
                digest: str | None = self._digests.get(memo)
                reason: str | None = None
                if digest is None:
                    digest, reason = component.digest(name, inputs.label)
                if digest is None:
                    reasons[name] = reason or "unknown"
                else:
                    self._digests[memo] = digests[name] = digest
        return ToolchainIdentity.of(digests, reasons)
