"""A service of the Remote Execution API on loopback: BuildGrid, PostgreSQL and a buildbox worker in a root of its own.

BuildGrid comes through pip and the worker through apt, both into folders of the test. PostgreSQL is the machine's: its
programs must be installed, and they run as a user without rights.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bazel_setup import unpacked
from bazel_setup.common import Failure
from bazel_setup.packages import Apt, FetchError, closure, download
from bazel_setup.stamp import SUITE

BUILDGRID = ("buildgrid==0.4.4", "psycopg2-binary==2.9.13")
NOBODY = 65534

# What the worker's machine has: a Python, shells and what their scripts use, and the worker. No compiler, no Python
# package.
WORKER_PACKAGES = ("buildbox", "python3.13", "bash", "coreutils", "dash", "debianutils", "findutils", "grep", "sed")
NOT_NEEDED = re.compile(r"(?!(perl|debconf|dpkg|mailcap|media-types|tzdata|netbase|gcc-\d+-base)).*")

CACHE = """\
server:
  - !channel
    address: 127.0.0.1:{port}
    insecure-mode: true
authorization:
  method: none
# More calls at once are refused, and Bazel uploads a tool's thousands of files.
thread-pool-size: 200
{connections}storages:
  - !lru-storage &cas
    size: 2048M
caches:
  - !lru-action-cache &ac
    storage: *cas
    max-cached-refs: 4096
    allow-updates: true
{schedulers}instances:
  - name: ""
    services:
      - !action-cache
        cache: *ac
      - !cas
        storage: *cas
      - !bytestream
        storage: *cas
{services}"""

CONNECTIONS = """\
connections:
  - !sql-connection &sql
    connection-string: {url}
"""

SCHEDULERS = """\
schedulers:
  - !sql-scheduler &scheduler
    sql: *sql
    storage: *cas
    action-cache: *ac
"""

SERVICES = """\
      - !execution
        scheduler: *scheduler
"""


class Unavailable(Exception):
    """This machine cannot do it; the text says why."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def install_buildgrid(folder: Path) -> Path:
    """The folder of programs of an environment that holds BuildGrid."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin/pip", "install", "-q", *BUILDGRID], check=True, capture_output=True)
    return folder / "bin"


@contextlib.contextmanager
def buildgrid(programs: Path, folder: Path, database: str = "") -> Iterator[str]:
    """The address of a server with an empty cache, which also executes actions if it is given a database."""
    port = free_port()
    folder.mkdir()
    settings = CACHE.format(
        port=port,
        connections=CONNECTIONS.format(url=database) if database else "",
        schedulers=SCHEDULERS if database else "",
        services=SERVICES if database else "",
    )
    (folder / "server.yml").write_text(settings)
    if database:
        subprocess.run([programs / "bgd", "migrate", "apply", database], check=True, capture_output=True)
    command = [programs / "bgd", "server", "start", folder / "server.yml"]
    with started(command, folder / "log", lambda: _listens(port)):
        yield f"grpc://127.0.0.1:{port}"


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    """The URL of an empty database.

    Raises:
        Unavailable: PostgreSQL is not installed here.
    """
    found = [shutil.which("initdb"), *map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb"))]
    initdb = next((Path(path).resolve() for path in found if path), None)
    if initdb is None:
        raise Unavailable("no initdb of PostgreSQL on PATH or below /usr/lib/postgresql")
    folder = Path(tempfile.mkdtemp(prefix="pypto-postgres-"))
    other = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
    try:
        if other:
            os.chown(folder, NOBODY, NOBODY)
        data, port = folder / "data", free_port()
        initial = [initdb, "-D", data, "-A", "trust", "-U", "pypto", "-E", "UTF8", "--no-sync"]
        subprocess.run(initial, check=True, capture_output=True, cwd=folder, **other)  # type: ignore[call-overload]
        command = [initdb.with_name("postgres"), "-D", data, "-p", str(port), "-h", "127.0.0.1", "-k", "", "-F"]
        with started(command, folder / "log", lambda: _listens(port), cwd=folder, **other):
            yield f"postgresql+psycopg2://pypto@127.0.0.1:{port}/postgres"
    finally:
        shutil.rmtree(folder)


def worker_root(folder: Path) -> Path:
    """A root with what `WORKER_PACKAGES` bring, unpacked from Debian packages of a suite that is not the machine's.

    Raises:
        Unavailable: apt is missing or cannot fetch them, or this machine does not let us enter a root.
    """
    probe = subprocess.run([*_namespaces(), "true"], capture_output=True, text=True, check=False)
    if probe.returncode:
        raise Unavailable(f"no mount namespace: {probe.stderr.strip()}")
    try:
        apt = Apt(folder / "apt", "amd64", SUITE)
        apt.open()
        packages, _ = closure(apt, WORKER_PACKAGES, NOT_NEEDED)
        root = folder / "root"
        unpacked.unpack(download(apt, packages, folder / "debs"), root)
    except (Failure, FetchError) as failure:
        raise Unavailable(str(failure)) from None
    (root / "usr/bin/python3").symlink_to("python3.13")
    (root / "usr/bin/which").symlink_to("which.debianutils")
    (root / "etc/passwd").write_text("root:x:0:0:root:/:/bin/sh\n")
    for name in ("dev", "proc", "tmp"):
        (root / name).mkdir(exist_ok=True)
    return root


@contextlib.contextmanager
def worker(root: Path, address: str, log: Path) -> Iterator[None]:
    """A worker that executes the server's actions in `root`."""
    inside = [
        *("/usr/bin/buildbox-worker", f"--remote={address.replace('grpc:', 'http:')}"),
        *("--buildbox-run=/usr/bin/buildbox-run-hosttools", "--runner-arg=--disable-localcas"),
        *("--platform=OSFamily=linux", "--platform=ISA=x86-64", "--concurrent-jobs=2", "worker"),
    ]
    script = 'mount --rbind /dev "$0/dev" && mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    # `unshare` ignores SIGTERM; the kernel ends what it started, and all of that one's children.
    command = [*_namespaces(), "/bin/sh", "-c", script, str(root), *inside]
    with started(command, log, lambda: True, end=signal.SIGKILL, env=environment):
        yield


@contextlib.contextmanager
def started(
    command: list[Path | str], log: Path, ready: Callable[[], bool], end: int = signal.SIGTERM, **how: object
) -> Iterator[None]:
    """Run a program until the block ends; it is entered when the program is ready, and fails when it ended before."""
    with open(log, "wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, **how)  # type: ignore[call-overload]
    try:
        for _ in range(600):
            assert process.poll() is None, log.read_text()
            if ready():
                break
            time.sleep(0.1)
        else:
            raise AssertionError(f"{command[0]} is not ready after a minute: {log.read_text()}")
        yield
        assert process.poll() is None, log.read_text()
    finally:
        process.send_signal(end)
        process.wait()


def _namespaces() -> list[str]:
    """The front of a command that gets mounts of its own and takes its children along when it ends."""
    mapped = [] if os.getuid() == 0 else ["--map-root-user"]
    return ["unshare", *mapped, "--mount", "--pid", "--fork", "--kill-child"]


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
