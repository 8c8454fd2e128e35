"""Mutable program directories: what a transaction keeps, removes, builds and marks, and where it may be interrupted."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pypto._identity.records import canonical_json
from pypto.runtime import CompiledProgram, LoadError
from pypto.runtime.binary_context import CONTEXT_FILE, Built, Positions, complete
from pypto.runtime.kernel_config import MANIFEST_FILE

NAMES = ("prebuilt/kernels/a.so", "prebuilt/kernels/b.so", "prebuilt/orchestration/f.so", "ptoas/a.cpp")
POSITIONS = Positions(NAMES, ("prebuilt/kernels", "prebuilt/orchestration"))
CONTEXT: dict[str, Any] = {"environment": "one", "sources": {"x": "1"}}


class Builder:
    """Builds bytes from names, and notes what it was asked for and what it saw."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.asked: list[str] = []
        self.marks: list[bool] = []

    def __call__(self, missing: tuple[str, ...]) -> Built:
        self.asked += missing
        self.marks += [(self.directory / name).exists() for name in (CONTEXT_FILE, MANIFEST_FILE)]
        return Built({name: content(name) for name in missing})


def content(name: str) -> bytes:
    return f"binary {name}".encode()


def manifest(files: Mapping[str, bytes]) -> bytes:
    return json.dumps({name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())}).encode()


def run(directory: Path, context: Mapping[str, Any] | None = CONTEXT) -> Builder:
    builder = Builder(directory)
    assert list(complete(directory, context, POSITIONS, builder, manifest)) == builder.asked
    assert_complete(directory)
    return builder


def assert_complete(directory: Path) -> None:
    for name in NAMES:
        assert (directory / name).read_bytes() == content(name)
    assert (directory / MANIFEST_FILE).read_bytes() == manifest({name: content(name) for name in NAMES})


def states(directory: Path) -> dict[str, tuple[int, int]]:
    found = {name: (directory / name).stat() for name in NAMES}
    return {name: (status.st_ino, status.st_mtime_ns) for name, status in found.items()}


def test_the_mark_records_context_and_digests(tmp_path: Path) -> None:
    """BIN-01, BIN-02, BIN-03, BIN-09, BIN-10."""
    (tmp_path / MANIFEST_FILE).write_bytes(b"old")
    builder = run(tmp_path)
    assert builder.asked == list(NAMES) and builder.marks == [False, False]
    mark = json.loads((tmp_path / CONTEXT_FILE).read_bytes())
    digests = {name: hashlib.sha256(content(name)).hexdigest() for name in NAMES}
    assert mark == {"schema": 2, "context": CONTEXT, "files": digests}
    assert [bool((tmp_path / name).stat().st_mode & 0o100) for name in NAMES] == [True, True, True, False]


def test_verified_files_stay(tmp_path: Path) -> None:
    """BIN-04: the same files, untouched, and no compiler."""
    run(tmp_path)
    before = states(tmp_path)
    assert run(tmp_path).asked == []
    assert states(tmp_path) == before


@pytest.mark.parametrize("damage", ["changed", "missing", "link"])
def test_a_damaged_file_alone_is_rebuilt(tmp_path: Path, damage: str) -> None:
    """BIN-05, BIN-07: and the mark is away while that happens (BIN-09)."""
    run(tmp_path)
    before = states(tmp_path)
    path = tmp_path / NAMES[1]
    if damage == "changed":
        path.write_bytes(b"changed")
    else:
        path.unlink()
    if damage == "link":
        (tmp_path / "elsewhere").write_bytes(content(NAMES[1]))
        path.symlink_to(tmp_path / "elsewhere")
    builder = run(tmp_path)
    assert builder.asked == [NAMES[1]] and builder.marks == [False, False]
    assert not path.is_symlink()
    after = states(tmp_path)
    assert {name: state for name, state in after.items() if name != NAMES[1]} == {
        name: state for name, state in before.items() if name != NAMES[1]
    }


def test_strays_go_and_the_users_files_stay(tmp_path: Path) -> None:
    """BIN-06, BIN-23: only shared objects in the folders of binaries are the transaction's."""
    run(tmp_path)
    users = ("notes.txt", "prebuilt/kernels/notes.txt", "ptoas/own.cpp", "other/x.so")
    for name in (*users, "prebuilt/kernels/stray.so", "prebuilt/orchestration/half.so.part"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    assert run(tmp_path).asked == []
    assert all((tmp_path / name).exists() for name in users)
    assert sorted(os.listdir(tmp_path / "prebuilt/kernels")) == ["a.so", "b.so", "notes.txt"]
    assert os.listdir(tmp_path / "prebuilt/orchestration") == ["f.so"]


@pytest.mark.parametrize(
    "old",
    [
        b"{}",
        b"not json",
        b'{"context":{"environment":"one","sources":{"x":"1"}},"files":{},"schema":1}',
        b'{"context":{"environment":"one","sources":{"x":"1"}},"files":{"prebuilt/kernels/a.so":7},"schema":2}',
    ],
)
def test_an_older_or_damaged_mark_costs_one_rebuild(tmp_path: Path, old: bytes) -> None:
    """BIN-08."""
    run(tmp_path)
    (tmp_path / CONTEXT_FILE).write_bytes(old)
    assert run(tmp_path).asked == list(NAMES)
    assert run(tmp_path).asked == []


def test_another_context_rebuilds_all(tmp_path: Path) -> None:
    """BIN-24: digests prove content, not fitness."""
    run(tmp_path)
    assert run(tmp_path, {**CONTEXT, "environment": "two"}).asked == list(NAMES)
    assert run(tmp_path, None).asked == list(NAMES), "what cannot be identified is built each time"
    assert run(tmp_path, None).asked == list(NAMES)
    assert not (tmp_path / CONTEXT_FILE).exists()


def test_what_the_context_does_not_decide_is_not_marked(tmp_path: Path) -> None:
    def build(missing: tuple[str, ...]) -> Built:
        return Built({name: content(name) for name in missing}, covered=False)

    complete(tmp_path, CONTEXT, POSITIONS, build, manifest)
    assert_complete(tmp_path)
    assert run(tmp_path).asked == list(NAMES)


def test_a_lost_manifest_is_written_again(tmp_path: Path) -> None:
    run(tmp_path)
    (tmp_path / MANIFEST_FILE).unlink()
    assert run(tmp_path).asked == []


def test_a_failed_build_leaves_no_mark(tmp_path: Path) -> None:
    """BIN-11, KC-51: also for a directory that was valid before."""
    run(tmp_path)
    (tmp_path / NAMES[0]).unlink()

    def fail(_: tuple[str, ...]) -> Built:
        raise RuntimeError("compile a: did not finish")

    with pytest.raises(RuntimeError, match="did not finish"):
        complete(tmp_path, CONTEXT, POSITIONS, fail, manifest)
    assert not (tmp_path / CONTEXT_FILE).exists() and not (tmp_path / MANIFEST_FILE).exists()
    assert run(tmp_path).asked == list(NAMES)


def kill_at(directory: Path, step: int) -> bool:
    """Run a transaction in a child that ends at its `step`-th change of the directory; whether it got that far."""
    child = os.fork()
    if child == 0:
        steps = iter(range(step))

        def dying(real: Any) -> Any:
            def call(*args: Any, **options: Any) -> Any:
                if next(steps, None) is None:
                    os._exit(9)
                return real(*args, **options)

            return call

        for name in ("replace", "fsync", "unlink"):
            setattr(os, name, dying(getattr(os, name)))
        try:
            complete(directory, CONTEXT, POSITIONS, Builder(directory), manifest)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


@pytest.mark.parametrize("first", ["empty", "valid", "altered"])
def test_an_interruption_at_each_step_leaves_nothing_that_is_trusted(tmp_path: Path, first: str) -> None:
    """BIN-12: a killed transaction; the next one ends complete, whatever the first found."""
    killed = 0
    while True:
        directory = tmp_path / str(killed)
        directory.mkdir()
        if first != "empty":
            run(directory)
            (directory / NAMES[0]).unlink()
        if first == "altered":
            (directory / NAMES[2]).write_bytes(b"altered")
        if not kill_at(directory, killed):
            break
        if (directory / CONTEXT_FILE).exists():
            # Before the mark was removed, or after everything was published: it tells the truth about what is there.
            mark = json.loads((directory / CONTEXT_FILE).read_bytes())
            assert mark["files"] == {name: hashlib.sha256(content(name)).hexdigest() for name in NAMES}
        run(directory)
        killed += 1
    assert killed > 12
    assert_complete(directory)


def test_processes_take_turns(tmp_path: Path) -> None:
    """BIN-20: the second finds what the first built."""
    inside, proceed = threading.Event(), threading.Event()

    def slow(missing: tuple[str, ...]) -> Built:
        inside.set()
        assert proceed.wait(30)
        return Built({name: content(name) for name in missing})

    first = threading.Thread(target=complete, args=(tmp_path, CONTEXT, POSITIONS, slow, manifest))
    first.start()
    assert inside.wait(30)
    second = Builder(tmp_path)
    other = threading.Thread(target=complete, args=(tmp_path, CONTEXT, POSITIONS, second, manifest))
    other.start()
    proceed.set()
    first.join()
    other.join()
    assert second.asked == []
    assert_complete(tmp_path)


def test_a_directory_without_its_manifest_is_not_loaded(tmp_path: Path) -> None:
    """BIN-11: and the message says how to build it."""
    record = {
        "schema": 1, "entry": "f", "build_kind": "single_chip", "runtime": "host_build_graph", "runtime_abi": 1,
        "backend_type": "Ascend910B", "execution_mode": "sim", "params": [], "returns": [], "kernels": [],
        "orchestration": {"source": "orchestration/f.cpp", "binary": "prebuilt/orchestration/f.so"},
    }  # fmt: skip
    (tmp_path / "kernel_config.json").write_bytes(canonical_json(record))
    with pytest.raises(LoadError, match="its binaries are not built, or a build of them did not end"):
        CompiledProgram.from_dir(tmp_path)
