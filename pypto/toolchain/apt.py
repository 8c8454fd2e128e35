"""Debian packages through the machine's own apt, without root and without touching its state.

Mirrors, proxies and certificates are those the machine is configured for. apt checks the archive's signatures and the
files' checksums; the caller compares each file with what it expects. `tools/bazel` uses this module too.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pypto.toolchain.client import Result, run_client
from pypto.toolchain.errors import FetchError
from pypto.toolchain.progress import Progress, say

MIRROR_VARIABLE = "PYPTO_DEBIAN_MIRROR"

Stanza = Mapping[str, str]
"""The fields of one package in the archive's index."""

_BATCH = 8


@dataclass(frozen=True)
class Remedies:
    """What the user can do, in the words of the command that fetches: each completes "...: <remedy>"."""

    archive: str = f"name an archive with {MIRROR_VARIABLE}=URI"
    expired: str = 'set Acquire::Check-Valid-Until "false" in apt\'s configuration to accept it'
    otherwise: str = "get the files elsewhere and name their folder with --files DIR"


class Apt:
    """apt for one architecture and suite, with its state, cache, sources and hooks all inside one folder.

    Args:
        where: an existing or new folder; the caller removes it.
        architecture: Debian's name of it, such as ``amd64``.
        suite: such as ``bookworm``.
        archive: URI of the archive; by default those of `mirrors`, the first that has the suite.
        accept_expired: accept a signed index past its date.
        remedies: what errors advise.

    Raises:
        FetchError: apt's programs are missing.
    """

    def __init__(
        self,
        where: Path,
        architecture: str,
        suite: str,
        *,
        archive: str | None = None,
        accept_expired: bool = False,
        remedies: Remedies | None = None,
    ) -> None:
        self._remedies = remedies or Remedies()
        missing = [tool for tool in ("apt-get", "apt-cache", "apt-config") if not shutil.which(tool)]
        if missing:
            raise FetchError(
                f"{', '.join(missing)} not found: Debian packages are fetched with apt\n"
                f"  on a machine without apt, {self._remedies.otherwise}"
            )
        self._where = where
        self._suite = suite
        self._archives = [archive.rstrip("/") + "/"] if archive else mirrors()
        self._configure(architecture, accept_expired)
        self._env = {**os.environ, "APT_CONFIG": str(where / "apt.conf"), "LC_ALL": "C"}

    def _configure(self, architecture: str, accept_expired: bool) -> None:
        where = self._where
        for part in ("lists/partial", "archives/partial", "etc/parts", "log"):
            (where / part).mkdir(parents=True, exist_ok=True)
        for part in ("status", "etc/empty"):
            (where / part).touch()
        # Of the host's settings only how to fetch (proxies, certificates, retries): none of its hooks or pins.
        dump = _output(["apt-config", "dump"])
        keep = [line for line in dump.splitlines() if re.match(r'Acquire::[^"]* "[^"]*";$', line)]
        settings: dict[str, str | Path] = {
            "Dir::Etc::main": where / "etc/empty",
            "Dir::Etc::parts": where / "etc/parts",
            "Dir::Etc::sourcelist": where / "etc/sources.list",
            "Dir::Etc::sourceparts": where / "etc/parts",
            "Dir::Etc::preferences": where / "etc/empty",
            "Dir::Etc::preferencesparts": where / "etc/parts",
            "Dir::State": where,
            "Dir::State::lists": where / "lists",
            "Dir::State::status": where / "status",
            "Dir::State::extended_states": where / "extended_states",
            "Dir::Cache": where,
            "Dir::Cache::archives": where / "archives",
            "Dir::Log": where / "log",
            "APT::Architecture": architecture,
            "APT::Install-Recommends": "false",
            "APT::Get::AllowUnauthenticated": "false",
            "Acquire::AllowInsecureRepositories": "false",
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
            "Acquire::http::Timeout": "30",
            "Acquire::https::Timeout": "30",
        }
        if accept_expired:
            settings["Acquire::Check-Valid-Until"] = "false"
        if os.geteuid() == 0:  # apt's download user could not enter a folder below root's home
            settings["APT::Sandbox::User"] = "root"
        lines = [
            "#clear APT::Architectures;",
            *keep,
            *(f'{key} "{value}";' for key, value in settings.items()),
            f'APT::Architectures {{ "{architecture}"; }};',
        ]
        (where / "apt.conf").write_text("\n".join([*lines, ""]))

    def open(self) -> None:
        """Read the suite's index from the first archive that has it.

        Raises:
            FetchError: no archive is configured, none can be reached, none carries the suite, or its signature is bad.
        """
        if not self._archives:
            raise FetchError(
                f"apt on this machine names no Debian archive: {self._remedies.archive}, or {self._remedies.otherwise}"
            )
        say(f"reading the package index of Debian {self._suite}")
        trouble = ""
        for uri in self._archives:
            (self._where / "etc/sources.list").write_text(f"deb [signed-by={keyring()}] {uri} {self._suite} main\n")
            done = self._run("apt-get", "update", "-q", "-o", "APT::Update::Error-Mode=any")
            if done.status == 0:
                return
            trouble += done.lines(3)
        raise FetchError(f"apt could not read the index of Debian {self._suite}:{trouble}{self._hint(trouble)}")

    def newest(self, names: Sequence[str]) -> dict[str, Stanza]:
        """The suite's newest version of each package.

        Raises:
            FetchError: the suite does not carry one of them.
        """
        stanzas = self._show(*names)
        if gone := [name for name in names if name not in stanzas]:
            raise FetchError(
                f"Debian {self._suite} on this mirror carries no package {', '.join(gone)}\n"
                f"  {self._remedies.archive}, or {self._remedies.otherwise}"
            )
        return stanzas

    def solve(self, names: Sequence[str]) -> dict[str, Stanza]:
        """Every package that apt would install for these on an empty machine, in those versions.

        Raises:
            FetchError: the suite does not carry one of them, or what one needs.
        """
        done = self._run("apt-get", "-s", "install", *names)
        if done.status:
            raise FetchError(f"apt finds no way to install {' '.join(names)} of Debian {self._suite}:{done.lines()}")
        installed = re.findall(r"^Inst (\S+) \((\S+)", done.output, re.M)
        return self._show(*(f"{name}={version}" for name, version in installed))

    def has(self, name: str, version: str) -> bool:
        """Whether the index lists exactly this version."""
        shown = self._run("apt-cache", "show", f"{name}={version}")
        return re.search(rf"^Version: {re.escape(version)}$", shown.output, re.M) is not None

    def download(self, packages: Mapping[str, str], into: Path, progress: Progress | None) -> Result | None:
        """Download packages (name to version) into a folder; the result of the first failing run, or None."""
        names = list(packages)
        for at in range(0, len(names), _BATCH):
            wanted = [f"{name}={packages[name]}" for name in names[at : at + _BATCH]]
            done = self._run("apt-get", "download", "-q", *wanted, cwd=into, watch=[into], progress=progress)
            if done.status:
                return done
        return None

    def _show(self, *names: str) -> dict[str, Stanza]:
        shown = self._run("apt-cache", "show", "--no-all-versions", *names)
        stanzas = (dict(re.findall(r"^(\S+): (.*)$", block, re.M)) for block in shown.output.split("\n\n"))
        return {fields["Package"]: fields for fields in stanzas if "Package" in fields}

    def _hint(self, text: str) -> str:
        if re.search(r"resolv|connect|unreachable|timed out|timeout", text, re.I):
            return (
                "\n  the archive cannot be reached: no network, or a proxy that apt is not told about; "
                f"{self._remedies.archive}, or {self._remedies.otherwise}"
            )
        if "NO_PUBKEY" in text or "not signed" in text:
            return "\n  the suite's signing key is unknown here: upgrade the package debian-archive-keyring"
        if "expired" in text or "not valid yet" in text:
            return (
                "\n  the index is past its date (a frozen mirror), or this machine's clock is wrong: "
                f"{self._remedies.expired}"
            )
        if "404" in text or "Release file" in text:
            return f"\n  the archive carries no suite {self._suite}: {self._remedies.archive}"
        return ""

    def _run(
        self, *argv: str, cwd: Path | None = None, watch: Sequence[Path] = (), progress: Progress | None = None
    ) -> Result:
        return run_client(argv, env=self._env, cwd=cwd, watch=watch, progress=progress)


def mirrors() -> list[str]:
    """Base URIs of Debian's main archive: the environment's choice, else what this machine's apt is configured for."""
    if named := os.environ.get(MIRROR_VARIABLE):
        return [named.rstrip("/") + "/"]
    found = []
    listing = _output(["apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN)|$(LABEL)|$(CREATED_BY)"])
    for line in listing.splitlines():
        uri, _, rest = line.partition(" ")
        origin, label, kind = [*rest.split("|"), "", ""][:3]
        if kind == "Packages" and origin in ("", "Debian") and "Security" not in label:
            found.append(uri)
    if not found:  # `apt-get update` never ran here, so only the sources tell
        for path in [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]:
            if path.suffix in (".list", ".sources") and path.is_file():
                for line in path.read_text(errors="replace").splitlines():
                    words = line.split()
                    if words[:1] in (["deb"], ["URIs:"]):
                        found += [word for word in words[1:] if "://" in word]
    usable = []
    for uri in found:
        uri = uri.rstrip("/") + "/"
        if "security" not in uri and uri not in usable and re.match(r"(https?|file|mirror\S*)://?", uri):
            usable.append(uri)
    return usable


def keyring() -> Path:
    """The file of Debian's archive keys."""
    for name in ("debian-archive-keyring.pgp", "debian-archive-keyring.gpg"):
        path = Path("/usr/share/keyrings") / name
        if path.is_file():
            return path
    raise FetchError("no Debian archive keys in /usr/share/keyrings: install the package debian-archive-keyring")


def _output(argv: Sequence[str]) -> str:
    return subprocess.run(argv, capture_output=True, text=True, errors="replace", check=False).stdout
