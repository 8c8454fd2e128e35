"""What an artifact is made from, as digests: typed records, content roots, component identities.

Internal: nothing here is public API, and nothing here imports the compiler. Names resolve lazily, so that reading a
record loads no more than the record encoder.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypto._identity.content import ContentRoot, Fingerprint, fingerprint_content, fingerprint_extra_sources
    from pypto._identity.hermetic import hermetic_identity
    from pypto._identity.identity import IDENTITY_SCHEMA, ToolchainIdentity
    from pypto._identity.installation import InstallationIdentityCache
    from pypto._identity.policy import IdentitySettings
    from pypto._identity.records import canonical_json, digest_record, encode_record, parse_canonical_json
    from pypto._identity.source import source_digest, specialization_digest
    from pypto._identity.toolchain_inputs import ComponentInputs, ToolchainInputs

_MODULES = {
    "canonical_json": "records",
    "digest_record": "records",
    "encode_record": "records",
    "parse_canonical_json": "records",
    "ContentRoot": "content",
    "Fingerprint": "content",
    "fingerprint_content": "content",
    "fingerprint_extra_sources": "content",
    "IDENTITY_SCHEMA": "identity",
    "ToolchainIdentity": "identity",
    "ComponentInputs": "toolchain_inputs",
    "ToolchainInputs": "toolchain_inputs",
    "IdentitySettings": "policy",
    "InstallationIdentityCache": "installation",
    "hermetic_identity": "hermetic",
    "source_digest": "source",
    "specialization_digest": "source",
}

__all__ = [
    "IDENTITY_SCHEMA",
    "ComponentInputs",
    "ContentRoot",
    "Fingerprint",
    "IdentitySettings",
    "InstallationIdentityCache",
    "ToolchainIdentity",
    "ToolchainInputs",
    "canonical_json",
    "digest_record",
    "encode_record",
    "fingerprint_content",
    "fingerprint_extra_sources",
    "hermetic_identity",
    "parse_canonical_json",
    "source_digest",
    "specialization_digest",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)
