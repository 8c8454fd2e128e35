"""Set up Bazel in a private prefix: fetch Debian's packages, unpack, adapt, try, declare complete.

The prefix appears under its name by one rename, and counts only once `complete.json` is in it, after the
Bazel in it has built something. Whatever a killed run leaves behind, the next one clears away.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from . import java, rcfiles, stamp, unpacked
from .common import OLDEST, Failure, mb, run, say
from .modules import PACKAGED
from .packages import REMEDIES, Apt, FetchError, closure, download

ROOTS = ("bazel-bootstrap", "default-jre-headless")
# Left out of what the packages depend on: compilers, perl, python, the JDK, the AWT, PKCS11 and smart-card
# parts of the JRE, web assets, annotation-only jars, and jars of Bazel's own tests.
KEEP = re.compile(
    r"""^(
      bazel-.* | openjdk-\d+-jre-headless |
      libabsl\d+.* | libc6 | libcares2 | libgcc-s1 | libgrpc(\+\+)?[\d.]+(t64)? | libprotobuf\d+(t64)? |
      libre2-.* | libssl\d+(t64)? | libstdc\+\+6 | libzstd1 | zlib1g |
      lib(caffeine|commons-compress|commons-io|commons-pool2|diffutils|fastutil|google-auth|
          google-flogger|google-gson|google-http-client|grpc|guava|jctools|jsr305|netty|netty-buffer|
          netty-common|opencensus|perfmark|protobuf|reactive-streams|rx|xz|zstd-jni)-java |
      libzstd-jni1
    )$""",
    re.VERBOSE,
)
NEEDED = 700_000_000
"""Bytes of disk the procedure uses at its height: packages, the tree, and the trial's output."""


class Options(NamedTuple):
    """How to set up, as the command line of `python3 tools/bazel_setup` gives it."""

    folder: str
    suite: str | None = None
    mirror: str | None = None
    allow_expired: bool = False
    any_arch: bool = False
    force: bool = False


def ensure(options: Options) -> None:
    """Set the prefix up unless it is complete. One run at a time; others wait, then find it done."""
    folder = Path(options.folder)
    if re.search(r"[\s'\"]", str(folder)):
        raise Failure(
            f"Bazel cannot be set up in a folder with blanks or quotes in its path: {folder}\n"
            "  set XDG_CACHE_HOME to another one"
        )
    if stamp.is_complete(str(folder), options.suite) and not options.force:
        return
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = open(folder.parent / f".{folder.name}.lock", "w")  # noqa: SIM115 - it is the lock, held below
    except OSError as trouble:
        raise Failure(
            f"cannot write to {folder.parent}: {trouble.strerror}\n"
            "  set XDG_CACHE_HOME to a folder that can be written, or name an installed Bazel with PYPTO_BAZEL"
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another run is setting it up; waiting for that")
            fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.is_complete(str(folder), options.suite) and not options.force:
            return
        if folder.exists() and not (folder / "root/usr/bin/bazel").exists() and any(folder.iterdir()):
            raise Failure(f"{folder} exists and was not made by tools/bazel; it will not be replaced\n  move it away")
        try:
            build(folder, options)
        except FetchError as trouble:
            raise Failure(str(trouble)) from None
        except OSError as trouble:
            raise Failure(f"cannot set up {folder}: {trouble}") from None


def check_machine(any_arch: bool) -> unpacked.Machine:
    elsewhere = "\n  install Bazelisk, or name an installed Bazel with PYPTO_BAZEL=/path/to/bazel"
    if not sys.platform.startswith("linux"):
        raise Failure(f"a Bazel can be set up only on Linux{elsewhere}")
    machine = platform.machine()
    if machine not in unpacked.MACHINES:
        raise Failure(f"no Bazel can be set up for machine type {machine}{elsewhere}")
    if machine != "x86_64" and not any_arch:
        raise Failure(
            f"setting up a Bazel was never tried on {machine}{elsewhere}\n"
            "  or try it: python3 tools/bazel_setup --any-arch"
        )
    return unpacked.MACHINES[machine]


def check_version(version: str, suite: str) -> None:
    """The suite's Bazel must be one that the packaged modules and our rules both fit."""
    numbers = tuple(int(n) for n in re.findall(r"\d+", re.split(r"[+~-]", version)[0]))
    if not OLDEST <= numbers < PACKAGED:
        raise Failure(
            f"Debian {suite} carries Bazel {version}; this needs 7.7 <= version < 8\n"
            "  pass --suite to tools/bazel_setup, or name an installed Bazel with PYPTO_BAZEL=/path/to/bazel"
        )


def discard(path: Path) -> None:
    """Remove a tree, also where its folders are read-only, as in Bazel's output."""
    for folder, _, _ in os.walk(path):
        os.chmod(folder, 0o700)
    shutil.rmtree(path, ignore_errors=True)


def fetch(tmp: Path, machine: unpacked.Machine, suite: str, options: Options) -> tuple[dict[str, str], int]:
    """Unpack Bazel and what it needs into `root`, and what adapts it into `tool`.

    Returns the version of each package, and how many bytes were downloaded.
    """
    apt = Apt(
        tmp / "apt",
        machine.arch,
        suite,
        archive=options.mirror,
        accept_expired=options.allow_expired,
        remedies=REMEDIES,
    )
    apt.open()
    check_version(apt.newest(["bazel-bootstrap"])["bazel-bootstrap"]["Version"], suite)
    packages, solved = closure(apt, ROOTS, KEEP)
    tool = apt.newest(["patchelf"])
    debs = download(apt, {**packages, **tool}, tmp / "debs")
    say(f"unpacking (of {solved} packages apt would install, {len(packages)} are needed)")
    unpacked.unpack(debs[:-1], tmp / "root")
    unpacked.unpack(debs[-1:], tmp / "tool")
    size = sum(int(fields["Size"]) for fields in (*packages.values(), *tool.values()))
    return {name: fields["Version"] for name, fields in packages.items()}, size


def build(folder: Path, options: Options) -> None:
    """The procedure itself; the caller holds the lock."""
    start = time.monotonic()
    suite = options.suite or stamp.SUITE
    machine = check_machine(options.any_arch)
    if not shutil.which("dpkg-deb"):
        raise Failure(f"dpkg-deb not found: a Bazel can be set up only where apt is\n  {REMEDIES.otherwise}")
    for pattern in ("tmp", "old"):  # ours by the lock: an earlier run was killed
        for left in folder.parent.glob(f".{folder.name}.{pattern}-*"):
            discard(left)
    free = shutil.disk_usage(folder.parent).free
    if free < NEEDED:
        raise Failure(
            f"{folder.parent} has {mb(free)} free; setting up Bazel needs {mb(NEEDED)}\n"
            "  make room, or set XDG_CACHE_HOME to a folder on another disk"
        )
    tmp = folder.parent / f".{folder.name}.tmp-{os.getpid()}"
    tmp.mkdir()
    try:
        versions, size = fetch(tmp, machine, suite, options)
        root = tmp / "root"
        unpacked.prune(root)
        unpacked.relink(root)
        patched = unpacked.patch(root, folder, machine, tmp / "tool")
        unpacked.check_libraries(root, machine)
        jars, absent = java.write_class_path(root, folder)
        certificates = java.write_trust_store(root)
        modules = rcfiles.find_modules(root, folder, tmp)
        rcfiles.write(tmp, folder, unpacked.java_home(root).relative_to(root), modules)
        for used in ("apt", "debs", "tool"):
            discard(tmp / used)
        on_disk = sum(p.lstat().st_size for p in tmp.rglob("*") if not p.is_dir() or p.is_symlink())
        say(
            f"{patched} programs and libraries adapted, {jars} jars, {certificates} CA certificates, "
            f"{len(modules)} modules, {mb(on_disk)} on disk"
        )
        old = folder.parent / f".{folder.name}.old-{os.getpid()}"
        if folder.exists():
            folder.rename(old)
        tmp.rename(folder)
        discard(old)
    finally:
        discard(tmp)
    say("trying it")
    version = smoke(folder, modules)
    record = {
        "recipe": stamp.RECIPE,
        "prefix": str(folder),
        "suite": suite,
        "bazel": version,
        "packages": versions,
        "download_bytes": size,
        "disk_bytes": on_disk,
        "modules": {name: str(path) for name, path in modules.items()},
        "jars_left_out": absent,
        "seconds": round(time.monotonic() - start, 1),
    }
    part = folder / "complete.json.part"
    part.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
    part.rename(folder / "complete.json")
    say(f"{version} is ready in {folder} after {time.monotonic() - start:.0f} s")


def smoke(folder: Path, modules: Iterable[str]) -> str:
    """Start the server in a throw-away workspace and build one genrule. Returns what Bazel calls itself."""
    work = folder / "smoke"
    discard(work)
    (work / "w").mkdir(parents=True)
    # Bazel refuses an override for a module that nothing depends on; so depend on each.
    needs = "".join(f'bazel_dep(name = "{n}", version = "0")\n' for n in sorted(modules))
    (work / "w/MODULE.bazel").write_text('module(name = "smoke", version = "0")\n' + needs)
    (work / "w/BUILD.bazel").write_text('genrule(name = "g", outs = ["o"], cmd = "echo ok > $@")\n')
    env = {**os.environ, "HOME": str(work)}
    bazel: list[str | Path] = [folder / "bin/bazel", f"--output_user_root={work}/out", "--max_idle_secs=5"]
    try:
        done = run([*bazel, "build", "--noshow_progress", "//:g"], env=env, cwd=work / "w", check=False)
        if done.returncode:
            tail = "\n  ".join(done.stderr.splitlines()[-12:])
            raise Failure(
                f"the Bazel that was set up does not run here:\n  {tail}\n"
                "  name an installed Bazel with PYPTO_BAZEL=/path/to/bazel"
            )
        said = run([*bazel, "--version"], env=env, cwd=work / "w").stdout.strip()
        run([*bazel, "shutdown"], env=env, cwd=work / "w", check=False)
    finally:
        discard(work)
    return said
