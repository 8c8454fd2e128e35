"""Damaged markers, trees and bundles: none is accepted, none raises what is not documented, none hangs."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from artifact_samples import READY, Builder, sample_key, snapshot
from bundle_samples import make_bundle
from tracing import fast_folder

from pypto._identity import canonical_json
from pypto.bundle import BundleDamaged, BundleIncompatible, import_bundle
from pypto.jit.artifact_cache import MARKER_NAME, ArtifactHandle, ArtifactStore, LookupStatus

KEY = sample_key()
_LIMIT = 16 * 1024 * 1024
_VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2, 10**30, "", "x", "..", "/", "/etc/passwd", "../x", "a/../b", "./a", "a//b", "a\\b",
    "a/", "a" * 5000, "\0", "é", "e\u0301", "\u202e", [], {}, [[]], {"a": 1}, "0" * 64, "generated",
    "ready", "single_chip", MARKER_NAME, "kernel_config.json", "KERNEL_CONFIG.JSON",
]  # fmt: skip
_PIECES = [
    b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\\ud800", b"\\u0000", b"1e400", b"-0", b"0x1", b"NaN", b"Infinity",
    b"9" * 5000, b"1.0", b"//", b"/*", b"..", b"\\\\", b"\n", b" ", b"\t", b"\xef\xbb\xbf", b"\0", b'"schema":1,',
    b'"files":[],', b"{" * 3000, b"[" * 100_000, b"]" * 50, b'"', b",", b"}", b"null",
]  # fmt: skip


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """An AssertionError if the body hangs, in a system call too."""

    def hangs(*_: object) -> None:
        raise AssertionError(f"it was not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Entry:
    """A published entry in a folder of its own, removed at the end."""

    def __init__(self) -> None:
        self.folder = fast_folder()
        self.store = ArtifactStore(self.folder / "root", private_root=self.folder / "private")
        self.handle: ArtifactHandle = self.store.get_or_build(KEY, READY, Builder()).handle  # type: ignore[assignment]
        self.directory = self.handle.directory
        self.marker = self.directory / MARKER_NAME

    def __enter__(self) -> Entry:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def rejected(self) -> None:
        """The entry is refused, with a reason of bounded length.

        Raises:
            AssertionError: it is not.
        """
        found = self.store.lookup(KEY, READY)
        assert found.status is LookupStatus.INVALID, found
        assert found.reason and len(found.reason) < 3000


def flips_and_truncations(entry: Entry) -> int:
    """Every single-byte change to three other values, every length, of every file; how many were refused."""
    count = 0
    for file in [path for path in entry.directory.rglob("*") if path.is_file()]:
        original = file.read_bytes()
        for index in range(len(original)):
            for mask in (0x01, 0x20, 0xFF):
                file.write_bytes(original[:index] + bytes([original[index] ^ mask]) + original[index + 1 :])
                entry.rejected()
            file.write_bytes(original[:index])
            entry.rejected()
            count += 4
        file.write_bytes(original + b"\0")
        entry.rejected()
        count += 1
        file.write_bytes(original)
    assert entry.store.lookup(KEY, READY).status is LookupStatus.HIT
    return count


def mutate_bytes(data: bytes, chance: random.Random) -> bytes:
    """Another byte string, made from `data` by one to three edits."""
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        place = chance.randrange(len(data) + 1)
        other = chance.randrange(len(data) + 1)
        low, high = min(place, other), max(place, other)
        edit = chance.randrange(9)
        if edit == 0 and place < len(data):
            data = data[:place] + bytes([data[place] ^ (1 << chance.randrange(8))]) + data[place + 1 :]
        elif edit == 1:
            data = data[:place] + bytes([chance.randrange(256)]) + data[place:]
        elif edit == 2:
            data = data[:place] + data[place + chance.randrange(1, 9) :]
        elif edit == 3:
            data = data[:place] + data[low:high] + data[place:]
        elif edit == 4:
            data = data[:low] + data[high:]
        elif edit == 5:
            data = data[:place]
        elif edit == 6:
            data = data[:low] + data[high : high + 64] + data[low:high] + data[high + 64 :]
        elif edit == 7:
            data = data[:place] + chance.choice(_PIECES) + data[place:]
        else:
            digits = [i for i, byte in enumerate(data) if 48 <= byte < 58] or [0]
            spot = chance.choice(digits)
            data = (
                data[:spot] + chance.choice((b"9" * 5000, b"-1", b"1e9", b"00", b"1.0", b"9" * 30)) + data[spot + 1 :]
            )
    return data


def mutate_record(data: bytes, chance: random.Random) -> bytes:
    """Another JSON text whose structure differs: values, fields and items exchanged, removed, added, repeated."""
    record = json.loads(data)
    places: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            places.append((value, key))
            if isinstance(item, (dict, list)):
                walk(item)

    walk(record)
    holder, key = chance.choice(places)
    edit = chance.randrange(6)
    if edit == 0:
        holder[key] = chance.choice(_VALUES)
    elif edit == 1:
        del holder[key]
    elif edit == 2 and isinstance(holder, dict):
        holder[str(chance.choice(_VALUES))] = chance.choice(_VALUES)
    elif edit == 3 and isinstance(holder, list):
        holder.insert(key, json.loads(json.dumps(chance.choice(holder))))
    elif edit == 4:
        other_holder, other_key = chance.choice(places)
        holder[key], other_holder[other_key] = other_holder[other_key], holder[key]
    else:
        text = canonical_json(record)
        field = b'"%s":' % str(chance.choice(list(record))).encode()
        at = text.find(field)
        return text[:at] + field + b"1," + text[at:] if chance.random() < 0.5 else json.dumps(record, indent=1).encode()
    try:
        return canonical_json(record)
    except (ValueError, TypeError):  # an exchange made a value that holds itself
        return b"{}"


def mutate(data: bytes, chance: random.Random) -> bytes:
    """A text that differs from `data`."""
    while True:
        changed = mutate_record(data, chance) if chance.random() < 0.4 else mutate_bytes(data, chance)
        if changed != data:
            return changed


def mutate_markers(entry: Entry, count: int, seed: int) -> int:
    """Replace the marker by `count` others."""
    chance = random.Random(seed)
    original = entry.marker.read_bytes()
    with time_limit(120 + count // 100):
        for _ in range(count):
            entry.marker.write_bytes(mutate(original, chance))
            entry.rejected()
        for size in (_LIMIT + 1, _LIMIT, _LIMIT + 4096):
            entry.marker.write_bytes(original + b" " * (size - len(original)))
            entry.rejected()
    entry.marker.write_bytes(original)
    assert entry.store.lookup(KEY, READY).status is LookupStatus.HIT
    return count + 3


# Trees


def _files(directory: Path) -> list[Path]:
    found = (path for path in directory.rglob("*") if path.is_file() and not path.is_symlink())
    return sorted(path for path in found if path.name != "huge")


def _extra(directory: Path, chance: random.Random) -> None:
    names = [
        b"x",
        b".hidden",
        b"\xff\xfe",
        b"a\\b",
        b"..x",
        b"artifact_manifest.json~",
        b"K.so",
        "é".encode(),
        b"n" * 255,
        b"\n",
        b"CON",
    ]
    folder = chance.choice([directory, directory / "prebuilt", directory / "prebuilt/kernels"])
    if folder.is_dir():
        descriptor = os.open(os.fsencode(folder) + b"/" + chance.choice(names), os.O_CREAT | os.O_WRONLY)
        os.write(descriptor, b"x" * chance.choice((0, 1, 100)))
        os.close(descriptor)


def _replace(directory: Path, chance: random.Random) -> None:
    """Something that is no regular file takes a file's place, or stands beside it."""
    file = chance.choice(_files(directory))
    place = file if chance.random() < 0.6 else file.with_name("beside")
    if place.exists():
        place.unlink()
    kinds: list[Callable[[], object]] = [
        lambda: place.symlink_to(file.name + "2"),
        lambda: place.symlink_to("/etc/passwd"),
        lambda: place.symlink_to("."),
        lambda: place.symlink_to(place),
        lambda: os.mkfifo(place),
        lambda: place.mkdir() or (place / "x").write_bytes(b""),
    ]
    if os.geteuid() == 0:
        kinds.append(lambda: os.mknod(place, stat.S_IFCHR | 0o700, os.makedev(1, 3)))
        kinds.append(lambda: os.mknod(place, stat.S_IFCHR | 0o700, os.makedev(1, 5)))  # /dev/zero never ends
        kinds.append(lambda: os.mknod(place, stat.S_IFBLK | 0o700, os.makedev(7, 200)))
    chance.choice(kinds)()


def _swap(directory: Path, chance: random.Random) -> None:
    first, second = chance.sample(_files(directory), 2)
    first.rename(directory / "between")
    second.rename(first)
    (directory / "between").rename(second)


def _rename(directory: Path, chance: random.Random) -> None:
    file = chance.choice(_files(directory))
    file.rename(file.with_name(chance.choice((file.name.upper(), file.name + " ", "other", f".{file.name}"))))


def _move(directory: Path, chance: random.Random) -> None:
    file = chance.choice(_files(directory))
    (directory / "moved").mkdir(exist_ok=True)
    file.rename(directory / "moved" / file.name)


def _remove(directory: Path, chance: random.Random) -> None:
    chance.choice(_files(directory)).unlink()


def _content(directory: Path, chance: random.Random) -> None:
    file = chance.choice(_files(directory))
    file.write_bytes(mutate_bytes(file.read_bytes(), chance) + chance.choice((b"", b"\0")))


def _executable(directory: Path, chance: random.Random) -> None:
    file = chance.choice([file for file in _files(directory) if file.name != MARKER_NAME])  # its bit says nothing
    file.chmod(file.stat().st_mode ^ stat.S_IXUSR)


def _deep(directory: Path, chance: random.Random) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    for _ in range(chance.choice((3, 63, 64, 65, 66, 300))):
        os.mkdir("d", dir_fd=descriptor)
        child = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = child
    os.close(os.open("x", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
    os.close(descriptor)


def _sparse(directory: Path, chance: random.Random) -> None:
    """A file that says it has a terabyte (what a memory file system refuses stays as it was)."""
    with open(directory / "huge", "wb") as file:
        file.truncate(1 << 40)


def _link_folder(directory: Path, chance: random.Random) -> None:
    folder = directory / "prebuilt"
    if folder.is_dir() and not folder.is_symlink():
        folder.rename(directory.parent / "elsewhere")
        folder.symlink_to("../elsewhere")


_TREE_EDITS = [
    _extra, _replace, _swap, _rename, _move, _remove, _content, _executable, _deep, _sparse, _link_folder,
]  # fmt: skip


def _shape(directory: Path) -> dict[str, tuple[int, bytes]]:
    """What of a tree counts: kinds, owner's execute bits and bytes, without empty folders."""
    return {
        path: (stat.S_IFMT(mode) | (mode & stat.S_IXUSR), data)
        for path, (mode, _, data) in snapshot(directory).items()
        if not stat.S_ISDIR(mode)
    }


def mutate_trees(entry: Entry, count: int, seed: int) -> int:
    """Edit the tree `count` times, from a fresh copy each time."""
    chance = random.Random(seed)
    pristine = entry.folder / "pristine"
    shutil.copytree(entry.directory, pristine)
    shape = _shape(pristine)
    refused = 0
    with time_limit(120 + count // 10):
        while refused < count:
            for _ in range(chance.choice((1, 1, 2))):
                try:
                    chance.choice(_TREE_EDITS)(entry.directory, chance)
                except (OSError, IndexError, ValueError):
                    continue  # after another edit there was nothing to apply this one to
            # What is huge is not read here either.
            if (entry.directory / "huge").exists() or _shape(entry.directory) != shape:
                entry.rejected()
                refused += 1
            shutil.rmtree(entry.directory.parent)
            entry.directory.parent.mkdir()
            shutil.copytree(pristine, entry.directory)
    assert entry.store.lookup(KEY, READY).status is LookupStatus.HIT
    return refused


# Bundles


def mutate_bundles(count: int, seed: int) -> int:
    """Replace `bundle.json` or a manifest of a bundle by `count` others; opening and checking it refuses each."""
    chance = random.Random(seed)
    folder = fast_folder()
    try:
        bundle = make_bundle(folder / "bundle", folder / "in")
        files = [bundle / "bundle.json", *sorted(bundle.rglob(MARKER_NAME))]
        with time_limit(120 + count // 10):
            for _ in range(count):
                file = chance.choice(files)
                original = file.read_bytes()
                file.write_bytes(mutate(original, chance))
                try:
                    import_bundle(bundle).verify()
                except (BundleDamaged, BundleIncompatible) as error:
                    assert str(error)
                else:
                    raise AssertionError(f"a changed {file} was accepted")
                finally:
                    file.write_bytes(original)
        import_bundle(bundle).verify()
    finally:
        shutil.rmtree(folder)
    return count
