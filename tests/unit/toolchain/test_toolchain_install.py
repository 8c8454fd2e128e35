"""Installing: fetching from a folder, atomicity, repetition, errors."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from toolchain_stand_ins import Packages

from pypto.toolchain import apt, fetch, pip
from pypto.toolchain.cli import main
from pypto.toolchain.client import Result
from pypto.toolchain.errors import FetchError, UnpackError
from pypto.toolchain.install import check, install, installed
from pypto.toolchain.lock import Lock
from pypto.toolchain.tree import Tree


@pytest.fixture(autouse=True)
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's caches: downloads are kept in a folder of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return tmp_path / "caches/pypto"


def listing(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_install_is_idempotent(packages: Packages, tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    install(packages.lock, prefix, packages.folder)
    before = {path: path.stat().st_mtime_ns for path in prefix.rglob("*") if path.name != ".lock"}
    install(packages.lock, prefix, tmp_path / "not used")
    assert before == {path: path.stat().st_mtime_ns for path in prefix.rglob("*") if path.name != ".lock"}
    assert sorted(os.listdir(prefix)) == [".lock", "bindings.json", "descriptor.json", "gcc", "isa", "ptoas"]


def test_check_finds_a_changed_file(packages: Packages, tmp_path: Path) -> None:
    toolchain = install(packages.lock, tmp_path / "prefix", packages.folder)
    assert check(toolchain) == []
    with open(tmp_path / "prefix/isa/include/pto/pto-inst.hpp", "ab") as file:
        file.write(b"x")
    assert check(toolchain) == ["isa"]
    install(packages.lock, tmp_path / "prefix", packages.folder, force=True)
    assert check(toolchain) == []


def test_a_moved_lock_replaces_only_the_set_that_moved(packages: Packages, tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    install(packages.lock, prefix, packages.folder)
    kept = (prefix / "gcc/set.json").stat().st_mtime_ns
    moved = Lock({**packages.lock.sets, "isa": replace(packages.lock.sets["isa"], version="0.1.5")})
    assert installed(moved, prefix) is None
    assert install(moved, prefix, packages.folder).descriptor.sets["isa"].version == "0.1.5"
    assert (prefix / "gcc/set.json").stat().st_mtime_ns == kept


@pytest.mark.parametrize("after", [0, 3, 9])
def test_a_failure_in_the_middle_leaves_nothing_complete(
    packages: Packages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """A full disk while unpacking: one error, no set and no descriptor, and the next run completes it."""
    prefix = tmp_path / "prefix"
    real = Tree.add
    left = after

    def failing(self: Tree, path: str, data: bytes, executable: bool = False) -> None:
        nonlocal left
        if left == 0:
            raise OSError(28, "No space left on device")
        left -= 1
        real(self, path, data, executable)

    monkeypatch.setattr(Tree, "add", failing)
    with pytest.raises(UnpackError, match="No space left on device"):
        install(packages.lock, prefix, packages.folder)
    assert sorted(os.listdir(prefix)) == [".lock"]
    monkeypatch.undo()
    assert check(install(packages.lock, prefix, packages.folder)) == []


_KILLED = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = {path!r}
from toolchain_stand_ins import Packages, make_packages
from pypto.toolchain import unpack
from pypto.toolchain.install import install
from pypto.toolchain.lock import parse_lock
steps = int(sys.argv[1])
real = os.rename
def killing(a, b):
    global steps
    if steps == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    steps -= 1
    real(a, b)
os.rename = killing
install(parse_lock(Path(sys.argv[2]).read_bytes()), Path(sys.argv[3]), Path(sys.argv[4]))
"""


def test_a_killed_installation_is_completed_by_the_next(packages: Packages, tmp_path: Path) -> None:
    """Killed in front of each rename in turn, at which a reader could see a new state."""
    lock = tmp_path / "lock.json"
    lock.write_bytes(packages.lock.to_bytes())
    expected = listing(packages_installed(packages, tmp_path / "expected"))
    killed = 0
    for steps in range(40):
        prefix = tmp_path / f"prefix{steps}"
        argv = [sys.executable, "-c", _KILLED.format(path=sys.path), str(steps), lock, prefix, packages.folder]
        done = subprocess.run(argv, capture_output=True, check=False)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()
        killed += 1
        assert installed(packages.lock, prefix) is None
        install(packages.lock, prefix, packages.folder)
        assert listing(prefix) == expected
    assert killed >= 8


def packages_installed(packages: Packages, prefix: Path) -> Path:
    install(packages.lock, prefix, packages.folder)
    return prefix


def test_the_second_of_two_installations_waits(packages: Packages, tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    prefix.mkdir()
    lock = tmp_path / "lock.json"
    lock.write_bytes(packages.lock.to_bytes())
    argv = [sys.executable, "-m", "pypto.toolchain", "install", "--prefix", prefix, "--lock", lock]
    with open(prefix / ".lock", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        child = subprocess.Popen(
            [*argv, "--files", packages.folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert child.stderr is not None
        assert "waiting for it" in child.stderr.readline()
        assert sorted(os.listdir(prefix)) == [".lock"]
        fcntl.flock(held, fcntl.LOCK_UN)
    out, _ = child.communicate(timeout=60)
    assert child.returncode == 0
    assert out == f"{prefix}/descriptor.json\n"


def test_a_tampered_file_is_named(packages: Packages, tmp_path: Path) -> None:
    (wheel,) = packages.lock.sets["isa"].of("wheel")
    data = bytearray((packages.folder / wheel.file).read_bytes())
    data[40] ^= 1
    (packages.folder / wheel.file).write_bytes(data)
    with pytest.raises(
        FetchError, match=rf"{wheel.file} in .* differs from the lock: .* the lock says .*{wheel.sha256}"
    ):
        install(packages.lock, tmp_path / "prefix", packages.folder)
    assert not (tmp_path / "prefix/isa").exists()


def test_a_wheel_that_left_the_index_is_named_with_the_remedy(
    packages: Packages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (wheel,) = packages.lock.sets["isa"].of("wheel")
    (packages.folder / wheel.file).unlink()
    said = "ERROR: Could not find a version that satisfies the requirement x (from versions: 9)\n"
    monkeypatch.setattr(pip, "run_client", lambda *a, **k: Result(1, said + "ERROR: No matching distribution found"))
    with pytest.raises(FetchError) as caught:
        install(packages.lock, tmp_path / "prefix", packages.folder)
    message = str(caught.value)
    assert message.startswith(f"the locked file {wheel.file} is not on the package index that pip uses\n")
    for remedy in ("pip config", "--files DIR", "python -m pypto.toolchain lock", wheel.sha256):
        assert remedy in message


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE", "serves other bytes"),
        ("WARNING: Retrying after NewConnectionError\nERROR: No matching distribution found", "could not fetch"),
        ("ERROR: Could not install packages due to an OSError: [Errno 28]", "Errno 28"),
    ],
)
def test_other_pip_failures(
    packages: Packages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, message: str
) -> None:
    (wheel,) = packages.lock.sets["isa"].of("wheel")
    (packages.folder / wheel.file).unlink()
    monkeypatch.setattr(pip, "run_client", lambda *a, **k: Result(1, said))
    with pytest.raises(FetchError, match=message):
        install(packages.lock, tmp_path / "prefix", packages.folder)


def test_no_pip(packages: Packages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (wheel,) = packages.lock.sets["isa"].of("wheel")
    (packages.folder / wheel.file).unlink()
    monkeypatch.setattr(pip.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(FetchError, match=r"no pip: .* apt install python3-pip"):
        install(packages.lock, tmp_path / "prefix", packages.folder)


class FakeApt:
    """An archive that lacks the packages in `gone` and serves those of a folder."""

    gone: tuple[str, ...] = ()
    folder: Path

    def __init__(self, where: Path, architecture: str, suite: str) -> None:
        assert (architecture, suite) == ("amd64", "bookworm")

    def open(self) -> None: ...

    def has(self, name: str, version: str) -> bool:
        return name not in self.gone

    def download(self, packages: dict[str, str], into: Path, progress: object) -> Result | None:
        if self.gone:
            return Result(100, f"E: Version '1' for '{self.gone[0]}' was not found")
        for name, version in packages.items():
            file = f"{name}_{version.replace(':', '%3a')}_amd64.deb"
            (into / file).write_bytes((self.folder / file).read_bytes())
        return None


@pytest.fixture
def fake_apt(packages: Packages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[FakeApt]:
    """apt serves the stand-in packages; the folder given with --files holds wheels only."""
    archive = tmp_path / "archive"
    archive.mkdir()
    for path in packages.folder.glob("*.deb"):
        path.rename(archive / path.name)
    fake = type("Fake", (FakeApt,), {"folder": archive})
    monkeypatch.setattr(fetch, "Apt", fake)
    return fake


def test_packages_come_from_apt(packages: Packages, tmp_path: Path, fake_apt: type[FakeApt]) -> None:
    assert check(install(packages.lock, tmp_path / "prefix", packages.folder)) == []


def test_what_was_fetched_once_is_kept(
    packages: Packages, tmp_path: Path, caches: Path, fake_apt: type[FakeApt]
) -> None:
    """A second installation asks no archive; a kept file that was damaged is fetched again."""
    install(packages.lock, tmp_path / "first", packages.folder)
    (file,) = [file for file in packages.lock.sets["gcc"].files if file.name == "libisl23"]
    kept = caches / "downloads" / file.file
    content = kept.read_bytes()
    fake_apt.gone = ("libisl23",)
    assert check(install(packages.lock, tmp_path / "second", packages.folder)) == []
    for damaged in (b"\0" * len(content), content[:-1]):
        kept.write_bytes(damaged)
        with pytest.raises(FetchError, match="no longer carries"):
            install(packages.lock, tmp_path / "third", packages.folder)
    fake_apt.gone = ()
    assert check(install(packages.lock, tmp_path / "third", packages.folder)) == []
    assert kept.read_bytes() == content
    assert not list(kept.parent.glob(".*"))


def test_downloads_that_cannot_be_kept_are_no_error(
    packages: Packages, tmp_path: Path, caches: Path, fake_apt: type[FakeApt]
) -> None:
    caches.mkdir(parents=True)
    (caches / "downloads").write_text("in the way")
    assert check(install(packages.lock, tmp_path / "prefix", packages.folder)) == []


def test_a_package_that_left_the_mirror_is_named_with_the_remedy(
    packages: Packages, tmp_path: Path, fake_apt: type[FakeApt]
) -> None:
    fake_apt.gone = ("linux-libc-dev",)
    with pytest.raises(FetchError) as caught:
        install(packages.lock, tmp_path / "prefix", packages.folder)
    message = str(caught.value)
    (file,) = [file for file in packages.lock.sets["gcc"].files if file.name == "linux-libc-dev"]
    assert f"{file.file}, sha256 {file.sha256}" in message
    for remedy in ("PYPTO_DEBIAN_MIRROR=URI", "--files DIR", "python -m pypto.toolchain lock"):
        assert remedy in message
    assert "libisl23" not in message


def test_a_mirror_that_serves_other_bytes_is_refused(
    packages: Packages, tmp_path: Path, fake_apt: type[FakeApt]
) -> None:
    (file,) = [file for file in packages.lock.sets["gcc"].files if file.name == "libisl23"]
    with open(fake_apt.folder / file.file, "ab") as data:
        data.write(b"\n")
    with pytest.raises(FetchError, match=f"{file.file} as downloaded differs from the lock"):
        install(packages.lock, tmp_path / "prefix", packages.folder)


def test_no_apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(FetchError, match=r"apt-get, apt-cache, apt-config not found: .*\n.* --files DIR"):
        apt.Apt(tmp_path, "amd64", "bookworm")


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("Could not resolve 'deb.example'", "no network, or a proxy"),
        ("The following signatures couldn't be verified: NO_PUBKEY 1", "upgrade the package debian-archive-keyring"),
        ("Release file for x is expired (invalid since 3d)", "Acquire::Check-Valid-Until"),
        ("404 Not Found", "carries no suite bookworm: name an archive with PYPTO_DEBIAN_MIRROR=URI"),
    ],
)
def test_an_index_that_cannot_be_read_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, hint: str
) -> None:
    monkeypatch.setattr(apt.shutil, "which", lambda name: name)
    monkeypatch.setattr(apt, "_output", lambda argv: "")
    monkeypatch.setattr(apt, "keyring", lambda: Path("/keys"))
    monkeypatch.setattr(apt, "run_client", lambda *a, **k: Result(100, f"E: {said}"))
    monkeypatch.setenv(apt.MIRROR_VARIABLE, "https://archive.example/debian")
    with pytest.raises(FetchError) as caught:
        apt.Apt(tmp_path, "amd64", "bookworm").open()
    assert said in str(caught.value) and hint in str(caught.value)


def test_a_folder_that_cannot_be_written_is_named(packages: Packages, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnpackError, match=r"cannot write to .*file/prefix.* --prefix"):
        install(packages.lock, tmp_path / "file/prefix", packages.folder)


def test_files_folder_that_does_not_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["install", "--prefix", str(tmp_path / "p"), "--files", str(tmp_path / "none")]) == 1
    assert "error: --files names no folder" in capsys.readouterr().err


def test_fetch_set_and_describe_as_bazel_calls_them(
    packages: Packages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without HOME, into a folder that exists, the lock named; the descriptor equals the installer's."""
    monkeypatch.delenv("HOME", raising=False)
    lock = tmp_path / "lock.json"
    lock.write_bytes(packages.lock.to_bytes())
    for name in ("gcc", "isa", "ptoas"):
        into = tmp_path / f"external-{name}"
        into.mkdir()
        (into / "BUILD.bazel").write_text("# stays\n")
        argv = ["fetch-set", name, "--into", str(into), "--lock", str(lock), "--files", str(packages.folder)]
        assert main(argv) == 0
        assert (into / "BUILD.bazel").read_text() == "# stays\n"
        assert not [entry for entry in os.listdir(into) if entry.startswith(".")]
    roots = [text for name in ("gcc", "isa", "ptoas") for text in (f"--{name}", str(tmp_path / f"external-{name}"))]
    assert main(["describe", *roots, "--out", str(tmp_path / "d.json"), "--bindings", str(tmp_path / "b.json")]) == 0
    install(packages.lock, tmp_path / "prefix", packages.folder)
    assert (tmp_path / "d.json").read_bytes() == (tmp_path / "prefix/descriptor.json").read_bytes()


def test_show_prints_json_and_reports_changes(
    packages: Packages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    toolchain = install(packages.lock, tmp_path / "prefix", packages.folder)
    monkeypatch.setenv("PYPTO_TOOLCHAIN_DESCRIPTOR", str(tmp_path / "prefix/descriptor.json"))
    assert main(["show", "--json"]) == 0
    assert f'"digest": "{toolchain.descriptor.digest}"' in capsys.readouterr().out
    assert main(["show"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [f"{name:<11} {tmp_path}/prefix/{name}.json" for name in ("descriptor", "bindings")]
    (tmp_path / "prefix/isa/extra.hpp").write_text("")
    assert main(["show", "--check"]) == 2
    assert "the files of isa differ" in capsys.readouterr().err


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    assert "python -m pypto.toolchain install" in out and "PYPTO_TOOLCHAIN_FILES" in out
