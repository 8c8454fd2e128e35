"""`bundle.json`: what a bundle holds, for what it was built, and the digest that names it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pypto._identity.identity import ToolchainIdentity
from pypto._identity.records import canonical_json, is_digest, parse_canonical_json
from pypto.jit.artifact_cache.key import ArtifactKey

BUNDLE_FILE = "bundle.json"
BUNDLE_SCHEMA = 1
"""Version of `bundle.json`."""

_TARGET_FIELDS: dict[str, type] = {"backend_type": str, "execution_mode": str, "runtime": str, "runtime_abi": int}
_SCHEMA_FIELDS: dict[str, type] = {"source": int, "specialization": int, "artifact": int}
_PARAMETER_FIELDS: dict[str, type] = {"name": str, "kind": str, "direction": str, "dtype": str}


@dataclass(frozen=True)
class Target:
    """What the binaries of a bundle run on."""

    backend_type: str
    execution_mode: str
    runtime: str
    runtime_abi: int

    def to_record(self) -> dict[str, Any]:
        """The target as plain data."""
        return {name: getattr(self, name) for name in _TARGET_FIELDS}


@dataclass(frozen=True)
class Schemas:
    """Versions of the records behind the keys of a bundle."""

    source: int
    specialization: int
    artifact: int

    def to_record(self) -> dict[str, Any]:
        """The versions as plain data."""
        return {name: getattr(self, name) for name in _SCHEMA_FIELDS}


@dataclass(frozen=True)
class Stage:
    """One stage of an entry: its spec digest and the SHA-256 of its manifest."""

    spec: str
    manifest: str


@dataclass(frozen=True)
class ParameterSummary:
    """One parameter of an entry; `shape` is empty for a scalar, and names its dynamic dimensions."""

    name: str
    kind: str
    direction: str
    dtype: str
    shape: tuple[int | str, ...]

    def __str__(self) -> str:
        dimensions = f"[{','.join(map(str, self.shape))}]" if self.kind == "tensor" else ""
        return f"{self.name}: {self.dtype}{dimensions}"

    def to_record(self) -> dict[str, Any]:
        """The parameter as in `kernel_config.json`."""
        record: dict[str, Any] = {name: getattr(self, name) for name in _PARAMETER_FIELDS}
        if self.kind == "tensor":
            record["shape"] = list(self.shape)
        return record


@dataclass(frozen=True)
class EntryDescription:
    """One specialization of one kernel."""

    name: str
    key: ArtifactKey
    generated: Stage
    ready: Stage
    params: tuple[ParameterSummary, ...]

    @property
    def signature(self) -> str:
        """Name and parameters, as a person reads them."""
        return f"{self.name}({', '.join(map(str, self.params))})"

    def to_record(self) -> dict[str, Any]:
        """The entry as plain data; the environment stands once, in the bundle."""
        return {
            "name": self.name,
            "key": self.key.digest,
            "source_digest": self.key.source_digest,
            "specialization_digest": self.key.specialization_digest,
            "generated": {"spec": self.generated.spec, "manifest": self.generated.manifest},
            "ready": {"spec": self.ready.spec, "manifest": self.ready.manifest},
            "params": [parameter.to_record() for parameter in self.params],
        }


@dataclass(frozen=True)
class BundleDescription:
    """The content of `bundle.json`; entries are sorted by name and key."""

    environment: ToolchainIdentity
    target: Target
    schemas: Schemas
    entries: tuple[EntryDescription, ...]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical record of everything else; it covers every file through the manifests' digests."""
        return hashlib.sha256(canonical_json(self._content())).hexdigest()

    def encode(self) -> bytes:
        """The bytes of `bundle.json`."""
        return canonical_json({**self._content(), "digest": self.digest})

    def _content(self) -> dict[str, Any]:
        return {
            "schema": BUNDLE_SCHEMA,
            "environment": self.environment.to_record(),
            "target": self.target.to_record(),
            "schemas": self.schemas.to_record(),
            "entries": [entry.to_record() for entry in self.entries],
        }

    @classmethod
    def decode(cls, data: bytes, what: str = BUNDLE_FILE) -> BundleDescription:
        """Read `bundle.json`; `what` names it in errors.

        Raises:
            UnknownBundleSchema: it is of another version.
            ValueError: not canonical, a field missing, unknown or malformed, or a digest that does not fit.
        """
        record = parse_canonical_json(data, what)
        if type(record) is dict and type(record.get("schema")) is int and record["schema"] != BUNDLE_SCHEMA:
            raise UnknownBundleSchema(
                f"{what} has bundle schema {record['schema']}; this pypto reads {BUNDLE_SCHEMA}: use the pypto that "
                "built it, or build it again"
            )
        try:
            return cls._from_record(record)
        except ValueError as error:
            raise ValueError(f"{what}: {error}") from None

    @classmethod
    def _from_record(cls, record: object) -> BundleDescription:
        top = _fields(
            record,
            "a bundle",
            {"schema": int, "environment": dict, "target": dict, "schemas": dict, "entries": list, "digest": str},
        )
        environment = ToolchainIdentity.from_record(top["environment"])
        target = Target(**_fields(top["target"], "target", _TARGET_FIELDS))
        schemas = Schemas(**_fields(top["schemas"], "schemas", _SCHEMA_FIELDS))
        entries = tuple(_entry(item, environment) for item in top["entries"])
        order = [(entry.name, entry.key.digest) for entry in entries]
        if order != sorted(order) or len({key for _, key in order}) != len(order):
            raise ValueError("the entries must be sorted by name and key, each key once")
        description = cls(environment, target, schemas, entries)
        if top["digest"] != description.digest:
            raise ValueError("the digest does not fit the content")
        return description


class UnknownBundleSchema(Exception):
    """`bundle.json` is of a version that this pypto does not read."""


def parameter_from_record(record: object) -> ParameterSummary:
    """One item of `params`, as `kernel_config.json` and `bundle.json` have it.

    Raises:
        ValueError: a field is missing, unknown or malformed.
    """
    tensor = isinstance(record, dict) and record.get("kind") == "tensor"
    fields = _fields(record, "a parameter", {**_PARAMETER_FIELDS, "shape": list} if tensor else _PARAMETER_FIELDS)
    shape = fields.get("shape", [])
    if not all(type(length) in (int, str) for length in shape):
        raise ValueError(f"the parameter {fields['name']!r} has a malformed shape")
    return ParameterSummary(fields["name"], fields["kind"], fields["direction"], fields["dtype"], tuple(shape))


def _entry(record: object, environment: ToolchainIdentity) -> EntryDescription:
    fields = _fields(
        record,
        "an entry",
        {
            "name": str,
            "key": str,
            "source_digest": str,
            "specialization_digest": str,
            "generated": dict,
            "ready": dict,
            "params": list,
        },
    )
    key = ArtifactKey(environment, fields["source_digest"], fields["specialization_digest"])
    if fields["key"] != key.digest:
        raise ValueError(f"the key of the entry {fields['name']!r} does not fit its digests")
    generated, ready = (_stage(fields[name], name) for name in ("generated", "ready"))
    params = tuple(parameter_from_record(item) for item in fields["params"])
    return EntryDescription(fields["name"], key, generated, ready, params)


def _stage(record: object, what: str) -> Stage:
    fields = _fields(record, what, {"spec": str, "manifest": str})
    for name, value in fields.items():
        if not is_digest(value):
            raise ValueError(f"{what}.{name} must be 64 lower-case hexadecimal digits, got {value!r}")
    return Stage(fields["spec"], fields["manifest"])


def _fields(record: object, what: str, kinds: Mapping[str, type]) -> dict[str, Any]:
    if not isinstance(record, dict) or record.keys() != kinds.keys():
        raise ValueError(f"{what} has exactly the fields {', '.join(sorted(kinds))}")
    for name, kind in kinds.items():
        if type(record[name]) is not kind:
            raise ValueError(f"{what}: the field {name!r} must be of type {kind.__name__}")
    return record
