"""``explain``: why a request hits or misses, field by field; or how two stored keys differ."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto._identity.explain import Difference, IdentityParts, nearest
from pypto._identity.explain import explain as differences
from pypto._identity.records import canonical_json
from pypto.jit.artifact_cache.key import ArtifactKey
from pypto.jit.artifact_cache.store import ArtifactStore
from pypto.jit.cli.entries import Contents, existing_root, read_root
from pypto.jit.cli.errors import CommandError
from pypto.jit.cli.output import counted, print_json
from pypto.jit.cli.warmup_file import WarmupRequest, load_warmup
from pypto.jit.flow import artifact_key, current_toolchain
from pypto.jit.lookup import StoredEntries
from pypto.jit.records import as_stored, key_parts, stored_parts
from pypto.jit.request import IdentityUnavailable
from pypto.jit.sealed import find_sealed


@dataclass(frozen=True)
class Explanation:
    """What would answer one request.

    Attributes:
        kernel: name of the kernel.
        variant: what it is compiled for.
        verdict: ``ready hit``, ``generated hit``, ``bundle hit``, ``miss``, ``bypass``, ``forced``, ``off``,
            or ``failed`` for a request that cannot be answered at all.
        key: digest of the request's key.
        nearest: digest of the stored key that shares most with it; for a miss.
        differences: every field in which the two differ.
        reason: of everything but a hit and a miss that has a nearest key.
    """

    kernel: str
    variant: str
    verdict: str
    key: str | None = None
    nearest: str | None = None
    differences: tuple[Difference, ...] = ()
    reason: str | None = None


class _Stored:
    """The keys that roots hold; each root is read once."""

    def __init__(self) -> None:
        self._roots: dict[Path, dict[str, ArtifactKey]] = {}

    def nearest(self, root: Path, wanted: IdentityParts, own: str) -> ArtifactKey | None:
        """The key of a root that shares most with what is wanted, but for the wanted key itself."""
        if root not in self._roots:
            self._roots[root] = _keys_of(read_root(root))
        others = [(key, key_parts(key)) for digest, key in self._roots[root].items() if digest != own]
        closest = nearest(wanted, (parts for _, parts in others))
        return next((key for key, parts in others if parts is closest), None)


def explain_requests(module: str, config: Path, *, as_json: bool) -> int:
    """Explain every request of a warmup file; returns the exit status: 1 if one would not hit."""
    from pypto.bundle.errors import BundleDamaged, BundleIncompatible
    from pypto.toolchain import ToolchainError

    found = []
    stored = _Stored()
    for wanted in load_warmup(module, config):
        try:
            found.append(_explain(wanted, stored))
        except (BundleDamaged, BundleIncompatible, ToolchainError) as error:
            variant = str(wanted.request.specialization)
            found.append(Explanation(wanted.kernel, variant, "failed", reason=str(error)))
    if as_json:
        print_json({"schema_version": 1, "requests": [_record(each) for each in found]})
    else:
        for each in found:
            _print(each)
    return 0 if all(each.verdict.endswith("hit") for each in found) else 1


def explain_keys(root: Path, before: str, after: str, *, as_json: bool) -> int:
    """Explain how two stored keys differ; returns the exit status: 1 if they do."""
    keys = _keys_of(existing_root(root))
    one, other = (_named(keys, prefix, root) for prefix in (before, after))
    found = differences(stored_parts(root, one), stored_parts(root, other))
    if as_json:
        fields = [_difference(each) for each in found]
        print_json({"schema_version": 1, "before": one.digest, "after": other.digest, "differences": fields})
    else:
        print(f"{one.digest[:16]} -> {other.digest[:16]}: {_count(len(found))}")
        _print_differences(found)
    return 1 if found else 0


def _explain(wanted: WarmupRequest, stored: _Stored) -> Explanation:
    request = wanted.request
    variant = str(request.specialization)
    if request.forced:
        forced = "diagnostics or an explicit output directory force a build"
        return Explanation(wanted.kernel, variant, "forced", reason=forced)
    sealed = find_sealed(request.bundles, request.source_digest, request.specialization_digest)
    if sealed is not None:
        bundle, entry = sealed
        return Explanation(
            wanted.kernel, variant, "bundle hit", entry.key.digest, reason=f"bundle {bundle.path}, {bundle.digest}"
        )
    if not request.policy.enabled:
        return Explanation(wanted.kernel, variant, "off", reason="the persistent cache is off for this request")
    try:
        key = artifact_key(request, current_toolchain())
        parts = as_stored(request.identity_parts(key.environment))
    except IdentityUnavailable as unavailable:
        return Explanation(wanted.kernel, variant, "bypass", reason=str(unavailable))
    root = request.policy.root
    verdict, reason = _look(root, key, request.distributed)
    if verdict != "miss":
        return Explanation(wanted.kernel, variant, verdict, key.digest)
    closest = stored.nearest(root, parts, key.digest)
    if closest is None:
        return Explanation(wanted.kernel, variant, verdict, key.digest, reason=reason or "the cache holds no other key")
    found = differences(stored_parts(root, closest), parts)
    return Explanation(wanted.kernel, variant, verdict, key.digest, closest.digest, found, reason)


def _look(root: Path, key: ArtifactKey, distributed: bool = False) -> tuple[str, str | None]:
    entries = StoredEntries(ArtifactStore(root, readonly=True), key, load=False, distributed=distributed)
    if entries.ready() is not None:
        return "ready hit", None
    if entries.generated() is not None:
        return "generated hit", None
    reasons = [refused.reason for refused in entries.refused if refused.reason]
    return "miss", reasons[-1] if reasons else None


def _keys_of(contents: Contents) -> dict[str, ArtifactKey]:
    found = (entry.manifest for entry in contents.entries)
    return {manifest.key.digest: manifest.key for manifest in found if manifest is not None}


def _named(keys: dict[str, ArtifactKey], prefix: str, root: Path) -> ArtifactKey:
    matching = [key for digest, key in keys.items() if digest.startswith(prefix)]
    if len(matching) == 1 and prefix:
        return matching[0]
    problem = "is the beginning of several keys" if matching else "is the beginning of no key"
    raise CommandError(f"{prefix!r} {problem} of {root}; `python -m pypto.jit stat --entries` lists them")


def _record(found: Explanation) -> dict[str, Any]:
    return {
        "kernel": found.kernel,
        "variant": found.variant,
        "verdict": found.verdict,
        "key": found.key,
        "nearest": found.nearest,
        "reason": found.reason,
        "differences": [_difference(each) for each in found.differences],
    }


def _difference(found: Difference) -> dict[str, Any]:
    return {
        "field": found.name,
        "before": _plain(found.before),
        "after": _plain(found.after),
        "meaning": found.meaning,
    }


def _plain(value: Any) -> Any:
    try:
        canonical_json(value)
    except (TypeError, ValueError):
        return None if repr(value) == "absent" else repr(value)
    return value


def _print(found: Explanation) -> None:
    print(f"{found.kernel}: {found.verdict.upper()}")
    print(f"  {found.variant}")
    if found.key is not None:
        print(f"  key     {found.key}")
    if found.reason is not None:
        print(f"  reason  {found.reason}")
    if found.nearest is not None:
        print(f"  nearest {found.nearest}, {_count(len(found.differences))}:")
        _print_differences(found.differences)


def _print_differences(found: Iterable[Difference]) -> None:
    for each in found:
        print(f"    {each}")


def _count(number: int) -> str:
    return counted(number, "field differs", "fields differ")
