"""What each component of a tool chain rests on, before it is turned into a digest."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pypto._identity.content import ContentRoot, fingerprint_content
from pypto._identity.identity import COMPONENT_NAMES, IDENTITY_SCHEMA
from pypto._identity.policy import DEFAULT_SETTINGS, IdentitySettings
from pypto._identity.records import digest_record, encode_record

WORLDS = ("hermetic", "host")

NOT_DISCOVERED = "its dependencies have not been discovered"


@dataclass(frozen=True)
class ComponentInputs:
    """The evidence of one component. Unavailable until whoever knows all its inputs clears `unavailable_reason`.

    roots: files and directories that are read, always, whatever other evidence there is.
    verified_revision: a revision that something else proved to be the component's bytes, in the same resolution.
    reported_version: what the installation says about itself; nothing verified it.
    evidence: a plain record of facts recorded earlier by whoever unpacked or built the component.
    """

    roots: tuple[ContentRoot, ...] = ()
    verified_revision: str | None = None
    reported_version: str | None = None
    evidence: Any = field(default=None, hash=False)
    unavailable_reason: str | None = NOT_DISCOVERED

    def __post_init__(self) -> None:
        for name in ("verified_revision", "reported_version", "unavailable_reason"):
            value = getattr(self, name)
            if value is not None and (type(value) is not str or not value):
                raise ValueError(f"{name} must be None or a text that is not empty, got {value!r}")
        encode_record(self.evidence)
        object.__setattr__(self, "roots", tuple(self.roots))
        object.__setattr__(self, "evidence", copy.deepcopy(self.evidence))

    def manifest_digest(self) -> str:
        """Digest of the complete resolved inputs, nothing read: equal inputs, equal digest."""
        return digest_record(
            {
                "roots": [root.path for root in self.roots],
                "verified_revision": self.verified_revision,
                "reported_version": self.reported_version,
                "evidence": self.evidence,
            }
        )

    def record(self, name: str, frame: Mapping[str, Any]) -> tuple[dict[str, Any] | None, str | None]:
        """(record, None), or (None, reason) when unavailable. Reads every root.

        `name` is the component's name, so that the evidence of one never passes for that of another; `frame` says
        under which world and settings the evidence counts.
        """
        if self.unavailable_reason is not None:
            return None, self.unavailable_reason
        record: dict[str, Any] = {"schema": IDENTITY_SCHEMA, "component": name, **frame}
        if self.verified_revision is not None:
            record["verified_revision"] = self.verified_revision
        if self.reported_version is not None:
            record["reported_version"] = self.reported_version
        if self.evidence is not None:
            record["evidence"] = self.evidence
        if self.roots:
            content = fingerprint_content(self.roots)
            if content.digest is None:
                return None, content.reason
            record["content"] = content.digest
        elif self.verified_revision is None and self.reported_version is None and self.evidence is None:
            return None, "its list of inputs is empty"
        return record, None


@dataclass(frozen=True)
class ToolchainInputs:
    """The inputs of all five components; none has a default.

    world: `hermetic` (a toolchain descriptor) or `host`.
    settings: the policy under which evidence counts; equal evidence under two policies gives two identities.
    """

    pypto: ComponentInputs
    runtime: ComponentInputs
    pto_isa: ComponentInputs
    ptoas: ComponentInputs
    device_toolchain: ComponentInputs
    world: str = "host"
    settings: IdentitySettings = DEFAULT_SETTINGS

    def __post_init__(self) -> None:
        if self.world not in WORLDS:
            raise ValueError(f"the world of an identity is hermetic or host, got {self.world!r}")

    def frame(self) -> dict[str, Any]:
        """World and settings as plain data: what stands in the record of every component."""
        return {"world": self.world, **self.settings.record()}

    def items(self) -> list[tuple[str, ComponentInputs]]:
        """(name, inputs) of the five components, in their fixed order."""
        return [(name, getattr(self, name)) for name in COMPONENT_NAMES]
