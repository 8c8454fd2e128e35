"""Typed records: one byte string per value, and canonical JSON for what people read.

`encode_record` is what digests are taken of. Every value carries its type, so `1`, `1.0`, `True` and `"1"` never meet;
every variable-length part carries its length, so no two values share an encoding. `canonical_json` is for manifests and
other files: a narrower set of values and exactly one spelling.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections import Counter
from typing import Any

RECORD_VERSION = 1
"""Version of the record encoding. A change to the encoding raises it, which changes every digest."""

_MAGIC = b"pypto-record:"
_MAX_DEPTH = 200
_DIGEST = re.compile(r"[0-9a-f]{64}")


def encode_record(value: object) -> bytes:
    """Encode a plain value with its types; equal bytes mean equal values of equal types.

    Supported, by exact type: None, bool, int, float (its IEEE-754 bits), str (its code points, lone surrogates
    included), bytes, list, tuple and dict with str keys (in any insertion order).

    Raises:
        TypeError: an unsupported type (subclasses included) or a key that is no str.
        ValueError: a container that contains itself, or nesting deeper than 200 levels.
    """
    out = [_MAGIC, b"%d\n" % RECORD_VERSION]
    _encode(value, out, ())
    return b"".join(out)


def digest_record(value: object) -> str:
    """SHA-256 of `encode_record(value)` as 64 lower-case hexadecimal digits; raises as `encode_record` does."""
    return hashlib.sha256(encode_record(value)).hexdigest()


def is_digest(value: object) -> bool:
    """Whether `value` is a complete digest: a str of exactly 64 lower-case hexadecimal digits."""
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def _encode(value: Any, out: list[bytes], parents: tuple[int, ...]) -> None:
    kind = type(value)
    if value is None:
        out.append(b"N")
    elif kind is bool:
        out.append(b"T" if value else b"F")
    elif kind is int:
        out.append(b"i%s;" % format(value, "x").encode("ascii"))
    elif kind is float:
        out.append(b"f" + struct.pack(">d", value))
    elif kind is str:
        out.append(_encode_str(value))
    elif kind is bytes:
        out.append(b"b%d:" % len(value) + value)
    elif kind is list or kind is tuple:
        parents = _enter(value, parents)
        out.append((b"l%d:" if kind is list else b"t%d:") % len(value))
        for item in value:
            _encode(item, out, parents)
    elif kind is dict:
        parents = _enter(value, parents)
        for key in value:
            if type(key) is not str:
                raise TypeError(f"a record's dictionary keys must be str, not {type(key).__name__}")
        out.append(b"d%d:" % len(value))
        for key in sorted(value):
            out.append(_encode_str(key))
            _encode(value[key], out, parents)
    else:
        raise TypeError(
            f"a record cannot hold a value of type {kind.__module__}.{kind.__qualname__}; convert it explicitly to "
            "None, bool, int, float, str, bytes, list, tuple or dict"
        )


def _encode_str(value: str) -> bytes:
    # surrogatepass keeps a surrogate pair (two code points) apart from the character that JSON would merge it to.
    data = value.encode("utf-8", "surrogatepass")
    return b"s%d:" % len(data) + data


def _enter(value: object, parents: tuple[int, ...]) -> tuple[int, ...]:
    if id(value) in parents:
        raise ValueError(f"a record must not contain itself: a {type(value).__name__} refers back to itself")
    if len(parents) >= _MAX_DEPTH:
        raise ValueError(f"a record must not be nested deeper than {_MAX_DEPTH} levels")
    return (*parents, id(value))


def canonical_json(value: object) -> bytes:
    """The one JSON spelling of a plain value: UTF-8, keys sorted by code point, no spaces, no final newline.

    Holds None, bool, int, str, lists, tuples (as arrays) and dicts with str keys.

    Raises:
        TypeError: any other type; floats too, whose text has many spellings.
        ValueError: a string with surrogates, a container that contains itself, or too deep nesting.
    """
    _check_json(value, ())
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return text.encode("utf-8")


def parse_canonical_json(data: bytes, what: str) -> Any:
    """The value of canonical JSON; `what` names the document in errors.

    Raises:
        ValueError: no JSON, a repeated field, or any spelling but the canonical one.
    """
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=_unique_fields)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{what} is not valid JSON: {error}") from None
    try:
        canonical = canonical_json(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} is not canonical JSON: {error}") from None
    if canonical != data:
        raise ValueError(f"{what} is not in its canonical JSON spelling (sorted fields, no spaces, UTF-8)")
    return value


def _unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        repeated = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"the field {repeated!r} stands twice")
    return fields


def _check_json(value: Any, parents: tuple[int, ...]) -> None:
    kind = type(value)
    if value is None or kind is bool or kind is int:
        return
    if kind is str:
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError("canonical JSON cannot hold a string with lone surrogates") from None
    elif kind is list or kind is tuple:
        parents = _enter(value, parents)
        for item in value:
            _check_json(item, parents)
    elif kind is dict:
        parents = _enter(value, parents)
        for key, item in value.items():
            if type(key) is not str:
                raise TypeError(f"canonical JSON needs str keys, not {type(key).__name__}")
            _check_json(key, ())
            _check_json(item, parents)
    else:
        raise TypeError(f"canonical JSON cannot hold a value of type {kind.__module__}.{kind.__qualname__}")
