"""``stat`` and ``verify``: what a cache root holds, and whether its bytes are those of its manifests."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pypto.jit.artifact_cache.store import ArtifactStore, LookupStatus
from pypto.jit.cli.entries import Contents, StoredEntry, existing_root, read_root
from pypto.jit.cli.output import Progress, age_text, counted, print_json, print_table, size_text


def stat(root: Path, *, entries: bool, as_json: bool) -> int:
    """Print what a root holds, from its manifests alone; returns the exit status, 0 whatever they say."""
    contents = read_root(root)
    if as_json:
        print_json(_summary(contents, entries))
        return 0
    total = sum(entry.size for entry in contents.entries)
    entry_count = counted(len(contents.entries), "entry", "entries")
    print(f"{root}: {entry_count} of {counted(_keys(contents.entries), 'key', 'keys')}, {size_text(total)}")
    if not root.exists():
        print("there is no such directory yet")
    if contents.entries:
        print()
        rows = []
        for environment, found in _by_environment(contents.entries).items():
            ready = sum(entry.state == "ready" for entry in found)
            size = size_text(sum(entry.size for entry in found))
            rows.append((environment[:16], str(_keys(found)), str(len(found) - ready), str(ready), size))
        print_table(("ENVIRONMENT", "KEYS", "GENERATED", "READY", "SIZE"), rows)
    if entries and contents.entries:
        print()
        now = time.time()
        print_table(
            ("KEY", "STATE", "FILES", "SIZE", "AGE"),
            [
                (e.key[:16], e.state, str(_files(e)), size_text(e.size), age_text(now - e.published))
                for e in contents.entries
            ],
        )
    for text in _remarks(contents):
        print(text)
    return 0


def verify(root: Path, *, as_json: bool) -> int:
    """Read and hash every byte of a root; returns the exit status: 1 if an entry is invalid.

    Raises:
        CommandError: there is no such root, or it cannot be read.
    """
    contents = existing_root(root)
    store = ArtifactStore(root, readonly=True)
    invalid: list[dict[str, str]] = []
    progress = Progress(len(contents.entries), lines=False)
    for entry in contents.entries:
        with progress.step(f"{entry.state} {entry.key[:16]}"):
            problem = _problem(store, entry)
        if problem is not None:
            invalid.append({"path": entry.path, "reason": problem})
    valid = len(contents.entries) - len(invalid)
    invalid += [{"path": path, "reason": reason} for path, reason in contents.problems if path in contents.blocked]
    if as_json:
        document = {"schema_version": 1, "root": str(root), "valid": valid, "invalid": invalid}
        print_json({**document, "leftovers": list(contents.leftovers), "strange": list(contents.strange)})
    else:
        print(f"{root}: {valid} of {counted(len(contents.entries), 'entry', 'entries')} valid")
        for item in invalid:
            print(f"invalid: {item['path']}: {item['reason']}")
        for text in _remarks(contents, invalid=False):
            print(text)
        if invalid:
            print(f"stop all processes that use the cache, then: python -m pypto.jit prune --root {root} --invalid")
    return 1 if invalid else 0


def invalid_entries(root: Path, entries: Iterable[StoredEntry]) -> list[StoredEntry]:
    """Those entries whose manifest or bytes are wrong."""
    store = ArtifactStore(root, readonly=True)
    return [entry for entry in entries if _problem(store, entry) is not None]


def _problem(store: ArtifactStore, entry: StoredEntry) -> str | None:
    if entry.manifest is None:
        return entry.problem
    found = store.lookup(entry.manifest.key, entry.manifest.spec)
    return None if found.status is LookupStatus.HIT else (found.reason or found.status.value)


def _summary(contents: Contents, entries: bool) -> dict[str, Any]:
    states = {}
    for state in ("generated", "ready"):
        sizes = [entry.size for entry in contents.entries if entry.state == state]
        states[state] = {"entries": len(sizes), "bytes": sum(sizes)}
    document: dict[str, Any] = {
        "schema_version": 1,
        "root": str(contents.root),
        "entries": len(contents.entries),
        "keys": _keys(contents.entries),
        "bytes": sum(entry.size for entry in contents.entries),
        "states": states,
        "environments": {
            digest: {"entries": len(found), "keys": _keys(found), "bytes": sum(entry.size for entry in found)}
            for digest, found in _by_environment(contents.entries).items()
        },
        "invalid": [{"path": path, "reason": reason} for path, reason in contents.problems],
        "leftovers": list(contents.leftovers),
        "strange": list(contents.strange),
        "locks": len(contents.locks),
    }
    if entries:
        document["listed"] = [
            {
                "environment": e.environment,
                "key": e.key,
                "state": e.state,
                "path": e.path,
                "files": _files(e),
                "bytes": e.size,
                "published": e.published,
            }
            for e in contents.entries
        ]
    return document


def _remarks(contents: Contents, *, invalid: bool = True) -> Iterable[str]:
    if invalid:
        for path, reason in contents.problems:
            yield f"invalid: {path}: {reason}"
    for path in contents.leftovers:
        yield f"left over by a process that died: {path}"
    for path in contents.strange:
        yield f"not part of a cache: {path}"


def _by_environment(entries: Iterable[StoredEntry]) -> dict[str, list[StoredEntry]]:
    found: dict[str, list[StoredEntry]] = {}
    for entry in entries:
        found.setdefault(entry.environment, []).append(entry)
    return found


def _keys(entries: Iterable[StoredEntry]) -> int:
    return len({entry.key for entry in entries})


def _files(entry: StoredEntry) -> int:
    return 0 if entry.manifest is None else len(entry.manifest.files)
