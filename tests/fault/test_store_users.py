"""The store for other users, on read-only and on odd file systems (PRM, RO, PUB, LIM)."""

from __future__ import annotations

import json
import os
import pwd
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from artifact_samples import FILES, READY, Builder, sample_key
from tracing import line_of, run_traced

from pypto.jit.artifact_cache import ArtifactStore, BuildFailure, BuildStatus, LookupStatus

pytestmark = pytest.mark.usefixtures("root_user", "strace")

KEY = sample_key()
NOBODY = 65534
# No name belongs to it.
STRANGER = 54321
GRANT = (
    'chmod a+rx,go-w -- "$CACHE_ROOT"',
    'chmod -R a+rX,a-w -- "$CACHE_ROOT/artifacts"',
)

# Calls that change a file system, take locks, start programs or reach out.
WRITING = re.compile(
    r"^\d+ +(?:(?:mkdir|rename|unlink|link|symlink|mknod|chmod|chown|fchmod|fchown|utimens|futimes|truncate|ftruncate|"
    r"setxattr|fsetxattr|rmdir|creat|write|pwrite|fsync|fdatasync|flock|execve|fork|vfork|clone|socket|connect)\w*\(|"
    r"fcntl\(\d+(?:<[^>]*>)?, F_(?:SETLK|OFD)|open(?:at)?\(.*O_(?:WRONLY|RDWR|CREAT|TRUNC)|mmap\(.*PROT_EXEC)"
)


@pytest.fixture
def shared(open_folder: Path) -> ArtifactStore:
    """A store with one entry, opened to others with the commands of the guide."""
    store = ArtifactStore(open_folder / "root")
    assert store.get_or_build(KEY, READY, Builder()).status is BuildStatus.PUBLISHED
    grant(store.root)
    return store


def grant(root: Path) -> None:
    for command in GRANT:
        subprocess.run(["sh", "-c", command], env={"CACHE_ROOT": str(root), "PATH": os.environ["PATH"]}, check=True)


def as_user(user: int, action: Callable[[], str]) -> str:
    """What `action` returns in a child process of another user, without HOME and with umask 077."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.environ.pop("HOME", None)
            os.umask(0o077)
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            os.write(writer, action().encode())
        except BaseException as error:
            os.write(writer, repr(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as stream:
        return stream.read()


def hit_report(root: Path) -> Callable[[], dict[str, Any]]:
    """The action of a consumer: a hit with its bytes."""

    def look() -> dict[str, Any]:
        os.environ.pop("HOME", None)
        os.umask(0o077)
        result = ArtifactStore(root, readonly=True).get_or_build(KEY, READY, Builder(), load=True)
        payload = result.handle.payload if result.handle is not None else None
        return {"status": result.status.value, "whole": payload == FILES}

    return look


def test_the_guide_names_these_commands() -> None:
    """PRM-19, PRM-20: what the tests run is what users are told to run."""
    guide = (Path(__file__).parents[2] / "docs/guide/store.md").read_text()
    for command in GRANT:
        assert command in guide


def test_another_user_needs_the_documented_grant(open_folder: Path) -> None:
    """PRM-1, PRM-22 to PRM-26, PRM-33."""
    store = ArtifactStore(open_folder / "root")
    (open_folder / "theirs").mkdir()
    os.chown(open_folder / "theirs", NOBODY, NOBODY)
    assert store.get_or_build(KEY, READY, Builder()).status is BuildStatus.PUBLISHED

    def look() -> str:
        return ArtifactStore(store.root, readonly=True).lookup(KEY, READY).status.value

    def publish_other() -> str:
        theirs = ArtifactStore(store.root, private_root=open_folder / "theirs")
        result = theirs.get_or_build(sample_key("d"), READY, Builder())
        return f"{result.status.value} {result.failure and result.failure.value}"

    def write_into_root() -> str:
        try:
            (store.root / "artifacts/x").write_text("x")
        except PermissionError:
            return "refused"
        return "written"

    assert as_user(NOBODY, look) == "storage_error"
    locks = (store.root / "locks").stat().st_mode
    grant(store.root)
    assert (store.root / "locks").stat().st_mode == locks
    assert as_user(NOBODY, look) == "hit"
    assert as_user(NOBODY, publish_other) == "private lock"
    assert as_user(NOBODY, write_into_root) == "refused"
    open_folder.chmod(0o700)
    assert as_user(NOBODY, look) == "storage_error"


def test_a_hit_of_a_user_without_name_writes_locks_and_runs_nothing(shared: ArtifactStore) -> None:
    """RO-1 to RO-5, RO-8, RO-12, RO-13, PRM-23: by trace; no passwd entry, no HOME, umask 077, no private root."""
    with pytest.raises(KeyError):
        pwd.getpwuid(STRANGER)
    outcome = run_traced(hit_report(shared.root), ["-y"], user=STRANGER)
    assert outcome.report == {"status": "hit", "whole": True}
    begin, end = (line_of(outcome.lines, phase) for phase in ("begin", "end"))
    lines = outcome.lines[begin:end]
    assert [line for line in lines if WRITING.match(line)] == []
    opened = [line for line in lines if re.match(r"\d+ +open", line)]
    below = str(shared.root)
    assert len(opened) > 10
    assert [line for line in opened if below not in line] == []


def test_the_check_of_traces_sees_a_publication(open_folder: Path) -> None:
    """What the test above looks for is found where it must be."""

    def publish() -> dict[str, Any]:
        store = ArtifactStore(open_folder / "root")
        return {"status": store.get_or_build(KEY, READY, Builder()).status.value}

    outcome = run_traced(publish)
    found = {WRITING.match(line)[0].split()[1].split("(")[0] for line in outcome.lines if WRITING.match(line)}  # type: ignore[index]
    assert {"openat", "mkdirat", "write", "fchmod", "fsync", "flock", "renameat2"} <= found


def test_published_entries_are_never_touched_again(open_folder: Path) -> None:
    """PUB-27, PUB-28, PUB-38, PUB-39, LIM-9, LIM-10: requests around a good and a damaged entry, by trace."""
    store = ArtifactStore(open_folder / "root")
    entry = store.get_or_build(KEY, READY, Builder()).handle
    other = store.get_or_build(sample_key("d"), READY, Builder()).handle
    assert entry is not None and other is not None
    (other.directory / "extra").write_text("x")

    def use() -> dict[str, Any]:
        statuses = [store.get_or_build(sample_key(name), READY, Builder()).status.value for name in "bde"]
        return {"statuses": statuses}

    outcome = run_traced(use, ["-y", "-s", "300"])
    assert outcome.report == {"statuses": ["hit", "private", "published"]}
    for place in (str(entry.directory), str(other.directory)):
        changed = [line for line in outcome.lines if place in line and WRITING.match(line)]
        assert changed == []
    assert sorted(path.name for path in store.root.iterdir()) == ["artifacts", "locks"]


@pytest.fixture
def readonly_mount(shared: ArtifactStore, open_folder: Path) -> Iterator[Path]:
    """The store's root, mounted read-only in another place."""
    place = open_folder / "mounted"
    place.mkdir()
    commands = [["mount", "--bind", shared.root, place], ["mount", "-o", "remount,ro,bind", place]]
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"this machine does not let a folder be mounted read-only: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_read_only_mount(readonly_mount: Path, open_folder: Path) -> None:
    """RO-1, RO-6, PUB-37: hits for everybody; a writable store there builds privately and says why."""
    for user in (None, STRANGER):
        outcome = run_traced(hit_report(readonly_mount), user=user)
        assert outcome.report == {"status": "hit", "whole": True}
    store = ArtifactStore(readonly_mount, private_root=open_folder / "private")
    assert store.get_or_build(KEY, READY, Builder()).status is BuildStatus.HIT
    result = store.get_or_build(sample_key("d"), READY, Builder())
    # The lock file is the first that cannot be made.
    assert (result.status, result.failure) == (BuildStatus.PRIVATE, BuildFailure.LOCK)
    assert "Read-only file system" in str(result.reason)


def test_unwritable_root(open_folder: Path) -> None:
    """PUB-37, RO-11: as a user who may not write there."""
    root = open_folder / "root"
    root.mkdir()
    (open_folder / "theirs").mkdir()
    os.chown(open_folder / "theirs", NOBODY, NOBODY)

    def build(private: Path) -> str:
        result = ArtifactStore(root, private_root=private).get_or_build(KEY, READY, Builder())
        return f"{result.status.value} {result.failure and result.failure.value}"

    assert as_user(NOBODY, lambda: build(open_folder / "theirs/private")) == "private lock"
    assert "PermissionError" in as_user(NOBODY, lambda: build(open_folder / "private"))
    assert list(root.iterdir()) == []


@pytest.mark.parametrize(
    ("call", "error", "failure", "says"),
    [
        ("flock", "ENOSYS", "lock", "not implemented"),
        ("flock", "ENOLCK", "lock", "No locks"),
        ("flock", "EOPNOTSUPP", "lock", "not supported"),
        ("renameat2", "ENOSYS", "publication", "renameat2"),
        ("renameat2", "EINVAL", "publication", "renameat2"),
        ("renameat2", "EOPNOTSUPP", "publication", "renameat2"),
        ("fsync", "EINVAL", "publication", "Invalid argument"),
    ],
)
def test_file_systems_that_lack_something(open_folder: Path, call: str, error: str, failure: str, says: str) -> None:
    """PUB-19, PUB-20, PUB-36, LIM-6, LIM-7: it always fails; the build is kept and the reason says what is missing."""

    def request() -> dict[str, Any]:
        result = ArtifactStore(open_folder / "root").get_or_build(KEY, READY, Builder())
        assert result.private_directory is not None and (result.private_directory / "empty").exists()
        return {
            "status": result.status.value,
            "failure": result.failure and result.failure.value,
            "reason": result.reason,
            "value": result.value,
        }

    report = run_traced(request, ["-e", f"trace={call}", "-e", f"inject={call}:error={error}"]).report
    assert report is not None
    assert (report["status"], report["failure"], report["value"]) == ("private", failure, {"call": 1})
    assert says in report["reason"]
    assert ArtifactStore(open_folder / "root").lookup(KEY, READY).status is LookupStatus.MISS
    assert not list((open_folder / "root").rglob(".tmp.*"))


def test_names_are_utf8_in_every_locale(open_folder: Path) -> None:
    """A process for which file names are ASCII publishes what others find, and finds it itself."""
    code = (
        "import json, os, sys\nfrom artifact_samples import READY, sample_key, write_files\n"
        "from pypto.jit.artifact_cache import ArtifactStore\n"
        "def build(directory):\n    write_files(directory)\n"
        "    (directory / os.fsdecode('gr\\u00f6\\u00dfe'.encode())).write_bytes(b'x')\n"
        "result = ArtifactStore(sys.argv[1]).get_or_build(sample_key(), READY, build, load=True)\n"
        "copy = result.handle.materialize(sys.argv[2])\n"
        "names = sorted(os.listdir(os.fsencode(copy)))\n"
        "print(json.dumps([result.status.value, sys.getfilesystemencoding(), ascii(names),"
        " list(result.handle.payload)]))\n"
    )
    places = [Path(__file__).parents[2], Path(__file__).parents[1] / "unit/artifact_cache"]
    found = []
    for number, settings in enumerate(({"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"PYTHONUTF8": "1"}, {})):
        done = subprocess.run(
            [sys.executable, "-c", code, open_folder / "root", open_folder / f"copy{number}"],
            env={"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", **settings}
            | {"PYTHONPATH": os.pathsep.join(map(str, places))},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    assert [(status, encoding) for status, encoding, _, _ in found] == [
        ("published", "ascii"),
        ("hit", "utf-8"),
        ("hit", "ascii"),
    ]
    for _, _, names, payload in found:
        assert r"b'gr\xc3\xb6\xc3\x9fe'" in names
        assert "gr\u00f6\u00dfe" in payload
