#!/usr/bin/env python3
"""What it costs to capture the identity of the installed toolchain, in fresh processes.

    python tests/benchmarks/identity_capture.py [--processes N] [--json]

Every figure is of its own fresh process: `warm` after the files were read before, `cold` after the kernel was asked to
drop them from its cache (cold figures depend on the disk). The floor is what a program must do at least for the policy
`build`: list the package, and stat and read the same evidence files, without looking at them. Processes of all kinds
take turns, so that a busy machine is unfair to none; the smallest and the median figure of each are printed.

PTO-ISA is shown on its own: what its part of the record costs, against reading its content, and for a git checkout of
the text's size the check that it is the pinned revision, against the same content. Nothing here fails for being slow.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

CHECKOUT_FILES = 10_000
"""Files of the stand-in checkout of PTO-ISA: their content takes about as long to read as the text reports."""


class Watch:
    """Milliseconds since the last look."""

    def __init__(self) -> None:
        self._at = time.perf_counter()

    def __call__(self) -> float:
        before, self._at = self._at, time.perf_counter()
        return (self._at - before) * 1000


def measure_capture(policy: str) -> dict[str, float]:
    """One capture, step by step, in this process."""
    watch = Watch()
    from pypto._identity.hermetic import hermetic_identity
    from pypto._identity.package import default_package_root, package_fingerprints
    from pypto._identity.policy import IdentitySettings
    from pypto.toolchain import current

    if policy == "content":
        from pypto.toolchain.tree import content_digest
    took = {"import": watch()}
    toolchain = current()
    descriptor = toolchain.descriptor.record()
    took["ptoas, pto_isa, device_toolchain: one record"] = watch()
    if policy == "content":
        for name, component in (("ptoas", "ptoas"), ("isa", "pto_isa"), ("gcc", "device_toolchain")):
            descriptor["sets"][name]["facts"]["measured"] = content_digest(toolchain.root(name))
            took[f"{component}: content of the set"] = watch()
    package_fingerprints(default_package_root())
    took["pypto, runtime: content of the package"] = watch()
    identity = hermetic_identity(descriptor, settings=IdentitySettings(policy))
    took["digests"] = watch()
    assert identity.usable, identity.explain()
    return {**took, "total without import": sum(took.values()) - took["import"]}


def measure_components() -> dict[str, float]:
    """The content of the package, each component alone."""
    from pypto._identity.package import _hash_file, default_package_root, package_files

    root = default_package_root()
    watch = Watch()
    files = package_files(root)
    took = {"listing": watch()}
    for wanted in ("pypto", "runtime"):
        for component, relative in files:
            if component == wanted:
                _hash_file(f"{root}/{relative}")
        took[wanted] = watch()
    return took


def evidence_files() -> list[str]:
    """What a capture under `build` reads."""
    from pypto._identity.package import default_package_root, package_files
    from pypto.toolchain.selection import descriptor_path

    root, descriptor = default_package_root(), descriptor_path()
    return [
        *(f"{root}/{relative}" for _, relative in package_files(root)),
        str(descriptor),
        str(descriptor.with_name("bindings.json")),
    ]


def measure_floor() -> dict[str, float]:
    """Listing the package, and stat and read of the evidence files alone."""
    files = evidence_files()
    watch = Watch()
    count = _list(str(ROOT / "pypto"))
    size = 0
    for path in files:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        os.fstat(descriptor)
        while data := os.read(descriptor, 1 << 18):
            size += len(data)
        os.close(descriptor)
    return {"floor": watch(), "files": len(files), "listed": count, "bytes": size}


def _list(folder: str) -> int:
    count = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            count += 1
            if entry.name != "__pycache__" and entry.is_dir():
                count += _list(entry.path)
    return count


def measure_isa() -> dict[str, float]:
    """PTO-ISA of the descriptor: its part of the record, and its content."""
    from pypto._identity.records import digest_record
    from pypto.toolchain import current
    from pypto.toolchain.descriptor import ToolSet
    from pypto.toolchain.tree import content_digest

    toolchain = current()
    record = toolchain.descriptor.sets["isa"].record()
    watch = Watch()
    digest_record(ToolSet.from_record(record, "isa").record())
    recorded = watch()
    content_digest(toolchain.root("isa"))
    return {"record": recorded, "content": watch()}


def measure_checkout(folder: str) -> dict[str, float]:
    """PTO-ISA as a checkout: verified by git, and its content."""
    from pypto._identity.content import ContentRoot, fingerprint_content
    from pypto._identity.host.pto_isa import verified_revision

    pin = subprocess.run(
        ["git", "-C", folder, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    watch = Watch()
    assert verified_revision(folder, pin, dict(os.environ)) == pin
    verified = watch()
    assert fingerprint_content([ContentRoot(folder)]).digest
    return {"verified revision": verified, "content": watch()}


MEASURES: dict[str, Callable[..., dict[str, float]]] = {
    "build": lambda: measure_capture("build"),
    "content": lambda: measure_capture("content"),
    "package": measure_components,
    "floor": measure_floor,
    "isa": measure_isa,
    "checkout": measure_checkout,
}


def run(kind: str, *arguments: str) -> dict[str, float]:
    """One measurement in a fresh process."""
    argv = [sys.executable, __file__, "--measure", kind, *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"the measurement {kind!r} failed:\n{done.stderr}")
    result: dict[str, float] = json.loads(done.stdout)
    return result


def drop(paths: Iterator[str]) -> None:
    """Ask the kernel to forget the content of files."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def files_below(folder: Path) -> Iterator[str]:
    for base, _, names in os.walk(folder):
        yield from (os.path.join(base, name) for name in names)


def make_checkout(folder: Path) -> None:
    """A git checkout of many copies of the installed PTO-ISA."""
    from pypto.toolchain import current

    source = current().root("isa")
    for number in range(CHECKOUT_FILES // sum(1 for _ in files_below(source))):
        shutil.copytree(source, folder / str(number))
    git = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "core.autocrlf=false"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "x"], ["status"]):
        subprocess.run([*git, *arguments], check=True, capture_output=True)


def collect(processes: int) -> dict[str, dict[str, list[float]]]:
    """All figures by title and step."""
    from pypto.toolchain import current

    toolchain = current()
    found: dict[str, dict[str, list[float]]] = {}

    def note(title: str, figures: dict[str, float]) -> None:
        for name, value in figures.items():
            found.setdefault(title, {}).setdefault(name, []).append(value)

    for kind in ("build", "content", "floor", "package", "isa"):
        run(kind)  # bytecode and page cache
    for _ in range(processes):
        for kind in ("floor", "build", "package", "isa"):
            note(f"{kind}, warm", run(kind))
        for kind in ("floor", "build"):
            drop(iter(evidence_files()))
            note(f"{kind}, cold", run(kind))
    for _ in range(max(1, processes // 5)):
        note("content, warm", run("content"))
        drop(path for root in toolchain.bindings.roots.values() for path in files_below(root))
        drop(iter(evidence_files()))
        note("content, cold", run("content"))
    with tempfile.TemporaryDirectory(prefix="pypto-benchmark-") as folder:
        make_checkout(Path(folder))
        for _ in range(max(3, processes // 5)):
            note(f"checkout of {CHECKOUT_FILES} files, warm", run("checkout", folder))
    return found


def table(found: dict[str, dict[str, list[float]]]) -> Iterator[str]:
    """Lines of text: milliseconds, smallest and median."""
    yield f"{'':<56}{'smallest':>10}{'median':>10}"
    for title, steps in found.items():
        counts = {name: round(values[0]) for name, values in steps.items() if name in ("files", "listed", "bytes")}
        yield f"{title}{': ' + ', '.join(f'{v} {k}' for k, v in counts.items()) if counts else ''}"
        for name, values in steps.items():
            if name not in counts:
                yield f"  {name:<54}{min(values):>10.2f}{statistics.median(values):>10.2f}"
    yield ""
    floor, build = min(found["floor, warm"]["floor"]), min(found["build, warm"]["total without import"])
    yield f"build, warm: {build:.2f} ms, {build - floor:.2f} ms above the floor (aims: 15 ms and 10 ms)"
    for title, proof in (("isa, warm", "record"), (f"checkout of {CHECKOUT_FILES} files, warm", "verified revision")):
        cheap, full = min(found[title][proof]), min(found[title]["content"])
        yield f"PTO-ISA, {title}: {proof} is 1/{full / cheap:.0f} of its content (aim: 1/30)"


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--processes", type=int, default=15, metavar="N", help="processes of each kind (default: 15)")
    ask.add_argument("--json", action="store_true", help="print all figures as one JSON object, in milliseconds")
    ask.add_argument("--measure", choices=MEASURES, help=argparse.SUPPRESS)
    ask.add_argument("arguments", nargs="*", help=argparse.SUPPRESS)
    given: Any = ask.parse_args()
    if given.measure:
        print(json.dumps(MEASURES[given.measure](*given.arguments)))
        return
    found = collect(given.processes)
    print(json.dumps(found, indent=1) if given.json else "\n".join(table(found)))


if __name__ == "__main__":
    main()
