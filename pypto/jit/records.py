"""What keys were made from, kept beside the store's entries so that `explain` can name fields and not only digests.

One file per record, named by its digest, written when an artifact is published and never changed. Nothing that looks an
artifact up reads them: a root without records answers every request as before.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto._identity.records import canonical_json, parse_canonical_json

if TYPE_CHECKING:
    from pypto._identity.explain import IdentityParts
    from pypto.jit.artifact_cache.key import ArtifactKey

RECORDS = "records"
"""Folder of the cache root."""

_LIMIT = 1 << 26


def keep_records(root: Path, parts: IdentityParts) -> None:
    """Write the records that are not there yet. Best effort: without them a difference is named by its digests."""
    with contextlib.suppress(OSError):
        folder = root / RECORDS
        folder.mkdir(exist_ok=True)
        named = {parts.digests[part]: record for part, record in parts.records.items()}
        for digest, record in {**named, **parts.contents}.items():
            target = folder / f"{digest}.json"
            data = _encoded(record)
            if data is not None and not target.exists():
                _write(target, data)


def key_parts(key: ArtifactKey) -> IdentityParts:
    """The digests that a key is made of, without any record behind them."""
    from pypto._identity.explain import IdentityParts
    from pypto._identity.schema import SOURCE, SPECIALIZATION

    own = {SOURCE: key.source_digest, SPECIALIZATION: key.specialization_digest}
    return IdentityParts({**key.environment.components, **own}, {})


def stored_parts(root: Path, key: ArtifactKey) -> IdentityParts:
    """What a stored key was made from, as far as its records are there."""
    from pypto._identity.explain import IdentityParts, content_digests

    digests = key_parts(key).digests
    found = {part: _read(root, digest) for part, digest in digests.items()}
    records = {part: record for part, record in found.items() if record is not None}
    contents = {digest: _read(root, digest) for digest in content_digests(records.values())}
    return IdentityParts(digests, records, {digest: files for digest, files in contents.items() if files is not None})


def record_names(root: Path, keys: Collection[ArtifactKey]) -> set[str]:
    """Digests of all records that stored keys were made from."""
    from pypto._identity.explain import content_digests

    names = {digest for key in keys for digest in key_parts(key).digests.values()}
    components = {digest for key in keys for digest in key.environment.components.values()}
    return names | content_digests(_read(root, digest) for digest in components)


def as_stored(parts: IdentityParts) -> IdentityParts:
    """The parts with their records as they would be read back, so that they compare with stored ones."""
    from pypto._identity.explain import IdentityParts

    encoded = {part: _encoded(record) for part, record in parts.records.items()}
    records = {part: json.loads(data) for part, data in encoded.items() if data is not None}
    return IdentityParts(parts.digests, records, parts.contents)


def _encoded(record: Any) -> bytes | None:
    try:
        return canonical_json(record)
    except (TypeError, ValueError):
        return None


def _read(root: Path, digest: str) -> Any:
    path = root / RECORDS / f"{digest}.json"
    try:
        if path.is_symlink() or path.stat().st_size > _LIMIT:
            return None
        return parse_canonical_json(path.read_bytes(), str(path))
    except (OSError, ValueError):
        return None


def _write(target: Path, data: bytes) -> None:
    staging = target.with_name(f".tmp.{os.urandom(8).hex()}")
    try:
        staging.write_bytes(data)
        os.replace(staging, target)
    except BaseException:
        with contextlib.suppress(OSError):
            staging.unlink()
        raise
