"""Why two keys differ: every differing field of what they were made from, the most important first."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pypto._identity.host.schema import HOST_FIELDS
from pypto._identity.identity import COMPONENT_NAMES, ToolchainIdentity
from pypto._identity.package import package_record
from pypto._identity.records import encode_record, is_digest
from pypto._identity.schema import (
    EVIDENCE,
    FRAME_FIELDS,
    HERMETIC_FIELDS,
    PARTS,
    REQUEST_FIELDS,
    SETTINGS,
    SETTINGS_FIELDS,
    SOURCE,
    SPECIALIZATION,
    Field,
    view,
)

_SHOWN = 100
_FILES = 10

CONTENT = "content"
"""The field of a record that holds the digest of a list of files."""


class _Absent:
    """What a field has where it does not stand."""

    def __repr__(self) -> str:
        return "absent"


ABSENT = _Absent()


@dataclass(frozen=True)
class IdentityParts:
    """What a key is made from, as far as it is known.

    Attributes:
        digests: digest of each part: the five components, `source` and `specialization`.
        records: by part, what its digest was taken of; a part without record is compared by its digest.
        contents: by the digest that stands in a record as `content`, the list of files that it was taken of.
    """

    digests: Mapping[str, str]
    records: Mapping[str, Any] = field(default_factory=dict)
    contents: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if set(self.digests) != set(PARTS):
            raise ValueError(f"an identity has the parts {', '.join(PARTS)}, got {', '.join(sorted(self.digests))}")

    @classmethod
    def of(
        cls,
        environment: ToolchainIdentity,
        source_digest: str,
        specialization_digest: str,
        *,
        source: Mapping[str, Any] | None = None,
        specialization: Mapping[str, Any] | None = None,
    ) -> IdentityParts:
        """The parts of a key, and the records and lists of files that are at hand.

        Raises:
            ValueError: the environment is not usable.
        """
        requested = {SOURCE: source, SPECIALIZATION: specialization}
        records = {**environment.records, **{part: found for part, found in requested.items() if found is not None}}
        lists = {digest: package_record(digest) for digest in content_digests(records.values())}
        return cls(
            {**environment.components, SOURCE: source_digest, SPECIALIZATION: specialization_digest},
            records,
            {digest: files for digest, files in lists.items() if files is not None},
        )


def content_digests(records: Iterable[Any]) -> set[str]:
    """The digests of lists of files that stand in the records of components."""
    found = (record.get(EVIDENCE) for record in records if isinstance(record, dict))
    return {e[CONTENT] for e in found if isinstance(e, dict) and is_digest(e.get(CONTENT))}


@dataclass(frozen=True)
class Difference:
    """One field in which two identities differ.

    Attributes:
        part: a component's name, `source`, `specialization` or `settings`.
        path: where the field stands in the part; empty when only the part's digests are known.
        before, after: its values, or `ABSENT`.
        meaning: what the field is, in a few words.
    """

    part: str
    path: tuple[str, ...]
    before: Any
    after: Any
    meaning: str

    @property
    def name(self) -> str:
        """Part and field, joined with dots."""
        return ".".join((self.part, *self.path))

    def __str__(self) -> str:
        before, after = _shown(self.before, self.after)
        return f"{self.name}: {before} -> {after} ({self.meaning})"


def explain(before: IdentityParts, after: IdentityParts) -> tuple[Difference, ...]:
    """Every field in which two identities differ, the most important first; empty for equal ones.

    A setting that changed in all components is named once. A part whose digests differ is always named, if need be by
    its digests alone.
    """
    found: list[Difference] = []
    for part in PARTS:
        if before.digests[part] != after.digests[part]:
            found += _part_differences(part, before, after)
    return tuple(sorted(_merged(found), key=_importance))


def nearest(wanted: IdentityParts, stored: Iterable[IdentityParts]) -> IdentityParts | None:
    """The stored identity that shares most parts with the wanted one, the rarely changing parts first; None of none."""

    def closeness(candidate: IdentityParts) -> tuple[int, list[bool], list[str]]:
        equal = [candidate.digests[part] == wanted.digests[part] for part in PARTS]
        # Among equally close ones any is right, but it must not depend on the order of a folder.
        return sum(equal), equal[::-1], [candidate.digests[part] for part in PARTS]

    return max(stored, key=closeness, default=None)


def _part_differences(part: str, before: IdentityParts, after: IdentityParts) -> list[Difference]:
    found: list[Difference] = []
    if part in before.records and part in after.records:
        one, other = view(part, before.records[part]), view(part, after.records[part])
        if part in COMPONENT_NAMES:
            for setting in SETTINGS_FIELDS:
                name = setting.path
                pair = one.pop(name, ABSENT), other.pop(name, ABSENT)
                if not _same(*pair):
                    found.append(Difference(f"{SETTINGS}/{part}", (name,), *pair, setting.meaning))
        for difference in _differences(part, (), one, other):
            found += _files(difference, before.contents, after.contents)
    if not found:
        found.append(Difference(part, (), before.digests[part], after.digests[part], "digest; its record is not known"))
    return found


def _files(difference: Difference, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """The files behind a difference of content, where both lists are known; of many, some names."""
    if difference.path != (CONTENT,) or difference.before not in before or difference.after not in after:
        return [difference]
    one, other = _file_table(before[difference.before]), _file_table(after[difference.after])
    names = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
    if len(names) > _FILES:
        some = ", ".join(names[:_FILES])
        return [replace(difference, meaning=f"{difference.meaning}; {len(names)} files differ, such as {some}")]
    return [
        Difference(
            difference.part,
            (CONTENT, name),
            one.get(name, ABSENT),
            other.get(name, ABSENT),
            f"SHA-256 of a file of the package; {difference.meaning}",
        )
        for name in names
    ] or [difference]  # a list of another form


def _file_table(record: Any) -> dict[str, str]:
    """SHA-256 by path; empty for a record of another form."""
    try:
        return {str(name): str(digest) for name, digest in record["files"]}
    except (TypeError, KeyError, ValueError):
        return {}


def _differences(part: str, path: tuple[str, ...], before: Any, after: Any) -> Iterator[Difference]:
    if _same(before, after):
        return
    known = _field(part, path)
    if known is None and isinstance(before, dict | _Absent) and isinstance(after, dict | _Absent):
        one, other = ({} if isinstance(side, _Absent) else side for side in (before, after))
        for name in dict.fromkeys((*one, *other)):
            yield from _differences(part, (*path, name), one.get(name, ABSENT), other.get(name, ABSENT))
        if one or other:
            return
    named = next((field for field in _fields() if field.holds(part, path)), None) if known is None else known[1]
    meaning = "a field that this pypto does not know" if named is None else named.meaning
    yield Difference(part, path, before, after, meaning)


def _merged(found: list[Difference]) -> Iterator[Difference]:
    """Settings by their own name: they stand in every component, and change in all of them at once."""
    seen: list[Difference] = []
    for difference in found:
        part, _, _ = difference.part.partition("/")
        if part != SETTINGS:
            yield difference
            continue
        merged = Difference(SETTINGS, difference.path, difference.before, difference.after, difference.meaning)
        if merged not in seen:
            seen.append(merged)
            yield merged


def _importance(difference: Difference) -> tuple[int, int, tuple[str, ...]]:
    known = _field(difference.part, difference.path[:1] if difference.path[:1] == (CONTENT,) else difference.path)
    order = (SETTINGS, *PARTS)
    return order.index(difference.part), len(_fields()) if known is None else known[0], difference.path


def _field(part: str, path: tuple[str, ...]) -> tuple[int, Field] | None:
    return next(((rank, known) for rank, known in enumerate(_fields()) if known.matches(part, path)), None)


@functools.cache
def _fields() -> tuple[Field, ...]:
    return (*SETTINGS_FIELDS, *REQUEST_FIELDS, *HERMETIC_FIELDS, *HOST_FIELDS, *FRAME_FIELDS)


def _same(before: Any, after: Any) -> bool:
    """Equal with their types: 1, 1.0 and True are three values."""
    if isinstance(before, _Absent) or isinstance(after, _Absent):
        return before is after
    return encode_record(before) == encode_record(after)


def _shown(before: Any, after: Any) -> tuple[str, str]:
    """Both values, short; of two texts of many lines the first line that differs."""
    if isinstance(before, str) and isinstance(after, str) and "\n" in before + after:
        one, other = before.split("\n"), after.split("\n")
        at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
        sides = (lines[at].strip() if at < len(lines) else None for lines in (one, other))
        first, second = ("no more lines" if side is None else _short(repr(side)) for side in sides)
        return f"line {at + 1}: {first}", second
    return _short(_text(before)), _short(_text(after))


def _text(value: Any) -> str:
    # Values of outside names are recorded with their type, floats by their bits.
    match value:
        case ["float", str(digits)]:
            return f"float {float.fromhex(digits)!r}"
        case [str(kind), str(text)]:
            return f"{kind} {text}"
    return repr(value)


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
