"""The key that names one artifact."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pypto._identity.identity import IDENTITY_SCHEMA, ToolchainIdentity
from pypto._identity.records import canonical_json, is_digest

ARTIFACT_SCHEMA = 1
"""Version of keys, manifests and the store's layout."""


@dataclass(frozen=True)
class ArtifactKey:
    """Which artifact: the tools, the source and the variant that it is made from.

    Only the form of the three parts is checked; whether they cover all inputs is their maker's duty.

    Raises:
        ValueError: no usable identity of the current schema, or a digest that is not 64 lower-case hexadecimal digits.
    """

    environment: ToolchainIdentity
    source_digest: str
    specialization_digest: str

    def __post_init__(self) -> None:
        if not isinstance(self.environment, ToolchainIdentity):
            raise ValueError(f"an artifact key needs a ToolchainIdentity, not {type(self.environment).__name__}")
        if self.environment.schema != IDENTITY_SCHEMA:
            raise ValueError(f"an artifact key needs identity schema {IDENTITY_SCHEMA}, not {self.environment.schema}")
        if not self.environment.usable:
            raise ValueError(f"an artifact key needs an available identity: {self.environment.explain()}")
        for name in ("source_digest", "specialization_digest"):
            if not is_digest(getattr(self, name)):
                raise ValueError(f"{name} must be 64 lower-case hexadecimal digits, got {getattr(self, name)!r}")

    @cached_property
    def environment_digest(self) -> str:
        """Digest of the environment: the first folder level of the store."""
        digest = self.environment.digest
        assert digest is not None
        return digest

    @cached_property
    def encoded(self) -> bytes:
        """The canonical JSON of `to_record()`."""
        return canonical_json(self.to_record())

    @cached_property
    def digest(self) -> str:
        """SHA-256 of `encoded`: the second folder level, and the name of the lock."""
        return hashlib.sha256(self.encoded).hexdigest()

    def to_record(self) -> dict[str, Any]:
        """The key as plain data: every component digest, both request digests and the artifact schema."""
        return {
            "schema": ARTIFACT_SCHEMA,
            "environment": self.environment.to_record(),
            "source_digest": self.source_digest,
            "specialization_digest": self.specialization_digest,
        }

    @classmethod
    def from_record(cls, record: object) -> ArtifactKey:
        """The key that `to_record` wrote.

        Raises:
            ValueError: another schema, missing or unknown fields, or malformed parts.
        """
        if type(record) is not dict or record.keys() != {
            "schema",
            "environment",
            "source_digest",
            "specialization_digest",
        }:
            raise ValueError(
                "a key record has exactly the fields environment, schema, source_digest and specialization_digest"
            )
        if type(record["schema"]) is not int or record["schema"] != ARTIFACT_SCHEMA:
            raise ValueError(f"the key has artifact schema {record['schema']!r}; this pypto reads {ARTIFACT_SCHEMA}")
        environment = ToolchainIdentity.from_record(record["environment"])
        return cls(environment, record["source_digest"], record["specialization_digest"])
