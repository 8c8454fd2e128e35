"""Which entries of a store answer a key: found alike by requests and by `explain`."""

from __future__ import annotations

from pypto._identity.records import parse_canonical_json
from pypto.build.layout import CONFIG, chips_of, is_generated
from pypto.build.specs import GENERATED_SPEC, stated_ready_spec
from pypto.jit.artifact_cache.discovery import find_generated, find_ready, read_in_entry
from pypto.jit.artifact_cache.handle import ArtifactHandle, entry_parts
from pypto.jit.artifact_cache.key import ArtifactKey
from pypto.jit.artifact_cache.spec import ArtifactSpec
from pypto.jit.artifact_cache.store import ArtifactStore, LookupResult, LookupStatus

_HINT_LIMIT = 1 << 24


class StoredEntries:
    """The entries of one key, READY first; ask for `ready` before `generated`.

    The configuration of the GENERATED entry tells which READY entry belongs to it; it is a hint only, and not
    validated. Without a usable one, the READY entries of the key are searched, up to a limit.

    Args:
        load: whether handles carry the bytes that were validated.
        distributed: whether the key is of a distributed program, whose number of chips and so its spec is not known.

    Attributes:
        refused: what was found and could not be used, in order, with the reasons.
    """

    def __init__(self, store: ArtifactStore, key: ArtifactKey, *, load: bool, distributed: bool = False) -> None:
        self.refused: list[LookupResult] = []
        self._store = store
        self._key = key
        self._load = load
        self._distributed = distributed
        self._generated: ArtifactHandle | None = None
        self._looked = False

    def ready(self) -> ArtifactHandle | None:
        """The READY entry, validated completely."""
        spec = self._hinted()
        if spec is not None:
            found = self._usable(self._store.lookup(self._key, spec, load=self._load))
            if found is not None or self.generated() is not None:
                return found
        return self._usable(find_ready(self._store, self._key, load=self._load, stated=stated_ready_spec))

    def generated(self) -> ArtifactHandle | None:
        """The GENERATED entry, validated, and complete by its own configuration."""
        if not self._looked:
            self._looked = True
            handle = self._usable(self._find_generated())
            self._generated = handle if handle is not None and _is_complete(handle) else None
        return self._generated

    def _find_generated(self) -> LookupResult:
        if self._distributed:
            return find_generated(self._store, self._key, load=self._load)
        return self._store.lookup(self._key, GENERATED_SPEC, load=self._load)

    def _hinted(self) -> ArtifactSpec | None:
        if self._distributed:
            return None
        try:
            return stated_ready_spec(read_in_entry(self._store, entry_parts(self._key, GENERATED_SPEC), _HINT_LIMIT))
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None

    def _usable(self, found: LookupResult) -> ArtifactHandle | None:
        if found.handle is None and (found.status is not LookupStatus.MISS or found.reason is not None):
            self.refused.append(found)
        return found.handle


def _is_complete(generated: ArtifactHandle) -> bool:
    """Whether every file that the configuration names is there, and nothing that only a READY entry has."""
    try:
        config = parse_canonical_json(generated.read(CONFIG), CONFIG)
        chips = {c: parse_canonical_json(generated.read(f"{c}/{CONFIG}"), CONFIG) for c in chips_of(config)}
        return is_generated(config, chips, {record.path for record in generated.files()})
    except (ValueError, TypeError, KeyError, AttributeError):
        return False
