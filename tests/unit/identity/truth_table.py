"""The frame of the truth table: from the records behind one key, every record in which exactly one value is another.

Both worlds use it: give `check` an identity in which every field of the world's schema stands.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from pypto._identity.explain import Difference, IdentityParts, explain
from pypto._identity.identity import COMPONENT_NAMES, ToolchainIdentity
from pypto._identity.records import digest_record, is_digest
from pypto._identity.schema import SETTINGS_FIELDS, SOURCE, SPECIALIZATION, Field
from pypto._identity.source import source_digest, specialization_digest
from pypto.jit.artifact_cache.key import ArtifactKey

UNKNOWN_FIELD = "a field that this pypto does not know"


@dataclass(frozen=True)
class Row:
    """One changed value: where it stands in the part's raw record, and the record with the change.

    kind: `value` (a leaf), `name` (a name by which the record is read), `less` (an item or field left out) or `order`.
    """

    part: str
    path: tuple[str | int, ...]
    kind: str
    record: Any
    names: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.part}: {'.'.join(map(str, self.path))} ({self.kind})"


def part_digest(part: str, record: Any) -> str:
    """The digest of a part's record, as the product takes it."""
    if part == SPECIALIZATION:
        return specialization_digest(record)
    if part == SOURCE:
        closure = source_digest({"functions": record["functions"]})
        more = {name: value for name, value in record.items() if name != "functions"}
        return digest_record({"schema": 1, "source": closure, **more}) if more else closure
    return digest_record(record)


def key_of(parts: IdentityParts) -> str:
    """The key of an identity."""
    environment = ToolchainIdentity.of({name: parts.digests[name] for name in COMPONENT_NAMES})
    return ArtifactKey(environment, parts.digests[SOURCE], parts.digests[SPECIALIZATION]).digest


def rows(parts: IdentityParts) -> Iterator[Row]:
    """Every single change of every record."""
    for part, record in parts.records.items():
        for path, value in _places(record, ()):
            if isinstance(value, dict):
                for name in value:
                    if not _mandatory(part, (*path, name)):
                        changed, at = _copy(record, path)
                        del at[name]
                        yield Row(part, (*path, name), "less", changed)
            elif isinstance(value, list):
                if len(value) > 1 and value[::-1] != value and not _is_pair(path):
                    changed, at = _copy(record, path)
                    at.reverse()
                    yield Row(part, path, "order", changed)
            else:
                changed, at = _copy(record, path[:-1])
                at[path[-1]] = _other(value)
                yield Row(part, path, *_kind(path, value, at[path[-1]], changed))


def apply(parts: IdentityParts, row: Row) -> IdentityParts:
    """The identity with the change of a row."""
    return replace(
        parts,
        digests={**parts.digests, row.part: part_digest(row.part, row.record)},
        records={**parts.records, row.part: row.record},
    )


def check(parts: IdentityParts, fields: Iterable[Field]) -> int:
    """Check every row; every field of the schema must have been changed. Returns the number of rows."""
    for part, record in parts.records.items():
        assert parts.digests[part] == part_digest(part, record), f"the digest of {part} is not that of its record"
    wanted, met, count = set(fields), set(), 0
    key = key_of(parts)
    for row in rows(parts):
        changed = apply(parts, row)
        assert key_of(changed) != key, f"{row}: the key did not change"
        found = explain(parts, changed)
        assert found, f"{row}: not explained"
        assert not [d.name for d in found if d.meaning == UNKNOWN_FIELD], f"{row}: the schema lacks {found[0].name}"
        if row.kind == "value":
            assert len(found) == 1, f"{row}: {[d.name for d in found]}"
            assert _ends_at(found[0], parts, row), f"{row}: named {found[0].name}"
        elif row.kind == "name":
            assert all(row.names & set(d.path) or d.path[-1] == "order" for d in found), f"{row}"
        back = explain(changed, parts)
        assert [(d.name, d.after, d.before) for d in back] == [(d.name, d.before, d.after) for d in found], f"{row}"
        met |= {f for d in found for f in wanted if f.matches(d.part, d.path)}
        count += 1
    assert {f"{f.part}.{f.path}" for f in wanted - met} == set(), "fields that occur in no record"
    return count


def _places(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if path:
        yield path, value
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _places(item, (*path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _places(item, (*path, index))


def _copy(record: Any, path: tuple[str | int, ...]) -> tuple[Any, Any]:
    changed = copy.deepcopy(record)
    at = changed
    for step in path:
        at = at[step]
    return changed, at


def _other(value: Any) -> Any:
    """Another value of the same type; an unknown type has no mutator and fails the table."""
    if value is None:
        return "other"
    if type(value) is bool:
        return not value
    if type(value) is int:
        return value + 1
    if type(value) is str:
        return f"{int(value[0] != '1')}{value[1:]}" if is_digest(value) else f"{value}x"
    raise AssertionError(f"no mutator for {type(value).__name__}")


def _kind(path: tuple[str | int, ...], old: Any, new: Any, record: Any) -> tuple[str, Any, frozenset[str]]:
    steps = [step for step in path if isinstance(step, str)]
    named = steps in (["functions", "name"], ["parameters", "name"]) or (
        steps == ["functions", "values"] and len(path) == 5 and path[-1] == 0
    )
    return ("name", record, frozenset({old, new})) if named else ("value", record, frozenset())


def _is_pair(path: tuple[str | int, ...]) -> bool:
    """A name with its value: not a sequence."""
    return len(path) == 4 and path[2] == "values"


def _mandatory(part: str, path: tuple[str | int, ...]) -> bool:
    """Fields without which a record has no reader's form."""
    steps = [step for step in path if isinstance(step, str)]
    return steps in (["functions", "name"], ["functions", "values"], ["parameters", "name"])


def _ends_at(difference: Difference, parts: IdentityParts, row: Row) -> bool:
    """Whether a difference names the field that holds the place of a row."""
    part, steps = row.part, list(map(str, row.path))
    if part in COMPONENT_NAMES:
        if steps[0] in {field.path for field in SETTINGS_FIELDS}:
            part = "settings"
        elif steps[0] == "evidence":
            del steps[0]
        elif steps[0] == "content":
            steps = ["roots"]
    elif steps[0] in ("functions", "parameters"):
        item = parts.records[part][steps[0]][row.path[1]]
        steps[1] = item["name"]
        if steps[2] == "values":
            steps[3:5] = [item["values"][row.path[3]][0]]
    return difference.part == part and bool(difference.path) and difference.path == tuple(steps[: len(difference.path)])
