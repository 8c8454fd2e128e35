"""Every system call of the store's operations fails, or is the last one of its process.

For each call of a traced run: SIGKILL in front of it (which is right behind the one before), each error of `ERRORS`,
each error from there on (a disk that stays full), and, for reading and writing, a call that does nothing but says that
it moved one byte. Afterwards another process must find a MISS or a complete HIT, the locks free, and the next request
served.
"""

from __future__ import annotations

import fcntl
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from artifact_samples import FILES, READY, Builder, sample_key
from tracing import Call, Outcome, calls_of, fail_option, fast_folder, mark, run_traced

from pypto.bundle import import_bundle, import_into_store
from pypto.jit.artifact_cache import ArtifactStore, BuildStatus, LookupStatus, locks
from pypto.jit.artifact_cache import store as store_module

KEY = sample_key()
ERRORS = ("ENOSPC", "EIO", "EDQUOT", "EROFS", "EACCES", "EMFILE", "EINTR")
MORE_ERRORS = {
    "flock": ("ENOLCK", "ENOSYS", "EOPNOTSUPP"),
    "renameat2": ("ENOSYS", "EINVAL", "EEXIST", "EXDEV", "EOPNOTSUPP"),
    "fsync": ("EINVAL",),
    "openat": ("ENOMEM", "ENFILE"),
}


@dataclass(frozen=True)
class Point:
    """One injection: how a call ends."""

    call: Call
    how: str
    persistent: bool = False

    def __str__(self) -> str:
        how = f"{self.how} and later" if self.persistent else self.how
        return f"{self.call.phase}: {how} at {self.call.name} {self.call.text}"


@dataclass
class Tally:
    """How many points were tried, with which outcomes, and what was wrong."""

    points: int = 0
    calls: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


class Scenario:
    """An operation on a folder, and what must hold after it was disturbed."""

    def prepare(self, folder: Path) -> None:
        """Make what the operation needs."""

    def act(self, folder: Path) -> dict[str, Any]:
        """The operation, in the traced child; marks its phases."""
        raise NotImplementedError

    def check(self, folder: Path, point: Point, outcome: Outcome) -> str:
        """A word for the outcome.

        Raises:
            AssertionError: something does not hold.
        """
        raise NotImplementedError


def _store(folder: Path) -> ArtifactStore:
    return ArtifactStore(folder / "root", private_root=folder / "private")


def _assert_locks_free(folder: Path) -> None:
    for file in (folder / "root/locks").glob("*.lock"):
        with file.open() as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _with_mark(function: Callable[..., Any], phase: str, after: str | None = None) -> Callable[..., Any]:
    def marking(*arguments: Any, **options: Any) -> Any:
        mark(phase)
        try:
            return function(*arguments, **options)
        finally:
            if after is not None:
                mark(after)

    return marking


class Publish(Scenario):
    """`get_or_build` of an artifact that the store does not have."""

    def act(self, folder: Path) -> dict[str, Any]:
        # In a forked child: nobody else sees these replacements.
        ArtifactStore.lookup = _with_mark(ArtifactStore.lookup, "lookup")  # type: ignore[method-assign]
        ArtifactStore._build = _with_mark(ArtifactStore._build, "build")  # type: ignore[method-assign]
        locks._take = _with_mark(locks._take, "lock")
        store_module.publish = _with_mark(store_module.publish, "publish", "release")
        result = _store(folder).get_or_build(KEY, READY, Builder())
        return {
            "status": result.status.value,
            "failure": result.failure and result.failure.value,
            "reason": result.reason,
            "value": result.value,
            "private": str(result.private_directory),
        }

    def check(self, folder: Path, point: Point, outcome: Outcome) -> str:
        found = _store(folder).lookup(KEY, READY, load=True)
        assert found.status in (LookupStatus.MISS, LookupStatus.HIT), found
        if found.handle is not None:
            assert found.handle.payload == FILES
        report = outcome.report
        word = "killed" if report is None else self._check_report(folder, point, report, found.status)
        _assert_locks_free(folder)
        again = _store(folder).get_or_build(KEY, READY, Builder())
        assert again.status is (BuildStatus.HIT if found.handle is not None else BuildStatus.PUBLISHED), again
        return f"{word}, then {found.status.value}"

    def _check_report(self, folder: Path, point: Point, report: dict[str, Any], found: LookupStatus) -> str:
        phase = point.call.phase
        if "raised" in report:
            # Only the private directory's own errors, and output that reads differently than it was written.
            assert "OSError" in report["raised"] or (
                "retval" in point.how and "BuildOutputError" in report["raised"]
            ), report
            assert phase == "build" or point.persistent, report
            return "raised"
        assert report["value"] == {"call": 1}
        assert _files_in(Path(report["private"])) == FILES
        failure = report["failure"]
        if report["status"] == "published":
            assert failure is None and found is LookupStatus.HIT
        else:
            assert report["status"] == "private" and report["reason"]
            allowed = {"lock": {"lock"}, "lookup": {"storage"}, "publish": {"publication"}}.get(phase, set())
            assert failure in allowed or (point.persistent and failure in ("lock", "storage", "publication")), report
        if not point.persistent:
            assert not list((folder / "root").rglob(".tmp.*")), "staging was left"
        return f"{report['status']} {failure or ''}".strip()


class Hit(Scenario):
    """`lookup` of an artifact that the store has."""

    def prepare(self, folder: Path) -> None:
        assert _store(folder).get_or_build(KEY, READY, Builder()).status is BuildStatus.PUBLISHED

    def act(self, folder: Path) -> dict[str, Any]:
        mark("lookup")
        found = _store(folder).lookup(KEY, READY, load=True)
        payload = found.handle and {path: data.hex() for path, data in (found.handle.payload or {}).items()}
        return {"status": found.status.value, "reason": found.reason, "payload": payload}

    def check(self, folder: Path, point: Point, outcome: Outcome) -> str:
        assert _store(folder).lookup(KEY, READY).status is LookupStatus.HIT
        report = outcome.report
        if report is None:
            return "killed"
        if report.get("status") == "hit":
            assert report["payload"] == {path: data.hex() for path, data in FILES.items()}
        else:
            assert report.get("status") == "storage_error" or "retval" in point.how, report
            assert report["reason"] and not report["payload"]
        return str(report["status"])


class Materialize(Hit):
    """Copying a validated entry into a private directory."""

    def act(self, folder: Path) -> dict[str, Any]:
        handle = _store(folder).lookup(KEY, READY).handle
        assert handle is not None
        mark("materialize")
        handle.materialize(folder / "copy")
        return {"status": "copied"}

    def check(self, folder: Path, point: Point, outcome: Outcome) -> str:
        assert _store(folder).lookup(KEY, READY).status is LookupStatus.HIT
        report = outcome.report
        if report is None:
            return "killed"
        if "raised" in report:
            if point.call.phase == "materialize":
                assert {"OSError", "ArtifactDamaged"} & set(report["raised"]), report
            return "raised"
        assert _files_in(folder / "copy") == FILES or "retval" in point.how
        return "copied"


class Import(Scenario):
    """Copying a bundle into a store that has none of its artifacts."""

    def __init__(self, bundle: Path) -> None:
        self.bundle = bundle
        # Once here, so that no traced child is the first to import a module.
        folder = fast_folder()
        import_into_store(import_bundle(bundle), _store(folder))
        shutil.rmtree(folder)

    def act(self, folder: Path) -> dict[str, Any]:
        mark("open")
        bundle = import_bundle(self.bundle)
        mark("import")
        counts = import_into_store(bundle, _store(folder))
        return {"published": counts.published, "present": counts.present}

    def check(self, folder: Path, point: Point, outcome: Outcome) -> str:
        bundle = import_bundle(self.bundle)
        artifacts = list(bundle.artifacts())
        store = _store(folder)
        hits = 0
        for artifact in artifacts:
            found = store.lookup(artifact.key, artifact.spec, load=True)
            assert found.status in (LookupStatus.MISS, LookupStatus.HIT), found
            if found.handle is not None:
                hits += 1
                assert found.handle.payload == artifact.load()
        _assert_locks_free(folder)
        report = outcome.report
        if report is not None and "raised" in report:
            assert {"OSError", "BundleDamaged", "ImportFailed"} & set(report["raised"]), report
        elif report is not None:
            assert hits == len(artifacts) and report == {"published": hits, "present": 0}
        again = import_into_store(bundle, store)
        assert (again.published, again.present) == (len(artifacts) - hits, hits)
        return "killed" if report is None else report["raised"][0] if "raised" in report else "imported"


def points_of(calls: list[Call]) -> Iterator[Point]:
    """Every injection that the calls of one run allow."""
    for call in calls:
        yield Point(call, "signal=KILL")
        for error in (*ERRORS, *MORE_ERRORS.get(call.name, ())):
            yield Point(call, f"error={error}")
            if error != "EINTR":  # an interrupted call is made again, so this one would never end
                yield Point(call, f"error={error}", persistent=True)
        if call.name in ("read", "write") and call.phase not in ("build", "import"):
            yield Point(call, "retval=1")


def trace_calls(scenario: Scenario) -> list[Call]:
    """The calls of an undisturbed run, once two runs in a row agree."""
    before: list[tuple[str, int]] = []
    for _ in range(5):
        folder = fast_folder()
        try:
            scenario.prepare(folder)
            outcome = run_traced(partial(scenario.act, folder), ["-s", "200"])
        finally:
            shutil.rmtree(folder)
        assert outcome.report is not None and "raised" not in outcome.report, outcome.report
        calls = calls_of(outcome)
        names = [(call.name, call.nth) for call in calls]
        if names == before:
            return calls
        before = names
    raise AssertionError("no two runs in a row make the same calls")


def inject(scenario: Scenario, point: Point, tally: Tally) -> None:
    """Run one disturbed operation and judge it."""
    folder = fast_folder()
    try:
        scenario.prepare(folder)
        outcome = run_traced(
            lambda: scenario.act(folder), fail_option(point.call, point.how, persistent=point.persistent)
        )
        tally.points += 1
        assert outcome.injected, f"the call was not reached: {outcome.lines[-3:]}"
        tally.outcomes[scenario.check(folder, point, outcome)] += 1
    except AssertionError as error:
        tally.problems.append(f"{type(scenario).__name__}: {point}: {error}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(scenario: Scenario, *, sample: int | None = None, seed: int = 0, part: tuple[int, int] = (0, 1)) -> Tally:
    """Inject at every point, or at `sample` of them; `part` (i, n) takes every n-th, from the i-th."""
    calls = trace_calls(scenario)
    points = list(points_of(calls))
    if sample is not None and sample < len(points):
        points = random.Random(seed).sample(points, sample)
    tally = Tally(calls=len(calls))
    for point in points[part[0] :: part[1]]:
        inject(scenario, point, tally)
    return tally
