"""The identity of a whole tool chain: one digest per component, and one over all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pypto._identity.records import digest_record, is_digest

IDENTITY_SCHEMA = 2
"""Version of the identity records. Raised with every change to what a component's record holds."""

COMPONENT_NAMES = ("pypto", "runtime", "pto_isa", "ptoas", "device_toolchain")
"""The five parts that decide what a build makes."""


@dataclass(frozen=True)
class ToolchainIdentity:
    """Digests of the five components, or the reasons why some of them have none.

    `component_digests` and `unavailable_reasons` are pairs sorted by component name; use `of` to make an identity.
    `records` holds what the digests were taken of, where this process captured it; an identity that was read from a
    manifest has none.
    """

    component_digests: tuple[tuple[str, str], ...]
    unavailable_reasons: tuple[tuple[str, str], ...] = ()
    schema: int = IDENTITY_SCHEMA
    records: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        components: Mapping[str, str],
        reasons: Mapping[str, str] | None = None,
        records: Mapping[str, Any] | None = None,
    ) -> ToolchainIdentity:
        """An identity of the current schema from digests by component name and reasons by component name.

        Raises:
            ValueError: a component without digest and reason, or with both; an unknown name; a malformed digest.
        """
        reasons = {} if reasons is None else reasons
        unknown = sorted((components.keys() | reasons.keys()) - set(COMPONENT_NAMES))
        if unknown:
            raise ValueError(f"unknown component {unknown[0]!r}; the components are {', '.join(COMPONENT_NAMES)}")
        for name in COMPONENT_NAMES:
            if (name in components) == (name in reasons):
                raise ValueError(f"component {name!r} needs either a digest or the reason why it has none")
        for name, digest in components.items():
            if not is_digest(digest):
                raise ValueError(f"component {name!r}: expected 64 lower-case hexadecimal digits, got {digest!r}")
        for name, reason in reasons.items():
            if type(reason) is not str or not reason:
                raise ValueError(f"component {name!r}: the reason why it is unavailable must be a text")
        return cls(
            tuple(sorted(components.items())),
            tuple(sorted(reasons.items())),
            records={} if records is None else records,
        )

    @property
    def components(self) -> dict[str, str]:
        """Digest by component name; only the available ones."""
        return dict(self.component_digests)

    @property
    def reasons(self) -> dict[str, str]:
        """Reason by component name; only the unavailable ones."""
        return dict(self.unavailable_reasons)

    @property
    def usable(self) -> bool:
        """Whether every component has a digest, so that a key may be built from this identity."""
        return not self.unavailable_reasons and tuple(n for n, _ in self.component_digests) == _SORTED_NAMES

    @property
    def digest(self) -> str | None:
        """SHA-256 over schema and component digests; None when a component is unavailable."""
        if not self.usable:
            return None
        return digest_record({"schema": self.schema, "components": self.components})

    def to_record(self) -> dict[str, Any]:
        """The identity as plain data for a manifest.

        Raises:
            ValueError: the identity is not usable.
        """
        if not self.usable:
            raise ValueError(f"the toolchain identity is not available: {self.explain()}")
        return {"schema": self.schema, "components": self.components, "digest": self.digest}

    @classmethod
    def from_record(cls, record: object) -> ToolchainIdentity:
        """The identity that `to_record` wrote.

        Raises:
            ValueError: another schema, missing or unknown fields, malformed digests, or a digest that does not fit.
        """
        if type(record) is not dict or record.keys() != {"schema", "components", "digest"}:
            raise ValueError("an environment record has exactly the fields components, digest and schema")
        if type(record["schema"]) is not int or record["schema"] != IDENTITY_SCHEMA:
            raise ValueError(
                f"the environment record has identity schema {record['schema']!r}; this pypto reads {IDENTITY_SCHEMA}"
            )
        if type(record["components"]) is not dict:
            raise ValueError("the components of an environment record must be an object")
        identity = cls.of(record["components"])
        if record["digest"] != identity.digest:
            raise ValueError("the digest of the environment record does not fit its components")
        return identity

    def explain(self) -> str:
        """One line that names every unavailable component and why; empty for a usable identity."""
        return "; ".join(f"{name}: {reason}" for name, reason in self.unavailable_reasons)


_SORTED_NAMES = tuple(sorted(COMPONENT_NAMES))
