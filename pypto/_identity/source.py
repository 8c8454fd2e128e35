"""The two digests of a request: what the kernel says, and which variant of it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pypto._identity.records import digest_record

SOURCE_SCHEMA = 1
"""Version of the source record."""

SPECIALIZATION_SCHEMA = 1
"""Version of the specialization record."""


def source_digest(record: Mapping[str, Any]) -> str:
    """Digest of a source closure given as plain data; equal text and values, equal digest, wherever the files are.

    Raises:
        TypeError, ValueError: the record holds something that is no plain data (as `encode_record`).
    """
    return digest_record({"schema": SOURCE_SCHEMA, "source": dict(record)})


def specialization_digest(record: Mapping[str, Any]) -> str:
    """Digest of one variant of a kernel (shapes, dtypes, options), given as plain data.

    Raises:
        TypeError, ValueError: the record holds something that is no plain data (as `encode_record`).
    """
    return digest_record({"schema": SPECIALIZATION_SCHEMA, "specialization": dict(record)})
