"""Processes that race for the same keys, and processes that are killed or forked while they hold one."""

from __future__ import annotations

import ctypes
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from artifact_samples import FILES, GENERATED, READY, sample_key, write_files
from bundle_samples import make_bundle

from pypto.bundle import import_bundle, import_into_store
from pypto.jit.artifact_cache import ArtifactKey, ArtifactStore, LookupStatus

KEY = sample_key()


def store_in(folder: Path) -> ArtifactStore:
    return ArtifactStore(folder / "root", private_root=folder / "private")


def start(action: Callable[[], dict[str, Any]], answer: Path, limit: int = 300) -> int:
    """A forked process that runs `action`, for `limit` seconds at most, and leaves its result in a file; its id."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(limit)
            text = json.dumps(action())
            answer.with_suffix(".tmp").write_text(text)
            answer.with_suffix(".tmp").rename(answer)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return child


def finish(child: int, answer: Path) -> dict[str, Any]:
    """What a started process returned."""
    _, status = os.waitpid(child, 0)
    assert status == 0, f"a process ended with status {status}"
    result: dict[str, Any] = json.loads(answer.read_text())
    return result


def run_together(
    count: int, folder: Path, action: Callable[[int], dict[str, Any]], limit: int = 300
) -> list[dict[str, Any]]:
    """Results of `count` processes that start their action at the same moment."""
    reader, writer = os.pipe()
    answers = [folder / f"answer{index}" for index in range(count)]

    def when_released(index: int) -> dict[str, Any]:
        os.close(writer)
        os.read(reader, 1)
        return action(index)

    children = [start(partial(when_released, index), answers[index], limit) for index in range(count)]
    os.close(reader)
    os.close(writer)
    return [finish(child, answer) for child, answer in zip(children, answers, strict=True)]


def note(log: Path, text: str) -> None:
    with log.open("a") as file:
        file.write(f"{text}\n")


def _build(folder: Path, name: str, seconds: float) -> Callable[[Path], str]:
    def build(directory: Path) -> str:
        note(folder / "builds", name)
        time.sleep(seconds)
        write_files(directory)
        return "made"

    return build


def builds(folder: Path) -> Counter[str]:
    """How often each key was built."""
    log = folder / "builds"
    return Counter(log.read_text().split()) if log.exists() else Counter()


def one_key(folder: Path, processes: int) -> dict[str, Any]:
    """Cold processes on one key: one builds, all have equal bytes."""

    def request(index: int) -> dict[str, Any]:
        result = store_in(folder).get_or_build(KEY, READY, _build(folder, "key", 0.02), load=True)
        assert result.handle is not None and result.handle.payload == FILES
        return {"status": result.status.value}

    began = time.monotonic()
    results = run_together(processes, folder, request)
    seconds = time.monotonic() - began
    statuses = Counter(result["status"] for result in results)
    assert statuses == {"published": 1, "hit": processes - 1}, statuses
    assert builds(folder) == {"key": 1}
    return {"processes": processes, "builds": 1, "equal results": processes, "seconds": round(seconds, 2)}


def key_number(number: int) -> ArtifactKey:
    return ArtifactKey(KEY.environment, f"{number:064x}", "c" * 64)


def many_keys(folder: Path, processes: int, keys: int = 100) -> dict[str, Any]:
    """Cold processes that each ask for all of `keys` in an order of their own: each key is built once."""

    def request(index: int) -> dict[str, Any]:
        store = store_in(folder)
        numbers = list(range(keys))
        random.Random(index).shuffle(numbers)
        statuses: Counter[str] = Counter()
        for number in numbers:
            result = store.get_or_build(key_number(number), READY, _build(folder, str(number), 0), load=True)
            assert result.handle is not None and result.handle.payload == FILES
            statuses[result.status.value] += 1
        return dict(statuses)

    began = time.monotonic()
    results = run_together(processes, folder, request)
    seconds = time.monotonic() - began
    total = sum((Counter(result) for result in results), Counter[str]())
    assert total == {"published": keys, "hit": keys * (processes - 1)}, total
    assert builds(folder) == {str(number): 1 for number in range(keys)}
    return {
        "processes": processes,
        "keys": keys,
        "builds": keys,
        "requests": keys * processes,
        "requests per second": round(keys * processes / seconds),
    }


def waits_for_lock(process: int) -> bool:
    """Whether a process is blocked in flock, as the kernel lists it."""
    return any(f" {process} " in line and "->" in line for line in Path("/proc/locks").read_text().splitlines())


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.0005)


def takeover(folder: Path, waiters: int = 3) -> dict[str, Any]:
    """The process that builds is killed; a waiting one builds. The milliseconds from the kill to the new build."""

    def lead() -> dict[str, Any]:
        def hang(directory: Path) -> None:
            note(folder / "hanging", "now")
            time.sleep(300)

        store_in(folder).get_or_build(KEY, READY, hang)
        return {}

    def follow() -> dict[str, Any]:
        began: list[int] = []

        def build(directory: Path) -> None:
            began.append(time.monotonic_ns())
            note(folder / "builds", "key")
            write_files(directory)

        status = store_in(folder).get_or_build(KEY, READY, build).status.value
        return {"status": status, "began": began[0] if began else None}

    leader = start(lead, folder / "leader")
    wait_until(lambda: (folder / "hanging").exists())
    answers = [folder / f"waiter{index}" for index in range(waiters)]
    children = [start(follow, answer) for answer in answers]
    wait_until(lambda: all(waits_for_lock(child) for child in children))
    killed = time.monotonic_ns()
    os.kill(leader, signal.SIGKILL)
    os.waitpid(leader, 0)
    results = [finish(child, answer) for child, answer in zip(children, answers, strict=True)]
    assert Counter(result["status"] for result in results) == {"published": 1, "hit": waiters - 1}, results
    assert builds(folder) == {"key": 1}
    began = next(result["began"] for result in results if result["began"] is not None)
    return {"waiters": waiters, "milliseconds": round((began - killed) / 1e6, 2)}


def start_long_child(how: str) -> int:
    """A child of this process that lives until it is killed: started as a program, or forked by Python or by C."""
    if how == "subprocess":
        return subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(300)"], close_fds=False).pid
    child: int = ctypes.PyDLL(None).fork() if how == "native" else os.fork()
    if child == 0:
        signal.alarm(300)
        while True:
            signal.pause()
    return child


def end(process: int) -> None:
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


def fork_in_builder(folder: Path, how: str) -> None:
    """A child that a builder leaves behind keeps no lock, after the publication and when the builder is killed."""
    left: list[int] = []

    def build(directory: Path) -> None:
        left.append(start_long_child(how))
        note(folder / "child", str(left[-1]))
        write_files(directory)
        if (folder / "hang").exists():
            time.sleep(300)

    def request() -> dict[str, Any]:
        return {"status": store_in(folder).get_or_build(KEY, READY, build).status.value}

    try:
        # Done: the next spec of the same key is built at once, while the child lives.
        assert request() == {"status": "published"}
        assert _asks_again(folder) == "published"
    finally:
        end(left[0])
    if how == "native":
        return  # Python does not learn of this child, so it keeps the lock of a parent that is killed
    shutil.rmtree(folder / "root")
    (folder / "hang").touch()
    (folder / "child").unlink()
    leader = start(request, folder / "leader")
    wait_until(lambda: (folder / "child").exists() and bool((folder / "child").read_text().strip()))
    child = int((folder / "child").read_text())
    try:
        os.kill(leader, signal.SIGKILL)
        os.waitpid(leader, 0)
        assert _asks_again(folder) == "published"
    finally:
        end(child)


def _asks_again(folder: Path) -> str:
    def request() -> dict[str, Any]:
        return {"status": store_in(folder).get_or_build(KEY, GENERATED, write_files).status.value}

    return str(finish(start(request, folder / "again", limit=20), folder / "again")["status"])


def importers(folder: Path, processes: int) -> dict[str, Any]:
    """Processes that import one bundle into one store: every artifact is published once, with the manifest's modes."""
    bundle = import_bundle(make_bundle(folder / "bundle", folder / "in"))
    artifacts = list(bundle.artifacts())

    def request(index: int) -> dict[str, Any]:
        counts = import_into_store(import_bundle(folder / "bundle"), store_in(folder))
        return {"published": counts.published, "present": counts.present}

    results = run_together(processes, folder, request)
    assert sum(result["published"] for result in results) == len(artifacts)
    assert sum(result["present"] for result in results) == len(artifacts) * (processes - 1)
    for artifact in artifacts:
        found = store_in(folder).lookup(artifact.key, artifact.spec, load=True)
        assert found.status is LookupStatus.HIT and found.handle is not None
        assert found.handle.payload == artifact.load()
        for record in found.handle.files():
            mode = (found.handle.directory / record.path).stat().st_mode & 0o7777
            assert mode == (0o700 if record.executable else 0o600)
    return {"processes": processes, "artifacts": len(artifacts), "published": len(artifacts)}
